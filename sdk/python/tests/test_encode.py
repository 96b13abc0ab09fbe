"""What a tool may return, and what is said about everything else."""

from __future__ import annotations

import collections
import datetime
import enum
import json
import types
import uuid
from dataclasses import dataclass

import pytest
import sallyport
from sallyport._encode import to_json
from sallyport.testing import call


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 2


@dataclass
class Node:
    value: object
    next: object = None


def cycle(value: list) -> list:
    value.append(value)
    return value


def wide_cycle() -> list:
    value: list = []
    value += [value, value, {"a": value}]
    return value


def node_cycle() -> Node:
    node = Node(1)
    node.next = {"back": [node]}
    return node


def nested(depth: int) -> list:
    value: list = []
    for _level in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, None),
        ("\u2603 \0 \"\n", "\u2603 \0 \"\n"),
        ([1, 2.5, True], [1, 2.5, True]),
        ((1, (2,)), [1, [2]]),
        ({"b": 1, "a": 2}, {"b": 1, "a": 2}),
        ({1: "a", True: "b"}, {"1": "b"}),
        ({3, 1, 2}, [1, 2, 3]),
        ({"a", 1}, ["a", 1]),
        (frozenset(), []),
        (Node(1, Node(2)), {"value": 1, "next": {"value": 2, "next": None}}),
        ([Colour.RED, Level.HIGH], ["red", 2]),
        (datetime.date(2026, 1, 31), "2026-01-31"),
        (datetime.datetime(2026, 1, 31, 12), "2026-01-31T12:00:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({"a": 1}.values(), [1]),
        (range(3), [0, 1, 2]),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        ("9" * 30, "9" * 30),
        ([[1], [1]], [[1], [1]]),
        ("x" * 1_000_000, "x" * 1_000_000),
        (nested(60), nested(60)),
        (nested(100), nested(100)),
    ],
)
def test_a_value_is_written(value, want):
    assert json.loads(to_json(value)) == want


def test_a_value_that_appears_twice_is_no_cycle():
    shared = [2**63, 2**63]
    assert to_json({"a": shared, "b": shared}).count("9223372036854775808") == 4


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"a", "the result: bytes is not JSON; return Output(...).image(...), or text"),
        ({"a": [b"x"]}, "a[0]: bytes is not JSON"),
        (float("nan"), "the result: nan is not JSON; return None or text instead"),
        ({"a": {"b": float("-inf")}}, "a.b: -inf is not JSON"),
        ({float("nan"): 1}, "nan is not JSON"),
        (2**64, "the result: the integer has more than 64 bits; return it as text"),
        ([{"n": -(2**63) - 1}], "[0].n: the integer has more than 64 bits"),
        ("a\ud800", "the result: it has half of a surrogate pair"),
        ({"a": ["\udfff"]}, "a[0]: it has half of a surrogate pair"),
        ({"\ud800": 1}, "it has half of a surrogate pair"),
        (cycle([]), "[0]: it contains itself"),
        (wide_cycle(), "[0]: it contains itself"),
        (node_cycle(), "next.back[0]: it contains itself"),
        ((n for n in "a"), "the result: generator is not JSON; return list(...) of it"),
        (iter([]), "list_iterator is not JSON; return list(...) of it"),
        (map(str, []), "map is not JSON; return list(...) of it"),
        (object(), "object is not JSON; return a dict or a dataclass"),
        (Node, "type is not JSON; did you forget to call Node()?"),
        (len, "did you forget to call len()?"),
        ({"a": Node(object())}, "a.value: object is not JSON"),
        ({(1, 2): 3}, "the key (1, 2) is not text"),
        (1j, "complex is not JSON"),
        (nested(101), "it nests more than 100 levels"),
        (nested(200_000), "it nests more than 100 levels"),
    ],
)
def test_a_value_that_json_cannot_hold_says_where_and_why(value, reason):
    with pytest.raises(ValueError) as raised:
        to_json(value)
    assert reason in str(raised.value)


def test_a_tool_that_returns_such_a_value_fails_with_its_place():
    @sallyport.tool
    def broken():
        """Breaks."""
        return {"points": [1, float("nan")]}

    with pytest.raises(sallyport.Failed) as raised:
        call(broken)
    text = str(raised.value)
    assert "the tool broken returned what JSON cannot hold: points[1]: nan is not JSON" in text
    assert f"({__file__}:" in text


def test_an_output_keeps_its_parts():
    @sallyport.tool
    def parts():
        """Has parts."""
        return sallyport.Output({"n": 1}).text("a").image(b"\x89", "image/png").say("One.")

    output = call(parts)
    assert (output.data, output.speech) == ({"n": 1}, "One.")
    assert [(part.kind, part.text, part.data) for part in output.content] == [
        ("text", "a", None),
        ("image", "", b"\x89"),
    ]
