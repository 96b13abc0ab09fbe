"""The host that answers: the real one in a component, a stand-in everywhere else.

The modules of capabilities call `active()`. `sallyport.testing` sets the stand-in of a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .http import Request, Response


@dataclass(frozen=True)
class Entry:
    """A stored value: its bytes, and a version that differs after every change."""

    value: bytes
    version: int


class Host(Protocol):
    """What a plugin can ask of its host. JSON is text; times are milliseconds."""

    def log(self, level: str, text: str) -> None: ...
    def setting(self, key: str) -> str | None: ...
    def settings(self) -> str: ...
    def state_entry(self, key: str) -> Entry | None: ...
    def state_set(self, key: str, value: bytes, expires_in_ms: int | None) -> int: ...
    def state_compare_and_set(
        self, key: str, version: int | None, value: bytes, expires_in_ms: int | None
    ) -> int: ...
    def state_delete(self, key: str) -> bool: ...
    def state_page(
        self, prefix: str, after: str | None, limit: int
    ) -> tuple[list[str], str | None]: ...
    def secret(self, name: str) -> str: ...
    def notify(self, text: str, speech: str | None, audience: str) -> None: ...
    def progress(self, part: float | None, message: str | None) -> None: ...
    def send(self, request: Request) -> Response: ...


_active: Any = None


def active() -> Host:
    """Returns the host of this moment."""
    if _active is None:
        from .testing import FakeHost

        replace(FakeHost())
    return _active


def replace(host: Any) -> Any:
    """Sets the host, and returns the one before."""
    global _active
    before, _active = _active, host
    return before
