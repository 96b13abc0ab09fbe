"""The decorator `@tool`: a function becomes a tool, or the author reads why it cannot."""

from __future__ import annotations

import inspect
import json
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ._constraints import Mismatch
from ._docstring import Docstring, parse_docstring
from ._encode import to_json
from ._errors import (
    DefinitionError,
    Denied,
    Failed,
    InvalidArguments,
    NotFound,
    ToolError,
    clean,
    readable,
)
from ._output import Output
from ._schema import SchemaMaker, UnsupportedType, described, object_reader, with_default
from ._source import place_of, place_of_parameter

Function = TypeVar("Function", bound=Callable[..., Any])

TOOLS_MAX = 256
"""Most tools of a plugin; the host takes no more."""

SCHEMA_BYTES_MAX = 64 * 1024
"""Longest schema of a tool; the host takes no longer one."""

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


@dataclass(frozen=True)
class CallContext:
    """Where a call comes from. A tool that needs it has a parameter of this type."""

    call_id: str = "call-1"
    session_id: str = "session-1"
    user_id: str = "local"
    conversation_id: str | None = None
    deadline_ms: int | None = None
    """Milliseconds from the start of the call until the host stops it."""
    host_started_ms: int | None = None
    """When the host began, in milliseconds since 1970."""


@dataclass(frozen=True)
class ToolDefinition:
    """A tool as the host sees it, and how it is called."""

    name: str
    title: str | None
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any] | None
    hints: dict[str, bool | None]
    function: Callable[..., Any]
    read_arguments: Callable[[Any], dict[str, Any]]
    context_parameter: str | None

    def call(self, arguments: Any, context: Callable[[], CallContext]) -> tuple[str, Output]:
        """Runs the tool. Returns its data as JSON, and its output. Raises ToolError only."""
        try:
            given = self.read_arguments(arguments)
        except Mismatch as error:
            raise InvalidArguments(clean(str(error))) from None
        if self.context_parameter is not None:
            given[self.context_parameter] = context()
        output = _run(self.function, given)
        try:
            return to_json(output.data), output
        except ValueError as error:
            where = place_of(self.function)
            reason = f"the tool {self.name} returned what JSON cannot hold: {error} ({where})"
            raise Failed(clean(reason)) from None


REGISTRY: dict[str, ToolDefinition] = {}
"""The tools of this plugin by their names, in the order of their definition."""


@typing.overload
def tool(function: Function, /) -> Function: ...


@typing.overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
) -> Callable[[Function], Function]: ...


def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    **hints: bool | None,
) -> Any:
    """Makes a tool of a function: `@tool`, or `@tool(read_only=True)`.

    The function stays as it is, so a test calls it. Its docstring is the description; its type
    hints and what the docstring says about parameters become the schema. `read_only`,
    `destructive`, `idempotent` and `open_world` are claims for people.
    """

    def register(function: Function) -> Function:
        definition = define_tool(function, name, title, description, hints)
        _add(definition)
        function.__sallyport_tool__ = definition  # type: ignore[attr-defined]
        return function

    return register if function is None else register(function)


_HINTS = ("read_only", "destructive", "idempotent", "open_world")


def define_tool(
    function: Any,
    name: str | None,
    title: str | None,
    description: str | None,
    hints: dict[str, bool | None],
) -> ToolDefinition:
    """Makes the definition of a tool. Raises DefinitionError."""
    _check_function(function)
    problem = _problems_of(function, name := name or function.__name__)
    if not _NAME.fullmatch(name):
        raise problem('its name may have letters, digits, "_", "-", "." and ":", at most 128')
    for hint, value in hints.items():
        if hint not in _HINTS:
            raise problem(f"@tool takes no {hint}; it takes name, title, {', '.join(_HINTS)}")
        if value is not None and not isinstance(value, bool):
            raise problem(f"{hint} is True or False")
    said = parse_docstring(function.__doc__)
    text = description or said.text
    if not text:
        raise problem("it has no docstring. Write what it does and when to use it: a model reads it")
    parameters = _hints_of(function, problem)
    maker = SchemaMaker()
    schema, read, context = _parameters_schema(function, maker, said, parameters, problem)
    if len(json.dumps(schema)) > SCHEMA_BYTES_MAX:
        raise problem(f"its schema is longer than {SCHEMA_BYTES_MAX} bytes; take fewer parameters")
    output = _output_schema(parameters.get("return"))
    all_hints = {hint: hints.get(hint) for hint in _HINTS}
    return ToolDefinition(
        name, title, text, schema, output, all_hints, function, read, context
    )


def definition_of(function: Any) -> ToolDefinition:
    """Returns what `@tool` made of a function."""
    definition = getattr(function, "__sallyport_tool__", None)
    if definition is None:
        raise TypeError(f"{function!r} is not a tool; put @tool above it")
    return definition


def _check_function(function: Any) -> None:
    if isinstance(function, (staticmethod, classmethod)) or not inspect.isfunction(function):
        where = place_of(getattr(function, "__func__", function))
        kind = type(function).__name__
        raise DefinitionError(f"{where}: @tool belongs on a function, and this is a {kind}")


Problem = Callable[..., DefinitionError]


def _problems_of(function: Any, name: str) -> Problem:
    def problem(reason: str, parameter: str | None = None, place: str | None = None) -> Any:
        if place is None:
            place = place_of_parameter(function, parameter) if parameter else place_of(function)
        return DefinitionError(f"{place}: tool {name}: {reason}")

    return problem


def _hints_of(function: Any, problem: Problem) -> dict[str, Any]:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise problem("it is async, and a call waits for its result anyway; write def")
    if inspect.isgeneratorfunction(function):
        raise problem("it yields; return a list instead")
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise problem(f"a type hint cannot be understood: {error}") from None


def _parameters_schema(
    function: Any, maker: SchemaMaker, said: Docstring, hints: dict[str, Any], problem: Problem
) -> tuple[dict[str, Any], Callable[[Any], dict[str, Any]], str | None]:
    properties: dict[str, Any] = {}
    readers: dict[str, Any] = {}
    required: list[str] = []
    context = None
    for name, parameter in inspect.signature(function).parameters.items():
        hint = _hint_of_parameter(parameter, hints, problem)
        if hint is CallContext:
            context = name
            continue
        made, is_required = _parameter_schema(maker, parameter, hint, problem)
        schema = made.schema
        if name in said.entries:
            schema = described(schema, {"description": said.entries[name]})
        properties[name], readers[name] = schema, made.read
        if is_required:
            required.append(name)
    for name in said.entries:
        if name not in properties and name != context:
            raise problem(f"its docstring describes {name}, which is no parameter")
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if maker.definitions:
        schema["$defs"] = maker.definitions
    return schema, object_reader(readers, required, dict), context


def _hint_of_parameter(parameter: Any, hints: dict[str, Any], problem: Problem) -> Any:
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise problem(f"{stars}{name} has no schema; name each parameter, or take a list", name)
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise problem(f"{name} is passed by its name; remove the / behind it", name)
    if name not in hints:
        if name in ("self", "cls"):
            raise problem("it is a method; put @tool on a function of the module", name)
        raise problem(f"the parameter {name} has no type. Write for example {name}: str", name)
    return hints[name]


def _parameter_schema(
    maker: SchemaMaker, parameter: Any, hint: Any, problem: Problem
) -> tuple[Any, bool]:
    name, default = parameter.name, parameter.default
    is_given = default is not parameter.empty
    may_be_none = type(None) in typing.get_args(hint) or hint is None
    try:
        if is_given and default is None and not may_be_none and hint is not Any:
            hint = hint | None if not isinstance(hint, str) else hint
        made = maker.make(hint)
        if is_given:
            schema = with_default(made.schema, default)
            made.read(schema.get("default", None) if default is not None else None)
            return type(made)(schema, made.read, made.types), False
    except Mismatch as error:
        reason = f"the default of {name} does not fit its type: {error}"
        raise problem(reason, name) from None
    except UnsupportedType as error:
        raise problem(f"the parameter {name}: {error}", name, error.place) from None
    except TypeError:
        raise problem(f"the parameter {name}: {hint!r} is not a type", name) from None
    # An Optional without a default may be left out all the same: that is what people mean by it.
    if may_be_none:
        return type(made)(made.schema, made.read, made.types), False
    return made, True


def _output_schema(hint: Any) -> dict[str, Any] | None:
    """Returns the schema of the data if its type says that it is an object."""
    maker = SchemaMaker()
    try:
        schema = maker.make(hint).schema if hint is not None else {}
    except UnsupportedType:
        return None
    if maker.definitions:
        schema = {**schema, "$defs": maker.definitions}
    is_declared = isinstance(hint, type) or typing.is_typeddict(hint)
    return schema if schema.get("type") == "object" and is_declared else None


def _add(definition: ToolDefinition) -> None:
    function = definition.function
    other = REGISTRY.get(definition.name)
    # A module that is imported again, as by pytest, defines the same function again.
    if other is not None and not _is_same_function(other.function, function):
        raise DefinitionError(
            f"{place_of(function)}: there are two tools {definition.name}; the first is at "
            f"{place_of(other.function)}. Rename one, or write @tool(name=...)"
        )
    if len(REGISTRY) >= TOOLS_MAX and other is None:
        raise DefinitionError(f"{place_of(function)}: a plugin has at most {TOOLS_MAX} tools")
    REGISTRY[definition.name] = definition


def _is_same_function(one: Any, other: Any) -> bool:
    first, second = one.__code__, other.__code__
    return (first.co_filename, first.co_firstlineno) == (second.co_filename, second.co_firstlineno)


def _run(function: Callable[..., Any], given: dict[str, Any]) -> Output:
    try:
        result = function(**given)
        return result if isinstance(result, Output) else Output(result)
    except ToolError:
        raise
    except FileNotFoundError as error:
        raise NotFound(_file_words(error)) from None
    except PermissionError as error:
        raise Denied(_file_words(error)) from None
    except BaseException as error:
        raise Failed(_unexpected(error)) from None


def _file_words(error: OSError) -> str:
    return clean(f"{error.filename}: {error.strerror}" if error.filename else readable(error))


def _unexpected(error: BaseException) -> str:
    """Words an exception that the author did not expect, and prints its traceback to the log."""
    try:
        print("".join(traceback.format_exception(error)), end="", file=sys.stderr)
    except Exception:
        print(type(error).__name__, file=sys.stderr)
    text, name = readable(error), type(error).__name__
    line = _own_line(error.__traceback__)
    if isinstance(error, ModuleNotFoundError):
        text += ". A component has only what was imported when it was built: import it at the top"
    return f"{name}: {text}{line}" if text else f"{name}{line}"


def _own_line(trace: types.TracebackType | None) -> str:
    """Says in which line of the author's own code an exception arose."""
    found = ""
    for frame in traceback.extract_tb(trace):
        if frame.filename != __file__ and "/sallyport/" not in frame.filename:
            found = f" ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
    return found
