"""Where something is written in the author's files."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any


def place_of(item: Any) -> str:
    """Returns `file:line` of a function or class, as far as it can be known."""
    code = getattr(item, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    try:
        return f"{inspect.getsourcefile(item)}:{inspect.getsourcelines(item)[1]}"
    except (OSError, TypeError):
        return f"class {getattr(item, '__qualname__', item)}"


def place_of_parameter(function: Any, name: str) -> str:
    """Returns `file:line` of a parameter, or of its function where it cannot be found."""
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return place_of(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == name:
            return f"{function.__code__.co_filename}:{start + node.lineno - 1}"
    return place_of(function)


def field_docstrings(cls: type) -> dict[str, str]:
    """Returns the string literals that follow the fields of a class: the docs of its fields."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    docs: dict[str, str] = {}
    for field, below in zip(body, body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = getattr(getattr(below, "value", None), "value", None)
            if isinstance(below, ast.Expr) and isinstance(text, str):
                docs[field.target.id] = inspect.cleandoc(text)
    return docs
