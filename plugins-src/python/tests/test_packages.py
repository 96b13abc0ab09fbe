"""Dependencies: how they are named, fetched, imported, and forgotten."""

from interpreter import pin
from interpreter.packages import DEPENDENCIES_MAX
from interpreter.pin import Pin
from interpreter.refusal import Kind, Refusal
from support import InterpreterTest

TABLES = {
    "tables/__init__.py": b"from tables.text import line\nimport tables.rest.far\n",
    "tables/text.py": "# -*- coding: latin-1 -*-\nline = 'ü'\n".encode("latin-1"),
    "tables/rest/far.py": b"",
    "tables/data/words.txt": "zwölf".encode(),
    "tables/data/more/deep.bin": b"\xff",
    "tables_alone.py": b"def broken():\n    raise ValueError('here')\n",
    "tables-1.0.data/purelib/from_data.py": b"x = 1",
    "tables-1.0.data/scripts/run": b"#!/bin/sh",
    "tables-1.0.dist-info/METADATA": b"""\
Metadata-Version: 2.1
Name: tables
Version: 1.0
Requires-Dist: cells (>=2.0)
Requires-Dist: Rows.And-Columns<3,>=1
Requires-Dist: wide; extra == "wide"
Requires-Dist: old-one; python_version < "3"

Requires-Dist: not-a-header
""",
    "tables-1.0.dist-info/entry_points.txt": b"[console_scripts]\ntables = tables:main\n",
}


class PinTest(InterpreterTest):
    """How a dependency is written."""

    def test_a_name_with_its_exact_version_is_read(self) -> None:
        for text, name, version in (
            ("tabulate==0.9.0", "tabulate", "0.9.0"),
            (" Tabulate == 0.9.0 ", "tabulate", "0.9.0"),
            ("zope.interface==6.0", "zope-interface", "6.0"),
            ("A__b.-c==1!2.0RC1+local.1", "a-b-c", "1!2.0rc1+local.1"),
            ("x==1", "x", "1"),
        ):
            self.assertEqual(pin.parse(text), Pin(name, version))

    def test_anything_else_is_refused_with_how_to_write_it(self) -> None:
        for text in (
            "tabulate", "tabulate>=0.9", "tabulate==", "==1", "tabulate==0.*", "tabulate===1",
            "tabulate[wide]==1", "tabulate==1; python_version>'3'", "tabulate==1,<2", "a b==1",
            "-r x==1", "../x==1", "tabulate @ file:///x", "a==1\nb==2", "", "x" * 1000, "ü==1",
            None, 1, ["a==1"], "a==1\0",
        ):  # fmt: skip
            with self.assertRaises(Refusal) as caught:
                pin.parse(text)
            message = caught.exception.message
            self.assertEqual(caught.exception.kind, Kind.INVALID_ARGUMENTS)
            self.assertIn('write name==version, such as "tabulate==0.9.0"', message)
            self.assertLess(len(message), 500)


class PackagesTest(InterpreterTest):
    """Packages of an interpreter."""

    def setUp(self) -> None:
        super().setUp()
        self.index |= {("tables", "1.0"): TABLES, ("tables", "2.0"): {}, ("cells", "2.1"): {}}

    def check(self, code: str, result: str) -> None:
        """Asserts the result of code that needs the package."""
        outcome = self.run_code(code, "tables==1.0")
        self.assertEqual((outcome.result, outcome.exception), (result, None))

    def test_modules_are_imported(self) -> None:
        for code, result in (
            ("import tables; tables.line", '"ü"'),
            ("import tables.rest.far as far; far.__file__", '"/packages/tables/rest/far.py"'),
            ("import from_data; from_data.x", "1"),
            ("import tables_alone, inspect; inspect.getsource(tables_alone.broken)[:3]", '"def"'),
            ("import importlib.util as u; u.find_spec('tables').submodule_search_locations",
             '["/packages/tables"]'),
            ("import importlib.util as u; u.find_spec('run')", "null"),
        ):  # fmt: skip
            self.check(code, result)

    def test_data_files_are_found(self) -> None:
        files = "import importlib.resources as r; data = r.files('tables') / 'data'\n"
        for code, result in (
            ("(data / 'words.txt').read_text()", '"zwölf"'),
            ("data.joinpath('more', 'deep.bin').read_bytes()[0]", "255"),
            ("sorted(it.name for it in data.iterdir())", '["more", "words.txt"]'),
            ("[(data / it).is_dir() for it in ('more', 'words.txt', 'x')]", "[true, false, false]"),
            (
                "[(data / it).is_file() for it in ('more', 'words.txt', 'x')]",
                "[false, true, false]",
            ),
            ("import pkgutil; len(pkgutil.get_data('tables', 'data/words.txt'))", "6"),
        ):
            self.check(files + code, result)
        missing = self.run_code(files + "(data / 'x').read_text()", "tables==1.0")
        self.assertIn("FileNotFoundError: /packages/tables/data/x", missing.exception or "")

    def test_metadata_is_found(self) -> None:
        metadata = "import importlib.metadata as m\n"
        for code, result in (
            ("m.version('Tables')", '"1.0"'),
            ("'tables' in [it.name for it in m.distributions()]", "true"),
            ("[it.name for it in m.distribution('tables').entry_points]", '["tables"]'),
        ):
            self.check(metadata + code, result)

    def test_exceptions_name_lines_of_packages(self) -> None:
        text = self.run_code("import tables_alone as t; t.broken()", "tables==1.0").exception or ""
        self.assertIn('File "/packages/tables_alone.py", line 2, in broken', text)
        self.assertIn("raise ValueError('here')", text)

    def test_what_is_installed_is_not_fetched_again(self) -> None:
        for _ in range(2):
            self.run_code("1", "tables==1.0", "Tables == 1.0")
        self.assertEqual(self.fetched, [("tables", "1.0")])
        self.assertEqual(self.run_code("import tables; tables.line").result, '"ü"')

    def test_another_version_waits_for_a_reset(self) -> None:
        self.run_code("1", "tables==1.0")
        self.check_refused(Kind.INVALID_ARGUMENTS, "call `reset` first", "tables==2.0")
        self.session.reset()
        self.assertIsNone(self.run_code("1", "tables==2.0").exception)
        self.assertIn("No module", self.run_code("import tables").exception or "")

    def test_a_reset_forgets_packages(self) -> None:
        self.check("import tables; tables.line", '"ü"')
        self.session.reset()
        self.assertIn("ModuleNotFoundError", self.run_code("import tables").exception or "")
        self.check("import tables; tables.line", '"ü"')
        self.assertEqual(len(self.fetched), 2)

    def test_all_is_installed_or_nothing(self) -> None:
        self.check_refused(Kind.NOT_FOUND, "none==1: there is none", "tables==1.0", "none==1")
        self.assertIn("No module", self.run_code("import tables").exception or "")
        both = "tables==1.0", "tables==2.0"
        self.check_refused(Kind.INVALID_ARGUMENTS, "two versions of tables", *both)
        many = [f"p{i}==1" for i in range(DEPENDENCIES_MAX + 1)]
        self.check_refused(Kind.INVALID_ARGUMENTS, "at most 50", *many)

    def test_what_a_package_needs_is_named(self) -> None:
        needed = self.run_code("1", "tables==1.0").missing
        self.assertEqual(needed, ["cells(>=2.0)", "Rows.And-Columns<3,>=1"])
        self.assertEqual(self.run_code("1", "tables==1.0").missing, [])
        self.session.reset()
        needed = self.run_code("1", "cells==2.1", "tables==1.0").missing
        self.assertEqual(needed, ["Rows.And-Columns<3,>=1"])

    def test_a_dependency_without_a_version_says_which_can_be_had(self) -> None:
        self.index = {("tables", f"{major}.0"): TABLES for major in range(12, 0, -1)}
        told = "of tables you can have 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, …"
        for text in ("tables", " Tables ", "tables>=2", "tables[wide]==1", "tables==2.*"):
            self.check_refused(Kind.INVALID_ARGUMENTS, told, text)
        none = "of pandas none can be had: the index has no wheel of pandas in pure Python"
        self.check_refused(Kind.INVALID_ARGUMENTS, none, "pandas")
        self.check_refused(Kind.INVALID_ARGUMENTS, "no version of six is both", "six")
        self.check_refused(Kind.INVALID_ARGUMENTS, "write name==version", "../tables")
