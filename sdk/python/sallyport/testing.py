"""Stands in for the host, so that tests run without a component.

    def test_rates():
        with FakeHost(settings={"base": "EUR"}, http=lambda request: Response(200, b"{}")):
            assert call(rates, {"day": "2026-01-31"}).data == {}

What a test does not give is as with an empty policy: requests, state, secrets and messages are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from . import _host
from ._encode import to_json
from ._errors import Denied, Failed
from ._host import Entry
from ._output import Output
from ._tool import CallContext, definition_of
from .http import HttpError, Request, Response
from .state import Conflict

Responder = Callable[[Request], Response]

KEY_BYTES_MAX = 256
"""Longest key of the stand-in for the state; longer ones are refused, as the host does."""


class FakeHost:
    """A host for a test: `with FakeHost(state={}): ...`.

    Args:
        settings: The settings by their names.
        secrets: The secrets that the plugin may read.
        state: The state at the start; None refuses state.
        http: Answers requests; None refuses them.
        notify: Whether messages are taken.
    """

    def __init__(
        self,
        *,
        settings: dict[str, Any] | None = None,
        secrets: dict[str, str] | None = None,
        state: dict[str, Any] | None = None,
        http: Responder | None = None,
        notify: bool = False,
    ):
        self.logged: list[tuple[str, str]] = []
        self.notices: list[tuple[str, str | None, str]] = []
        self.progressed: list[tuple[float | None, str | None]] = []
        self.requests: list[Request] = []
        self._settings = dict(settings or {})
        self._secrets = dict(secrets or {})
        self._http = http
        self._takes_notices = notify
        self._version = 0
        self._entries: dict[str, Entry] | None = None
        if state is not None:
            self._entries = {}
            for key, value in state.items():
                self.state_set(key, to_json(value).encode(), None)
        self._before: list[Any] = []

    def __enter__(self) -> FakeHost:
        self._before.append(_host.replace(self))
        return self

    def __exit__(self, *_raised: object) -> None:
        _host.replace(self._before.pop())

    def log(self, level: str, text: str) -> None:
        """Keeps a line in `logged`."""
        self.logged.append((level, text))

    def setting(self, key: str) -> str | None:
        """Returns a setting as JSON."""
        return json.dumps(self._settings[key]) if key in self._settings else None

    def settings(self) -> str:
        """Returns all settings as JSON."""
        return json.dumps(self._settings)

    def secret(self, name: str) -> str:
        """Returns a secret."""
        if name not in self._secrets:
            raise Denied(f"the secret {name!r} may not be read")
        return self._secrets[name]

    def notify(self, text: str, speech: str | None, audience: str) -> None:
        """Keeps a message in `notices`."""
        if not self._takes_notices:
            raise Denied("this plugin may not send messages")
        self.notices.append((text, speech, audience))

    def progress(self, part: float | None, message: str | None) -> None:
        """Keeps a report in `progressed`."""
        self.progressed.append((part, message))

    def send(self, request: Request) -> Response:
        """Passes a request to the responder of the test."""
        self.requests.append(request)
        if self._http is None:
            text = f"{request.origin} may not be reached: the policy does not grant it"
            raise HttpError("denied", text)
        return self._http(request)

    @property
    def state(self) -> dict[str, Any]:
        """The stored values by their keys."""
        return {key: json.loads(entry.value) for key, entry in self._kept().items()}

    def state_entry(self, key: str) -> Entry | None:
        """Returns an entry."""
        return self._kept().get(key)

    def state_set(self, key: str, value: bytes, expires_in_ms: int | None) -> int:
        """Stores an entry. Nothing expires here, except what has no time at all."""
        kept = self._kept()
        if not key or len(key.encode()) > KEY_BYTES_MAX:
            raise Failed(f"a key has 1 to {KEY_BYTES_MAX} bytes")
        self._version += 1
        kept[key] = Entry(value, self._version)
        if expires_in_ms == 0:
            del kept[key]
        return self._version

    def state_compare_and_set(
        self, key: str, version: int | None, value: bytes, expires_in_ms: int | None
    ) -> int:
        """Stores an entry if the key is as expected."""
        found = self._kept().get(key)
        present = None if found is None else found.version
        if present != version:
            raise Conflict(present)
        return self.state_set(key, value, expires_in_ms)

    def state_delete(self, key: str) -> bool:
        """Deletes an entry."""
        return self._kept().pop(key, None) is not None

    def state_page(
        self, prefix: str, after: str | None, limit: int
    ) -> tuple[list[str], str | None]:
        """Lists keys."""
        keys = sorted(key for key in self._kept() if key.startswith(prefix) and key > (after or ""))
        return keys[:limit], keys[limit - 1] if len(keys) > limit else None

    def _kept(self) -> dict[str, Entry]:
        if self._entries is None:
            raise Denied("this plugin may not remember anything")
        return self._entries


def call(
    function: Any, arguments: dict[str, Any] | None = None, context: CallContext | None = None
) -> Output:
    """Calls a tool as the host does: arguments and result pass through JSON.

    Raises ToolError, as the host would show it.
    """
    definition = definition_of(function)
    given = json.loads(to_json(arguments or {}))
    data, output = definition.call(given, lambda: context or CallContext())
    return Output(json.loads(data), output.content, output.speech)


__all__ = ["CallContext", "FakeHost", "Request", "Response", "call"]
