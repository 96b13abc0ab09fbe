"""The tools of the conformance set, in Python. `tests/conformance/` says what each must do."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from sallyport import (
    AuthRequired,
    Denied,
    Failed,
    Int32,
    InvalidArguments,
    NotFound,
    OtherError,
    Output,
    UInt64,
    Unavailable,
    http,
    log,
    schema,
    secrets,
    settings,
    state,
    tool,
)

Size = Annotated[int, schema(minimum=0)]


@dataclass
class Point:
    x: float
    y: float


@tool(read_only=True)
def types(
    flag: bool,
    count: Int32,
    big: UInt64,
    ratio: float,
    text: str,
    choice: Literal["red", "green", "blue"],
    items: list[str],
    record: Point,
    note: str | None = None,
) -> dict:
    """Returns its arguments."""
    return {
        "flag": flag,
        "count": count,
        "big": str(big),
        "ratio": ratio,
        "text": text,
        "choice": choice,
        "items": items,
        "record": record,
        "note": note,
    }


@tool
def echo(text: str) -> Output:
    """Returns a text as a part of the output."""
    return Output().text(text)


@tool
def large(bytes: Size) -> Output:
    """Returns a text of that many bytes."""
    return Output().text("x" * bytes)


ERRORS = (InvalidArguments, NotFound, Denied, AuthRequired, Unavailable, Failed)


@tool
def fail(kind: str, message: str) -> None:
    """Fails with an error of that kind."""
    for error in ERRORS:
        if error.kind == kind:
            raise error(message)
    raise OtherError(kind, message)


@tool
def log_line(level: Literal["trace", "debug", "info", "warn", "error"], text: str) -> None:
    """Writes a line to the log."""
    getattr(log, level)(text)


@tool
def setting(key: str):
    """Returns a setting, or null."""
    return settings.get(key, None)


@tool(open_world=True)
def fetch(url: str, method: str = "GET") -> dict:
    """Sends a request."""
    response = http.request(method, url)
    return {"status": response.status, "body": response.text}


@tool
def read_file(path: str) -> Output:
    """Returns the text of a file."""
    return Output().text(Path(path).read_text(encoding="utf-8"))


@tool
def write_file(path: str, text: str) -> None:
    """Writes a file."""
    Path(path).write_text(text, encoding="utf-8")


@tool
def state_set(key: str, value: str) -> None:
    """Keeps a value."""
    state.set(key, value)


@tool
def state_get(key: str):
    """Returns a kept value, or null."""
    return state.get(key)


@tool
def secret_known(name: str) -> bool:
    """Returns whether the value of a secret is revealed."""
    try:
        return len(secrets.get(name)) > 0
    except Denied:
        return False


@tool
def trap() -> None:
    """Traps."""
    # An exception is a failure in Python; only this stops the interpreter itself.
    os.abort()


@tool
def spin() -> None:
    """Never ends."""
    while True:
        pass


@tool
def grow(bytes: Size) -> int:
    """Allocates that many bytes."""
    return len(bytearray(bytes))
