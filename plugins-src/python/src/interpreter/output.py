"""Standard output and error of the code: kept in memory, bounded, told with its result."""

import io
import os
import sys
from io import StringIO
from typing import TextIO

STDOUT_BYTES_MAX = 64 * 1024
"""What a model can take in at once; more is better written to a file."""

STDERR_BYTES_MAX = 16 * 1024
"""Warnings and logs: room for some hundred lines."""

TAIL_SHARE = 4
"""One part in so many is kept of the end, where programs say what came of it."""

_set_in_sys = vars(sys).update


class Bounded(io.BufferedIOBase):
    """Keeps the beginning and the end of what is written, and counts what lies between."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__()
        self._tail_max = bytes_max // TAIL_SHARE
        self._head_max = bytes_max - self._tail_max
        self._clear()

    def _clear(self) -> None:
        self._head, self._tail, self._written = bytearray(), bytearray(), 0

    def writable(self) -> bool:
        """Tells that this is for writing."""
        return True

    def close(self) -> None:
        """Does nothing: the next call writes here too."""

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Takes bytes, as many as come."""
        with memoryview(data) as view, view.cast("B") as whole:
            room = self._head_max - len(self._head)
            self._head += whole[:room]
            self._tail += whole[room:][-self._tail_max :]
            del self._tail[: -self._tail_max]
            self._written += len(whole)
            return len(whole)

    def take(self) -> str:
        """Returns what was kept, and begins anew."""
        if not self._written:
            return ""
        left_out = self._written - len(self._head) - len(self._tail)
        mark = f"\n… {left_out} bytes are left out here …\n".encode() if left_out else b""
        text = (self._head + mark + self._tail).decode("utf-8", "replace")
        self._clear()
        return text


def bounded(text: str, bytes_max: int) -> str:
    """Returns a text, without its middle if it is too long."""
    kept = Bounded(bytes_max)
    kept.write(text.encode("utf-8", "backslashreplace"))
    return kept.take()


class Stream(io.TextIOWrapper):
    """One of the two streams as the code sees it. It stays open: loggers keep it over calls."""

    def __init__(self, kept: Bounded, name: str) -> None:
        super().__init__(
            kept, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True
        )
        self.mode = "w"
        self._name = name

    @property
    def name(self) -> str:
        """Returns the name that Python gives to such a stream."""
        return self._name

    def close(self) -> None:
        """Does nothing: the next call writes here too."""

    def detach(self) -> io.BufferedIOBase:
        """Refuses: nothing could be written any more."""
        raise io.UnsupportedOperation("detach")


class Output:
    """Both streams of an interpreter."""

    def __init__(self) -> None:
        self._stdout, self._stderr = Bounded(STDOUT_BYTES_MAX), Bounded(STDERR_BYTES_MAX)
        self._streams = Stream(self._stdout, "<stdout>"), Stream(self._stderr, "<stderr>")
        stdout, stderr = self._streams
        self._names: dict[str, TextIO] = {
            "stdout": stdout, "__stdout__": stdout, "stderr": stderr, "__stderr__": stderr,
        }  # fmt: skip
        self._by_descriptor = {1: self._stdout, 2: self._stderr}

    def install(self) -> None:
        """Puts the streams in place, whatever stands there. Nobody answers at standard input."""
        names = self._names
        names["stdin"] = names["__stdin__"] = StringIO()
        _set_in_sys(names)

    def take(self) -> tuple[str, str]:
        """Returns what was written to standard output and to standard error since the last time."""
        return self._stdout.take(), self._stderr.take()

    def catch_descriptors(self) -> None:
        """Keeps also what is written past the streams, by their numbers."""
        elsewhere = os.write

        def write(descriptor: int, data: bytes, /) -> int:
            kept = self._by_descriptor.get(descriptor)
            return elsewhere(descriptor, data) if kept is None else kept.write(data)

        os.write = write
