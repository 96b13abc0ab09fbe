"""Exceptions as a text: Python's own, without the frames of this plugin."""

import linecache
import os
import traceback
from collections.abc import Iterator

from interpreter.output import bounded

EXCEPTION_BYTES_MAX = 16 * 1024
"""The whole way through some deep calls; of longer ones both ends are told."""

NAME_START = "<call "
"""The file name of code in tracebacks; the number of its call follows."""

_OWN_FOLDER = os.path.dirname(__file__) + "/"
_MACHINERY = "<frozen importlib"


def told(error: BaseException) -> str:
    """Returns an exception as Python prints it: the way to it, its type, its message."""
    try:
        _add_source(error)
        shown = traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
        for part in _parts(shown):
            _leave_out_own_frames(part)
        text = "".join(shown.format())
    except BaseException as second:  # An exception of the code can be anything, broken ones too.
        text = f"{type(error).__name__}, which cannot be shown: {type(second).__name__}\n"
    return bounded(text, EXCEPTION_BYTES_MAX)


def _add_source(error: BaseException) -> None:
    """Mistakes that are found after parsing know their line and not what stands there."""
    if isinstance(error, SyntaxError) and error.text is None and error.lineno is not None:
        error.text = linecache.getline(str(error.filename), error.lineno) or None


def _parts(shown: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """Yields an exception, its causes, and the members of groups."""
    waiting: list[traceback.TracebackException | None] = [shown]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        waiting += [part.__cause__, part.__context__, *(part.exceptions or ())]
        yield part


def _leave_out_own_frames(part: traceback.TracebackException) -> None:
    """What comes before the first line of the code called it and tells its author nothing."""
    names = [frame.filename for frame in part.stack or ()]
    begin = next((i for i, name in enumerate(names) if name.startswith(NAME_START)), len(names))
    kept = [frame for frame in list(part.stack or ())[begin:] if not _is_own(frame.filename)]
    part.stack = traceback.StackSummary.from_list(kept) if kept else None


def _is_own(file_name: str) -> bool:
    return file_name.startswith((_OWN_FOLDER, _MACHINERY))
