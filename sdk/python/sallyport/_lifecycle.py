"""Functions that run when the plugin is loaded and when the host shuts down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ._errors import DefinitionError
from ._source import place_of

Function = TypeVar("Function", bound=Callable[[], Any])

HOOKS: dict[str, Callable[[], Any]] = {}
"""The functions by their role, `setup` and `teardown`."""


def setup(function: Function) -> Function:
    """Runs a function once when the plugin is loaded, with its settings and without any grant.

    A ToolError that it raises disables the plugin, with its text as the reason.
    """
    return _register("setup", function)


def teardown(function: Function) -> Function:
    """Runs a function once when the host shuts down, without any grant."""
    return _register("teardown", function)


def _register(role: str, function: Function) -> Function:
    other = HOOKS.get(role)
    if other is not None and place_of(other) != place_of(function):
        raise DefinitionError(f"{place_of(function)}: {place_of(other)} is @{role} already")
    HOOKS[role] = function
    return function
