"""What the host calls: the interpreter, in the words of the plugin contract."""

import json
import os
import sys
from collections.abc import Sequence

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import packages, types

from interpreter import tools
from interpreter.output import Output
from interpreter.packages import Index
from interpreter.refusal import Kind, Refusal
from interpreter.session import Session

_WORK_FOLDER = "/sandbox"
"""Where the policy mounts the temporary file system of the conversation."""

_TOOL_ERRORS = {
    Kind.INVALID_ARGUMENTS: types.ToolError_InvalidArguments,
    Kind.NOT_FOUND: types.ToolError_NotFound,
    Kind.DENIED: types.ToolError_Denied,
    Kind.UNAVAILABLE: types.ToolError_Unavailable,
    Kind.FAILED: types.ToolError_Failed,
}

_FETCH_ERRORS = {
    packages.Error_Denied: Kind.DENIED,
    packages.Error_NotFound: Kind.NOT_FOUND,
    packages.Error_Unavailable: Kind.UNAVAILABLE,
    packages.Error_Other: Kind.FAILED,
}


def _fetch(name: str, version: str) -> dict[str, bytes]:
    try:
        return {file.path: file.data for file in packages.fetch(name, version)}
    except Err as error:
        kind = _FETCH_ERRORS[type(error.value)]
        raise Refusal(kind, f"{name}=={version}: {error.value.value}") from None


def _releases(name: str) -> list[str]:
    try:
        return [release.version for release in packages.releases(name)]
    except Err as error:
        raise Refusal(_FETCH_ERRORS[type(error.value)], error.value.value) from None


def _session() -> Session:
    output = Output()
    output.catch_descriptors()
    # What was true where the component is built is not where it runs.
    os.environ.clear()
    sys.path[:] = [_WORK_FOLDER]
    return Session(Index(_fetch, _releases), output, _WORK_FOLDER)


SESSION = _session()


def _spec(tool: tools.Tool) -> types.ToolSpec:
    hints = types.Hints(
        read_only=None,
        destructive=True,
        idempotent=tool.is_idempotent or None,
        open_world=False,
        extra=None,
    )
    parameters, output = json.dumps(tool.parameters), json.dumps(tool.output)
    return types.ToolSpec(tool.name, None, tool.description, parameters, output, hints, None)


class _Output:
    """What a call returns, as far as the runtime reads it. Only the data differs."""

    __slots__ = ("data",)
    content: Sequence[types.Content] = []
    speech = extra = None


_OUTPUT = _Output()

# The runtime makes one for each call, and nobody reads it. This takes as much, and does the least.
types.CallContext = "".format


class Tools(exports.Tools):
    """What the host calls."""

    def list_tools(self) -> list[types.ToolSpec]:
        """Lists the tools."""
        return [_spec(tool) for tool in tools.TOOLS]

    def call_tool(self, context: object, name: str, arguments: str) -> _Output:
        """Runs one tool. It needs nothing of the context."""
        try:
            _OUTPUT.data = tools.call(SESSION, name, arguments)
        except Refusal as refusal:
            raise Err(_TOOL_ERRORS[refusal.kind](refusal.message)) from None
        return _OUTPUT
