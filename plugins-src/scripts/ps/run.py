#!/usr/bin/env python3
"""Lists the processes of this machine.

Arguments come as JSON on standard input, the list goes as JSON to standard output. Everything is read
from /proc, so only Linux has it. The processor figure is the share of one processor that a process
used while this program watched.
"""

import json
import os
import sys
import time

PROC = "/proc"
SORTS = ("cpu", "memory", "pid")
LIMIT_DEFAULT = 10
LIMIT_MAX = 200
# Long enough that a busy process shows, short enough that nobody waits.
WATCH_SECONDS = 0.2
# A command line can be as long as its program likes; this much tells what it is.
COMMAND_CHARS_MAX = 200
# More than any arguments that make sense.
INPUT_BYTES_MAX = 64 * 1024


class Refused(Exception):
    """Why there is no list; for whoever asked."""


def arguments(text):
    """Reads the arguments, with their defaults."""
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Refused(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise Refused("the arguments are not a JSON object")
    unknown = sorted(set(given) - {"sort", "limit", "filter"})
    if unknown:
        raise Refused(f"unknown argument: {unknown[0]}")
    return checked(given.get("sort"), given.get("limit"), given.get("filter"))


def checked(sort, limit, words):
    """Returns sort, limit and filter; what is not given has its default."""
    sort = "cpu" if sort is None else sort
    limit = LIMIT_DEFAULT if limit is None else limit
    words = "" if words is None else words
    if sort not in SORTS:
        raise Refused(f"sort is one of {', '.join(SORTS)}")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT_MAX:
        raise Refused(f"limit is a whole number from 1 to {LIMIT_MAX}")
    if not isinstance(words, str):
        raise Refused("filter is a text")
    return sort, limit, words.casefold()


def read(*path):
    """Reads a file of /proc; nothing when the process has ended or is not ours to see."""
    try:
        with open(os.path.join(PROC, *path), "rb") as file:
            return file.read()
    except OSError:
        return None


def ticks():
    """Returns the processor time that every process has used so far, in clock ticks."""
    return {pid: used for pid in pids() if (used := ticks_of(pid)) is not None}


def ticks_of(pid):
    """Returns the processor time of one process; the name in the line may hold anything."""
    fields = after_name(read(pid, "stat"))
    return int(fields[11]) + int(fields[12]) if fields else None


def after_name(line):
    """Splits what follows the name in a line of /proc/PID/stat."""
    fields = (line or b"").rpartition(b")")[2].split()
    return fields if len(fields) > 21 else None


def pids():
    """Returns the process ids, as text."""
    try:
        return [name for name in os.listdir(PROC) if name.isdigit()]
    except OSError as error:
        reason = f"{PROC} has to be readable ({error.strerror})"
        raise Refused(f"the processes cannot be seen: {reason}") from None


def process(pid, cpu):
    """Describes one process; nothing when it has ended."""
    line = read(pid, "stat")
    fields = after_name(line)
    if not fields:
        return None
    name = line.partition(b"(")[2].rpartition(b")")[0].decode("utf-8", "replace")
    command = (read(pid, "cmdline") or b"").replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return {
        "pid": int(pid),
        "name": name,
        "command": command[:COMMAND_CHARS_MAX] or f"[{name}]",
        "state": fields[0].decode("ascii", "replace"),
        "cpu_percent": cpu,
        "memory_bytes": int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
    }


def watch(seconds):
    """Returns for every process the share of one processor that it used meanwhile, in percent."""
    before, began = ticks(), time.monotonic()
    time.sleep(seconds)
    after, passed = ticks(), max(time.monotonic() - began, 0.001)
    tick_seconds = 1 / os.sysconf("SC_CLK_TCK")
    return {
        pid: round(100 * max(used - before.get(pid, used), 0) * tick_seconds / passed, 1)
        for pid, used in after.items()
    }


def matches(found, words):
    """Tells whether the words stand in a process's name or command line."""
    return words in found["name"].casefold() or words in found["command"].casefold()


def listing(sort, limit, words):
    """Returns the list that was asked for. This program itself is not in it."""
    shares = watch(WATCH_SECONDS)
    own = str(os.getpid())
    found = [process(pid, cpu) for pid, cpu in shares.items() if pid != own]
    found = [one for one in found if one and matches(one, words)]
    orders = {
        "cpu": lambda one: (-one["cpu_percent"], -one["memory_bytes"], one["pid"]),
        "memory": lambda one: (-one["memory_bytes"], one["pid"]),
        "pid": lambda one: one["pid"],
    }
    found.sort(key=orders[sort])
    return {"processes": found[:limit], "total": len(found)}


def main():
    """Runs once: arguments in, list out."""
    try:
        text = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
        if len(text) > INPUT_BYTES_MAX:
            raise Refused("the arguments are too long")
        result = listing(*arguments(text.decode("utf-8", "replace")))
    except Refused as reason:
        print(reason, file=sys.stderr)
        return 1
    print(json.dumps(result, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
