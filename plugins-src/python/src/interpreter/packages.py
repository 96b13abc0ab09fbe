"""The packages that programs asked for: fetched once, and kept until the interpreter is reset."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from interpreter import pin
from interpreter.pin import Pin, normal
from interpreter.refusal import Refusal, invalid
from interpreter.shelf import Shelf


@dataclass(frozen=True)
class Index:
    """Where packages come from. What cannot be had raises a refusal."""

    fetch: Callable[[str, str], Mapping[str, bytes]]
    """Returns the files of a package, by name and version."""

    releases: Callable[[str], Sequence[str]]
    """Returns the versions of a package that can be fetched, the newest first."""


RELEASES_TOLD_MAX = 8
"""Versions that are named to whoever named none."""

DEPENDENCIES_MAX = 50
"""Dependencies of one call; a program with all it stands on has a few dozen."""

REQUIREMENTS_MAX = 50
"""Missing requirements that are named."""

_REQUIREMENT = re.compile(r"^Requires-Dist:[ ]*([A-Za-z0-9._-]+)[ ]*([^;\r\n]*)(;?)", re.M | re.A)
_DATA_FOLDER = re.compile(r"[^/]+\.data/(purelib/|platlib/)?")


class Packages:
    """What is installed."""

    def __init__(self, index: Index, shelf: Shelf) -> None:
        self._index, self._shelf = index, shelf
        self._versions: dict[str, str] = {}

    def pin(self, text: object) -> Pin:
        """Reads a dependency.

        Raises a refusal for one that names no version, with the versions that can be had.
        """
        try:
            return pin.parse(text)
        except Refusal as refusal:
            name = pin.name_alone(text)
            if name is None:
                raise
            raise invalid(f"{refusal.message}; {self._available(name)}") from None

    def _available(self, name: str) -> str:
        try:
            versions = self._index.releases(name)
        except Refusal as refusal:
            return f"of {name} none can be had: {refusal.message}"
        if not versions:
            return f"no version of {name} is both granted and in the index"
        more = ", …" if len(versions) > RELEASES_TOLD_MAX else ""
        return f"of {name} you can have {', '.join(versions[:RELEASES_TOLD_MAX])}{more}"

    def install(self, pins: Sequence[Pin]) -> list[str]:
        """Installs what is not installed yet: all of it, or nothing.

        Returns what the new packages need and nobody asked for. Raises a refusal where a package
        cannot be had.
        """
        if len(pins) > DEPENDENCIES_MAX:
            raise invalid(f"argument `dependencies`: at most {DEPENDENCIES_MAX} are installed")
        wanted: dict[str, str] = {}
        for one in pins:
            self._check(one, wanted)
            wanted[one.name] = one.version
        new = {name: version for name, version in wanted.items() if name not in self._versions}
        fetched = [_importable(self._index.fetch(name, version)) for name, version in new.items()]
        for files in fetched:
            self._shelf.put(files)
        self._versions.update(new)
        return [line for files in fetched for line in self._missing(files)][:REQUIREMENTS_MAX]

    def clear(self) -> None:
        """Takes every package away."""
        self._versions.clear()
        self._shelf.clear()

    def _check(self, one: Pin, wanted: Mapping[str, str]) -> None:
        installed = self._versions.get(one.name)
        if installed not in (None, one.version):
            raise invalid(
                f"argument `dependencies`: {one} is asked for, and {one.name}=={installed} is "
                "installed already; call `reset` first, which also forgets all variables"
            )
        if wanted.get(one.name, one.version) != one.version:
            raise invalid(f"argument `dependencies`: two versions of {one.name} are asked for")

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
