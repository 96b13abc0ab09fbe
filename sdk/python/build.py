"""Builds the component of a Python plugin: `python3 build.py PROJECT OUT`.

Environment: SALLYPORT_PYTHON is an interpreter that has componentize-py (this one without it);
SALLYPORT_WIT is the folder of the contract (`wit/` next to `sdk/` without it).

A component is loaded only if its manifest requests every power that it imports, and the compiler
keeps all imports of a world. So this program writes a world with exactly what plugin.toml requests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import tomllib
except ImportError:
    sys.exit("error: building needs Python 3.11 or later.\nTo fix: set SALLYPORT_PYTHON to one")

SDK = Path(__file__).resolve().parent
CONTRACT = "sallyport:plugin"
CONTRACT_VERSION = "0.1.0"
APP = "sallyport_app"
WORLD = "sallyport:python-plugin/python-plugin"
SOURCES = "src"
VENDORED = "vendor"
SDK_COPY = ".sallyport/python"
"""Where a project has a copy of the SDK for editors and pytest, if its pyproject.toml says so."""

CAPABILITIES = {"state": "state", "notify": "notify", "progress": "progress"}
"""The interface of the contract for each request that `sallyport` has a module for."""

HTTP_VERSION = "0.2.2"

_PLAIN_MODULE = re.compile(r"[a-z_][a-z0-9_]*")
_HOOK = re.compile(r"^@(?:sallyport\.)?(?:setup|teardown)\b", re.MULTILINE)


class BuildError(Exception):
    """Why there is no component. The text is for the author."""


def main(arguments: list[str]) -> int:
    """Builds, and returns the exit code."""
    if len(arguments) != 2:
        print("usage: build.py PROJECT OUT", file=sys.stderr)
        return 2
    try:
        build(Path(arguments[0]), Path(arguments[1]))
    except (BuildError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def build(project: Path, out: Path) -> None:
    """Builds the component of a project."""
    project = project.absolute()
    settings = read_toml(project / "pyproject.toml")
    manifest = read_toml(project / "plugin.toml")
    module = find_module(project, settings, manifest)
    if SDK_COPY in _pytest_path(settings):
        copy_sdk(project / SDK_COPY)
    with tempfile.TemporaryDirectory(prefix="sallyport-python-") as folder:
        stage = Path(folder)
        has_hooks = copy_sources(project, stage)
        (stage / "app").mkdir()
        (stage / "app" / f"{APP}.py").write_text(app_source(module, has_hooks))
        (stage / "world.wit").write_text(world_source(manifest, has_hooks))
        component = compile_component(project, stage, module)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(component, out)


def read_toml(path: Path) -> dict:
    """Reads a TOML file of the project."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise BuildError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"{path}: {error}") from None


def _table(settings: dict, *names: str) -> dict:
    for name in names:
        settings = settings.get(name, {})
        if not isinstance(settings, dict):
            return {}
    return settings


def _pytest_path(settings: dict) -> list:
    path = _table(settings, "tool", "pytest", "ini_options").get("pythonpath", [])
    return path if isinstance(path, list) else [path]


def find_module(project: Path, settings: dict, manifest: dict) -> str:
    """Returns the module that has the tools: `module` of [tool.sallyport], or the plugin's name."""
    own = _table(settings, "tool", "sallyport")
    if unknown := sorted(set(own) - {"module"}):
        place = project / "pyproject.toml"
        raise BuildError(f"{place}: [tool.sallyport] has no key {unknown[0]}; it has module")
    name = own.get("module", str(manifest.get("name", "")).replace("-", "_"))
    if not isinstance(name, str) or not _PLAIN_MODULE.fullmatch(name):
        raise BuildError(f"{project / 'pyproject.toml'}: {name!r} is not a name of a module")
    if name in (APP, "sallyport", "wit_world") or name in sys.stdlib_module_names:
        raise BuildError(
            f"the module {name} would hide one that Python or the SDK has. "
            f'To fix: rename it, and name it in pyproject.toml:\n[tool.sallyport]\nmodule = "my_{name}"'
        )
    paths = [project / SOURCES / f"{name}.py", project / SOURCES / name / "__init__.py"]
    if not any(path.is_file() for path in paths):
        raise BuildError(
            f"{paths[0]} does not exist. To fix: create it, or name the module in pyproject.toml:\n"
            '[tool.sallyport]\nmodule = "…"'
        )
    return name


def copy_sdk(target: Path) -> None:
    """Copies the package for editors and pytest. A folder that is read-only goes without."""
    try:
        shutil.rmtree(target / "sallyport", ignore_errors=True)
        _copy_tree(SDK / "sallyport", target / "sallyport")
    except OSError as error:
        print(f"warning: no copy of the SDK for pytest: {error}", file=sys.stderr)


def _copy_tree(source: Path, target: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)


def copy_sources(project: Path, stage: Path) -> bool:
    """Copies what becomes part of the component. Returns whether it has functions of lifecycle.

    The compiler writes bytecode next to the sources, and it must not find other packages there.
    """
    _copy_tree(project / SOURCES, stage / SOURCES)
    if (project / VENDORED).is_dir():
        _copy_tree(project / VENDORED, stage / VENDORED)
    _copy_tree(SDK / "sallyport", stage / "sdk" / "sallyport")
    files = (stage / SOURCES).rglob("*.py")
    return any(_HOOK.search(path.read_text(encoding="utf-8", errors="replace")) for path in files)


def app_source(module: str, has_hooks: bool) -> str:
    """The module that the compiler starts with."""
    names = "Lifecycle, Tools" if has_hooks else "Tools"
    return f"import {module}\nfrom sallyport._guest import {names}\n"


def world_source(manifest: dict, has_hooks: bool) -> str:
    """The world with exactly what the manifest requests."""
    request = _table(manifest, "request")
    imports = [f"{CONTRACT}/{CAPABILITIES[name]}" for name in CAPABILITIES if request.get(name)]
    secrets = request.get("secrets", [])
    if isinstance(secrets, list) and any(
        isinstance(secret, dict) and secret.get("reveal") is True for secret in secrets
    ):
        imports.append(f"{CONTRACT}/secrets")
    lines = [f"import {name}@{CONTRACT_VERSION};" for name in imports]
    if request.get("net"):
        lines += [
            f"import wasi:http/{name}@{HTTP_VERSION};" for name in ("types", "outgoing-handler")
        ]
    if has_hooks:
        lines.append(f"export {CONTRACT}/lifecycle@{CONTRACT_VERSION};")
    body = "".join(f"  {line}\n" for line in lines)
    package, _, world = WORLD.partition("/")
    include = f"  include {CONTRACT}/tool-plugin@{CONTRACT_VERSION};\n"
    return f"package {package};\n\nworld {world} {{\n{include}{body}}}\n"


def compile_component(project: Path, stage: Path, module: str) -> Path:
    """Runs the compiler. Returns the path of the component."""
    contract = Path(os.environ.get("SALLYPORT_WIT") or SDK.parent.parent / "wit")
    if not contract.is_dir():
        raise BuildError(f"{contract} is not a folder. To fix: set SALLYPORT_WIT to the contract")
    component = stage / "component.wasm"
    python = os.environ.get("SALLYPORT_PYTHON") or sys.executable
    command = [python, "-c", _COMPILER, "--quiet"]
    for path in (contract, SDK / "wit" / "http.wit", stage / "world.wit"):
        command += ["--wit-path", str(path)]
    command += ["--world", WORLD, "componentize"]
    for path in (SOURCES, VENDORED, "sdk", "app"):
        if (stage / path).is_dir():
            command += ["--python-path", str(stage / path)]
    done = subprocess.run(
        [*command, APP, "--output", str(component)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        cwd=stage,
        env=_environment(),
    )
    if done.returncode != 0 or not component.is_file():
        raise BuildError(explain(done.stderr + done.stdout, project, stage, python))
    return component


_COMPILER = "import sys; from componentize_py import script; sys.argv[0] = 'componentize-py'; script()"
"""Starts the compiler of that interpreter, regardless of where its scripts are."""


def _environment() -> dict[str, str]:
    """The environment without other packages: they would end up in the component."""
    dropped = {"VIRTUAL_ENV", "PYTHONPATH", "RUST_BACKTRACE"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "RUST_BACKTRACE": "0", "PYTHONSAFEPATH": "1"}


def explain(output: str, project: Path, stage: Path, python: str) -> str:
    """Makes of the compiler's output what the author can use."""
    if "No module named 'componentize_py'" in output:
        tool = (SDK / "tools.txt").read_text().strip()
        return f"{python} has no componentize-py.\nTo fix: {python} -m pip install {tool}"
    text = output.partition("\nStack backtrace:")[0].partition("\nCaused by:")[0]
    text = text.rpartition("AssertionError: ")[2].strip() or output.strip()
    folders = [path for path in (SOURCES, VENDORED, "sdk", "app") if (stage / path).is_dir()]
    for number, folder in enumerate(folders):
        home = {SOURCES: project / SOURCES, VENDORED: project / VENDORED, "sdk": SDK}
        text = text.replace(f"/{number}/", f"{home.get(folder, stage / folder)}/")
    # The mistakes that the SDK finds name their place themselves.
    if found := re.search(r"^sallyport\._errors\.DefinitionError: (.*)", text, re.DOTALL | re.M):
        return found[1].strip()
    return f"the plugin cannot be built:\n{_without_own_frames(text)}"


def _without_own_frames(text: str) -> str:
    """Removes the first frame of a traceback, which is that of the generated module."""
    return re.sub(rf'  File "[^"]*{APP}\.py".*?(?=  File |^\S)', "", text, flags=re.DOTALL | re.M)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
