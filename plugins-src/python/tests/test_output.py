"""What is printed: where it is kept, and where it ends."""

import io
import os
import sys

from interpreter.output import STDERR_BYTES_MAX, STDOUT_BYTES_MAX, Bounded, bounded
from support import InterpreterTest


class OutputTest(InterpreterTest):
    """The two streams of an interpreter."""

    def check(self, code: str, stdout: str, stderr: str = "") -> None:
        """Asserts what code prints."""
        outcome = self.run_code(f"import sys, os\n{code}")
        self.assertIsNone(outcome.exception)
        self.assertEqual((outcome.stdout, outcome.stderr), (stdout, stderr))

    def test_everything_printed_is_kept(self) -> None:
        for code, stdout, stderr in (
            ("print('ü', end='')", "ü", ""),
            ("print('a', file=sys.stderr)", "", "a\n"),
            ("sys.stdout.buffer.write(b'a\\xff')", "a\ufffd", ""),
            ("print('\\ud800')", "\\ud800\n", ""),
            ("print('a\\r\\nb')", "a\r\nb\n", ""),
            ("sys.__stdout__.write('a'); sys.__stderr__.write('b')", "a", "b"),
            ("import warnings; warnings.warn_explicit('w', UserWarning, 'f', 1)", "",
             "f:1: UserWarning: w\n"),
        ):  # fmt: skip
            self.check(code, stdout, stderr)

    def test_descriptors_are_kept_too(self) -> None:
        self.output.catch_descriptors()
        self.check("os.write(1, b'a'); os.write(2, b'b')", "a", "b")
        other = os.open(os.path.join(self.folder, "f"), os.O_CREAT | os.O_WRONLY)
        self.assertEqual(os.write(other, b"abc"), 3)
        os.close(other)

    def test_streams_live_through_whatever_is_done_to_them(self) -> None:
        for code in (
            "sys.stdout.close()", "sys.stdout = None", "del sys.stdout", "sys.stdin.close()",
            "sys.stdin = 1", "sys.stdout.buffer.close()",
            "try: sys.stdout.detach()\nexcept OSError: pass",
        ):  # fmt: skip
            self.run_code(f"import sys\n{code}")
            self.check("print('still here')", "still here\n")

    def test_a_logger_of_an_earlier_call_still_logs(self) -> None:
        self.run_code("import sys; early = sys.stderr")
        self.check("early.write('late')", "", "late")

    def test_long_output_loses_its_middle(self) -> None:
        code = f"print('a' * {STDOUT_BYTES_MAX}); print('z'); print('e' * 10**6, file=sys.stderr)"
        outcome = self.run_code(f"import sys\n{code}")
        self.assertTrue(outcome.stdout.startswith("aaa") and outcome.stdout.endswith("a\nz\n"))
        self.assertIn("\n… 3 bytes are left out here …\n", outcome.stdout)
        self.assertLess(len(outcome.stdout), STDOUT_BYTES_MAX + 100)
        self.assertLess(len(outcome.stderr), STDERR_BYTES_MAX + 100)

    def test_many_small_pieces_are_as_one(self) -> None:
        kept = Bounded(8)
        for piece in (b"012", b"", b"34", b"5", b"6", b"7", b"89abc", memoryview(b"d")):
            kept.write(piece)
        self.assertEqual(kept.take(), "012345\n… 6 bytes are left out here …\ncd")
        self.assertEqual(kept.take(), "")

    def test_a_text_is_bounded(self) -> None:
        self.assertEqual(bounded("äö", 8), "äö")
        self.assertEqual(bounded("x" * 9, 8), "xxxxxx\n… 1 bytes are left out here …\nxx")

    def test_nobody_answers_at_standard_input(self) -> None:
        outcome = self.run_code("input('name? ')")
        self.assertEqual(outcome.stdout, "name? ")
        self.assertIn("EOFError", outcome.exception or "")

    def test_streams_have_no_number(self) -> None:
        self.run_code("")
        with self.assertRaises(io.UnsupportedOperation):
            sys.stdout.fileno()
