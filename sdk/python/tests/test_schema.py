"""What becomes of each type: the schema, what is read, and what is refused."""

from __future__ import annotations

import datetime
import enum
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, NewType, Optional, TypedDict

import pytest
from sallyport import Int32, Int64, UInt64, schema
from sallyport._constraints import Mismatch
from sallyport._schema import SchemaMaker, UnsupportedType


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """How high."""

    LOW = 1
    HIGH = 2


class Mask(enum.Flag):
    A = 1


class Ratio(enum.Enum):
    HALF = 0.5


class Empty(enum.Enum):
    pass


@dataclass
class Point:
    """A place.

    Attributes:
        x: To the east.
    """

    x: float
    y: float = 0.0
    """To the north."""


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)


@dataclass
class Positive:
    count: int

    def __post_init__(self):
        if self.count < 1:
            raise ValueError("count must be positive")


@dataclass
class Holder:
    data: bytes


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Span(NamedTuple):
    start: int
    end: int = 9


UserId = NewType("UserId", str)
T = typing.TypeVar("T")
POINT = {
    "type": "object",
    "description": "A place.",
    "properties": {
        "x": {"type": "number", "description": "To the east."},
        "y": {"type": "number", "description": "To the north.", "default": 0.0},
    },
    "required": ["x"],
    "additionalProperties": False,
}
LONG = 2**64 - 1


@pytest.mark.parametrize(
    ("hint", "want"),
    [
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (str, {"type": "string"}),
        (None, {"type": "null"}),
        (Any, {}),
        (object, {}),
        (UserId, {"type": "string"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.time, {"type": "string", "format": "time"}),
        (list, {"type": "array", "items": {}}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (typing.List[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict, {"type": "object", "additionalProperties": {}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2], "description": "How high."}),
        (Optional[str], {"type": ["string", "null"]}),
        (int | str, {"type": ["integer", "string"]}),
        (int | float | None, {"type": ["integer", "number", "null"]}),
        (
            Literal["a"] | None,
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (list[int] | None, {"type": ["array", "null"], "items": {"type": "integer"}}),
        (
            list[int] | str,
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]},
        ),
        (Annotated[int, schema(minimum=1)], {"type": "integer", "minimum": 1}),
        (Annotated[str, "Why."], {"type": "string", "description": "Why."}),
        (Int32, {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
        (
            UInt64,
            {
                "anyOf": [
                    {"type": "integer", "minimum": 0, "maximum": LONG},
                    {"type": "string", "pattern": "^-?(0|[1-9][0-9]*)$"},
                ]
            },
        ),
        (Point, POINT),
        (
            Movie,
            {
                "type": "object",
                "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
                "required": ["title"],
                "additionalProperties": False,
            },
        ),
        (
            Span,
            {
                "type": "object",
                "properties": {"start": {"type": "integer"}, "end": {"type": "integer", "default": 9}},
                "required": ["start"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_type_has_a_schema(hint, want):
    assert SchemaMaker().make(hint).schema == want


def test_a_class_that_contains_itself_is_a_definition():
    maker = SchemaMaker()
    made = maker.make(list[Tree])
    assert made.schema == {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    assert maker.definitions["Tree"]["properties"]["children"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Tree"},
        "default": [],
    }
    read = made.read([{"name": "a", "children": [{"name": "b"}]}])
    assert read == [Tree("a", [Tree("b")])]


@pytest.mark.parametrize(
    ("hint", "value", "want"),
    [
        (int, 3, 3),
        (int, 3.0, 3),
        (int, 2**70, 2**70),
        (float, 3, 3.0),
        (float, -0.5, -0.5),
        (str, "\u2603\0", "\u2603\0"),
        (None, None, None),
        (Any, {"a": [1]}, {"a": [1]}),
        (Optional[int], None, None),
        (int | float, 3, 3),
        (int | float, 3.5, 3.5),
        (bool | int, True, True),
        (Literal[1, True], True, True),
        (Literal[1, 2], 1, 1),
        (Colour, "red", Colour.RED),
        (Level, 2, Level.HIGH),
        (Colour | None, None, None),
        (set[int], [1, 1, 2], {1, 2}),
        (frozenset[str], ["a"], frozenset("a")),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (dict[str, float], {"a": 1}, {"a": 1.0}),
        (datetime.date, "2026-01-31", datetime.date(2026, 1, 31)),
        (datetime.datetime, "2026-01-31T12:00:00+00:00",
         datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)),
        (Int64, "-9223372036854775808", -(2**63)),
        (Int64, 7, 7),
        (UInt64, str(LONG), LONG),
        (UInt64, LONG, LONG),
        (UInt64 | None, None, None),
        (Point, {"x": 1}, Point(1.0)),
        (Point | str, "here", "here"),
        (Span, {"start": 1}, Span(1, 9)),
        (Movie, {"title": "M"}, {"title": "M"}),
        (Annotated[float, schema(multipleOf=0.1)], 0.3, 0.3),
        (Annotated[str | None, schema(maxLength=2)], None, None),
        (Annotated[int, schema(minimum=1)] | None, None, None),
    ],
)
def test_a_value_is_read(hint, value, want):
    read = SchemaMaker().make(hint).read(value)
    assert (type(read), read) == (type(want), want)


@pytest.mark.parametrize(
    ("hint", "value", "reason"),
    [
        (int, True, "expected an integer, found a boolean"),
        (int, 3.5, "expected an integer, found 3.5"),
        (int, "3", "expected an integer, found a string"),
        (float, "x", "expected a number, found a string"),
        (float, 10**400, "the number is too large"),
        (bool, 1, "expected true or false, found 1"),
        (str, None, "expected a string, found null"),
        (None, 0, "expected null, found 0"),
        (Literal["a", "b"], "c", "'c' is none of 'a', 'b'"),
        (Literal[1], True, "True is none of 1"),
        (Literal["a"], ["a"], "['a'] is none of 'a'"),
        (Colour, "green", "'green' is none of 'red', 'blue'"),
        (list[int], {}, "expected an array, found an object"),
        (list[int], [1, "a"], "[1]: expected an integer, found a string"),
        (list[list[int]], [[1], ["a"]], "[1][0]: expected an integer, found a string"),
        (set[Any], [[1]], "its items cannot be members of a set"),
        (tuple[int, str], [1], "expected an array of 2 items, found an array"),
        (dict[str, int], {"a": None}, "a: expected an integer, found null"),
        (dict[str, list[int]], {"a": [0, ""]}, "a[1]: expected an integer, found a string"),
        (datetime.date, "31.1.2026", "'31.1.2026' is not a day such as 2026-01-31"),
        (Int64, "9223372036854775808", "is not between"),
        (Int64, "0x10", "'0x10' is not an integer"),
        (Int64, True, "True is not an integer"),
        (UInt64, -1, "-1 is not between 0 and"),
        (Point, {}, "x is missing"),
        (Point, {"x": 1, "z": 2}, "there is no 'z'; there are x, y"),
        (list[Point], [{"x": "a"}], "[0].x: expected a number, found a string"),
        (Positive, {"count": 0}, "count must be positive"),
        (Optional[int], "a", "expected an integer, found a string; expected null, found a string"),
        (Annotated[int, schema(minimum=1)], 0, "0 must be at least 1"),
        (Annotated[int, schema(exclusiveMaximum=3)], 3, "3 must be below 3"),
        (Annotated[float, schema(multipleOf=0.5)], 0.7, "0.7 must be a multiple of 0.5"),
        (Annotated[str, schema(maxLength=2)], "abc", "it has a length of 3"),
        (Annotated[str, schema(pattern="^a")], "b", "'b' does not match ^a"),
        (Annotated[list[int], schema(minItems=1)], [], "it has a length of 0"),
    ],
)
def test_a_value_that_does_not_fit_says_where_and_why(hint, value, reason):
    with pytest.raises(Mismatch) as raised:
        SchemaMaker().make(hint).read(value)
    assert reason in str(raised.value)


def deep(levels: int) -> Any:
    return int if levels == 0 else list[deep(levels - 1)]


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (bytes, "the type bytes cannot be written as JSON Schema; take str and decode it"),
        (complex, "take two floats"),
        (type, "the type type cannot be written as JSON Schema"),
        (typing.Callable[[], int], "cannot be written as JSON Schema"),
        (T, "stands for any type; name the one that you mean"),
        (list[T], "stands for any type"),
        (dict[int, str], "the keys of dict[int, …] are not text"),
        (tuple[()], "a tuple needs the types of its items"),
        (Mask, "Mask is a Flag; take a list of an Enum"),
        (Ratio, "the values of Ratio have to be text or whole numbers"),
        (Empty, "Empty has no members"),
        (Literal[b"a"], "b'a' is no text, number, boolean or null"),
        (Holder, "Holder.data: the type bytes"),
        (list[Holder], "Holder.data: the type bytes"),
        (3, "the type 3 cannot"),
        ([int], "[<class 'int'>] is not a type"),
        (deep(40), "nest more than 32 levels"),
        (Annotated[int, schema(minimun=1)], "there is no keyword minimun"),
        (Annotated[int, schema(minLength=1)], "minLength says nothing about this type"),
        (Annotated[str, schema(minimum=1)], "minimum says nothing about this type"),
        (Annotated[int, schema(minimum="1")], "minimum has to be a number"),
        (Annotated[float, schema(minimum=float("nan"))], "minimum has to be a number"),
        (Annotated[int, schema(multipleOf=0)], "multipleOf has to be above 0"),
        (Annotated[str, schema(pattern="(")], "the pattern is no regular expression"),
        (Annotated[str, schema(description=1)], "description has to be text"),
    ],
)
def test_a_type_without_a_schema_is_refused(hint, reason):
    with pytest.raises(UnsupportedType) as raised:
        SchemaMaker().make(hint)
    assert reason in str(raised.value)


def test_a_mistake_in_a_class_names_the_place_of_the_class():
    with pytest.raises(UnsupportedType) as raised:
        SchemaMaker().make(list[Holder])
    line = open(__file__, encoding="utf-8").read().split("class Holder")[0].count("\n")
    assert raised.value.place == f"{__file__}:{line}"


def test_pydantic_models_are_read_by_pydantic():
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        n: int

    class Model(pydantic.BaseModel):
        inner: Inner

    Model.model_rebuild(_types_namespace={"Inner": Inner})
    maker = SchemaMaker()
    made = maker.make(Model)
    assert made.schema["properties"]["inner"] == {"$ref": "#/$defs/Inner"}
    assert "Inner" in maker.definitions
    assert made.read({"inner": {"n": 1}}).inner.n == 1
    with pytest.raises(Mismatch, match="inner.n: "):
        made.read({"inner": {"n": "x"}})
