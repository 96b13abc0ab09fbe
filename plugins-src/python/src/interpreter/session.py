"""The interpreter of one conversation: code comes in, what came of it goes out, variables stay."""

import ast
import gc
import linecache
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType, ModuleType

from interpreter import complaint, shelf, value
from interpreter.baseline import Baseline
from interpreter.output import Output
from interpreter.packages import Index, Packages
from interpreter.shelf import Shelf

SOURCES_MAX = 200
"""Calls whose lines are kept for tracebacks; functions of older ones lose them there."""

_MAIN = "__main__"


@dataclass
class Outcome:
    """What came of running code."""

    stdout: str = ""
    stderr: str = ""
    result: str = "null"
    notes: list[str] = field(default_factory=list)
    exception: str | None = None
    ended: int | None = None
    fresh: bool = False
    missing: list[str] = field(default_factory=list)


class Session:
    """An interpreter. Made while the component is built, and woken by the first call."""

    def __init__(self, index: Index, output: Output, folder: str) -> None:
        packages = Shelf()
        shelf.install(packages)
        self._packages, self._output, self._folder = Packages(index, packages), output, folder
        self._calls, self._is_awake, self._is_fresh = 0, False, True
        # The limit is there for servers that read digits of strangers; here a call has its time.
        sys.set_int_max_str_digits(0)
        self._baseline = Baseline()
        self._main = _new_main()
        gc.collect()
        gc.freeze()

    def execute(self, code: str, dependencies: Sequence[object]) -> Outcome:
        """Runs code and tells what came of it, whatever it does.

        Raises a refusal where a dependency cannot be had; the code has not run then.
        """
        self._wake()
        missing = self._packages.install([self._packages.pin(text) for text in dependencies])
        outcome = Outcome(missing=missing, fresh=self._is_fresh)
        self._is_fresh = False
        self._calls += 1
        self._output.install()
        self._run(code, outcome)
        outcome.stdout, outcome.stderr = self._output.take()
        return outcome

    def reset(self) -> None:
        """Forgets variables, imports and packages. Files stay."""
        self._wake()
        self._baseline.restore()
        self._packages.clear()
        linecache.cache.clear()
        self._main, self._is_fresh = _new_main(), True
        self._go_home()

    def _wake(self) -> None:
        """What a build can know of folders and chance is not true where the component runs."""
        if self._is_awake:
            return
        self._is_awake = True
        random.seed()
        self._go_home()

    def _go_home(self) -> None:
        """Without a folder the code runs too; opening a file then says that there is none."""
        if os.path.isdir(self._folder):
            os.chdir(self._folder)

    def _run(self, code: str, outcome: Outcome) -> None:
        try:
            outcome.result, outcome.notes = value.as_json(self._value_of(code))
        except SystemExit as end:
            outcome.ended = _status(end.code)
        except BaseException as error:  # Whatever it is, it is an answer and no end of the plugin.
            outcome.exception = complaint.told(error)

    def _value_of(self, code: str) -> object:
        """Runs code and returns the value of its last line if that is an expression."""
        name = complaint.NAME_FORMAT.format(self._calls)
        self._keep_source(name, code)
        body, last = _split(code, name)
        exec(body, vars(self._main))
        return None if last is None else eval(last, vars(self._main))

    def _keep_source(self, name: str, code: str) -> None:
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
        linecache.cache.pop(complaint.NAME_FORMAT.format(self._calls - SOURCES_MAX), None)


def _new_main() -> ModuleType:
    """A real module, since `pickle`, `dataclasses` and others look a class up in its module."""
    main = ModuleType(_MAIN)
    sys.modules[_MAIN] = main
    return main


def _split(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = compile(tree, name, "exec", dont_inherit=True)
    if not isinstance(last, ast.Expr):
        return body, None
    return body, compile(ast.Expression(last.value), name, "eval", dont_inherit=True)


def _status(code: object) -> int:
    """Returns what a process would have ended with, and says the rest where a process would."""
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code)
    print(code, file=sys.stderr)
    return 1
