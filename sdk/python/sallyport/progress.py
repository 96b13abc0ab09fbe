"""How far a call has come. Without a grant nothing is shown, and nothing else happens."""

from __future__ import annotations

from . import _host


def report(part: float | None = None, message: str | None = None) -> None:
    """Shows a part from 0 to 1, a few words, or both."""
    _host.active().progress(part, message)
