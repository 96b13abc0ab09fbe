"""Tools: what the decorator makes of a function, and what it refuses with which words."""

from __future__ import annotations

import enum
import inspect
import itertools
import sys
import textwrap
from pathlib import Path

import pytest
import sallyport
from sallyport import _tool
from sallyport.testing import call

HEAD = "from sallyport import *\nfrom typing import *\nfrom dataclasses import dataclass\n"
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _fresh_registry(monkeypatch):
    monkeypatch.setattr(_tool, "REGISTRY", {})


def load(folder: Path, source: str):
    """Imports a plugin from its source, as the build does."""
    name = f"plugin_{next(_NUMBERS)}"
    path = folder / f"{name}.py"
    path.write_text(HEAD + textwrap.dedent(source), encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("@tool\ndef f(a):\n  'D.'", 2, "tool f: the parameter a has no type. Write for example a: str"),
        ("@tool\ndef f(\n  a: int,\n  b,\n):\n  'D.'", 4, "tool f: the parameter b has no type"),
        ("@tool\ndef f(*args: int):\n  'D.'", 2, "tool f: *args has no schema; name each parameter"),
        ("@tool\ndef f(**more: int):\n  'D.'", 2, "tool f: **more has no schema"),
        ("@tool\ndef f(a: int, /):\n  'D.'", 2, "tool f: a is passed by its name; remove the /"),
        ("@tool\ndef f(self):\n  'D.'", 2, "tool f: it is a method"),
        ("@tool\ndef f(a: int): pass", 1, "tool f: it has no docstring. Write what it does"),
        ("@tool\ndef f(a: int):\n  '''\n  Args:\n    a: b'''", 1, "tool f: it has no docstring"),
        ("@tool\ndef f(a: bytes):\n  'D.'", 2, "tool f: the parameter a: the type bytes cannot"),
        ("@tool\ndef f(a: dict[int, int]):\n  'D.'", 2, "the keys of dict[int, …] are not text"),
        ("@tool\ndef f(a: Callable):\n  'D.'", 2, "the parameter a: the type Callable cannot"),
        ("@tool\ndef f(a: 'Missing'):\n  'D.'", 1, "a type hint cannot be understood: name 'Missing'"),
        ("@tool\ndef f(a: int = 'x'):\n  'D.'", 2, "the default of a does not fit its type: expected an"),
        ("@tool\ndef f(a: float = float('nan')):\n  'D.'", 2, "its default cannot be written as JSON"),
        ("@tool\ndef f(a: Annotated[int, schema(maximum=3)] = 4):\n  'D.'", 2, "4 must be at most 3"),
        ("@tool\ndef f(a: int):\n  '''D.\n\n  Args:\n    b: x'''", 1, "describes b, which is no parameter"),
        ("@tool\nasync def f(a: int):\n  'D.'", 1, "tool f: it is async"),
        ("@tool\ndef f(a: int):\n  'D.'\n  yield 1", 1, "tool f: it yields; return a list"),
        ("@tool\nclass f:\n  'D.'", 1, "@tool belongs on a function, and this is a type"),
        ("tool(len)", None, "@tool belongs on a function, and this is a builtin_function_or_method"),
        ("@tool(name='a b')\ndef f():\n  'D.'", 1, 'its name may have letters, digits, "_"'),
        ("@tool(readonly=True)\ndef f():\n  'D.'", 1, "@tool takes no readonly; it takes name, title"),
        ("@tool(read_only='yes')\ndef f():\n  'D.'", 1, "read_only is True or False"),
        ("@tool\ndef f():\n  'D.'\n@tool(name='f')\ndef g():\n  'D.'", 4, "there are two tools f; the first"),
        (
            "@dataclass\nclass P:\n  x: complex\n@tool\ndef f(p: list[P]):\n  'D.'",
            1,
            "tool f: the parameter p: P.x: the type complex cannot be written as JSON Schema",
        ),
        (
            "@tool\ndef f(a: Literal['" + "x" * 70_000 + "']):\n  'D.'",
            1,
            "its schema is longer than 65536 bytes",
        ),
    ],
)
def test_a_mistake_names_file_line_and_what_to_do(tmp_path, source, line, reason):
    with pytest.raises(sallyport.DefinitionError) as raised:
        load(tmp_path, source)
    text = str(raised.value)
    assert reason in text
    if line is not None:
        module = f"plugin_{next(_NUMBERS) - 1}"
        assert text.startswith(f"{tmp_path}/{module}.py:{line + HEAD.count(chr(10))}: "), text


def test_the_two_hundred_and_fifty_seventh_tool_is_refused(tmp_path):
    with pytest.raises(sallyport.DefinitionError, match="a plugin has at most 256 tools"):
        load(tmp_path, "for n in range(257):\n  tool(name=f't{n}')(eval('lambda: 0'))"
             .replace("tool(", "tool(description='D.', "))


@pytest.mark.parametrize(
    "docstring",
    [
        "Adds.\n\nMore.\n\nArgs:\n    a: The first,\n        of two.\n    b (int): The second.\n\n"
        "Returns:\n    The sum.",
        "Adds.\n\nMore.\n\nParameters\n----------\na : int\n    The first,\n    of two.\n"
        "b\n    The second.\n\nReturns\n-------\nint\n    The sum.",
        "Adds.\n\nMore.\n\n:param a: The first,\n    of two.\n:param int b: The second.\n:returns: The sum.",
    ],
)
def test_every_custom_of_docstrings_describes_parameters(docstring):
    def add(a: int, b: int = 2) -> int:
        return a + b

    add.__doc__ = docstring
    definition = sallyport.tool(add).__sallyport_tool__
    assert definition.description == "Adds.\n\nMore."
    assert definition.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first, of two."},
            "b": {"type": "integer", "description": "The second.", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_context_is_passed_and_not_described():
    @sallyport.tool
    def who(context: sallyport.CallContext, loud: bool = False) -> str:
        """Tells who asks."""
        return context.user_id.upper() if loud else context.user_id

    assert list(who.__sallyport_tool__.parameters["properties"]) == ["loud"]
    assert call(who).data == "local"
    assert call(who, {"loud": True}).data == "LOCAL"


def test_an_optional_without_default_may_be_left_out():
    @sallyport.tool
    def note(text: str | None, size: int = None) -> list:
        """Notes."""
        return [text, size]

    assert "required" not in note.__sallyport_tool__.parameters
    with pytest.raises(sallyport.InvalidArguments, match="expected a string"):
        call(note, {"text": 1})
    assert call(note, {"text": None, "size": None}).data == [None, None]


def test_only_a_declared_object_is_the_schema_of_the_result(tmp_path):
    module = load(
        tmp_path,
        """
        @dataclass
        class Sum:
            total: int

        @tool
        def declared() -> Sum:
            "D."

        @tool
        def loose() -> dict[str, int]:
            "D."

        @tool
        def plain() -> int:
            "D."

        @tool
        def unknown() -> bytes:
            "D."
        """,
    )
    outputs = {name: tool.output for name, tool in _tool.REGISTRY.items()}
    assert outputs.pop("declared")["properties"] == {"total": {"type": "integer"}}
    assert outputs == {"loose": None, "plain": None, "unknown": None}
    assert callable(module.declared)


class Colour(enum.Enum):
    RED = "red"


class Untold(Exception):
    def __str__(self):
        raise RuntimeError("no")


def raises(error):
    @sallyport.tool
    def fail():
        """Fails."""
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (sallyport.InvalidArguments("no"), "invalid-arguments", "no"),
        (sallyport.NotFound("no"), "not-found", "no"),
        (sallyport.Denied("no"), "denied", "no"),
        (sallyport.AuthRequired("no"), "auth-required", "no"),
        (sallyport.Unavailable("no"), "unavailable", "no"),
        (sallyport.Failed("no"), "failed", "no"),
        (sallyport.OtherError("out-of-tea", "no"), "out-of-tea", "no"),
        (sallyport.MissingSetting("key"), "unavailable", "the setting 'key' is not given"),
        (sallyport.Failed("half \ud800 of it"), "failed", "half ? of it"),
        (sallyport.Failed("x" * 9_000), "failed", "x" * 8_000),
        (sallyport.Failed(), "failed", ""),
        (ValueError("odd"), "failed", "ValueError: odd (test_tool.py:"),
        (ModuleNotFoundError("No module named 'x'"), "failed", "ModuleNotFoundError: No module named 'x'. "
         "A component has only what was imported when it was built: import it at the top"),
        (KeyError("k"), "failed", "KeyError: 'k' (test_tool.py:"),
        (Untold(), "failed", "Untold: Untold (test_tool.py:"),
        (SystemExit(2), "failed", "SystemExit: 2"),
        (KeyboardInterrupt(), "failed", "KeyboardInterrupt (test_tool.py:"),
        (FileNotFoundError(2, "No such file", "/a"), "not-found", "/a: No such file"),
        (PermissionError(13, "Denied", "/a"), "denied", "/a: Denied"),
    ],
)
def test_every_exception_is_an_error_that_the_model_can_read(error, kind, message):
    with pytest.raises(sallyport.ToolError) as raised:
        call(raises(error))
    assert raised.value.kind == kind
    assert raised.value.message.startswith(message)
    assert len(raised.value.message) < 8_200


def test_the_traceback_of_an_unexpected_exception_is_in_the_log(capsys):
    with pytest.raises(sallyport.Failed):
        call(raises(ZeroDivisionError("by zero")))
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: by zero" in printed
    assert inspect.getsourcefile(raises) in printed
