"""An interpreter over several calls: what comes back, what stays, what a reset forgets."""

import json
import os
import random
import sys
from typing import Any

from support import InterpreterTest


class ExecuteTest(InterpreterTest):
    """What comes of running code."""

    def check(self, code: str, result: object) -> None:
        """Asserts the value of the last line."""
        outcome = self.run_code(code)
        self.assertEqual((json.loads(outcome.result), outcome.exception), (result, None), code)

    def check_exception(self, code: str, *words: str) -> None:
        """Asserts what the text of an exception says, in this order, and only about the code."""
        outcome = self.run_code(code)
        text, end = outcome.exception or "", 0
        for word in words:
            end = text.find(word, end)
            self.assertGreaterEqual(end, 0, f"{word!r} is not in {text}")
        self.assertNotIn("interpreter/", text)
        self.assertEqual(outcome.result, "null")

    def test_the_last_expression_is_the_result(self) -> None:
        for code, result in (
            ("1 + 1", 2),
            ("x = 1\nx + 1", 2),
            ("x = 1; x", 1),
            ("x = 1", None),
            ("", None),
            ("# nothing", None),
            ("'only text'", "only text"),
            ("'''doc'''\n1", 1),
            ("for i in range(3): i", None),
            ("if True:\n    1", None),
            ("(1,\n 2\n)", [1, 2]),
            ("None", None),
            ("(y := 3)", 3),
            ("from __future__ import annotations\n1", 1),
        ):
            self.check(code, result)

    def test_variables_live_on(self) -> None:
        for code, result in (
            ("import math\nx = [1]", None),
            ("def f(n): return x + [n]", None),
            ("class P: pass", None),
            ("x.append(2); f(3)", [1, 2, 3]),
            ("import pickle; type(pickle.loads(pickle.dumps(P()))) is P", True),
            ("__name__", "__main__"),
            ("1 / 0", None),
        ):
            self.assertEqual(json.loads(self.run_code(code).result), result)
        self.check("math.floor(2.5) + len(x)", 4)

    def test_the_first_call_says_that_it_is(self) -> None:
        self.assertEqual([self.run_code("1").fresh for _ in range(3)], [True, False, False])
        self.session.reset()
        self.assertTrue(self.run_code("1").fresh)

    def test_exceptions_name_the_line(self) -> None:
        for code, words in (
            ("x = 1\ny = x / 0", ("line 2, in <module>", "y = x / 0", "ZeroDivisionError")),
            ("x = = 1", ("line 1", "x = = 1", "SyntaxError: invalid syntax")),
            ("x = 1\nif x:\nx", ("line 3", "IndentationError")),
            ("1\nreturn 1", ("line 2", "return 1", "SyntaxError: 'return' outside function")),
            ("a\0b", ("null bytes",)),
            ("raise KeyboardInterrupt", ("KeyboardInterrupt",)),
            ("raise GeneratorExit", ("GeneratorExit",)),
            ("def f(): f()\nf()", ("in f", "RecursionError")),
            ("x = [0] * 10**12\nx * 10**6", ("line 1", "MemoryError")),
            ("raise BaseExceptionGroup('g', [KeyboardInterrupt()])", ("g (1 sub-exception)",)),
            ("import nowhere_to_be_found", ("ModuleNotFoundError",)),
            ("open('/etc/nothing')", ("line 1", "FileNotFoundError")),
        ):
            self.check_exception(code, *words)

    def test_exceptions_name_their_cause_and_the_lines_of_earlier_calls(self) -> None:
        self.run_code("\ndef half(n):\n    return n / 0")
        chain = "try: half(1)\nexcept Exception as e: raise ValueError('no') from e"
        self.check_exception(
            chain, "<call 2>", "line 1, in <module>", "<call 1>", "line 3, in half", "return n / 0",
            "ZeroDivisionError", "direct cause", "line 2, in <module>", "ValueError: no",
        )  # fmt: skip

    def test_exceptions_that_break_are_told_as_such(self) -> None:
        hostile = "class E(Exception):\n    def __str__(self): raise ValueError\n"
        self.check_exception(hostile + "raise E", "line 3", "E: <exception str() failed>")
        loop = "class E(Exception):\n    @property\n    def __cause__(self): raise SystemExit\n"
        self.check_exception(loop + "raise E", "E, which cannot be shown: SystemExit")

    def test_a_long_exception_loses_its_middle(self) -> None:
        outcome = self.run_code("raise ValueError('a' * 10**6 + 'z')")
        self.assertLess(len(outcome.exception or ""), 20_000)
        self.assertIn("bytes are left out here", outcome.exception or "")
        self.assertTrue((outcome.exception or "").endswith("az\n"))

    def test_code_that_ends_itself_has_a_status(self) -> None:
        for code, status, stderr in (
            ("import sys; sys.exit()", 0, ""),
            ("raise SystemExit(3)", 3, ""),
            ("raise SystemExit(True)", 1, ""),
            ("raise SystemExit('bye')", 1, "bye\n"),
            ("def f(): raise SystemExit(7)\nf()", 7, ""),
        ):
            outcome = self.run_code(code)
            self.assertIsNone(outcome.exception)
            self.assertEqual((outcome.ended, outcome.stderr), (status, stderr))
        self.check("1 + 1", 2)

    def test_code_that_breaks_its_surroundings_breaks_no_more(self) -> None:
        lost = "import sys; del sys.modules['__main__']"
        for code in ("globals().clear()", lost, "del __name__"):
            self.run_code(code)
            self.check("1 + 1", 2)

    def test_files_are_in_the_folder(self) -> None:
        self.check("open('a.txt', 'w').write('abc')", 3)
        with open(os.path.join(self.folder, "a.txt")) as file:
            self.assertEqual(file.read(), "abc")

    def test_a_missing_folder_keeps_no_code_from_running(self) -> None:
        self.folder = os.path.join(self.folder, "none")
        self.session = self.new_session()
        self.check("1 + 1", 2)

    def test_chance_begins_when_the_interpreter_wakes(self) -> None:
        def first() -> Any:
            random.seed(1)
            self.session = self.new_session()
            return self.run_code("import random; random.random()").result

        self.assertNotEqual(first(), first())

    def test_long_numbers_are_written(self) -> None:
        self.check("len(str(10**5000))", 5001)


class ResetTest(InterpreterTest):
    """What a reset forgets."""

    def check_forgotten(self, change: str, look: str) -> None:
        """Asserts that a change is seen before a reset and not after it."""
        self.session.reset()
        before = self.run_code(look).result
        self.run_code(change)
        self.assertNotEqual(self.run_code(look).result, before, change)
        self.session.reset()
        self.assertEqual(self.run_code(look).result, before, change)

    def test_everything_is_forgotten(self) -> None:
        with open(os.path.join(self.folder, "own_module.py"), "w") as file:
            file.write("x = 1")
        sys.path.insert(0, self.folder)
        self.session = self.new_session()
        for change, look in (
            ("x = 1", "'x' in globals()"),
            ("import own_module", "import sys; 'own_module' in sys.modules"),
            ("import math; math.pi = 3", "import math; math.pi"),
            ("import math; del math.pi", "import math; hasattr(math, 'pi')"),
            ("import builtins; builtins.more = 1", "import builtins; hasattr(builtins, 'more')"),
            ("import sys; del sys.modules['json']", "import sys; 'json' in sys.modules"),
            ("import sys; sys.path.append('/x')", "import sys; len(sys.path)"),
            ("import sys; sys.path = 1", "import sys; type(sys.path).__name__"),
            ("import sys; sys.modules = {}", "import sys; 'json' in sys.modules"),
            ("import linecache; linecache.cache = 1", "1 + 1"),
            ("import sys; sys.meta_path.clear()", "import sys; len(sys.meta_path)"),
            ("import sys; sys.setrecursionlimit(500)", "import sys; sys.getrecursionlimit()"),
            ("import sys; sys.more = 1", "import sys; hasattr(sys, 'more')"),
            ("import sys; sys.displayhook = 1", "import sys; sys.displayhook == 1"),
            ("import sys; sys.settrace(lambda *_: None)", "import sys; sys.gettrace() is None"),
            (
                "import decimal; decimal.getcontext().prec = 3",
                "import decimal; str(decimal.Decimal(1) / 7)",
            ),
            ("import os; os.environ['A_B'] = '1'", "import os; 'A_B' in os.environ"),
            ("import os; os.chdir('/')", "import os; os.getcwd() == '/'"),
        ):
            self.check_forgotten(change, look)

    def test_files_stay(self) -> None:
        self.run_code("open('a.txt', 'w').close()")
        self.session.reset()
        self.assertEqual(self.run_code("import os; os.listdir()").result, '["a.txt"]')

    def test_a_reset_may_come_first_and_twice(self) -> None:
        self.session.reset()
        self.session.reset()
        self.assertEqual(self.run_code("1 + 1").result, "2")
