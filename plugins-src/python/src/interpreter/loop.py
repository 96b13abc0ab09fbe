"""The event loop of `asyncio` where there are no sockets: nothing from outside ever wakes it."""

import asyncio
import selectors
import time
import warnings
from collections.abc import Mapping
from typing import Any


class _NoFiles(selectors.BaseSelector):
    """Waits, and has nothing to wait for but the time."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        raise OSError("there is nothing here that an event loop could wait for but the time")

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everything waits, and nothing is left that could go on")
        time.sleep(max(timeout, 0))
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop without the pair of sockets by which another thread would wake it."""

    def __init__(self) -> None:
        super().__init__(_NoFiles())

    def _make_self_pipe(self) -> None:
        self._ssock = self._csock = None

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def install() -> None:
    """Makes this the loop that `asyncio.run` runs."""
    with warnings.catch_warnings():
        # It is to go in a later Python, and there is nothing in its place yet that `run` looks at.
        warnings.simplefilter("ignore", DeprecationWarning)

        class Policy(asyncio.DefaultEventLoopPolicy):
            _loop_factory = Loop

        asyncio.set_event_loop_policy(Policy())
