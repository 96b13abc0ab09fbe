"""What an instance begins with: modules side by side, and an interpreter that was warmed up."""

import os
import sys

from interpreter import image
from support import InterpreterTest

WARM_UP = "x = print('a')\ndef f(): pass", "import math\nmath.pi = 3", "1 / 0", "import wave", "{1}"


class ImageTest(InterpreterTest):
    """What is done at the end of a build."""

    def seen(self) -> list[object]:
        """Returns what code can see of its surroundings."""
        lines = "[name for name in linecache.cache if name[0] == '<']"
        look = f"[sorted(globals()), {lines}, len(sys.modules)]"
        outcome = self.run_code(f"import linecache, sys\n{look}")
        more = self.run_code("import math, sys\n[math.pi, 'wave' in sys.modules, __name__]")
        return [outcome.result, outcome.fresh, outcome.stdout, outcome.stderr, more.result]

    def test_a_warm_up_leaves_nothing_to_be_seen(self) -> None:
        sys.modules.pop("wave", None)
        self.session = self.new_session()
        cold = self.seen()
        self.session.rewind()
        for code in WARM_UP:
            self.run_code(code)
        self.session.rewind()
        self.assertEqual(self.seen(), cold)

    def test_calls_are_counted_from_the_first_after_a_warm_up(self) -> None:
        self.run_code("1")
        self.session.rewind()
        self.assertIn('"<call 1>"', self.run_code("1 / 0").exception or "")

    def test_chance_begins_after_a_warm_up(self) -> None:
        def first() -> str:
            self.session.rewind()
            return self.run_code("import random; random.seed(1) or random.random()").result

        def woken() -> str:
            first()
            self.session.rewind()
            return self.run_code("import random; random.random()").result

        self.assertEqual(first(), first())
        self.assertNotEqual(woken(), woken())

    def test_modules_that_are_left_out_do_not_come_back(self) -> None:
        import wave  # noqa: F401

        self.session = self.new_session()
        self.session.leave_out({"wave"})
        del sys.modules["wave"]
        self.session.reset()
        self.assertEqual(self.run_code("import sys\n'wave' in sys.modules").result, "false")

    def test_modules_are_imported_side_by_side(self) -> None:
        for name, text in ("side_one", "x = 1"), ("side_two", "from side_one import x\ny = x + 1"):
            with open(os.path.join(self.folder, f"{name}.py"), "w") as file:
                file.write(text)
        sys.path.insert(0, self.folder)
        image.import_side_by_side(("side_one", "side_two"))
        self.assertEqual(sys.modules["side_two"].y, 2)
        self.assertEqual(sys.modules["side_two"].__spec__.name, "side_two")

    def test_a_memory_of_another_kind_is_not_filled_up(self) -> None:
        size, taken = 0, image.fill_holes()
        while taken:
            block, taken = taken
            size += sys.getsizeof(block)
        self.assertLess(size, 2 * image.HOLES_BYTES_MAX)
