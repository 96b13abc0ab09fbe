"""Code as Python compiles it, with its last line apart if that has a value."""

import ast
from types import CodeType

_STATEMENTS = frozenset({
    "assert", "async", "await", "break", "class", "continue", "def", "del", "for", "from",
    "global", "if", "import", "nonlocal", "pass", "raise", "return", "try", "type", "while", "with",
    "yield",
})  # fmt: skip
"""Words with which no expression begins, or none that is worth a try."""

_BEGINNINGS = frozenset("_([{-~'\"")
"""Characters that are no letter or digit and begin an expression."""


def compiled(code: str, name: str) -> tuple[CodeType | None, CodeType | None]:
    """Returns what runs first, and the expression that gives the result.

    Raises what Python raises for code that is none.
    """
    # Most of the time goes into the tree. A last line that can stand alone needs none.
    begin = code.rfind("\n", 0, len(code.rstrip())) + 1
    if _may_be_expression(code, begin):
        try:
            return _at_once(code, begin, name)
        except Exception:
            pass  # The way through the tree knows better, and says what is wrong.
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    body = compile(tree, name, "exec", dont_inherit=True)
    if not isinstance(last, ast.Expr):
        return body, None
    return body, compile(ast.Expression(last.value), name, "eval", dont_inherit=True)


def _may_be_expression(code: str, begin: int) -> bool:
    """Tells whether a last line is worth the try: a failure takes as long as a success."""
    first = code[begin : begin + 1]
    if not (first.isalnum() or first in _BEGINNINGS) or "\r" in code:
        return False
    line = code[begin:]
    if ";" in line or line.split(None, 1)[0] in _STATEMENTS:
        return False
    # What comes before any call is most likely an assignment.
    before, equals, _ = line.partition("=")
    return not equals or "(" in before


def _at_once(code: str, begin: int, name: str) -> tuple[CodeType | None, CodeType]:
    if not begin:
        return None, compile(code, name, "eval", dont_inherit=True)
    # Empty lines give the line its number.
    line = "\n" * code.count("\n", 0, begin) + code[begin:]
    last = compile(line, name, "eval", dont_inherit=True)
    return compile(code[:begin], name, "exec", dont_inherit=True), last
