"""Code with its last line apart: the short way, and the way through the tree."""

import ast
import traceback
import unittest
from typing import Any
from unittest import mock

from interpreter import compiling

CODES = (
    "1 + 1", "x = [1]\nx", "x = 1; x", "x = 1", "", "\n\n", "# nothing", "'only text'",
    "'''doc'''\n__doc__", "1\n\n  \n# end", "1 + 1  # one\n", " 1", "x = 1\n  x", "(1,\n 2\n)",
    "x = '''\n1 '''\n", "'''\n1 '''\nx = '''\n2'''", "x = 1 + \\\n2", "x = (\n1)\n[x]",
    "if True:\n    pass\nelse:\n    pass\n5", "if True:\n    1", "for i in range(2): i",
    "@print\nx",
    "def f(): return 1 / 0\nf()", "1 / 0", "x = 1\n\n\ny", "f(a=1", "print(1, end='')",
    "dict(a=1)", "x: int", "x: int = 3", "*range(2), 3", "(y := 3)\ny", "lambda: 0",
    "lambda x=1: x",
    "1\r\n2", "1\r2", "1;", "yield 1", "return 1", "await f()", "a\0b", "1 if", "raise ValueError",
    "import math", "from math import pi\npi", "from __future__ import annotations\n1", "x == 1",
    "not 1", "...", "match 1:\n    case 1: 5", "\u00fc = 1\n\u00fc", "x = 'ü'\nx.nothing", "((((",
    "'a'\n'b'", "try:\n    1\n2", "class A:\n    pass\nA.__name__", "type(1)", "1\n\u00a0",
)  # fmt: skip


class CompiledTest(unittest.TestCase):
    """What comes of code does not depend on how it is compiled."""

    def outcome(self, code: str) -> list[Any]:
        """Returns all that can be seen of a run."""
        variables: dict[str, Any] = {"__builtins__": __builtins__}
        value = failure = None
        try:
            body, last = compiling.compiled(code, "<call 1>")
            if body is not None:
                exec(body, variables)
            if last is not None:
                value = eval(last, variables)
        except BaseException as error:
            failure = "".join(traceback.format_exception_only(error))
        seen = {name: repr(it)[:6] for name, it in variables.items() if name != "__builtins__"}
        return [repr(value)[:6], failure, seen]

    def test_both_ways_come_to_the_same(self) -> None:
        for code in CODES:
            short = self.outcome(code)
            with mock.patch.object(compiling, "_may_be_expression", return_value=False):
                self.assertEqual(short, self.outcome(code), code)

    def test_lines_have_their_numbers(self) -> None:
        for code, line in (("1 / 0", 1), ("x = 1\n\n\nx / 0\n", 4), ("# a\n1 / 0 # b", 2)):
            try:
                self.run_code(code)
            except ZeroDivisionError as error:
                self.assertEqual(traceback.extract_tb(error.__traceback__)[-1].lineno, line)

    def test_a_last_line_that_stands_alone_needs_no_tree(self) -> None:
        with mock.patch.object(ast, "parse", side_effect=AssertionError):
            for code in "1 + 1", "x = 1\nx", "print(1, end='')", "def f(): pass\nf()\n\n":
                compiling.compiled(code, "<call 1>")

    def run_code(self, code: str) -> None:
        """Runs code."""
        body, last = compiling.compiled(code, "<call 1>")
        variables: dict[str, Any] = {}
        if body is not None:
            exec(body, variables)
        if last is not None:
            eval(last, variables)
