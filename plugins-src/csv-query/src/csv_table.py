"""Reads a CSV table from text or a file: encoding, delimiter, column names and types."""

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

from sallyport import InvalidArguments, NotFound

FILE_BYTES_MAX = 8 * 1024 * 1024
"""Largest file. Its table takes several times as much memory, of which a call has little."""

CELLS_MAX = 300_000
"""Most values. Each takes about 150 bytes, and a call rarely has more than 256 MiB."""

COLUMNS_MAX = 500
"""Most columns; SQLite takes no more than 2,000, and nobody can name so many in a query."""

_DELIMITERS = ",;\t|"
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d+)?([eE][+-]?\d{1,3})?")

# A cell may be as long as a file.
csv.field_size_limit(FILE_BYTES_MAX)


@dataclass
class Table:
    """A table, with its values in the types of their columns."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    delimiter: str


def load_table(text: str | None, path: str | None, delimiter: str | None) -> Table:
    """Reads the table that a tool was given. Raises the errors of tools."""
    if (text is None) == (path is None):
        raise InvalidArguments("pass either csv or path")
    text = _read_file(path) if text is None else text
    delimiter = _chosen(delimiter) if delimiter is not None else _found_delimiter(text)
    lines = _lines(text, delimiter)
    if not lines:
        raise InvalidArguments("the table is empty: its first line has to name the columns")
    columns = _column_names(lines[0][1])
    cells = [_padded(number, line, columns) for number, line in lines[1:]]
    by_column = [[row[place] for row in cells] for place in range(len(columns))]
    typed = [_typed(values) for values in by_column]
    rows = [list(row) for row in zip(*(values for _, values in typed), strict=True)]
    return Table(columns, [kind for kind, _ in typed], rows, delimiter)


def quoted(name: str) -> str:
    """Writes the name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _read_file(path: str | None) -> str:
    try:
        with open(str(path), "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except IsADirectoryError:
        raise InvalidArguments(f"{path} is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise NotFound(
            f"{path} cannot be read: {reason}. The path begins with a folder that was granted"
        ) from None
    if len(data) > FILE_BYTES_MAX:
        raise InvalidArguments(f"{path} is larger than {FILE_BYTES_MAX // 2**20} MiB")
    return _decoded(data)


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # What spreadsheets write where they do not write UTF-8.
        return data.decode("cp1252", "replace")


def _chosen(delimiter: str) -> str:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InvalidArguments('delimiter is one character, such as ";", or "tab"')
    return delimiter


def _found_delimiter(text: str) -> str:
    """Takes what the first line has most of, outside of quotes."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    plain = re.sub(r'"[^"]*"', "", first)
    return max(_DELIMITERS, key=plain.count)


def _lines(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    """Returns the lines that are not blank, with their numbers."""
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter)
    lines = []
    count = 0
    try:
        for line in reader:
            count += len(line)
            if count > CELLS_MAX:
                reason = f"the table has more than {CELLS_MAX:,} values; pass a part of it"
                raise InvalidArguments(reason)
            if any(cell.strip() for cell in line):
                lines.append((reader.line_num, line))
    except csv.Error as error:
        raise InvalidArguments(f"line {reader.line_num} of the table: {error}") from None
    return lines


def _column_names(first: list[str]) -> list[str]:
    """Gives every column a name of its own. SQL takes upper and lower case for the same."""
    if len(first) > COLUMNS_MAX:
        raise InvalidArguments(f"the table has {len(first)} columns, and {COLUMNS_MAX} are possible")
    names: list[str] = []
    taken: set[str] = set()
    for number, cell in enumerate(first, 1):
        name = base = cell.strip().replace("\0", "") or f"column_{number}"
        count = 2
        while name.casefold() in taken:
            name, count = f"{base}_{count}", count + 1
        taken.add(name.casefold())
        names.append(name)
    return names


def _padded(number: int, line: list[str], columns: list[str]) -> list[str]:
    if len(line) > len(columns):
        if any(cell.strip() for cell in line[len(columns) :]):
            raise InvalidArguments(
                f"line {number} of the table has {len(line)} values, and there are "
                f"{len(columns)} columns. To fix: quote values that contain the delimiter"
            )
        return line[: len(columns)]
    return line + [""] * (len(columns) - len(line))


def _typed(values: list[str]) -> tuple[str, list[Any]]:
    """Finds the type that all values of a column have, and converts them. Empty is NULL.

    007 stays text, because it is a code and no number, and so does what has more than 18 digits.
    """
    stripped = [value.strip() for value in values]
    filled = [value for value in stripped if value]
    if not filled:
        return "empty", [None] * len(values)
    if all(map(_INTEGER.fullmatch, filled)):
        return "integer", [int(value) if value else None for value in stripped]
    if all(map(_is_number, filled)):
        return "number", [float(value) if value else None for value in stripped]
    return "text", [value if value.strip() else None for value in values]


def _is_number(text: str) -> bool:
    return len(text) <= 40 and any(map(str.isdigit, text)) and bool(_NUMBER.fullmatch(text))
