"""Answers questions about CSV tables. The table is loaded into SQLite, in memory, and asked in SQL."""

import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any

from csv_table import Table, load_table, quoted
from sallyport import InvalidArguments, schema, tool

TABLE = "data"
"""The name of the table in SQL."""

ROWS_MAX = 1_000
"""Most rows of an answer. A model reads no more; it can group, or ask for a smaller part."""

RESULT_CHARACTERS_MAX = 200_000
"""Longest answer. A model has no room for more."""

STEPS_BETWEEN_CHECKS = 1_000
CHECKS_MAX = 200_000
"""A query ends after this many checks, each after so many steps of SQLite: some seconds. Without
it, a recursive query runs until the host stops the call, with a message that helps nobody."""

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}

Source = Annotated[str, schema(minLength=1)]


@dataclass
class ColumnFacts:
    """What a column holds."""

    name: str
    type: str
    """integer, number, text or empty."""
    filled: int
    """How many rows have a value."""
    different: int
    """How many different values there are."""
    smallest: str | int | float | None
    largest: str | int | float | None
    examples: list[str | int | float]


@dataclass
class TableFacts:
    """What a table holds."""

    table: str
    """Its name in SQL."""
    rows: int
    delimiter: str
    columns: list[ColumnFacts]


@dataclass
class QueryResult:
    """The rows of an answer."""

    columns: list[str]
    rows: list[list[str | int | float | None]]
    truncated: bool
    """There are more rows than were asked for, or than fit."""


@tool(read_only=True, idempotent=True, open_world=False)
def describe_csv(
    csv: Source | None = None, path: Source | None = None, delimiter: str | None = None
) -> TableFacts:
    """Describes a CSV table: its columns with types, ranges and examples. Use it before query_csv.

    Args:
        csv: The table as text, with a line of column names. Pass this or path.
        path: A file in a folder that was granted, such as /data/sales.csv. Pass this or csv.
        delimiter: What separates the values; found out when absent.
    """
    table = load_table(csv, path, delimiter)
    connection = _database(table)
    columns = [
        _column_facts(connection, name, kind)
        for name, kind in zip(table.columns, table.types, strict=True)
    ]
    return TableFacts(TABLE, len(table.rows), table.delimiter, columns)


@tool(read_only=True, idempotent=True, open_world=False)
def query_csv(
    sql: Source,
    csv: Source | None = None,
    path: Source | None = None,
    limit: Annotated[int, schema(minimum=1, maximum=ROWS_MAX)] = 100,
    delimiter: str | None = None,
) -> QueryResult:
    """Runs an SQL query on a CSV table. Use it for filters, sums, groups and sorting.

    The table is called data, and its columns have the names of the first line; write other names
    than plain words in double quotes. Empty values are NULL. The dialect is SQLite. Example:
    SELECT city, SUM(amount) AS total FROM data WHERE year = 2026 GROUP BY city ORDER BY total DESC

    Args:
        sql: One SELECT statement.
        csv: The table as text, with a line of column names. Pass this or path.
        path: A file in a folder that was granted, such as /data/sales.csv. Pass this or csv.
        limit: Most rows of the answer.
        delimiter: What separates the values; found out when absent.
    """
    table = load_table(csv, path, delimiter)
    connection = _database(table)
    _guard(connection)
    try:
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise InvalidArguments("sql has to be one SELECT statement")
        names = [column[0] for column in cursor.description]
        rows, truncated = _fetch(cursor, limit)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise InvalidArguments(_words(error, table)) from None
    return QueryResult(names, rows, truncated)


def _database(table: Table) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    kinds = {"integer": "INTEGER", "number": "REAL", "text": "TEXT", "empty": "TEXT"}
    columns = [
        f"{quoted(name)} {kinds[kind]}"
        for name, kind in zip(table.columns, table.types, strict=True)
    ]
    try:
        connection.execute(f"CREATE TABLE {TABLE} ({', '.join(columns)})")
    except sqlite3.Error as error:
        raise InvalidArguments(f"the column names cannot be used: {error}") from None
    places = ", ".join("?" * len(columns))
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO {TABLE} VALUES ({places})", table.rows)
    connection.execute("COMMIT")
    return connection


def _column_facts(connection: sqlite3.Connection, name: str, kind: str) -> ColumnFacts:
    column = quoted(name)
    filled, different, smallest, largest = connection.execute(
        f"SELECT COUNT({column}), COUNT(DISTINCT {column}), MIN({column}), MAX({column}) FROM {TABLE}"
    ).fetchone()
    examples = connection.execute(
        f"SELECT DISTINCT {column} FROM {TABLE} WHERE {column} IS NOT NULL LIMIT 3"
    )
    shown = [_short(value) for (value,) in examples]
    return ColumnFacts(name, kind, filled, different, _short(smallest), _short(largest), shown)


def _short(value: Any) -> Any:
    return f"{value[:80]}\u2026" if isinstance(value, str) and len(value) > 80 else value


def _guard(connection: sqlite3.Connection) -> None:
    """Lets a query read and compute, and nothing else, and not for ever."""
    checks = 0

    def authorize(action: int, _first: Any, second: Any, *_rest: Any) -> int:
        is_loader = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
        allowed = action in _ALLOWED and not is_loader
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def check() -> bool:
        nonlocal checks
        checks += 1
        return checks > CHECKS_MAX

    connection.set_authorizer(authorize)
    connection.set_progress_handler(check, STEPS_BETWEEN_CHECKS)
    # Otherwise one expression such as zeroblob(1e9) takes all memory.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, RESULT_CHARACTERS_MAX)


def _fetch(cursor: sqlite3.Cursor, limit: int) -> tuple[list[list[Any]], bool]:
    rows: list[list[Any]] = []
    room = RESULT_CHARACTERS_MAX
    for row in cursor:
        cells = [_cell(value) for value in row]
        room -= sum(len(cell) if isinstance(cell, str) else 8 for cell in cells)
        if len(rows) == limit or room < 0:
            return rows, True
        rows.append(cells)
    return rows, False


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    # SQLite makes infinity of 9e999, and JSON has none.
    if isinstance(value, float) and value - value != 0:
        return None
    return value


def _words(error: Exception, table: Table) -> str:
    text = str(error)
    if "interrupted" in text:
        return "the query takes too long. To fix: filter or group first, and join less"
    if "not authorized" in text or "prohibited" in text:
        return "sql may only SELECT from the table data"
    if "one statement" in text:
        return "sql has to be one statement"
    if "no such column" in text:
        return f"{text}; the columns are {', '.join(map(quoted, table.columns[:50]))}"
    if "no such table" in text:
        return f"{text}; the table is called {TABLE}"
    return f"SQLite refuses the query: {text}"
