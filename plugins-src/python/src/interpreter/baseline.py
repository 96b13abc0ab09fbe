"""An interpreter as it was before any code ran in it, so that a reset can bring it back to that."""

import decimal
import os
import sys
from collections.abc import Collection
from types import ModuleType
from typing import Any

_KEPT = ("__main__", "app", "interpreter")
"""Modules that a reset does not look into: the code's own, and this plugin."""


class Baseline:
    """The modules with their contents, and what the system module says about the surroundings."""

    def __init__(self) -> None:
        self._registry, self._modules = sys.modules, dict(sys.modules)
        self._contents = {name: dict(vars(module)) for name, module in self._restorable()}
        self._path, self._finders = list(sys.path), list(sys.meta_path)
        self._recursion_limit, self._environ = sys.getrecursionlimit(), dict(os.environ)
        self._arithmetic = decimal.getcontext().copy()

    def restore(self) -> None:
        """Forgets what was imported since, and gives every name in a module its own value again."""
        sys.settrace(None)
        sys.setprofile(None)
        sys.modules = self._registry
        _restore(self._registry, self._modules)
        for name, module in self._restorable():
            _restore(vars(module), self._contents[name])
        sys.path, sys.meta_path = list(self._path), list(self._finders)
        sys.setrecursionlimit(self._recursion_limit)
        decimal.setcontext(self._arithmetic.copy())
        os.environ.clear()
        os.environ.update(self._environ)

    def leave_out(self, names: Collection[str]) -> None:
        """Takes some modules for ones that were not there."""
        for name in names:
            self._modules.pop(name, None)

    def _restorable(self) -> list[tuple[str, ModuleType]]:
        return [
            (name, module)
            for name, module in self._modules.items()
            if isinstance(module, ModuleType) and name.partition(".")[0] not in _KEPT
        ]


def _restore(contents: dict[str, Any], before: dict[str, Any]) -> None:
    for name in contents.keys() - before.keys():
        del contents[name]
    contents.update(before)
