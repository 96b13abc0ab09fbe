"""The plugin's own settings, from `[settings.PLUGIN]` of the host's configuration.

The manifest describes them. The host checks them and fills in defaults.
"""

from __future__ import annotations

import json
from typing import Any

from . import _host
from ._errors import MissingSetting

_REQUIRED = object()


def get(key: str, default: Any = _REQUIRED) -> Any:
    """Returns a setting. Without a default, a missing one raises MissingSetting."""
    text = _host.active().setting(key)
    value = None if text is None else json.loads(text)
    if value is not None:
        return value
    if default is _REQUIRED:
        raise MissingSetting(key)
    return default


def all() -> dict[str, Any]:
    """Returns all settings."""
    return json.loads(_host.active().settings())
