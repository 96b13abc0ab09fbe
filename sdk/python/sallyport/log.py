"""Lines for the operator's log. `print` writes there as well.

`logging` goes there too, with its levels, after `log.use_for_logging()`.
"""

from __future__ import annotations

import logging

from . import _host
from ._errors import clean


def trace(message: object) -> None:
    """Writes very fine detail."""
    _host.active().log("trace", clean(str(message)))


def debug(message: object) -> None:
    """Writes something for the author of the plugin."""
    _host.active().log("debug", clean(str(message)))


def info(message: object) -> None:
    """Writes something worth knowing."""
    _host.active().log("info", clean(str(message)))


def warn(message: object) -> None:
    """Writes that something is off."""
    _host.active().log("warn", clean(str(message)))


def error(message: object) -> None:
    """Writes that something failed."""
    _host.active().log("error", clean(str(message)))


class LogHandler(logging.Handler):
    """Sends the records of `logging` to the host."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record in the level that fits."""
        steps = ((logging.ERROR, error), (logging.WARNING, warn), (logging.INFO, info))
        write = next((write for level, write in steps if record.levelno >= level), debug)
        write(self.format(record))


def use_for_logging(level: int = logging.DEBUG) -> None:
    """Sends what the program logs with `logging` to the host."""
    logging.basicConfig(level=level, handlers=[LogHandler()], format="%(name)s: %(message)s")
