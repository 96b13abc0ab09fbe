"""Makes the JSON Schema of a Python type, and the function that reads such a value from JSON.

All of this runs when a component is built. A call only runs the readers.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._constraints import Mismatch, WideInteger, check_of, keywords_of, shown
from ._docstring import parse_docstring
from ._encode import encode_value
from ._source import field_docstrings, place_of

Reader = Callable[[Any], Any]

DEPTH_MAX = 32
"""Deepest nesting of types. A model fills nothing deeper, and providers refuse such schemas."""

_LISTS = (list, collections.abc.Sequence, collections.abc.MutableSequence)
_LISTS += (collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)

_HINTS = {
    bytes: "take str and decode it, for example with base64.b64decode",
    bytearray: "take str and decode it, for example with base64.b64decode",
    complex: "take two floats",
    range: "take two ints",
}


class UnsupportedType(Exception):
    """A type that has no schema. `place` is known if the type is a field of the author's class."""

    def __init__(self, reason: str, place: str | None = None):
        super().__init__(reason)
        self.place = place


@dataclass(frozen=True)
class TypeSchema:
    """A schema and the reader of its values; what the values are is `types`, as JSON has them."""

    schema: dict[str, Any]
    read: Reader
    types: tuple[type, ...] = ()


def _kind(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    return "null" if value is None else names.get(type(value), shown(value))


def _exact(python: type, words: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not python:
            raise Mismatch(f"expected {words}, found {_kind(value)}")
        return value

    return read


def _read_integer(value: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise Mismatch(f"expected an integer, found {_kind(value)}")


def _read_number(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            raise Mismatch("the number is too large") from None
    raise Mismatch(f"expected a number, found {_kind(value)}")


def _parsed(parse: Callable[[str], Any], words: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not str:
            raise Mismatch(f"expected {words}, found {_kind(value)}")
        try:
            return parse(value)
        except ValueError:
            raise Mismatch(f"{shown(value)} is not {words}") from None

    return read


def _anything(value: Any) -> Any:
    return value


def _simple(name: str, read: Reader, *python: type) -> TypeSchema:
    return TypeSchema({"type": name}, read, python)


def _text_form(form: str, parse: Callable[[str], Any], words: str) -> TypeSchema:
    return TypeSchema({"type": "string", "format": form}, _parsed(parse, words), (str,))


_ANY = TypeSchema({}, _anything)
_SIMPLE: dict[Any, TypeSchema] = {
    bool: _simple("boolean", _exact(bool, "true or false"), bool),
    int: _simple("integer", _read_integer, int),
    float: _simple("number", _read_number, float, int),
    str: _simple("string", _exact(str, "a string"), str),
    type(None): _simple("null", _exact(type(None), "null"), type(None)),
    None: _simple("null", _exact(type(None), "null"), type(None)),
    Any: _ANY,
    object: _ANY,
    datetime.datetime: _text_form(
        "date-time", datetime.datetime.fromisoformat, "a time such as 2026-01-31T12:00:00Z"
    ),
    datetime.date: _text_form("date", datetime.date.fromisoformat, "a day such as 2026-01-31"),
    datetime.time: _text_form("time", datetime.time.fromisoformat, "a time such as 12:30:00"),
}


class SchemaMaker:
    """Makes the schemas of one tool. Recursive classes are kept in `definitions`."""

    def __init__(self) -> None:
        self.definitions: dict[str, dict[str, Any]] = {}
        self._open: dict[Any, str] = {}
        self._readers: dict[str, Reader] = {}
        self._recursive: set[str] = set()
        self._depth = 0

    def make(self, hint: Any) -> TypeSchema:
        """Makes the schema of a type. Raises UnsupportedType."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise UnsupportedType(f"its types nest more than {DEPTH_MAX} levels; flatten them")
        try:
            return self._make(hint)
        finally:
            self._depth -= 1

    def _make(self, hint: Any) -> TypeSchema:
        try:
            if hint in _SIMPLE:
                return _SIMPLE[hint]
        except TypeError:
            raise UnsupportedType(f"{shown(hint)} is not a type") from None
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hasattr(hint, "__supertype__"):
            return self.make(hint.__supertype__)
        if hasattr(hint, "__value__"):
            return self.make(hint.__value__)
        if origin is typing.Annotated:
            return self._annotated(arguments[0], arguments[1:])
        if origin in (typing.Required, typing.NotRequired):
            return self.make(arguments[0])
        if origin is typing.Literal:
            return _choice({value: value for value in arguments}, arguments)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if (container := self._container(origin or hint, arguments)) is not None:
            return container
        return self._named(hint)

    def _named(self, hint: Any) -> TypeSchema:
        if isinstance(hint, type):
            if issubclass(hint, enum.Enum):
                return _enumeration(hint)
            if hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate"):
                return self._pydantic(hint)
            if fields := _fields(hint):
                return self._object(hint, fields)
        if isinstance(hint, typing.TypeVar):
            raise UnsupportedType(f"{hint} stands for any type; name the one that you mean")
        advice = _HINTS.get(hint, "use a dataclass, TypedDict, Literal, Enum, list or dict of these")
        name = getattr(hint, "__name__", None) or shown(hint)
        raise UnsupportedType(f"the type {name} cannot be written as JSON Schema; {advice}")

    def _container(self, origin: Any, arguments: tuple[Any, ...]) -> TypeSchema | None:
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _LISTS or origin in _SETS:
            item = self.make(arguments[0] if arguments else Any)
            unique = {"uniqueItems": True} if origin in _SETS else {}
            make = list if origin in _LISTS else frozenset if origin is frozenset else set
            schema = {"type": "array", "items": item.schema, **unique}
            return TypeSchema(schema, _list_reader(item.read, make), (list,))
        if origin in _DICTS:
            key, item = arguments or (str, Any)
            if key is not str:
                raise UnsupportedType(
                    f"the keys of dict[{getattr(key, '__name__', key)}, …] are not text, "
                    "and JSON has no other; use dict[str, …]"
                )
            value = self.make(item)
            schema = {"type": "object", "additionalProperties": value.schema}
            return TypeSchema(schema, _dict_reader(value.read), (dict,))
        return None

    def _tuple(self, arguments: tuple[Any, ...]) -> TypeSchema:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            item = self.make(arguments[0])
            schema = {"type": "array", "items": item.schema}
            return TypeSchema(schema, _list_reader(item.read, tuple), (list,))
        items = [self.make(argument) for argument in arguments]
        if not items:
            raise UnsupportedType("a tuple needs the types of its items: tuple[int, str]")
        schema = {
            "type": "array",
            "prefixItems": [item.schema for item in items],
            "minItems": len(items),
            "maxItems": len(items),
        }
        return TypeSchema(schema, _tuple_reader([item.read for item in items]), (list,))

    def _annotated(self, hint: Any, metadata: tuple[Any, ...]) -> TypeSchema:
        wide = next((entry for entry in metadata if isinstance(entry, WideInteger)), None)
        base = TypeSchema(wide.schema(), wide.read, (int,)) if wide else self.make(hint)
        keywords: dict[str, Any] = {}
        for entry in metadata:
            keywords.update(keywords_of(entry))
        if not keywords:
            return base
        try:
            checks = [check_of(word, limit, base.types) for word, limit in keywords.items()]
        except ValueError as error:
            raise UnsupportedType(str(error)) from None
        read = _checked(base.read, [check for check in checks if check])
        return TypeSchema(described(base.schema, keywords), read, base.types)

    def _union(self, arguments: tuple[Any, ...]) -> TypeSchema:
        members = [self.make(argument) for argument in arguments]
        # Only plain types can share one `type`; any other keyword would be about all of them.
        if all(set(member.schema) == {"type"} for member in members):
            schema: dict[str, Any] = {"type": _unique([m.schema["type"] for m in members])}
        elif len(members) == 2 and type(None) in arguments:
            schema = _nullable(members[arguments.index(type(None)) - 1].schema)
        else:
            schema = {"anyOf": [member.schema for member in members]}
        python = tuple(kind for member in members for kind in member.types)
        return TypeSchema(schema, _union_reader(members), python)

    def _object(self, cls: Any, fields: list[Field]) -> TypeSchema:
        if cls in self._open:
            name = self._open[cls]
            self._recursive.add(name)
            return TypeSchema(_reference(name), lambda value: self._readers[name](value), (dict,))
        name = self._free_name(cls.__name__)
        self._open[cls] = name
        try:
            made = self._fields_schema(cls, fields)
        finally:
            del self._open[cls]
        if name not in self._recursive:
            return made
        self._readers[name] = made.read
        self.definitions[name] = made.schema
        return TypeSchema(_reference(name), made.read, (dict,))

    def _free_name(self, name: str) -> str:
        taken = {*self.definitions, *self._open.values()}
        number = 2
        free = name
        while free in taken:
            free, number = f"{name}{number}", number + 1
        return free

    def _fields_schema(self, cls: Any, fields: list[Field]) -> TypeSchema:
        said = parse_docstring(None if _has_made_up_docstring(cls) else cls.__doc__)
        texts = {**said.entries, **field_docstrings(cls)}
        properties: dict[str, Any] = {}
        readers: dict[str, Reader] = {}
        for field in fields:
            try:
                made = self.make(field.hint)
            except UnsupportedType as error:
                place = error.place or place_of(cls)
                raise UnsupportedType(f"{cls.__name__}.{field.name}: {error}", place) from None
            schema = made.schema
            if field.name in texts:
                schema = described(schema, {"description": texts[field.name]})
            if field.has_default:
                schema = with_default(schema, field.default)
            properties[field.name], readers[field.name] = schema, made.read
        required = [field.name for field in fields if field.is_required]
        schema = {"type": "object", "properties": properties}
        if said.text:
            schema = {"type": "object", "description": said.text, "properties": properties}
        if required:
            schema["required"] = required
        schema["additionalProperties"] = False
        build = dict if typing.is_typeddict(cls) else cls
        return TypeSchema(schema, object_reader(readers, required, build), (dict,))

    def _pydantic(self, model: Any) -> TypeSchema:
        schema = dict(model.model_json_schema())
        for name, definition in schema.pop("$defs", {}).items():
            if self.definitions.setdefault(name, definition) != definition:
                raise UnsupportedType(f"two classes are called {name}; rename one of them")
        return TypeSchema(schema, _pydantic_reader(model), (dict,))


@dataclass(frozen=True)
class Field:
    """A field of a class."""

    name: str
    hint: Any
    is_required: bool
    has_default: bool = False
    default: Any = None


def _fields(cls: Any) -> list[Field] | None:
    """Returns the fields of a dataclass, TypedDict or NamedTuple; `None` for another class."""
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError) as error:
        raise UnsupportedType(f"{cls.__name__}: {error}", place_of(cls)) from None
    if typing.is_typeddict(cls):
        return [Field(name, hint, _is_required_key(cls, name, hint)) for name, hint in hints.items()]
    if issubclass(cls, tuple) and hasattr(cls, "_field_defaults"):
        defaults = cls._field_defaults
        return [
            Field(name, hints.get(name, Any), name not in defaults, name in defaults,
                  defaults.get(name))
            for name in cls._fields
        ]
    if not dataclasses.is_dataclass(cls):
        return None
    return [_dataclass_field(field, hints) for field in dataclasses.fields(cls) if field.init]


def _is_required_key(cls: Any, name: str, hint: Any) -> bool:
    # With `from __future__ import annotations` the class itself does not see the markers.
    origin = typing.get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in cls.__required_keys__


def _dataclass_field(field: Any, hints: dict[str, Any]) -> Field:
    missing = dataclasses.MISSING
    is_required = field.default is missing and field.default_factory is missing
    default = field.default
    if field.default_factory in (list, dict):
        default = field.default_factory()
    has_default = default is not missing
    hint = hints[field.name]
    return Field(field.name, hint, is_required, has_default, default if has_default else None)


def _has_made_up_docstring(cls: Any) -> bool:
    """Whether Python wrote the docstring: the signature of a dataclass or NamedTuple, or that of
    `dict` that a TypedDict inherits."""
    text = cls.__doc__ or ""
    return text.startswith(f"{cls.__name__}(") or text == dict.__doc__


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def described(schema: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Adds keywords to a schema, those that describe it first."""
    first = {word: keywords[word] for word in ("title", "description") if word in keywords}
    rest = {word: keyword for word, keyword in keywords.items() if word not in first}
    return {**schema, **rest, **first}


def with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    """Adds a default, unless it is the null that stands for "not given"."""
    if default is None:
        return schema
    try:
        return {**schema, "default": encode_value(default)}
    except ValueError as error:
        raise UnsupportedType(f"its default cannot be written as JSON: {error}") from None


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    if isinstance(kind, str):
        return {**schema, "type": [kind, "null"], "enum": [*schema["enum"], None]}
    return {"anyOf": [schema, {"type": "null"}]}


def _unique(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _choice(members: dict[Any, Any], values: tuple[Any, ...]) -> TypeSchema:
    names = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
    if unknown := [value for value in values if type(value) not in names]:
        raise UnsupportedType(f"{shown(unknown[0])} is no text, number, boolean or null")
    kinds = _unique([names[type(value)] for value in values])
    schema = {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(values)}
    # 1 and True are one key of a dict; with their types they are two.
    table = {(type(value), value): members[value] for value in values}
    words = ", ".join(shown(value) for value in values)

    def read(value: Any) -> Any:
        try:
            return table[type(value), value]
        except (KeyError, TypeError):
            raise Mismatch(f"{shown(value)} is none of {words}") from None

    return TypeSchema(schema, read, tuple(_unique([type(value) for value in values])))


def _enumeration(cls: type[enum.Enum]) -> TypeSchema:
    if issubclass(cls, enum.Flag):
        raise UnsupportedType(f"{cls.__name__} is a Flag; take a list of an Enum")
    members = {member.value: member for member in cls}
    if not members:
        raise UnsupportedType(f"{cls.__name__} has no members", place_of(cls))
    plain = {str, int}
    if any(type(value) not in plain for value in members):
        reason = f"the values of {cls.__name__} have to be text or whole numbers"
        raise UnsupportedType(reason, place_of(cls))
    made = _choice(members, tuple(members))
    own = cls.__doc__ or ""
    if not own or own == "An enumeration.":
        return made
    schema = described(made.schema, {"description": inspect.cleandoc(own)})
    return TypeSchema(schema, made.read, made.types)


def _checked(read: Reader, checks: list[Callable[[Any], None]]) -> Reader:
    if not checks:
        return read

    def checked(value: Any) -> Any:
        made = read(value)
        if value is not None:
            for check in checks:
                check(value)
        return made

    return checked


def _list_reader(read_item: Reader, make: Callable[[list[Any]], Any]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch(f"expected an array, found {_kind(value)}")
        items: list[Any] = []
        try:
            items.extend(map(read_item, value))
        except Mismatch as error:
            raise error.inside(len(items)) from None
        try:
            return items if make is list else make(items)
        except TypeError:
            raise Mismatch("its items cannot be members of a set") from None

    return read


def _tuple_reader(readers: list[Reader]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(readers):
            raise Mismatch(f"expected an array of {len(readers)} items, found {_kind(value)}")
        items: list[Any] = []
        for reader, item in zip(readers, value, strict=True):
            try:
                items.append(reader(item))
            except Mismatch as error:
                raise error.inside(len(items)) from None
        return tuple(items)

    return read


def _dict_reader(read_item: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(f"expected an object, found {_kind(value)}")
        return {key: _read_at(read_item, key, item) for key, item in value.items()}

    return read


def _read_at(read: Reader, key: str, value: Any) -> Any:
    try:
        return read(value)
    except Mismatch as error:
        raise error.inside(key) from None


def _union_reader(members: list[TypeSchema]) -> Reader:
    def read(value: Any) -> Any:
        # A member whose JSON type is exactly that of the value comes first: 3 is an int, 3.5 is not.
        fitting = [member for member in members if type(value) in member.types]
        reasons = []
        for member in fitting or members:
            try:
                return member.read(value)
            except Mismatch as error:
                reasons.append(error)
        if len(reasons) == 1:
            raise reasons[0]
        raise Mismatch("; ".join(_unique([str(reason) for reason in reasons])))

    return read


def object_reader(readers: dict[str, Reader], required: list[str], build: Any) -> Reader:
    """Reads an object with known keys, and passes its values to `build` by their names."""

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(f"expected an object, found {_kind(value)}")
        for name in required:
            if name not in value:
                raise Mismatch(f"{name} is missing")
        made = {}
        for key, item in value.items():
            reader = readers.get(key)
            if reader is None:
                raise Mismatch(f"there is no {shown(key)}; there are {', '.join(readers) or 'none'}")
            made[key] = _read_at(reader, key, item)
        try:
            return build(**made)
        except ValueError as error:
            raise Mismatch(str(error)) from None

    return read


def _pydantic_reader(model: Any) -> Reader:
    def read(value: Any) -> Any:
        try:
            return model.model_validate(value)
        except ValueError as error:
            errors = getattr(error, "errors", None)
            raise Mismatch(_pydantic_words(errors()) if errors else str(error)) from None

    return read


def _pydantic_words(errors: list[dict[str, Any]]) -> str:
    parts = [(".".join(map(str, error["loc"])), error["msg"]) for error in errors[:3]]
    return "; ".join(f"{place}: {text}" if place else text for place, text in parts)
