"""Keywords of JSON Schema that an author adds to a type, and their check."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any


class Mismatch(ValueError):
    """A value does not fit its type. Frames around add where it is."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason
        self.path = ""

    def inside(self, step: str | int) -> Mismatch:
        """Adds the key or the index that leads to the value."""
        here = f"[{step}]" if isinstance(step, int) else step
        joint = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{here}{joint}{self.path}"
        return self

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


Check = Callable[[Any], None]


def _bound(holds: Callable[[Any, Any], bool], words: str) -> Callable[[Any], Check]:
    def make(limit: Any) -> Check:
        def check(value: Any) -> None:
            if not holds(value, limit):
                raise Mismatch(f"{value!r} must be {words} {limit}")

        return check

    return make


def _length(holds: Callable[[int, int], bool], words: str) -> Callable[[Any], Check]:
    def make(limit: Any) -> Check:
        def check(value: Any) -> None:
            if not holds(len(value), limit):
                raise Mismatch(f"it has a length of {len(value)}, and {words} {limit} are allowed")

        return check

    return make


def _is_multiple(value: float, step: float) -> bool:
    # 0.3 / 0.1 is 2.9999999999999996, and a person means that it is 3.
    return math.isclose(value / step, round(value / step), abs_tol=1e-9)


def _pattern(pattern: Any) -> Check:
    compiled = re.compile(pattern)

    def check(value: Any) -> None:
        if not compiled.search(value):
            raise Mismatch(f"{value!r} does not match {pattern}")

    return check


_NUMBERS = (int, float)
_MAKERS: dict[str, tuple[tuple[type, ...], tuple[type, ...], Callable[[Any], Check]]] = {
    "minimum": (_NUMBERS, _NUMBERS, _bound(lambda value, limit: value >= limit, "at least")),
    "maximum": (_NUMBERS, _NUMBERS, _bound(lambda value, limit: value <= limit, "at most")),
    "exclusiveMinimum": (_NUMBERS, _NUMBERS, _bound(lambda value, limit: value > limit, "above")),
    "exclusiveMaximum": (_NUMBERS, _NUMBERS, _bound(lambda value, limit: value < limit, "below")),
    "multipleOf": (
        _NUMBERS,
        _NUMBERS,
        _bound(lambda value, step: _is_multiple(value, step), "a multiple of"),
    ),
    "minLength": ((str,), (int,), _length(lambda length, limit: length >= limit, "at least")),
    "maxLength": ((str,), (int,), _length(lambda length, limit: length <= limit, "at most")),
    "pattern": ((str,), (str,), _pattern),
    "minItems": ((list,), (int,), _length(lambda length, limit: length >= limit, "at least")),
    "maxItems": ((list,), (int,), _length(lambda length, limit: length <= limit, "at most")),
}
"""For each keyword the types of values it is about, the types of its own value, and its check."""

_TEXTS = ("title", "description", "format")

_ANNOTATED_TYPES = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
"""The attributes that the metadata of the package annotated-types has."""


@dataclass(frozen=True)
class SchemaKeywords:
    """What `schema(...)` returns: metadata for `Annotated`."""

    keywords: tuple[tuple[str, Any], ...]


def schema(**keywords: Any) -> SchemaKeywords:
    """Adds keywords of JSON Schema to a type: `Annotated[int, schema(minimum=1, maximum=9)]`.

    The keywords are minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength,
    maxLength, pattern, minItems, maxItems, title, description, format and examples.
    """
    return SchemaKeywords(tuple(keywords.items()))


def keywords_of(metadata: Any) -> dict[str, Any]:
    """Returns what one piece of metadata of `Annotated` adds to the schema."""
    if isinstance(metadata, str):
        return {"description": metadata}
    if isinstance(metadata, SchemaKeywords):
        return dict(metadata.keywords)
    return {
        keyword: getattr(metadata, name)
        for name, keyword in _ANNOTATED_TYPES.items()
        if isinstance(getattr(metadata, name, None), (int, float))
    }


def check_of(keyword: str, limit: Any, types: tuple[type, ...]) -> Check | None:
    """Returns the check of a keyword; `None` for one that only describes.

    Raises ValueError with the reason if the keyword or its value makes no sense here.
    """
    if keyword in _TEXTS or keyword == "examples":
        wanted: tuple[type, ...] = (list,) if keyword == "examples" else (str,)
        if not isinstance(limit, wanted):
            raise ValueError(f"{keyword} has to be {'text' if wanted == (str,) else 'a list'}")
        return None
    if keyword not in _MAKERS:
        raise ValueError(f"there is no keyword {keyword}; there are {', '.join(_MAKERS)}")
    about, wanted, make = _MAKERS[keyword]
    if not set(about) & set(types):
        raise ValueError(f"{keyword} says nothing about this type")
    if not isinstance(limit, wanted) or isinstance(limit, bool) or limit != limit:
        raise ValueError(f"{keyword} has to be {'text' if wanted == (str,) else 'a number'}")
    if keyword == "multipleOf" and limit <= 0:
        raise ValueError("multipleOf has to be above 0")
    try:
        return make(limit)
    except re.error as error:
        raise ValueError(f"the pattern is no regular expression: {error}") from None


_WIDE = re.compile(r"-?(0|[1-9][0-9]*)")


class WideInteger:
    """Marks an integer that may come as a number or, since many JSON readers round numbers beyond
    2^53, as a string with its decimal digits."""

    def __init__(self, minimum: int, maximum: int):
        self.minimum, self.maximum = minimum, maximum

    def schema(self) -> dict[str, Any]:
        """Returns the schema of both forms."""
        number = {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}
        return {"anyOf": [number, {"type": "string", "pattern": f"^{_WIDE.pattern}$"}]}

    def read(self, value: Any) -> int:
        """Reads either form."""
        if isinstance(value, str) and _WIDE.fullmatch(value) and len(value) <= 20:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise Mismatch(f"{shown(value)} is not an integer")
        if not self.minimum <= value <= self.maximum:
            raise Mismatch(f"{value} is not between {self.minimum} and {self.maximum}")
        return value


Int32 = Annotated[int, schema(minimum=-(2**31), maximum=2**31 - 1)]
"""An integer of 32 bits."""
Int64 = Annotated[int, WideInteger(-(2**63), 2**63 - 1)]
"""An integer of 64 bits, as a number or as a string of digits."""
UInt64 = Annotated[int, WideInteger(0, 2**64 - 1)]
"""An integer of 64 bits without a sign, as a number or as a string of digits."""


def shown(value: Any) -> str:
    """Returns a short form of a value for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
