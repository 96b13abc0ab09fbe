import pytest
from csv_query import describe_csv, query_csv
from sallyport import InvalidArguments, NotFound
from sallyport.testing import call

SALES = """city,year,amount,zip
Oslo,2025,10.5,0150
Bergen,2025,20,5003
Oslo,2026,,0150
"Ås, north",2026,7,1430
"""


def query(sql, csv=SALES, **more):
    return call(query_csv, {"sql": sql, "csv": csv, **more}).data


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT city FROM data WHERE amount > 8", [["Oslo"], ["Bergen"]]),
        (
            "SELECT city, SUM(amount) AS total FROM data GROUP BY city ORDER BY total DESC",
            [["Bergen", 20.0], ["Oslo", 10.5], ["Ås, north", 7.0]],
        ),
        ("SELECT COUNT(*), COUNT(amount), MAX(year) FROM data", [[4, 3, 2026]]),
        ("SELECT zip FROM data WHERE zip = '0150' LIMIT 1", [["0150"]]),
        ("SELECT year + 1 FROM data WHERE amount IS NULL;", [[2027]]),
        ("WITH t AS (SELECT 1 AS n) SELECT n FROM t", [[1]]),
        ("SELECT x'ff', 9e999, NULL", [["ff", None, None]]),
        ("SELECT upper(substr(city, 1, 2)) FROM data LIMIT 1", [["OS"]]),
        ("VALUES (1), (2)", [[1], [2]]),
        ("SELECT 1 WHERE 0", []),
    ],
)
def test_a_query_has_rows(sql, rows):
    answer = query(sql)
    assert (answer["rows"], answer["truncated"]) == (rows, False)


def test_more_rows_than_wanted_are_told():
    answer = query("SELECT year FROM data ORDER BY year", limit=2)
    assert answer == {"columns": ["year"], "rows": [[2025], [2025]], "truncated": True}
    long = query("SELECT replace(hex(zeroblob(40000)), '0', 'x') FROM data")
    assert (len(long["rows"]), long["truncated"]) == (2, True)


@pytest.mark.parametrize(
    ("csv", "columns", "types", "rows"),
    [
        ("a;b\n1;2", ["a", "b"], ["integer", "integer"], 1),
        ("a\tb\n1\t2", ["a", "b"], ["integer", "integer"], 1),
        ("a|b\r\n1|2\r\n", ["a", "b"], ["integer", "integer"], 1),
        ('"a,b";c\n1;2', ["a,b", "c"], ["integer", "integer"], 1),
        ("a\n1\n2.5\n-3e2", ["a"], ["number"], 3),
        ("a\n1\nx", ["a"], ["text"], 2),
        ("a\n007", ["a"], ["text"], 1),
        ("a\n12345678901234567890", ["a"], ["number"], 1),
        ("a,b\n,1", ["a", "b"], ["empty", "integer"], 1),
        ("a,A,,a\n1,2,3,4", ["a", "A_2", "column_3", "a_3"], ["integer"] * 4, 1),
        ("a,b\n1\n\n2,3,,\n", ["a", "b"], ["integer", "integer"], 2),
        ('a,b\n"x\ny","say ""hi"""', ["a", "b"], ["text", "text"], 1),
        ("\ufeffa,b\n1,2", ["a", "b"], ["integer", "integer"], 1),
        ('say "x",select\n1,2', ['say "x"', "select"], ["integer", "integer"], 1),
        ("a,b", ["a", "b"], ["empty", "empty"], 0),
        ("a\n1e\n.", ["a"], ["text"], 2),
    ],
)
def test_a_table_is_understood(csv, columns, types, rows):
    facts = call(describe_csv, {"csv": csv}).data
    assert [column["name"] for column in facts["columns"]] == columns
    assert [column["type"] for column in facts["columns"]] == types
    assert facts["rows"] == rows


def test_a_column_has_its_facts():
    facts = call(describe_csv, {"csv": SALES}).data["columns"][2]
    assert facts == {
        "name": "amount",
        "type": "number",
        "filled": 3,
        "different": 3,
        "smallest": 7.0,
        "largest": 20.0,
        "examples": [10.5, 20.0, 7.0],
    }


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT town FROM data", 'no such column: town; the columns are "city", "year"'),
        ("SELECT * FROM sales", "no such table: sales; the table is called data"),
        ("SELEC 1", 'SQLite refuses the query: near "SELEC": syntax error'),
        ("SELECT 1; SELECT 2", "sql has to be one statement"),
        ("-- nothing", "sql has to be one SELECT statement"),
        ("DROP TABLE data", "sql may only SELECT from the table data"),
        ("DELETE FROM data", "sql may only SELECT"),
        ("ATTACH '/etc/x' AS x", "sql may only SELECT"),
        ("PRAGMA database_list", "sql may only SELECT"),
        ("SELECT load_extension('x')", "sql may only SELECT"),
        ("SELECT \0", "SQLite refuses the query"),
        ("SELECT length(zeroblob(1000000000))", "SQLite refuses the query: string or blob too big"),
    ],
)
def test_a_query_that_makes_no_sense_says_why(sql, reason):
    with pytest.raises(InvalidArguments) as raised:
        query(sql)
    assert reason in raised.value.message


def test_a_query_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("csv_query.CHECKS_MAX", 50)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    with pytest.raises(InvalidArguments, match="the query takes too long"):
        query(endless)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "pass either csv or path"),
        ({"csv": "a", "path": "/a"}, "pass either csv or path"),
        ({"csv": " \n "}, "the table is empty: its first line has to name the columns"),
        ({"csv": "a,b\n1,2,3"}, "line 2 of the table has 3 values, and there are 2 columns"),
        ({"csv": "a", "delimiter": ";;"}, "delimiter is one character"),
        ({"csv": "a", "delimiter": '"'}, "delimiter is one character"),
        ({"csv": ",".join("abc" * 200)}, "the table has 600 columns, and 500 are possible"),
        ({"csv": "a", "delimiter": "\n"}, "delimiter is one character"),
        ({"csv": "1,2,3\n" * 100_001}, "the table has more than 300,000 values"),
    ],
)
def test_a_table_that_makes_no_sense_says_why(arguments, reason):
    with pytest.raises(InvalidArguments) as raised:
        call(describe_csv, arguments)
    assert reason in raised.value.message


@pytest.mark.parametrize(
    "data",
    [SALES.encode(), SALES.encode("utf-8-sig"), SALES.encode("utf-16"), SALES.encode("cp1252")],
)
def test_a_file_is_read_in_its_encoding(tmp_path, data):
    path = tmp_path / "sales.csv"
    path.write_bytes(data)
    answer = call(query_csv, {"path": str(path), "sql": "SELECT city FROM data WHERE zip = 1430"})
    assert answer.data["rows"] == [["Ås, north"]]


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    for path, error, reason in (
        (tmp_path / "no.csv", NotFound, "cannot be read: No such file"),
        (tmp_path, InvalidArguments, "is a folder; name a file in it"),
        ("a\0b", NotFound, "cannot be read"),
    ):
        with pytest.raises(error, match=reason):
            call(describe_csv, {"path": str(path)})


def test_a_file_that_is_too_large_is_refused(tmp_path):
    path = tmp_path / "large.csv"
    path.write_bytes(b"a\n" + b"1\n" * (4 * 1024 * 1024))
    with pytest.raises(InvalidArguments, match="is larger than 8 MiB"):
        call(describe_csv, {"path": str(path)})
