"""The tools as a model sees them: what they are called, what they take, what they give back."""

import json
from dataclasses import dataclass
from typing import Any

from interpreter.output import STDERR_BYTES_MAX, STDOUT_BYTES_MAX
from interpreter.refusal import Kind, Refusal, invalid
from interpreter.session import Outcome, Session

_EXECUTE = """\
Runs Python 3.14 and returns what it printed and the value of its last line, if that is an \
expression. Variables, functions and imports live on over the calls of a conversation. The \
standard library is there, except that `zoneinfo` has no time zones unless the package tzdata is \
named in `dependencies`; there is no network, no other process and no thread. Files are in \
the working folder, /sandbox, which only this conversation has. Other packages have to be pure \
Python and be named in `dependencies`."""

_RESET = "Forgets all variables, imports and installed packages of the interpreter. Files stay."

_CODE = "Python source. The value of a last line that is an expression is returned as `result`."

_DEPENDENCIES = """\
Pure Python packages to install first, each in one exact version, such as "tabulate==0.9.0". \
What they need themselves has to be named too. They stay installed until `reset`."""


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Tool:
    """A tool: its name, its description and the two schemas."""

    name: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any]
    is_idempotent: bool


TOOLS = (
    Tool(
        "execute",
        _EXECUTE,
        _object({"code": _text(_CODE), "dependencies": _texts(_DEPENDENCIES)}, ["code"]),
        _object(
            {
                "stdout": _text(f"What was printed; at most {STDOUT_BYTES_MAX} bytes."),
                "stderr": _text(f"Warnings and the like; at most {STDERR_BYTES_MAX} bytes."),
                "result": {"description": "The value of the last line; null if it has none."},
                "notes": _texts("What JSON does not have, and how it is written in `result`."),
                "exception": _text("The exception that ended the code, with its lines."),
                "ended": {
                    "type": "integer",
                    "description": "The status that the code ended itself with, by sys.exit.",
                },
                "fresh": {
                    "type": "boolean",
                    "description": "True when nothing of an earlier call was there.",
                },
                "missing": _texts("What the installed packages need and nobody installed."),
            },
            ["stdout", "stderr", "result"],
        ),
        is_idempotent=False,
    ),
    Tool(
        "reset",
        _RESET,
        _object({}, []),
        _object({"done": _text("What has been done.")}, ["done"]),
        is_idempotent=True,
    ),
)


def call(session: Session, name: str, arguments: str) -> str:
    """Runs one tool and returns its data, both as JSON.

    Raises a refusal where that is not possible.
    """
    given = _arguments(arguments)
    if name == "execute":
        return _execute(session, given)
    if name == "reset":
        session.reset()
        return json.dumps({"done": "variables, imports and packages are forgotten"})
    raise Refusal(Kind.NOT_FOUND, f"there is no tool {name[:80]!r}; there are execute and reset")


def _arguments(text: str) -> dict[str, Any]:
    try:
        given, end = _SCAN(text, 0)
    except StopIteration:
        end = -1
    if end != len(text):
        given = _DECODER.decode(text)
    if not isinstance(given, dict):
        raise invalid("the arguments are not an object")
    return given


def _execute(session: Session, given: dict[str, Any]) -> str:
    code, dependencies = given.get("code"), given.get("dependencies") or ()
    if not isinstance(code, str):
        raise invalid("argument `code`: it has to be a text")
    if dependencies and not isinstance(dependencies, list):
        raise invalid("argument `dependencies`: it has to be a list")
    return _data(session.execute(code, dependencies))


def _data(outcome: Outcome) -> str:
    """Only the first three are always there: what says nothing costs a model time to read."""
    # The result is JSON already.
    data = (
        f'{{"stdout": {_QUOTE(outcome.stdout)}, "stderr": {_QUOTE(outcome.stderr)}, '
        f'"result": {outcome.result}'
    )
    if outcome.notes:
        data += f', "notes": {_ENCODE(outcome.notes)}'
    if outcome.exception is not None:
        data += f', "exception": {_QUOTE(outcome.exception)}'
    if outcome.ended is not None:
        data += f', "ended": {outcome.ended}'
    if outcome.fresh:
        data += ', "fresh": true'
    if outcome.missing:
        data += f', "missing": {_ENCODE(outcome.missing)}'
    return data + "}"


_DECODER = json.JSONDecoder()
_SCAN = _DECODER.scan_once
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_QUOTE = json.encoder.encode_basestring
"""What `json` does with a text, without its ways there."""
