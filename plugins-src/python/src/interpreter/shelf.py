"""Files in memory that Python imports from: the modules and the data of installed packages."""

import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.abc import InspectLoader, MetaPathFinder, ResourceLoader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.resources.abc import Traversable, TraversableResources
from importlib.util import spec_from_loader
from os import PathLike
from pathlib import PurePosixPath
from types import CodeType, ModuleType
from typing import IO, Any

ROOT = "/packages/"
"""Where the files seem to be, in `__file__` and in tracebacks. No file system holds it."""

_INFO = ".dist-info"


class Shelf(MetaPathFinder):
    """Files by their path, and the importer that finds them."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._folders: set[str] = set()

    def put(self, files: Mapping[str, bytes]) -> None:
        """Adds files."""
        self._files.update(files)
        for path in files:
            self._folders.update(str(folder) for folder in PurePosixPath(path).parents)

    def clear(self) -> None:
        """Takes every file away."""
        self._files.clear()
        self._folders.clear()

    def get(self, path: str) -> bytes | None:
        """Returns the bytes of a file."""
        return self._files.get(path)

    def below(self, folder: str) -> Iterator[PurePosixPath]:
        """Yields the files and folders that are directly in a folder."""
        for path in sorted(self._folders | self._files.keys()):
            if path != "." and str(PurePosixPath(path).parent) == folder:
                yield PurePosixPath(path)

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Finds a module, a package, or a folder that is a package without a file of its own."""
        stem = fullname.replace(".", "/")
        for file in (f"{stem}/__init__.py", f"{stem}.py"):
            if file in self._files:
                return self._spec(fullname, file)
        if stem not in self._folders:
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [ROOT + stem]
        return spec

    def _spec(self, fullname: str, file: str) -> ModuleSpec | None:
        loader = _Loader(self, file)
        spec = spec_from_loader(fullname, loader, origin=ROOT + file)
        if spec is not None:
            spec.has_location = True
            if spec.submodule_search_locations is not None:
                spec.submodule_search_locations.append(str(PurePosixPath(ROOT + file).parent))
        return spec

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """Finds what `importlib.metadata` tells about packages."""
        wanted = _plain(context.name) if context is not None and context.name else None
        for path in self.below("."):
            name = path.name.removesuffix(_INFO).partition("-")[0]
            if path.name.endswith(_INFO) and wanted in (None, _plain(name)):
                yield _Installed(self, path.name)


class _Loader(InspectLoader, ResourceLoader):
    """Loads one module."""

    def __init__(self, shelf: Shelf, file: str) -> None:
        self._shelf, self._file = shelf, file

    def is_package(self, fullname: str) -> bool:
        return PurePosixPath(self._file).name == "__init__.py"

    def get_filename(self, fullname: str) -> str:
        return ROOT + self._file

    def get_data(self, path: str) -> bytes:
        data = self._shelf.get(path.removeprefix(ROOT))
        if data is None:
            raise FileNotFoundError(path)
        return data

    def get_source(self, fullname: str) -> str:
        source = io.TextIOWrapper(io.BytesIO(self.get_data(self._file)), "utf-8")
        return source.read()

    def get_code(self, fullname: str) -> CodeType:
        # Bytes, since a module may say which encoding it is in.
        return self.source_to_code(self.get_data(self._file), ROOT + self._file)

    def get_resource_reader(self, fullname: str) -> "_Resources":
        return _Resources(_Place(self._shelf, PurePosixPath(self._file).parent))


class _Resources(TraversableResources):
    """The data files beside a module, for `importlib.resources`."""

    def __init__(self, top: "_Place") -> None:
        self._top = top

    def files(self) -> "_Place":
        return self._top


class _Place(Traversable):
    """A file or a folder."""

    def __init__(self, shelf: Shelf, path: PurePosixPath) -> None:
        self._shelf, self._path = shelf, path

    @property
    def name(self) -> str:
        return self._path.name

    def is_file(self) -> bool:
        return self._shelf.get(str(self._path)) is not None

    def is_dir(self) -> bool:
        return any(self._shelf.below(str(self._path)))

    def iterdir(self) -> Iterator["_Place"]:
        return (_Place(self._shelf, path) for path in self._shelf.below(str(self._path)))

    def joinpath(self, *descendants: str | PathLike[str]) -> "_Place":
        return _Place(self._shelf, self._path.joinpath(*descendants))

    def __truediv__(self, child: str | PathLike[str]) -> "_Place":
        return self.joinpath(child)

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        data = self._shelf.get(str(self._path))
        if data is None:
            raise FileNotFoundError(ROOT + str(self._path))
        binary = io.BytesIO(data)
        return binary if "b" in mode else io.TextIOWrapper(binary, *args, **kwargs)

    def read_bytes(self) -> bytes:
        return self.open("rb").read()

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.open("r", encoding or "utf-8", errors).read()


class _Installed(Distribution):
    """What is known about one package, for `importlib.metadata`."""

    def __init__(self, shelf: Shelf, folder: str) -> None:
        self._shelf, self._folder = shelf, folder

    def read_text(self, filename: str) -> str | None:
        data = self._shelf.get(f"{self._folder}/{filename}")
        return None if data is None else data.decode("utf-8", "replace")

    def locate_file(self, path: object) -> PurePosixPath:
        return PurePosixPath(ROOT) / str(path)


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")


def install(finder: MetaPathFinder) -> None:
    """Lets Python ask a finder before it looks into folders."""
    folders = next((i for i, one in enumerate(sys.meta_path) if _is_of_folders(one)), None)
    sys.meta_path.insert(len(sys.meta_path) if folders is None else folders, finder)


def _is_of_folders(finder: object) -> bool:
    return getattr(finder, "__name__", "") == "PathFinder"
