"""Values of Python as JSON. What JSON does not have is written as near as it goes, with a note."""

import dataclasses
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from datetime import date, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from json import JSONEncoder
from json.encoder import encode_basestring
from math import isfinite
from pathlib import PurePath
from typing import Any
from uuid import UUID

RESULT_BYTES_MAX = 64 * 1024
"""What a model can take in at once; more is better written to a file."""

LEVELS_MAX = 32
"""Nesting: more than any data made for reading has, and less than JSON readers take."""

NOTES_MAX = 20
"""Notes on one result; one for each type and form."""

EXACT_INTEGER_MAX = 2**53
"""The largest integer up to which every reader of JSON keeps all digits."""

SHORT_CHARS_MAX = RESULT_BYTES_MAX // 8
"""A text that fits whatever its characters are; the longest is six bytes in JSON."""

_DIGITS_PER_BIT = 0.302
_NAME_CHARS_MAX = 80
_DICT_VIEWS: tuple[type, ...] = type({}.keys()), type({}.values()), type({}.items())
_LISTS = (tuple, set, frozenset, deque, array, *_DICT_VIEWS)
_TEXTS = (Decimal, Fraction, UUID, PurePath)


def as_json(value: object) -> tuple[str, list[str]]:
    """Returns a value as a JSON text, and what is to be known about how it was written."""
    kind = type(value)
    if kind is int and -EXACT_INTEGER_MAX <= value <= EXACT_INTEGER_MAX:
        return f"{value}", []
    if value is None:
        return "null", []
    if kind is str and len(value) <= SHORT_CHARS_MAX and value.isascii():
        return encode_basestring(value), []
    form = _Form()
    try:
        written = form.write(value, 0)
        return _ENCODE(written), form.notes
    except BaseException as error:  # Methods of the value run here, and may do anything.
        failed = f"{_name(value)}: its value cannot be shown: {type(error).__name__}"
        return _ENCODE(failed), [f"{_name(value)} as a remark"]


class _Alike(Exception):
    """Two keys of a dictionary would be one."""


class _Form:
    """One value on its way to JSON: what room is left, and what was noted."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._bytes_left = RESULT_BYTES_MAX

    def write(self, value: Any, level: int) -> Any:
        """Returns a value out of nothing but what JSON has."""
        if level > LEVELS_MAX:
            return self._cut(f"cut below {LEVELS_MAX} levels")
        self._bytes_left -= 4
        write = _WRITERS_BY_TYPE.get(type(value))
        if write is not None:
            return write(self, value, level)
        for types, write in _WRITERS:
            if isinstance(value, types):
                return write(self, value, level)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value, level)
        return self._repr(value)

    def note(self, text: str) -> None:
        """Notes something, once."""
        if text not in self.notes and len(self.notes) < NOTES_MAX:
            self.notes.append(text)

    def plain(self, value: bool | None, _level: int) -> bool | None:
        """Writes what JSON has just so."""
        return value

    def integer(self, value: int, _level: int) -> int | str:
        """Writes an integer; as digits in a text where a reader of JSON could lose some."""
        number = int(value)
        if abs(number) <= EXACT_INTEGER_MAX:
            self._bytes_left -= len(str(number))
            return number
        if number.bit_length() * _DIGITS_PER_BIT > self._bytes_left:
            self.note("int too long to write")
            return f"an int of {number.bit_length()} bits"
        self.note("int beyond 2**53 as text")
        return self._text(str(number))

    def real(self, value: float, _level: int) -> float | str:
        """Writes a float; as a text where JSON has no such number."""
        number = float(value)
        self._bytes_left -= 20
        if isfinite(number):
            return number
        self.note("float that is not finite as text")
        return repr(number)

    def text(self, value: str, _level: int) -> str:
        """Writes a text."""
        # What is too long anyway need not be copied whole first.
        return self._text(str.__str__(value)[: RESULT_BYTES_MAX + 1])

    def member(self, value: Enum, _level: int) -> str:
        """Writes a member of an enumeration by its name."""
        self.note(f"{_name(value)} as its name")
        return self._text(f"{type(value).__name__}.{value.name}")

    def data(self, value: bytes | bytearray, _level: int) -> str:
        """Writes bytes as Python does."""
        self.note(f"{_name(value)} as its repr")
        # What is too long anyway need not be written out whole first.
        return self._text(repr(value[: RESULT_BYTES_MAX + 1]))

    def named(self, value: Any, _level: int) -> str:
        """Writes what has a text that says it all, such as a decimal number."""
        self.note(f"{_name(value)} as text")
        return self._text(str(value))

    def moment(self, value: date | time, _level: int) -> str:
        """Writes a date, a time or both."""
        self.note(f"{_name(value)} as ISO 8601 text")
        return self._text(value.isoformat())

    def sequence(self, value: list[Any], level: int) -> list[Any]:
        """Writes a list."""
        return self._items(value, level)

    def listed(self, value: Iterable[Any], level: int) -> Any:
        """Writes what is like a list, or like an object where its places have names."""
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            self.note(f"{_name(value)} as an object")
            return self._pairs(zip(value._fields, value, strict=True), level)
        self.note(f"{_name(value)} as a list")
        return self._items(_sorted(value), level)

    def mapping(self, value: dict[Any, Any], level: int) -> Any:
        """Writes a dictionary; as pairs where two of its keys would be one as text."""
        room = self._bytes_left
        try:
            return self._pairs(dict.items(value), level)
        except _Alike:
            self.note(f"{_name(value)} as a list of pairs, since keys would be alike as text")
            self._bytes_left = room
            return self._items(dict.items(value), level)

    def _dataclass(self, value: Any, level: int) -> dict[str, Any]:
        self.note(f"{_name(value)} as an object")
        names = [field.name for field in dataclasses.fields(value)]
        return self._pairs(((name, getattr(value, name, None)) for name in names), level)

    def _repr(self, value: object) -> str:
        self.note(f"{_name(value)} as its repr")
        return self._text(repr(value))

    def _items(self, values: Iterable[Any], level: int) -> list[Any]:
        written: list[Any] = []
        for value in values:
            if self._is_full():
                break
            written.append(self.write(value, level + 1))
        return written

    def _pairs(self, pairs: Iterable[tuple[Any, Any]], level: int) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for key, value in pairs:
            if self._is_full():
                break
            name = self._text(self._key(key))
            if name in written:
                raise _Alike
            written[name] = self.write(value, level + 1)
        return written

    def _key(self, key: object) -> str:
        if isinstance(key, str):
            return str.__str__(key)
        self.note("keys as text")
        form = _Form()
        written = form.write(key, LEVELS_MAX - 1)
        return written if isinstance(written, str) else _ENCODE_KEY(written)

    def _text(self, text: str) -> str:
        clean = text.encode("utf-8", "backslashreplace").decode()
        if clean != text:
            self.note("surrogates as escapes")
        shown = clean[: max(self._bytes_left, 0)]
        while (size := _size(shown)) > max(self._bytes_left, 2):
            shown = shown[: len(shown) * self._bytes_left // (size + 1)]
        self._bytes_left -= size
        if len(shown) == len(clean):
            return shown
        return shown + self._cut(f"cut after {RESULT_BYTES_MAX} bytes")

    def _is_full(self) -> bool:
        if self._bytes_left > 0:
            return False
        self._cut(f"cut after {RESULT_BYTES_MAX} bytes")
        return True

    def _cut(self, note: str) -> str:
        self.note(note)
        return "…"


_WRITERS: tuple[tuple[Any, Callable[[_Form, Any, int], Any]], ...] = (
    ((type(None), bool), _Form.plain),
    (Enum, _Form.member),
    (int, _Form.integer),
    (float, _Form.real),
    (str, _Form.text),
    (list, _Form.sequence),
    (dict, _Form.mapping),
    (_LISTS, _Form.listed),
    ((bytes, bytearray), _Form.data),
    (_TEXTS, _Form.named),
    ((date, time), _Form.moment),
)

_WRITERS_BY_TYPE: dict[type, Callable[[_Form, Any, int], Any]] = {
    type(None): _Form.plain,
    bool: _Form.plain,
    int: _Form.integer,
    float: _Form.real,
    str: _Form.text,
    list: _Form.sequence,
    dict: _Form.mapping,
    tuple: _Form.listed,
}
"""The most frequent ones again, to be found at once."""

_ENCODE = JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_ENCODE_KEY = JSONEncoder(ensure_ascii=False).encode


def _sorted(values: Iterable[Any]) -> Iterable[Any]:
    """A set has no order of its own; sorted it can at least be compared."""
    if not isinstance(values, set | frozenset):
        return values
    try:
        return sorted(values)
    except TypeError:
        return values


def _size(text: str) -> int:
    return len(encode_basestring(text).encode())


def _name(value: object) -> str:
    return type(value).__name__[:_NAME_CHARS_MAX]
