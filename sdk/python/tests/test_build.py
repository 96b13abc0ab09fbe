"""The build program, except the compiler."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("build", Path(__file__).parents[1] / "build.py")
build = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(build)


def project(folder: Path, pyproject: str = "", manifest: str = 'name = "my-tool"') -> Path:
    (folder / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    (folder / "plugin.toml").write_text(manifest, encoding="utf-8")
    (folder / "src").mkdir(exist_ok=True)
    return folder


HTTP = ["wasi:http/types@0.2.2", "wasi:http/outgoing-handler@0.2.2"]


@pytest.mark.parametrize(
    ("request_tables", "imports"),
    [
        ({}, []),
        ({"state": [{"why": "x"}]}, ["sallyport:plugin/state@0.1.0"]),
        ({"net": [{"allow": "GET https://a"}]}, HTTP),
        ({"net": []}, []),
        ({"secrets": [{"name": "a"}]}, []),
        ({"secrets": [{"name": "a", "reveal": True}]}, ["sallyport:plugin/secrets@0.1.0"]),
        ({"fs": [{"access": "read"}], "env": [{"name": "TZ"}]}, []),
        (
            {"notify": [{}], "progress": [{}]},
            ["sallyport:plugin/notify@0.1.0", "sallyport:plugin/progress@0.1.0"],
        ),
    ],
)
def test_the_world_imports_what_is_requested(request_tables, imports):
    world = build.world_source({"request": request_tables}, has_hooks=False)
    found = [line.strip() for line in world.splitlines() if line.strip().startswith("import")]
    assert found == [f"import {name};" for name in imports]
    assert "include sallyport:plugin/tool-plugin@0.1.0;" in world
    assert "export" not in world


@pytest.mark.parametrize(
    ("source", "has_hooks"),
    [
        ("from sallyport import setup\n@setup\ndef f(): pass\n", True),
        ("import sallyport\n@sallyport.teardown\ndef f(): pass\n", True),
        ("def setup(): pass\n", False),
        ("# @setup\n", False),
        ("@setup_all\ndef f(): pass\n", False),
    ],
)
def test_hooks_are_found_in_the_sources(tmp_path, source, has_hooks):
    folder = project(tmp_path)
    (folder / "src" / "my_tool.py").write_text(source)
    (folder / "src" / "__pycache__").mkdir()
    stage = tmp_path / "stage"
    assert build.copy_sources(folder, stage) is has_hooks
    assert not (stage / "src" / "__pycache__").exists()
    assert ("export" in build.world_source({}, has_hooks)) is has_hooks


@pytest.mark.parametrize(
    ("pyproject", "manifest", "reason"),
    [
        ("", 'name = "my-tool"', "my_tool.py does not exist. To fix: create it, or name the module"),
        ("[tool.sallyport]\nmodul = 'x'", "", "[tool.sallyport] has no key modul; it has module"),
        ("[tool.sallyport]\nmodule = 'a b'", "", "'a b' is not a name of a module"),
        ("[tool.sallyport]\nmodule = 3", "", "3 is not a name of a module"),
        ("", "", "'' is not a name of a module"),
        ("", 'name = "json"', "the module json would hide one that Python or the SDK has"),
        ("", 'name = "sallyport"', 'module = "my_sallyport"'),
        ("[", "", "pyproject.toml: "),
        ("", "name = ", "plugin.toml: "),
    ],
)
def test_a_project_that_cannot_be_built_says_why(tmp_path, pyproject, manifest, reason, capsys):
    folder = project(tmp_path, pyproject, manifest)
    assert build.main([str(folder), str(tmp_path / "out.wasm")]) == 1
    assert reason in capsys.readouterr().err


def test_a_folder_without_a_project_and_a_wrong_command_line_are_refused(tmp_path, capsys):
    assert build.main([str(tmp_path), "out.wasm"]) == 1
    assert "pyproject.toml does not exist" in capsys.readouterr().err
    assert build.main([]) == 2
    assert "usage: build.py PROJECT OUT" in capsys.readouterr().err


def test_a_module_is_a_file_or_a_folder(tmp_path):
    folder = project(tmp_path)
    (folder / "src" / "my_tool").mkdir()
    (folder / "src" / "my_tool" / "__init__.py").touch()
    (folder / "src" / "other.py").touch()
    manifest = {"name": "my-tool"}
    assert build.find_module(folder, {}, manifest) == "my_tool"
    own = {"tool": {"sallyport": {"module": "other"}}}
    assert build.find_module(folder, own, manifest) == "other"


@pytest.mark.parametrize(
    ("output", "want"),
    [
        (
            'x\nAssertionError: Traceback (most recent call last):\n  File "/3/sallyport_app.py", line 1, '
            'in <module>\n    import my_tool\n  File "/0/my_tool.py", line 2, in f\n    boom\n'
            "ValueError: no\n\n\nCaused by:\n    ValueError: no\n\nStack backtrace:\n   0: x",
            "the plugin cannot be built:\nTraceback (most recent call last):\n"
            '  File "{project}/src/my_tool.py", line 2, in f\n    boom\nValueError: no',
        ),
        (
            "AssertionError: Traceback (most recent call last):\n  File x\n"
            "sallyport._errors.DefinitionError: /0/my_tool.py:3: tool f: it has no docstring\n\nCaused by:",
            "{project}/src/my_tool.py:3: tool f: it has no docstring",
        ),
        ("No module named 'componentize_py'", "/py has no componentize-py.\nTo fix: /py -m pip install "),
        ("killed", "the plugin cannot be built:\nkilled"),
    ],
)
def test_the_words_of_the_compiler_have_the_authors_paths(tmp_path, output, want):
    stage = tmp_path / "stage"
    for folder in ("src", "vendor", "sdk", "app"):
        (stage / folder).mkdir(parents=True)
    text = build.explain(output, tmp_path, stage, "/py")
    assert text.startswith(want.replace("{project}", str(tmp_path)))


def test_a_copy_of_the_sdk_replaces_an_older_one(tmp_path):
    old = tmp_path / "copy" / "sallyport" / "old.py"
    old.parent.mkdir(parents=True)
    old.touch()
    build.copy_sdk(tmp_path / "copy")
    assert (old.parent / "__init__.py").is_file()
    assert not old.exists()
