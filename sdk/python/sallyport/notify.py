"""Messages to the user. The manifest requests `notify`, and the policy grants it."""

from __future__ import annotations

from typing import Literal

from . import _host


def send(
    text: str,
    *,
    speech: str | None = None,
    audience: Literal["conversation", "user"] = "conversation",
) -> None:
    """Passes a message on, or keeps it until the user is there.

    `conversation` is the one that asked; `user` is any conversation of the user.
    """
    if audience not in ("conversation", "user"):
        raise ValueError(f"audience is conversation or user, not {audience!r}")
    _host.active().notify(text, speech, audience)
