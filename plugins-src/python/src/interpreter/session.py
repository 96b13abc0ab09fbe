"""The interpreter of one conversation: code comes in, what came of it goes out, variables stay."""

import builtins
import contextlib
import gc
import linecache
import random
import sys
from collections.abc import Collection, Sequence
from os import F_OK, access, chdir
from types import ModuleType

from interpreter import complaint, shelf
from interpreter.baseline import Baseline
from interpreter.compiling import compiled
from interpreter.output import Output
from interpreter.packages import Index, Packages
from interpreter.shelf import Shelf
from interpreter.value import as_json

SOURCES_MAX = 200
"""Calls whose lines are kept for tracebacks; functions of older ones lose them there."""

_MAIN = "__main__"

_seed = super(random.Random, random._inst).seed
"""What `random.seed` does in the end, without its way there."""


class Outcome:
    """What came of running code."""

    __slots__ = "ended", "exception", "fresh", "missing", "notes", "result", "stderr", "stdout"

    def __init__(self, missing: list[str], fresh: bool) -> None:
        self.stdout = self.stderr = ""
        self.result = "null"
        self.notes: list[str] | None = None
        self.exception: str | None = None
        self.ended: int | None = None
        self.missing, self.fresh = missing, fresh


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
        self._begin()
        gc.collect()
        gc.freeze()

    def execute(self, code: str, dependencies: Sequence[object]) -> Outcome:
        """Runs code and tells what came of it, whatever it does.

        Raises a refusal where a dependency cannot be had; the code has not run then.
        """
        if not self._is_awake:
            self._wake()
        missing: list[str] = []
        if dependencies:
            missing = self._packages.install([self._packages.pin(text) for text in dependencies])
        outcome = Outcome(missing, self._is_fresh)
        self._is_fresh = False
        self._calls += 1
        self._output.install()
        self._run(code, outcome)
        outcome.stdout, outcome.stderr = self._output.take()
        return outcome

    def reset(self) -> None:
        """Forgets variables, imports and packages. Files stay."""
        if not self._is_awake:
            self._wake()
        self._baseline.restore()
        self._packages.clear()
        linecache.cache.clear()
        self._begin()
        self._is_fresh = True
        self._go_home()

    def leave_out(self, modules: Collection[str]) -> None:
        """Lets a reset not bring back some modules."""
        self._baseline.leave_out(modules)

    def rewind(self) -> None:
        """Makes this what it was before the first call."""
        self.reset()
        self._output.install()
        self._output.take()
        self._calls, self._is_awake = 0, False

    def _wake(self) -> None:
        """What a build can know of folders and chance is not true where the component runs."""
        self._is_awake = True
        _seed()
        self._go_home()

    def _go_home(self) -> None:
        """Without a folder the code runs too; opening a file then says that there is none."""
        # An exception would cost more than the question.
        if access(self._folder, F_OK):
            with contextlib.suppress(OSError):
                chdir(self._folder)

    def _begin(self) -> None:
        """A real module, since `pickle`, `dataclasses` and others look a class up in its module."""
        self._main = sys.modules[_MAIN] = ModuleType(_MAIN)
        self._variables = vars(self._main)
        # The first code would put them there.
        self._variables["__builtins__"] = vars(builtins)

    def _run(self, code: str, outcome: Outcome) -> None:
        try:
            name = f"<call {self._calls}>"
            linecache.cache[name] = len(code), None, code.splitlines(True), name
            if self._calls > SOURCES_MAX:
                linecache.cache.pop(f"<call {self._calls - SOURCES_MAX}>", None)
            body, last = compiled(code, name)
            variables = self._variables
            if body is not None:
                exec(body, variables)
            if last is not None:
                outcome.result, outcome.notes = as_json(eval(last, variables))
        except SystemExit as end:
            outcome.ended = _status(end.code)
        except BaseException as error:  # Whatever it is, it is an answer and no end of the plugin.
            outcome.exception = complaint.told(error)


def _status(code: object) -> int:
    """Returns what a process would have ended with, and says the rest where a process would."""
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code)
    print(code, file=sys.stderr)
    return 1
