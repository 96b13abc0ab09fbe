"""A dependency as a program names it: one package in exactly one version."""

import re
from dataclasses import dataclass

from interpreter.refusal import invalid

PIN_CHARS_MAX = 200
"""Names and versions are short; what is longer is something else."""

_PIN = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*([A-Za-z0-9][A-Za-z0-9.!+_-]*)\s*",
    re.ASCII,
)
_NAME = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:$|[\[=<>!~;])", re.ASCII
)
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True)
class Pin:
    """A package and its version. The name is in the form in which names are compared."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def parse(text: object) -> Pin:
    """Reads `tabulate==0.9.0`.

    Raises a refusal that says how to write it, if it is anything else.
    """
    found = None
    if isinstance(text, str) and len(text) <= PIN_CHARS_MAX:
        found = _PIN.fullmatch(text)
    if found is None:
        raise invalid(
            f"argument `dependencies`: {_quoted(text)} is not a package with its exact version; "
            'write name==version, such as "tabulate==0.9.0"'
        )
    return Pin(normal(found[1]), found[2].lower())


def name_alone(text: object) -> str | None:
    """Returns the name of a package that stands without an exact version."""
    found = None
    if isinstance(text, str) and len(text) <= PIN_CHARS_MAX:
        found = _NAME.match(text)
    return normal(found[1]) if found else None


def normal(name: str) -> str:
    """Returns the form in which names of packages are compared."""
    return _SEPARATORS.sub("-", name).lower()


def _quoted(text: object) -> str:
    return ascii(text)[:PIN_CHARS_MAX]
