"""Writes what a tool returns as JSON."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import inspect
import json
import math
import re
import uuid
from typing import Any

DEPTH_MAX = 100
"""Deepest nesting of a result. Readers of JSON give up soon after."""

_MANY_DIGITS = re.compile(r"\d{19}")
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**64 - 1


def to_json(value: Any) -> str:
    """Writes a value as JSON. Raises ValueError that says where and why it cannot be done."""
    if _is_too_deep(value):
        raise ValueError(_first_problem(value) or f"it nests more than {DEPTH_MAX} levels")
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        problem = _first_problem(value)
        raise ValueError(problem or f"it cannot be written as JSON: {error}") from None
    # Two faults pass the encoder: integers beyond 64 bits, and half of a surrogate pair.
    if _MANY_DIGITS.search(text) and (problem := _first_problem(value)):
        raise ValueError(problem)
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = _first_problem(value) or "it has text that is not Unicode"
        raise ValueError(problem) from None
    return text


def encode_value(value: Any) -> Any:
    """Returns a value in the form that it has after it was written as JSON and read again."""
    return json.loads(to_json(value))


_CONTAINERS = frozenset((list, tuple, dict))


def _is_too_deep(value: Any) -> bool:
    """Whether lists and dicts nest too deeply. The encoder calls itself for each level, and in a
    component the stack ends before Python's own limit: a trap instead of an error."""
    level = [value] if type(value) in _CONTAINERS else []
    for _depth in range(DEPTH_MAX + 1):
        if not level:
            return False
        below = (item.values() if type(item) is dict else item for item in level)
        # What appears twice counts once: a list that contains itself twice would double each level.
        level = list({id(c): c for inner in below for c in inner if type(c) in _CONTAINERS}.values())
    return bool(level)


def _plain(value: Any) -> Any:
    """Makes of a value what JSON knows, one level deep. Raises TypeError for all others."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return _in_order(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, (collections.abc.ValuesView, collections.abc.KeysView, range)):
        return list(value)
    raise TypeError(_advice(value))


def _in_order(values: Any) -> list[Any]:
    """Sorts a set, because its own order differs from build to build."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _advice(value: Any) -> str:
    name = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"{name} is not JSON; return Output(...).image(...), or text such as Base64"
    if inspect.isgenerator(value) or isinstance(value, collections.abc.Iterator):
        return f"{name} is not JSON; return list(...) of it"
    if inspect.iscoroutine(value):
        return f"{name} is not JSON; tools are not async, so call it without await"
    if callable(value):
        return f"{name} is not JSON; did you forget to call {getattr(value, '__name__', 'it')}()?"
    return f"{name} is not JSON; return a dict or a dataclass"


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, default=_plain, separators=(",", ":")
)


def _first_problem(value: Any) -> str | None:
    """Finds the first value that cannot be written, and says where it is and why."""
    waiting: list[tuple[Any, str, int, tuple[int, ...]]] = [(value, "", 0, ())]
    # What was seen stays alive, because `id` is that of a later object otherwise.
    alive: list[Any] = []
    while waiting:
        item, path, depth, above = waiting.pop()
        alive.append(item)
        try:
            inner = _inner_values(item, depth, above)
        except (TypeError, ValueError) as error:
            return f"{path or 'the result'}: {error}"
        above = (*above, id(item))
        for key, child in reversed(inner):
            waiting.append((child, _step(path, key), depth + 1, above))
    return None


def _step(path: str, key: Any) -> str:
    if key is None:
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else str(key)


def _inner_values(item: Any, depth: int, above: tuple[int, ...]) -> list[tuple[Any, Any]]:
    """Returns the values inside of one, or raises why it cannot be written."""
    if id(item) in above:
        raise ValueError("it contains itself")
    if depth > DEPTH_MAX:
        raise ValueError(f"it nests more than {DEPTH_MAX} levels")
    if item is None or isinstance(item, (str, bool, int, float)):
        _check_scalar(item)
        return []
    if isinstance(item, (list, tuple)):
        return list(enumerate(item))
    if isinstance(item, dict):
        for key in item:
            _check_key(key)
        return list(item.items())
    return [] if hasattr(item, "model_dump") else [(None, _plain(item))]


def _check_scalar(item: Any) -> None:
    if isinstance(item, float) and not math.isfinite(item):
        raise ValueError(f"{item} is not JSON; return None or text instead")
    if isinstance(item, int) and not _INTEGER_MIN <= item <= _INTEGER_MAX:
        raise ValueError("the integer has more than 64 bits; return it as text")
    if isinstance(item, str):
        try:
            item.encode()
        except UnicodeEncodeError:
            raise ValueError("it has half of a surrogate pair, which is not Unicode") from None


def _check_key(key: Any) -> None:
    if not isinstance(key, (str, int, float, type(None))):
        raise ValueError(f"the key {key!r} is not text")
    _check_scalar(key)
