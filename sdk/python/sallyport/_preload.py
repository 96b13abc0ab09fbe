"""Loads what the standard library imports only when it is first used.

A component has no files of the standard library, only the modules that were loaded when it was
built. Without this, the first `data.decode("utf-8-sig")` of a call finds no such encoding.
"""

from __future__ import annotations

import codecs
import importlib

CODECS = (
    "ascii",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp437",
    "cp850",
    "hex",
    "idna",
    "iso8859-15",
    "iso8859-2",
    "koi8-r",
    "latin-1",
    "mac-roman",
    "punycode",
    "unicode-escape",
    "utf-16",
    "utf-16-be",
    "utf-16-le",
    "utf-32",
    "utf-7",
    "utf-8",
    "utf-8-sig",
)
"""Encodings that files and services use, and those that the library itself asks for."""

MODULES = ("_strptime", "linecache", "stringprep", "textwrap", "tokenize", "traceback", "unicodedata")
"""Modules that functions import inside: `datetime.strptime` the first, tracebacks others."""


def preload() -> None:
    """Loads them all. What this Python does not have is left out."""
    for name in CODECS:
        try:
            codecs.lookup(name)
        except LookupError:
            continue
    for name in MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
