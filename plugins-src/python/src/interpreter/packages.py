"""The packages that programs asked for: fetched once, and kept until the interpreter is reset."""

import re
from collections.abc import Callable, Mapping, Sequence

from interpreter.pin import Pin, normal
from interpreter.refusal import invalid
from interpreter.shelf import Shelf

Fetch = Callable[[str, str], Mapping[str, bytes]]
"""Returns the files of a package, by name and version, or raises a refusal."""

DEPENDENCIES_MAX = 50
"""Dependencies of one call; a program with all it stands on has a few dozen."""

REQUIREMENTS_MAX = 50
"""Missing requirements that are named."""

_REQUIREMENT = re.compile(r"^Requires-Dist:[ ]*([A-Za-z0-9._-]+)[ ]*([^;\r\n]*)(;?)", re.M | re.A)
_DATA_FOLDER = re.compile(r"[^/]+\.data/(purelib/|platlib/)?")


class Packages:
    """What is installed."""

    def __init__(self, fetch: Fetch, shelf: Shelf) -> None:
        self._fetch, self._shelf = fetch, shelf
        self._versions: dict[str, str] = {}

    def install(self, pins: Sequence[Pin]) -> list[str]:
        """Installs what is not installed yet: all of it, or nothing.

        Returns what the new packages need and nobody asked for. Raises a refusal where a package
        cannot be had.
        """
        if len(pins) > DEPENDENCIES_MAX:
            raise invalid(f"argument `dependencies`: at most {DEPENDENCIES_MAX} are installed")
        wanted: dict[str, str] = {}
        for pin in pins:
            self._check(pin, wanted)
            wanted[pin.name] = pin.version
        new = {name: version for name, version in wanted.items() if name not in self._versions}
        fetched = [_importable(self._fetch(name, version)) for name, version in new.items()]
        for files in fetched:
            self._shelf.put(files)
        self._versions.update(new)
        return [line for files in fetched for line in self._missing(files)][:REQUIREMENTS_MAX]

    def clear(self) -> None:
        """Takes every package away."""
        self._versions.clear()
        self._shelf.clear()

    def _check(self, pin: Pin, wanted: Mapping[str, str]) -> None:
        installed = self._versions.get(pin.name)
        if installed not in (None, pin.version):
            raise invalid(
                f"argument `dependencies`: {pin} is asked for, and {pin.name}=={installed} is "
                "installed already; call `reset` first, which also forgets all variables"
            )
        if wanted.get(pin.name, pin.version) != pin.version:
            raise invalid(f"argument `dependencies`: two versions of {pin.name} are asked for")

    def _missing(self, files: Mapping[str, bytes]) -> list[str]:
        """What is needed only under a condition may not be needed here, and is left out."""
        missing = []
        for path, data in files.items():
            if not path.endswith(".dist-info/METADATA"):
                continue
            head = data.decode("utf-8", "replace").partition("\n\n")[0]
            for name, version, condition in _REQUIREMENT.findall(head):
                if not condition and normal(name) not in self._versions:
                    missing.append(f"{name}{version.strip()}")
        return missing


def _importable(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """A wheel may hold modules in a folder for installers, and scripts, which nobody can run."""
    modules: dict[str, bytes] = {}
    for path, data in files.items():
        found = _DATA_FOLDER.match(path)
        if found is None:
            modules[path] = data
        elif found[1]:
            modules[path[found.end() :]] = data
    return modules
