"""An interpreter as it was before any code ran in it, so that a reset can bring it back to that."""

import os
import sys
from types import ModuleType
from typing import Any

_KEPT = ("__main__", "app", "interpreter", "sys")
"""Modules that a reset does not look into: the code's own, this plugin, and the machine room."""


class Baseline:
    """The modules with their contents, and what the system module says about the surroundings."""

    def __init__(self) -> None:
        self._registry, self._modules = sys.modules, dict(sys.modules)
        self._contents = {name: dict(vars(module)) for name, module in self._restorable()}
        self._path, self._finders = list(sys.path), list(sys.meta_path)
        self._recursion_limit, self._environ = sys.getrecursionlimit(), dict(os.environ)

    def restore(self) -> None:
        """Forgets what was imported since, and undoes what was changed in the modules."""
        sys.modules = self._registry
        _restore(self._registry, self._modules)
        for name, module in self._restorable():
            _restore(vars(module), self._contents[name])
        sys.path, sys.meta_path = list(self._path), list(self._finders)
        sys.setrecursionlimit(self._recursion_limit)
        os.environ.clear()
        os.environ.update(self._environ)

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
