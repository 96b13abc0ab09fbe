"""Values as JSON: what is exact, what is noted, and where it ends."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import unittest
import uuid
from typing import Any

from interpreter.value import LEVELS_MAX, NOTES_MAX, RESULT_BYTES_MAX, as_json

Point = collections.namedtuple("Point", "x y")


class Color(enum.Enum):
    """An enumeration."""

    RED = 1


class Level(enum.IntEnum):
    """An enumeration of numbers."""

    LOW = 1


@dataclasses.dataclass
class Place:
    """A dataclass."""

    name: str
    at: Any = None


class Broken:
    """An object whose methods do what they like."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


class ValueTest(unittest.TestCase):
    """How values are written."""

    def check(self, value: object, written: object, *notes: str) -> None:
        """Asserts what a value is written as, and what is noted."""
        text, noted = as_json(value)
        self.assertEqual(json.loads(text), written, value)
        self.assertEqual(noted, list(notes), value)

    def test_what_json_has_is_exact(self) -> None:
        for value in (
            None, True, 0, -1, 2**53, -(2**53), 1.5, 1e300, "", "ü\n\0", [], {},
            [1, [2, {"a": None}]], {"a": 1, "b": [True]},
        ):  # fmt: skip
            self.check(value, value)
        self.check(collections.Counter("aab"), {"a": 2, "b": 1})

    def test_numbers_that_json_would_spoil_are_text(self) -> None:
        beyond = "int beyond 2**53 as text"
        self.check(2**53 + 1, "9007199254740993", beyond)
        self.check([-(2**64)], ["-18446744073709551616"], beyond)
        for value, written in ((float("nan"), "nan"), (float("-inf"), "-inf")):
            self.check(value, written, "float that is not finite as text")
        self.check(1 << 10**6, "an int of 1000001 bits", "int too long to write")

    def test_what_json_does_not_have_is_noted(self) -> None:
        some = uuid.UUID(int=1)
        for value, written, note in (
            ((1, (2,)), [1, [2]], "tuple as a list"),
            ({3, 1, 2}, [1, 2, 3], "set as a list"),
            (frozenset(), [], "frozenset as a list"),
            (collections.deque([1]), [1], "deque as a list"),
            ({"a": 1}.items(), [["a", 1]], "dict_items as a list"),
            (Point(1, [2]), {"x": 1, "y": [2]}, "Point as an object"),
            (Place("a", 1), {"name": "a", "at": 1}, "Place as an object"),
            (Color.RED, "Color.RED", "Color as its name"),
            (Level.LOW, "Level.LOW", "Level as its name"),
            (decimal.Decimal("1.50"), "1.50", "Decimal as text"),
            (fractions.Fraction(1, 3), "1/3", "Fraction as text"),
            (pathlib.PurePosixPath("/a"), "/a", "PurePosixPath as text"),
            (some, str(some), "UUID as text"),
            (datetime.date(2024, 2, 29), "2024-02-29", "date as ISO 8601 text"),
            (datetime.time(1, 2), "01:02:00", "time as ISO 8601 text"),
            (b"a\xff", "b'a\\xff'", "bytes as its repr"),
            (range(3), "range(0, 3)", "range as its repr"),
            (3 + 4j, "(3+4j)", "complex as its repr"),
            (int, "<class 'int'>", "type as its repr"),
            ("a\ud800", "a\\ud800", "surrogates as escapes"),
        ):
            notes = (note, "tuple as a list") if note.startswith("dict_items") else (note,)
            self.check(value, written, *notes)
        self.check({1, "a"} - {1}, ["a"], "set as a list")

    def test_keys_are_text(self) -> None:
        day = datetime.date(2024, 1, 2)
        self.check({1: 2, None: 3, (1, 2): 4}, {"1": 2, "null": 3, "[1, 2]": 4}, "keys as text")
        self.check({day: 1}, {"2024-01-02": 1}, "keys as text")

    def test_keys_that_would_be_alike_make_pairs(self) -> None:
        alike = "dict as a list of pairs, since keys would be alike as text"
        notes = "keys as text", alike, "tuple as a list"
        self.check({1: "a", "1": "b"}, [[1, "a"], ["1", "b"]], *notes)

    def test_what_holds_itself_has_an_end(self) -> None:
        ring: list[Any] = []
        ring.append(ring)
        text, notes = as_json(ring)
        self.assertEqual(text.count("["), LEVELS_MAX + 1)
        self.assertEqual(notes, [f"cut below {LEVELS_MAX} levels"])
        deep: Any = None
        for _ in range(100_000):
            deep = Place("a", deep)
        self.assertLess(len(as_json(deep)[0]), 2000)

    def test_the_text_has_an_end(self) -> None:
        twice = [[["x" * 10] * 100] * 100] * 100
        for value in (
            "a" * 10**6, "\0" * 10**6, "ü" * 10**6, b"\xff" * 10**6, list(range(10**6)), twice,
            {str(i): i for i in range(10**5)}, {"k" * 10**6: 1}, [2**10_000] * 1000, iter_forever(),
        ):  # fmt: skip
            text, notes = as_json(value)
            json.loads(text)
            self.assertLess(len(text.encode()), 1.5 * RESULT_BYTES_MAX)
            self.assertTrue(any(note.startswith(("cut after", "int too")) for note in notes), notes)

    def test_there_is_a_last_note(self) -> None:
        values = [type(f"T{i}", (), {})() for i in range(2 * NOTES_MAX)]
        self.assertEqual(len(as_json(values)[1]), NOTES_MAX)

    def test_objects_that_break_are_told_as_such(self) -> None:
        for error in (ValueError("x"), SystemExit(1), KeyboardInterrupt(), RecursionError()):
            name = type(error).__name__
            text, notes = as_json([Broken(error)])
            self.assertEqual(json.loads(text), f"list: its value cannot be shown: {name}")
            self.assertEqual(notes, ["list as a remark"])


def iter_forever() -> list[int]:
    """Returns a list that never ends when it is walked through."""

    class Endless(list[int]):
        def __iter__(self) -> Any:
            while True:
                yield 1

    return Endless()
