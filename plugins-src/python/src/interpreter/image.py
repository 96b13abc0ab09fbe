"""The memory that every instance begins with.

An instance copies each page of it that it writes to, and a counted reference is a write. So a call
costs by the pages over which its objects are strewn, and they are put side by side here.
"""

import gc
import marshal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec, module_from_spec
from typing import Any

BLOCK_BYTES_MAX = 64 * 1024
"""Larger blocks are rare, and span pages of their own."""

HOLES_BYTES_MAX = 8 * 1024 * 1024
"""A started interpreter has half a megabyte of free blocks between others."""


def _nothing(_: object) -> None:
    """Does nothing."""


_MAKERS: tuple[Callable[[], object], ...] = (
    # Blocks of any size. The small ones come last, since they break up what is larger.
    *(partial(bytes, size) for size in range(BLOCK_BYTES_MAX, 1024, -512)),
    *(partial(bytes, size) for size in range(1024, 0, -8)),
    object,
    # What Python keeps the blocks of, for the next ones.
    list, dict, lambda: {None: None}, lambda: float("1.5"), lambda: int("1000000"),
    lambda: slice(None), lambda: range(9, 99), lambda: iter([]), lambda: iter(()),
    lambda: _nothing.__get__(1), lambda: [].append,
    *(partial(tuple, [None] * size) for size in range(1, 21)),
)  # fmt: skip
"""What makes blocks of each kind."""


def fill_holes() -> list[Any]:
    """Takes the free blocks between others, so that what is made from now on lies side by side.

    They stay taken as long as the caller keeps what this returns.
    """
    gc.collect()
    taken: list[Any] = []
    room = HOLES_BYTES_MAX
    # So large a block is at the end of the memory.
    end = id(bytes(4 * BLOCK_BYTES_MAX))
    for make in _MAKERS:
        while room > 0:
            block = make()
            if id(block) >= end:
                break
            # A list of them all would move while it grows, and leave holes.
            taken = [block, taken]
            room -= sys.getsizeof(block)
    return taken


def import_side_by_side(names: Iterable[str]) -> list[Any]:
    """Imports modules, each after those that it imports.

    Returns the blocks that it takes for this.
    """
    specs = [spec for name in names if (spec := find_spec(name)) is not None]
    # Compiling needs much memory for a moment; loading what was compiled needs none.
    compiled = [marshal.dumps(spec.loader.get_code(spec.name)) for spec in specs]
    taken = fill_holes()
    for spec, code in zip(specs, compiled, strict=True):
        module = sys.modules[spec.name] = module_from_spec(spec)
        exec(marshal.loads(code), vars(module))
        parent, _, name = spec.name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], name, module)
    return taken
