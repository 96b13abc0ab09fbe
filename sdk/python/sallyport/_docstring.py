"""Reads docstrings: the description of a tool, and what they say about parameters and fields.

Three customs are known: Google (`Args:`), NumPy (a heading with dashes below) and Sphinx (`:param
name:`).
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_NAMED_SECTIONS = {"args", "arguments", "parameters", "attributes", "keyword args", "fields"}
_OTHER_SECTIONS = {"returns", "return", "raises", "yields", "example", "examples", "note", "notes"}
_GOOGLE_HEADING = re.compile(r"^(\w+(?: \w+)?):$")
_GOOGLE_ENTRY = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?:(?:\s+(.*))?$")
_NUMPY_ENTRY = re.compile(r"^(\*{0,2}\w+)(?:\s*:.*)?$")
_SPHINX_ENTRY = re.compile(r"^:(param|parameter|arg|ivar|var)\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(returns?|rtype|raises?|type|vartype)\b[^:]*:")


@dataclass
class Docstring:
    """What a docstring says."""

    text: str = ""
    entries: dict[str, str] = field(default_factory=dict)


def parse_docstring(raw: str | None) -> Docstring:
    """Splits a docstring into its prose and what it says about each name."""
    lines = inspect.cleandoc(raw or "").splitlines()
    prose: list[str] = []
    entries: dict[str, str] = {}
    at = 0
    while at < len(lines):
        heading, skip = _heading(lines, at)
        if heading in _NAMED_SECTIONS:
            at = _read_entries(lines, at + skip, entries, numpy=skip == 2)
        elif heading in _OTHER_SECTIONS:
            at = _skip_section(lines, at + skip, numpy=skip == 2)
        elif entry := _SPHINX_ENTRY.match(lines[at]):
            text, at = _with_continuation(entry[3], lines, at + 1)
            entries[entry[2]] = text
        elif _SPHINX_OTHER.match(lines[at]):
            _, at = _with_continuation("", lines, at + 1)
        else:
            prose.append(lines[at])
            at += 1
    return Docstring("\n".join(prose).strip(), entries)


def _heading(lines: list[str], at: int) -> tuple[str, int]:
    """Returns the name of the section that begins here, in lower case, and its lines."""
    line = lines[at].rstrip()
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if line and len(below) >= 3 and set(below) == {"-"}:
        return line.lower(), 2
    if heading := _GOOGLE_HEADING.match(line):
        return heading[1].lower(), 1
    return "", 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_entries(lines: list[str], at: int, entries: dict[str, str], *, numpy: bool) -> int:
    """Reads the entries of a section. Returns the line after it."""
    pattern = _NUMPY_ENTRY if numpy else _GOOGLE_ENTRY
    level: int | None = None
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        if _ends_section(lines, at, numpy=numpy):
            break
        level = _indent(line) if level is None else level
        entry = pattern.match(line.strip()) if _indent(line) == level else None
        first = (entry[2] or "") if entry and not numpy else ""
        text, at = _with_continuation(first, lines, at + 1, above=level)
        if entry:
            entries[entry[1].lstrip("*")] = text
    return at


def _ends_section(lines: list[str], at: int, *, numpy: bool) -> bool:
    return _heading(lines, at)[1] == 2 if numpy else _indent(lines[at]) == 0


def _skip_section(lines: list[str], at: int, *, numpy: bool) -> int:
    while at < len(lines):
        if lines[at].strip() and _ends_section(lines, at, numpy=numpy):
            break
        at += 1
    return at


def _with_continuation(
    first: str, lines: list[str], at: int, above: int = 0
) -> tuple[str, int]:
    """Adds the lines below that are indented further. Returns the text and the line after it."""
    words = [first] if first else []
    while at < len(lines) and lines[at].strip() and _indent(lines[at]) > above:
        words.append(lines[at].strip())
        at += 1
    return " ".join(words), at
