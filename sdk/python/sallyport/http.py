"""HTTP requests, as far as the manifest requests and the policy grants them.

    rates = http.get("https://rates.example/v1", params={"base": "EUR"}).raise_for_status().json()

A request blocks until the whole response has arrived. Redirects are not followed.
"""

from __future__ import annotations

import json as _json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from . import _host
from ._errors import ToolError

TIMEOUT_SECONDS = 10.0
"""How long a request may take, unless it says otherwise."""

BODY_BYTES_MAX = 4 * 1024 * 1024
"""Longest body of a response, unless the request says otherwise. The host has a limit as well."""

Values = Mapping[str, Any]


class HttpError(ToolError):
    """Why a request failed. A tool that does not catch it fails in the matching kind."""

    def __init__(self, kind: str, message: str, status: int | None = None):
        super().__init__(message)
        self.kind = kind
        self.status = status


@dataclass(frozen=True)
class Request:
    """A request, as a test sees it."""

    method: str
    url: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    timeout: float = TIMEOUT_SECONDS
    max_bytes: int = BODY_BYTES_MAX

    @property
    def origin(self) -> str:
        """Scheme and authority. Messages name it, and never the query."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def header(self, name: str) -> str | None:
        """Returns the first value of a header."""
        return _find(self.headers, name)

    def json(self) -> Any:
        """Reads the body as JSON."""
        return _json.loads(self.body)


@dataclass(frozen=True)
class Response:
    """A response."""

    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the status is from 200 to 299."""
        return 200 <= self.status <= 299

    @property
    def text(self) -> str:
        """The body as text, in the charset that the response names, or UTF-8."""
        named = re.search(r"charset=\"?([\w.:-]+)", self.header("content-type") or "", re.I)
        try:
            return self.body.decode(named[1] if named else "utf-8", "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")

    def header(self, name: str) -> str | None:
        """Returns the first value of a header."""
        return _find(self.headers, name)

    def json(self) -> Any:
        """Reads the body as JSON."""
        try:
            return _json.loads(self.body)
        except (ValueError, RecursionError) as error:
            reason = f"the service sent an unexpected answer: it is not JSON: {error}"
            raise HttpError("failed", reason) from None

    def raise_for_status(self) -> Response:
        """Returns the response itself, or raises HttpError for a status outside 200 to 299."""
        if self.ok:
            return self
        kind = "auth-required" if self.status == 401 else "failed"
        if self.status in (408, 429) or self.status >= 500:
            kind = "unavailable"
        raise HttpError(kind, f"the service answered with status {self.status}", self.status)


def get(url: str, **options: Any) -> Response:
    """Sends a GET request; `request` explains the options."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> Response:
    """Sends a POST request; `request` explains the options."""
    return request("POST", url, **options)


def put(url: str, **options: Any) -> Response:
    """Sends a PUT request; `request` explains the options."""
    return request("PUT", url, **options)


def patch(url: str, **options: Any) -> Response:
    """Sends a PATCH request; `request` explains the options."""
    return request("PATCH", url, **options)


def delete(url: str, **options: Any) -> Response:
    """Sends a DELETE request; `request` explains the options."""
    return request("DELETE", url, **options)


def request(
    method: str,
    url: str,
    *,
    params: Values | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    data: bytes | str | Values | None = None,
    timeout: float = TIMEOUT_SECONDS,
    max_bytes: int = BODY_BYTES_MAX,
) -> Response:
    """Sends a request and waits for the whole response.

    Args:
        method: Such as GET.
        url: An http or https address.
        params: What is added to the query. None is left out, a list is repeated.
        headers: Headers by their names.
        json: The body, as JSON.
        data: The body: bytes, text, or a form as a dict.
        timeout: Seconds until the whole response has to be there.
        max_bytes: Longest body of the response.
    """
    body, media_type = _body(json, data)
    all_headers = list((headers or {}).items())
    if media_type and _find(all_headers, "content-type") is None:
        all_headers.append(("content-type", media_type))
    made = Request(method.upper(), _with_query(url, params), all_headers, body, timeout, max_bytes)
    _check(made)
    response = _host.active().send(made)
    if len(response.body) > max_bytes:
        raise too_large(made)
    return response


def too_large(made: Request) -> HttpError:
    """The error for a body that is longer than the request allows."""
    return HttpError("failed", f"{made.origin} sent more than {made.max_bytes} bytes")


def invalid(reason: str) -> HttpError:
    """The error for a request that cannot be sent."""
    return HttpError("failed", f"the request cannot be sent: {reason}")


def _find(headers: list[tuple[str, str]], name: str) -> str | None:
    return next((value for key, value in headers if key.lower() == name.lower()), None)


def _body(json: Any, data: Any) -> tuple[bytes, str | None]:
    if json is not None and data is not None:
        raise invalid("json and data are two bodies; pass one of them")
    if json is not None:
        return _json.dumps(json, ensure_ascii=False, allow_nan=False).encode(), "application/json"
    if isinstance(data, str):
        return data.encode(), "text/plain; charset=utf-8"
    if isinstance(data, Mapping):
        form = urlencode(_present(data), doseq=True)
        return form.encode(), "application/x-www-form-urlencoded"
    return bytes(data or b""), None


def _present(values: Values) -> dict[str, Any]:
    """Leaves out what is None, and writes booleans as JSON does."""
    return {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in values.items()
        if value is not None
    }


def _with_query(url: str, params: Values | None) -> str:
    query = urlencode(_present(params or {}), doseq=True)
    if not query:
        return url
    address, mark, fragment = url.partition("#")
    joint = "&" if "?" in address else "?"
    return f"{address}{joint}{query}{mark}{fragment}"


def _check(made: Request) -> None:
    try:
        parts = urlsplit(made.url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        raise invalid(f"{made.url[:100]!r} is no http or https address")
    if any(ord(character) <= 32 or ord(character) == 127 for character in made.url):
        raise invalid("the address contains a space or a control character; quote it")
    for name, value in made.headers:
        if not isinstance(value, str):
            raise invalid(f"the header {name} has to be text")
