"""How the component is built: what is in memory at the end is what every instance begins with.

The runtime of `componentize-py` imports this module, then it looks up what it needs of the plugin.
"""

import builtins
import gc
import json
import random
import sys
from types import ModuleType
from typing import Any

# Some are named here only so that they are not among those which each call runs through.
from wit_world import exports  # noqa: F401

from interpreter import baseline, image, library, loop, packages, shelf  # noqa: F401

_LIBRARY_FOLDER = "/python"
"""Where `componentize-py` has the standard library while it builds."""

_MODULES = (
    "interpreter.output", "interpreter.complaint", "interpreter.value", "interpreter.compiling",
    "interpreter.session", "interpreter.tools", "plugin",
)  # fmt: skip
"""What each call runs through."""

_OWN = "app", "interpreter", "plugin", "wit_world", "componentize_py_types"
"""The packages that the plugin is made of. The code may have modules of these names."""

_WARM_UP = (
    "1 + 1",
    "x = [1, 2.5, 'a']\nprint(x)\nx",
    "def f(n):\n    return {'n': n, 'more': (n, None, True)}\nf(2)",
    "import math, json\njson.loads(json.dumps([math.pi]))",
    "for i in range(3):\n    print(i)",
    "1 / 0",
)
"""What programs do, in small."""

_ROUNDS = 20
"""Python has adapted the code that calls run through by then."""


class _Build:
    """The rest of the build, after what the runtime imports last: `random`, then `sys`."""

    def __init__(self) -> None:
        self._import, self._seed = builtins.__import__, random.seed
        builtins.__import__ = self._watch

    def _watch(self, name: str, *rest: Any) -> ModuleType:
        if name == "random":
            # The runtime keeps this function for the first call. The session does it itself.
            random.seed = int
        elif name == "sys" and random.seed is int:
            self.finish()
        return self._import(name, *rest)

    def finish(self) -> None:
        """Makes the memory what it is to be."""
        builtins.__import__, random.seed = self._import, self._seed
        own = {name for name in sys.modules if name.partition(".")[0] in _OWN}
        plugin.SESSION.leave_out(own)
        for name in own:
            del sys.modules[name]
        for rounds in _ROUNDS, 1, 1:
            _run(_WARM_UP, rounds)
            _TAKEN.append(image.fill_holes())
        # What this leaves behind is what the first call finds.
        _run(_WARM_UP[:1], 3)
        gc.freeze()


def _run(codes: tuple[str, ...], rounds: int) -> None:
    """Runs code again and again, so that what is made at the first time is there."""
    for _ in range(rounds):
        for code in codes:
            Tools().call_tool(None, "execute", json.dumps({"code": code}))
    plugin.SESSION.rewind()


_LIBRARY = library.Library()
_LIBRARY.take(_LIBRARY_FOLDER)
shelf.install(_LIBRARY)
library.import_common()
loop.install()
_TAKEN = [image.import_side_by_side(_MODULES)]
"""Blocks of memory that stay taken."""

plugin = sys.modules["plugin"]
Tools = plugin.Tools
_Build()
