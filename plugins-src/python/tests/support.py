"""An interpreter in the Python that runs the tests, and that Python as it was afterwards."""

import gc
import os
import sys
import tempfile
import unittest
from collections.abc import Mapping
from types import ModuleType

from interpreter import packages
from interpreter.output import Output
from interpreter.refusal import Kind, Refusal
from interpreter.session import Outcome, Session

_STREAMS = "stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__"

Index = dict[tuple[str, str], Mapping[str, bytes]]
"""The packages that there are, by name and version."""


class InterpreterTest(unittest.TestCase):
    """A test with a folder, an index of packages and an interpreter of its own."""

    def setUp(self) -> None:
        self.index: Index = {}
        self.fetched: list[tuple[str, str]] = []
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self._keep_python()
        self.output = Output()
        self.session = self.new_session()

    def new_session(self) -> Session:
        """Returns an interpreter in which nothing has run yet."""
        return Session(packages.Index(self.fetch, self.releases), self.output, self.folder)

    def fetch(self, name: str, version: str) -> Mapping[str, bytes]:
        """Stands in for the host."""
        self.fetched.append((name, version))
        try:
            return self.index[name, version]
        except KeyError:
            raise Refusal(Kind.NOT_FOUND, f"{name}=={version}: there is none") from None

    def releases(self, name: str) -> list[str]:
        """Stands in for the host."""
        if name == "pandas":
            raise Refusal(Kind.NOT_FOUND, "the index has no wheel of pandas in pure Python")
        return [version for known, version in self.index if known == name]

    def run_code(self, code: str, *dependencies: object) -> Outcome:
        """Runs code with dependencies."""
        return self.session.execute(code, dependencies)

    def check_refused(self, kind: Kind, words: str, *dependencies: object) -> None:
        """Asserts that these dependencies are refused, and that the code does not run."""
        with self.assertRaises(Refusal) as caught:
            self.run_code("ran = True", *dependencies)
        self.assertEqual(caught.exception.kind, kind)
        self.assertIn(words, caught.exception.message)
        self.assertEqual(self.run_code("'ran' in globals()").result, "false")

    def _keep_python(self) -> None:
        streams = {name: getattr(sys, name) for name in _STREAMS}
        self.addCleanup(lambda: [setattr(sys, name, it) for name, it in streams.items()])
        self.addCleanup(setattr, os, "write", os.write)
        self.addCleanup(self._restore_modules, dict(sys.modules))
        self.addCleanup(setattr, sys, "meta_path", list(sys.meta_path))
        self.addCleanup(setattr, sys, "path", list(sys.path))
        self.addCleanup(sys.set_int_max_str_digits, sys.get_int_max_str_digits())
        self.addCleanup(gc.unfreeze)
        self.addCleanup(os.chdir, os.getcwd())

    def _restore_modules(self, modules: dict[str, ModuleType]) -> None:
        for name in sys.modules.keys() - modules.keys():
            del sys.modules[name]
        sys.modules.update(modules)
