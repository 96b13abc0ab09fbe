"""The standard library, taken along when the component is built: no file system holds it later.

Its code is kept compressed, and so every module of it can be imported; what is used often is
imported already.
"""

import marshal
import os
import zlib
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

LEFT_OUT = frozenset({
    "__phello__", "antigravity", "config-3.14-wasm32-wasi", "ctypes", "curses", "dbm", "ensurepip",
    "idlelib", "multiprocessing", "pydoc_data", "site-packages", "test", "this", "tkinter",
    "turtle", "turtledemo", "venv", "__pycache__",
})  # fmt: skip
"""What has no use where there is no screen, no process and no C library, or is only large."""

IMPORTED_ALREADY = (
    "abc", "argparse", "array", "ast", "base64", "bisect", "calendar", "cmath", "collections.abc",
    "colorsys", "configparser", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal",
    "difflib", "enum", "fnmatch", "fractions", "functools", "glob", "graphlib", "gzip", "hashlib",
    "heapq", "hmac", "html.parser", "importlib.metadata", "importlib.resources", "inspect", "io",
    "ipaddress", "itertools", "json", "locale", "logging", "math", "numbers", "operator", "os",
    "pathlib", "pickle", "pprint", "queue", "random", "re", "sched", "secrets", "shlex", "shutil",
    "socket", "sqlite3", "statistics", "string", "struct", "subprocess", "tempfile", "textwrap",
    "threading", "time", "timeit", "tomllib", "traceback", "types", "typing", "unicodedata",
    "urllib.parse", "uuid", "warnings", "weakref", "xml.etree.ElementTree", "zipfile", "zlib",
    "zoneinfo", "_strptime",
)  # fmt: skip
"""What programs for a model use: an import of these costs nothing."""

_HIGHEST_COMPRESSION = 9


class Library(MetaPathFinder, InspectLoader):
    """Compiled modules by name, and the importer that finds them."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}
        self._packages: set[str] = set()

    def take(self, folder: str) -> None:
        """Compiles and keeps the modules of a folder."""
        for path, name in _modules(folder, ""):
            with open(path, "rb") as file:
                code = compile(file.read(), path, "exec", dont_inherit=True, optimize=2)
            self._code[name] = zlib.compress(marshal.dumps(code), _HIGHEST_COMPRESSION)
            if path.endswith("/__init__.py"):
                self._packages.add(name)

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds a module of the standard library."""
        return spec_from_loader(fullname, self) if fullname in self._code else None

    def is_package(self, fullname: str) -> bool:
        """Tells whether a module has modules below it."""
        return fullname in self._packages

    def get_code(self, fullname: str) -> CodeType:
        """Returns a module ready to run."""
        return marshal.loads(zlib.decompress(self._code[fullname]))

    def get_source(self, fullname: str) -> None:
        """Returns nothing: the sources are not taken along."""


def import_common() -> None:
    """Imports what is used often."""
    for name in IMPORTED_ALREADY:
        import_module(name)


def _modules(folder: str, package: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(os.listdir(folder)):
        path = f"{folder}/{entry}"
        if entry.removesuffix(".py") in LEFT_OUT:
            continue
        if os.path.isdir(path):
            yield from _modules(path, f"{package}{entry}.")
        elif entry == "__init__.py":
            yield path, package.removesuffix(".")
        elif entry.endswith(".py"):
            yield path, package + entry.removesuffix(".py")
