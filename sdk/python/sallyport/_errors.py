"""The errors of tools, and the mistakes of authors.

A tool raises a `ToolError`. The model reads its text and acts on it, so say what to do next.
"""

from __future__ import annotations

MESSAGE_CHARACTERS_MAX = 8_000
"""Longest message of an error. A model needs the reason, not a document."""


class ToolError(Exception):
    """Why a call failed. Raise one of its subclasses; the text is for the model to read."""

    kind = "failed"

    @property
    def message(self) -> str:
        """The text that the model reads."""
        return readable(self)


class InvalidArguments(ToolError):
    """The arguments do not make sense; say which and why."""

    kind = "invalid-arguments"


class NotFound(ToolError):
    """The requested thing does not exist."""

    kind = "not-found"


class Denied(ToolError):
    """Something that the tool needed was refused."""

    kind = "denied"


class AuthRequired(ToolError):
    """The user has to sign in somewhere first.

    `connection` names the connection that is missing, and `scopes` what it has to allow.
    """

    kind = "auth-required"

    def __init__(self, message: str, *, connection: str | None = None, scopes: tuple[str, ...] = ()):
        super().__init__(message)
        self.connection = connection
        self.scopes = list(scopes)


class Unavailable(ToolError):
    """A service or a setting is missing now; a later call may succeed."""

    kind = "unavailable"


class Failed(ToolError):
    """Any other failure."""


class OtherError(ToolError):
    """A kind of error that the contract does not define, in lower-case words joined by `-`."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class MissingSetting(Unavailable):
    """A setting is neither given nor has a default."""

    def __init__(self, key: str):
        super().__init__(f"the setting {key!r} is not given")
        self.key = key


class DefinitionError(TypeError):
    """A tool is written in a way that no schema can be made of. The text names file and line."""


def readable(error: BaseException) -> str:
    """Returns the text of an exception, whatever its `__str__` does."""
    try:
        text = str(error)
    except Exception:
        return type(error).__name__
    return clean(text)[:MESSAGE_CHARACTERS_MAX]


def clean(text: str) -> str:
    """Replaces what UTF-8 cannot hold, because the host takes nothing else."""
    return text.encode("utf-8", "replace").decode("utf-8")
