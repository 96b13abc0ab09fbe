"""Write Sallyport plugins in Python.

A tool is a function with type hints and a docstring:

    from sallyport import tool

    @tool(read_only=True)
    def greet(name: str, loud: bool = False) -> str:
        \"\"\"Greets someone.

        Args:
            name: Who is greeted.
            loud: Whether to shout.
        \"\"\"
        text = f"Hello, {name}!"
        return text.upper() if loud else text

`http`, `settings`, `state`, `secrets`, `notify`, `progress` and `log` reach the host; `testing`
stands in for it in tests.
"""

from . import http, log, notify, progress, secrets, settings, state
from ._constraints import Int32, Int64, UInt64, schema
from ._errors import (
    AuthRequired,
    DefinitionError,
    Denied,
    Failed,
    InvalidArguments,
    MissingSetting,
    NotFound,
    OtherError,
    ToolError,
    Unavailable,
)
from ._lifecycle import setup, teardown
from ._output import ContentPart, Output
from ._tool import CallContext, tool

__all__ = [
    "AuthRequired",
    "CallContext",
    "ContentPart",
    "DefinitionError",
    "Denied",
    "Failed",
    "Int32",
    "Int64",
    "InvalidArguments",
    "MissingSetting",
    "NotFound",
    "OtherError",
    "Output",
    "ToolError",
    "UInt64",
    "Unavailable",
    "http",
    "log",
    "notify",
    "progress",
    "schema",
    "secrets",
    "settings",
    "setup",
    "state",
    "teardown",
    "tool",
]
