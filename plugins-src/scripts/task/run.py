#!/usr/bin/env python3
"""Works on a list of tasks with Taskwarrior.

Arguments come as JSON on standard input, the result goes as JSON to standard output. Every text of
theirs goes to the program as one argument and in a place where it can only be what it is: no
description becomes an option, however it is written.
"""

import json
import os
import pwd
import re
import subprocess
import sys

PROGRAM = "task"
ACTIONS = ("list", "add", "complete", "modify", "delete")
STATUSES = ("pending", "completed", "all")
LIMIT_DEFAULT = 50
LIMIT_MAX = 500
# The host ends the whole script after its own time; this leaves it time to say why.
TIMEOUT_SECONDS = 20
# More than any arguments that make sense.
INPUT_BYTES_MAX = 256 * 1024
# Nothing of the user's own configuration: no questions, no hooks, no colours, no surprises.
OPTIONS = (
    "rc:/dev/null",
    "rc.confirmation=off",
    "rc.bulk=0",
    "rc.hooks=off",
    "rc.color=off",
    "rc.json.array=on",
    "rc.recurrence.confirmation=no",
    "rc.verbose=new-uuid",
)
FIELDS = ("id", "uuid", "description", "status", "due", "project", "priority", "tags", "urgency")
TYPES = {
    "action": str, "id": (int, str), "description": str, "due": str, "project": str,
    "priority": str, "tags": list, "status": str, "search": str, "limit": int,
}  # fmt: skip
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
DATE = re.compile(r"[A-Za-z0-9:+./-]{0,64}", re.ASCII)
TAG = re.compile(r"[^\W\d]\w{0,49}")
STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)


class Refused(Exception):
    """Why nothing was done; for whoever asked."""


def arguments(text):
    """Reads the arguments."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise Refused("the arguments are not a JSON object")
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if name not in TYPES:
            raise Refused(f"unknown argument: {name}")
        if isinstance(value, bool) or not isinstance(value, TYPES[name]):
            raise Refused(f"{name} is of the wrong type")
    if given.get("action") not in ACTIONS:
        raise Refused(f"action is one of {', '.join(ACTIONS)}")
    return given


def location():
    """Returns the folder of the tasks: TASKDATA, or where Taskwarrior keeps them by itself."""
    if os.environ.get("TASKDATA"):
        return os.environ["TASKDATA"]
    homes = [os.environ.get("HOME", "")]
    try:
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        pass
    for home in homes:
        folder = os.path.join(home, ".task")
        if home and os.path.isdir(folder):
            return folder
    raise Refused("there is no folder of tasks: name one in the variable TASKDATA")


def task(*words, stdin=""):
    """Runs the program and returns what it printed."""
    command = [PROGRAM, *OPTIONS, f"rc.data.location={location()}", *words]
    try:
        done = subprocess.run(
            command,
            input=stdin.encode("utf-8"),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise Refused("the program `task` (Taskwarrior) is not installed") from None
    except ValueError:
        raise Refused("a text holds a character that cannot be passed on") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"the program `task` took more than {TIMEOUT_SECONDS} seconds") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise Refused(said or f"the program `task` ended with {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def export(*words):
    """Returns the tasks that match."""
    try:
        return json.loads(task(*words, "export") or "[]")
    except ValueError:
        raise Refused("the program `task` printed no list of tasks") from None


def report(one):
    """Describes a task by the fields that people know."""
    fields = {name: one[name] for name in FIELDS if one.get(name) not in (None, "", [])}
    if stamp := STAMP.fullmatch(str(fields.get("due", ""))):
        year, month, day, hour, minute, second = stamp.groups()
        fields["due"] = f"{year}-{month}-{day}T{hour}:{minute}:{second}Z"
    return fields


def attributes(given):
    """Returns the words that set what was given; an empty value removes it."""
    words = []
    if "due" in given:
        words.append(f"due:{checked_date(given['due'])}")
    if "project" in given:
        words.append(f"project:{one_line('project', given['project'])}")
    if "priority" in given:
        if given["priority"] not in ("H", "M", "L", ""):
            raise Refused("priority is H, M, L or empty")
        words.append(f"priority:{given['priority']}")
    words += [f"+{tag}" for tag in checked_tags(given)]
    # What stands behind the dashes is text, whatever it looks like.
    return words + (["--", description(given)] if "description" in given else [])


def checked_date(date):
    """Returns a date in a form that cannot be anything else."""
    if not DATE.fullmatch(date):
        raise Refused("due is one word, such as tomorrow or 2026-11-30")
    return date


def checked_tags(given):
    """Returns the tags."""
    tags = given.get("tags", [])
    for tag in tags:
        if not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise Refused("a tag is one word of letters, digits and _")
    return tags


def description(given):
    """Returns what is to be done."""
    text = one_line("description", given["description"])
    if not text:
        raise Refused("description is empty")
    return text


def one_line(name, text):
    """Returns a text without line breaks; the program would lose what follows one."""
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise Refused(f"{name} is one line of text")
    return text.strip()


def wanted(given):
    """Returns the task that is meant."""
    which = given.get("id")
    if which is None:
        raise Refused(f"to {given['action']} a task, say its id")
    which = str(which)
    if not UUID.fullmatch(which) and not (which.isdecimal() and which.isascii() and int(which) > 0):
        raise Refused("id is a number of the list or a uuid")
    found = export(which)
    if len(found) != 1:
        raise Refused(f"there is no task {which}")
    return found[0]


def by_uuid(uuid):
    """Returns a task as it is now."""
    return report(export(uuid)[0])


def exactly(uuid, given):
    """Returns a task after a change, with its description as it was given: the program reads escapes
    such as \\u0041 even where all is text, but not in what it imports."""
    one = export(uuid)[0]
    changed = [{**one, "description": description(given)}] if "description" in given else [one]
    if changed != [one]:
        task("import", "-", stdin=json.dumps(changed, ensure_ascii=False))
    return by_uuid(uuid)


def do_list(given):
    """Lists tasks, the most urgent first."""
    status = given.get("status", "pending")
    limit = given.get("limit", LIMIT_DEFAULT)
    if status not in STATUSES:
        raise Refused(f"status is one of {', '.join(STATUSES)}")
    if not 1 <= limit <= LIMIT_MAX:
        raise Refused(f"limit is a whole number from 1 to {LIMIT_MAX}")
    words = ["status.not:deleted"] if status == "all" else [f"status:{status}"]
    if given.get("project"):
        words.append(f"project:{one_line('project', given['project'])}")
    words += [f"+{tag}" for tag in checked_tags(given)]
    search = given.get("search", "").casefold()
    found = [one for one in export(*words) if search in one.get("description", "").casefold()]
    found.sort(key=lambda one: (-one.get("urgency", 0), one.get("entry", "")))
    return {"tasks": [report(one) for one in found[:limit]], "total": len(found)}


def do_add(given):
    """Adds a task."""
    if "description" not in given:
        raise Refused("to add a task, say its description")
    printed = task("add", *attributes(given))
    uuid = UUID.search(printed)
    if not uuid:
        raise Refused("the program `task` did not say which task it made")
    return {"added": exactly(uuid[0], given)}


def do_complete(given):
    """Marks a task as completed."""
    one = wanted(given)
    task(one["uuid"], "done")
    return {"completed": by_uuid(one["uuid"])}


def do_modify(given):
    """Changes what was given."""
    words = attributes(given)
    if not words:
        raise Refused("to modify a task, say what shall be different")
    one = wanted(given)
    task(one["uuid"], "modify", *words)
    return {"modified": exactly(one["uuid"], given)}


def do_delete(given):
    """Deletes a task. Taskwarrior keeps it as deleted."""
    one = wanted(given)
    task(one["uuid"], "delete")
    return {"deleted": report(one)}


def main():
    """Runs once: arguments in, result out."""
    doing = {"list": do_list, "add": do_add, "complete": do_complete, "modify": do_modify}
    doing["delete"] = do_delete
    try:
        text = sys.stdin.buffer.read(INPUT_BYTES_MAX + 1)
        if len(text) > INPUT_BYTES_MAX:
            raise Refused("the arguments are too long")
        given = arguments(text.decode("utf-8", "replace"))
        result = doing[given["action"]](given)
    except Refused as reason:
        print(reason, file=sys.stderr)
        return 1
    print(json.dumps(result, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
