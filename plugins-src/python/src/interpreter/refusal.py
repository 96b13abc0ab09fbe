"""What a call is told when it cannot be done at all."""

from enum import Enum


class Kind(Enum):
    """Why a call did not work, in the words of the plugin contract."""

    INVALID_ARGUMENTS = "invalid-arguments"
    NOT_FOUND = "not-found"
    DENIED = "denied"
    UNAVAILABLE = "unavailable"
    FAILED = "failed"


class Refusal(Exception):
    """A call that did not work, with a text for the model to act on."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


def invalid(message: str) -> Refusal:
    """Returns the refusal of arguments that do not make sense."""
    return Refusal(Kind.INVALID_ARGUMENTS, message)
