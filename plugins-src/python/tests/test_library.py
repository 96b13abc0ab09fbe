"""The standard library in memory: what is taken along, and how it is imported."""

import os
import sys
import tempfile
import unittest
from importlib import import_module

from interpreter import shelf
from interpreter.library import Library

FILES = {
    "kept_one.py": "x = 1",
    "kept/__init__.py": "from kept.inner.leaf import x",
    "kept/inner/__init__.py": "",
    "kept/inner/leaf.py": "x = __name__",
    "turtle.py": "x = 1",
    "idlelib/__init__.py": "",
    "config-3.14-wasm32-wasi/config.py": "",
    "kept/__pycache__/leaf.pyc": "",
    "notes.txt": "",
}


class LibraryTest(unittest.TestCase):
    """Modules of a folder that is gone."""

    def setUp(self) -> None:
        self.library = Library()
        with tempfile.TemporaryDirectory() as folder:
            for path, text in FILES.items():
                full = os.path.join(folder, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w") as file:
                    file.write(text)
            self.library.take(folder)
        self.addCleanup(sys.meta_path.remove, self.library)
        self.addCleanup(self.forget)
        shelf.install(self.library)

    def forget(self) -> None:
        """Takes the modules away again."""
        for name in list(sys.modules):
            if name.partition(".")[0] in ("kept", "kept_one"):
                del sys.modules[name]

    def test_modules_are_imported(self) -> None:
        self.assertEqual(import_module("kept_one").x, 1)
        self.assertEqual(import_module("kept").x, "kept.inner.leaf")

    def test_what_has_no_use_is_left_out(self) -> None:
        found = [
            name
            for name in ("turtle", "idlelib", "notes", "config-3.14-wasm32-wasi.config")
            if self.library.find_spec(name)
        ]
        self.assertEqual(found, [])

    def test_it_comes_before_folders(self) -> None:
        names = [getattr(finder, "__name__", "") for finder in sys.meta_path]
        self.assertLess(sys.meta_path.index(self.library), names.index("PathFinder"))
