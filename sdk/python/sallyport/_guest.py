"""The plugin as the host sees it. Only a component imports this module.

What stands outside of functions runs when the component is built, and a call begins with the
memory that it left. So the specifications of the tools are made there, once.
"""

from __future__ import annotations

import gc
import importlib
import json
from typing import Any

from componentize_py_types import Err

from . import _host
from ._errors import AuthRequired, Denied, Failed, MissingSetting, ToolError, Unavailable, clean
from ._host import Entry
from ._lifecycle import HOOKS
from ._output import ContentPart
from ._preload import preload
from ._tool import REGISTRY, CallContext, ToolDefinition
from .state import Conflict


def _import(name: str) -> Any:
    """Returns the binding of an interface, or None if the world does not have it."""
    try:
        return importlib.import_module(f"wit_world.imports.{name}")
    except ImportError:
        return None


types = _import("sallyport_plugin_types") or _import("types")
_config = _import("config")
_log = _import("log")
_notify = _import("notify")
_progress = _import("progress")
_secrets = _import("secrets")
_state = _import("state")
_send: Any = None
if _import("outgoing_handler"):
    from ._guest_http import send as _send


class Tools:
    """The exported interface `tools`."""

    def __init__(self) -> None:
        preload()
        self._specs = [_spec(definition) for definition in REGISTRY.values()]
        # The collector would write to every object of the snapshot, and so copy its pages.
        gc.collect()
        gc.freeze()

    def list_tools(self) -> list[Any]:
        """Lists the tools."""
        return self._specs

    def call_tool(self, context: Any, name: str, arguments: str) -> Any:
        """Runs one tool."""
        definition = REGISTRY.get(name)
        if definition is None:
            raise Err(types.ToolError_NotFound(f"there is no tool {name}"))
        try:
            data, output = definition.call(json.loads(arguments), lambda: _context(context))
            content = [_content(part) for part in output.content]
            return types.ToolOutput(data, content, _text(output.speech), None)
        except ToolError as error:
            raise Err(_tool_error(error)) from None


class Lifecycle:
    """The exported interface `lifecycle`, if the plugin has such functions."""

    def setup(self) -> None:
        """Runs the function under `@setup`."""
        from wit_world.imports import lifecycle

        try:
            HOOKS.get("setup", lambda: None)()
        except MissingSetting as error:
            raise Err(lifecycle.SetupError_MissingSettings([error.key])) from None
        except ToolError as error:
            raise Err(lifecycle.SetupError_Unavailable(error.message)) from None

    def teardown(self) -> None:
        """Runs the function under `@teardown`."""
        HOOKS.get("teardown", lambda: None)()


class GuestHost:
    """The real host, through the bindings of the component."""

    def log(self, level: str, text: str) -> None:
        """Writes a line to the log."""
        _log.log(_LEVELS[level], text)

    def setting(self, key: str) -> str | None:
        """Returns a setting as JSON."""
        return _config.get(key)

    def settings(self) -> str:
        """Returns all settings as JSON."""
        return _config.get_all()

    def state_entry(self, key: str) -> Entry | None:
        """Returns an entry of the state."""
        found = _asked(_state, "state", "get", key)
        return None if found is None else Entry(found.value, found.version)

    def state_set(self, key: str, value: bytes, expires_in_ms: int | None) -> int:
        """Stores an entry."""
        return _asked(_state, "state", "set", key, value, expires_in_ms)

    def state_compare_and_set(
        self, key: str, version: int | None, value: bytes, expires_in_ms: int | None
    ) -> int:
        """Stores an entry if the key is as expected."""
        if _state is None:
            raise _not_requested("state")
        nothing = _state.Expected_Nothing()
        expected = nothing if version is None else _state.Expected_Version(version)
        return _asked(_state, "state", "compare_and_set", key, expected, value, expires_in_ms)

    def state_delete(self, key: str) -> bool:
        """Deletes an entry."""
        return _asked(_state, "state", "remove", key)

    def state_page(
        self, prefix: str, after: str | None, limit: int
    ) -> tuple[list[str], str | None]:
        """Lists keys."""
        page = _asked(_state, "state", "list_keys", prefix, after, limit)
        return page.keys, page.next

    def secret(self, name: str) -> str:
        """Returns the value of a secret."""
        return _asked(_secrets, "secrets", "get", name)

    def notify(self, text: str, speech: str | None, audience: str) -> None:
        """Passes a message on."""
        if _notify is None:
            raise _not_requested("notify")
        to = _notify.Audience_User() if audience == "user" else _notify.Audience_Conversation()
        _asked(_notify, "notify", "send", _notify.Message(clean(text), _text(speech), to, None))

    def progress(self, part: float | None, message: str | None) -> None:
        """Shows how far a call has come."""
        if _progress is not None:
            _progress.report(None if part is None else float(part), _text(message))

    def send(self, request: Any) -> Any:
        """Sends an HTTP request."""
        if _send is None:
            raise _not_requested("net")
        return _send(request)


_LEVELS = {name: getattr(_log.Level, name.upper()) for name in
           ("trace", "debug", "info", "warn", "error")}


def _not_requested(capability: str) -> Denied:
    return Denied(
        f"this plugin may not use {capability}: its plugin.toml does not request it. "
        f"To fix: add [[request.{capability}]] and build again"
    )


def _asked(module: Any, capability: str, function: str, *arguments: Any) -> Any:
    """Calls the host, and raises its refusal as an exception of the SDK."""
    if module is None:
        raise _not_requested(capability)
    try:
        return getattr(module, function)(*arguments)
    except Err as error:
        raise _refusal(capability, error.value) from None


_REFUSALS: dict[str, tuple[type[ToolError], str]] = {
    "NotGranted": (Denied, "the policy does not let this plugin use {}"),
    "Unavailable": (Unavailable, "{} cannot be used just now"),
    "TooMany": (Unavailable, "{} takes no more just now"),
    "Invalid": (Failed, "{} refuses this"),
    "QuotaReached": (Failed, "{} has no room for this"),
}


def _refusal(capability: str, value: Any) -> ToolError:
    case = type(value).__name__.partition("_")[2]
    detail = getattr(value, "value", None)
    if case == "Conflict":
        return Conflict(detail)
    kind, words = _REFUSALS.get(case, (Failed, "{} failed"))
    text = words.format(capability)
    return kind(f"{text}: {detail}" if detail else text)


def _context(context: Any) -> CallContext:
    try:
        extra = json.loads(context.extra or "{}")
    except ValueError:
        extra = {}
    return CallContext(
        context.call_id,
        context.session_id,
        context.user_id,
        context.conversation_id,
        context.deadline_ms,
        extra.get("host_started_ms"),
    )


def _spec(definition: ToolDefinition) -> Any:
    output = None if definition.output is None else json.dumps(definition.output)
    return types.ToolSpec(
        definition.name,
        definition.title,
        clean(definition.description),
        clean(json.dumps(definition.parameters)),
        output,
        types.Hints(**definition.hints, extra=None),
        None,
    )


def _text(text: str | None) -> str | None:
    return None if text is None else clean(str(text))


_ERRORS = {
    "invalid-arguments": types.ToolError_InvalidArguments,
    "not-found": types.ToolError_NotFound,
    "denied": types.ToolError_Denied,
    "unavailable": types.ToolError_Unavailable,
    "failed": types.ToolError_Failed,
}


def _tool_error(error: ToolError) -> Any:
    make = _ERRORS.get(error.kind)
    if make is not None:
        return make(error.message)
    if error.kind == "auth-required":
        connection, scopes = None, []
        if isinstance(error, AuthRequired):
            connection, scopes = error.connection, error.scopes
        return types.ToolError_AuthRequired(
            types.SignIn(error.message, _text(connection), [clean(scope) for scope in scopes], None)
        )
    return types.ToolError_Other(json.dumps({"kind": error.kind, "message": error.message}))


def _content(part: ContentPart) -> Any:
    if part.kind == "text":
        return types.Content_Text(clean(part.text))
    if part.kind in ("image", "audio"):
        make = types.Content_Image if part.kind == "image" else types.Content_Audio
        return make(types.Blob(part.media_type, bytes(part.data or b""), _text(part.name), None))
    if part.kind == "link":
        title, description = _text(part.name), _text(part.description)
        link = types.ResourceLink(clean(part.uri), part.media_type, title, description, None)
        return types.Content_Link(link)
    if part.kind == "resource":
        return types.Content_Embedded(_resource(part))
    return types.Content_Other(json.dumps(part.value))


def _resource(part: ContentPart) -> Any:
    data = types.ResourceData_Text(clean(part.text))
    if part.data is not None:
        data = types.ResourceData_Binary(part.data)
    return types.ResourceContents(clean(part.uri), part.media_type, data, None)


_host.replace(GuestHost())

__all__ = ["GuestHost", "Lifecycle", "Tools"]
