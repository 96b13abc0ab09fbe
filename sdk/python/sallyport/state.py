"""Keys and values that outlive a call, separate for each user.

A value is anything that JSON can hold. The manifest requests `state`, and the policy grants it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from . import _host
from ._encode import to_json
from ._errors import Failed, Unavailable
from ._host import Entry

ATTEMPTS_MAX = 32
"""How often `update` tries while other calls change the same key. A try fails only if another one
succeeded, so only a flood of changes gets this far."""

_PAGE_KEYS = 256


class Conflict(Unavailable):
    """The key is in another version than was expected; `version` is its present one, if any."""

    def __init__(self, version: int | None):
        super().__init__("the stored value has changed in the meantime")
        self.version = version


def get(key: str, default: Any = None) -> Any:
    """Returns the value of a key, or the default if there is none."""
    found = entry(key)
    return default if found is None else _read(key, found)


def set(key: str, value: Any, *, expires_in: timedelta | float | None = None) -> None:
    """Stores a value, for good or for some time: a timedelta, or seconds."""
    _host.active().state_set(key, _write(key, value), _milliseconds(expires_in))


def update(key: str, change: Callable[[Any], Any], default: Any = None) -> Any:
    """Changes a value without losing the change of another call, and returns the new value.

    `change` receives the present value, or the default. It runs again if another call was faster.
    """
    conflict = Conflict(None)
    for _attempt in range(ATTEMPTS_MAX):
        found = entry(key)
        value = change(default if found is None else _read(key, found))
        try:
            compare_and_set(key, None if found is None else found.version, _write(key, value))
        except Conflict as error:
            conflict = error
        else:
            return value
    raise conflict


def delete(key: str) -> bool:
    """Deletes a key. Returns whether there was one."""
    return _host.active().state_delete(key)


def keys(prefix: str = "") -> list[str]:
    """Returns the keys that begin with a prefix, in the order of their bytes."""
    found: list[str] = []
    after: str | None = None
    while True:
        page, after = _host.active().state_page(prefix, after, _PAGE_KEYS)
        found += page
        if after is None:
            return found


def entry(key: str) -> Entry | None:
    """Returns the bytes of a key with their version."""
    return _host.active().state_entry(key)


def compare_and_set(
    key: str,
    version: int | None,
    value: bytes,
    *,
    expires_in: timedelta | float | None = None,
) -> int:
    """Stores bytes if the key is in this version, or does not exist if the version is None.

    Returns the new version. Raises Conflict.
    """
    return _host.active().state_compare_and_set(key, version, value, _milliseconds(expires_in))


def _milliseconds(time: timedelta | float | None) -> int | None:
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    return None if seconds is None else max(0, round(seconds * 1_000))


def _read(key: str, found: Entry) -> Any:
    try:
        return json.loads(found.value)
    except ValueError as error:
        raise Failed(f"the value of {key!r} is not JSON: {error}") from None


def _write(key: str, value: Any) -> bytes:
    try:
        return to_json(value).encode()
    except ValueError as error:
        raise Failed(f"the value of {key!r} cannot be stored: {error}") from None
