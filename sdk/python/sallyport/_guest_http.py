"""Outgoing requests of a component, over `wasi:http/outgoing-handler`."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import urlsplit

from componentize_py_types import Err, Ok
from wit_world.imports import monotonic_clock, outgoing_handler, poll, streams
from wit_world.imports import wasi_http_types as types

from .http import HttpError, Request, Response, invalid, too_large

_CHUNK_BYTES = 64 * 1024
"""Most bytes of one read or write. What is in flight takes memory of the guest."""

_METHODS = {
    name: getattr(types, f"Method_{name.capitalize()}")
    for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
}

_TIMEOUTS = (
    types.ErrorCode_DnsTimeout,
    types.ErrorCode_ConnectionTimeout,
    types.ErrorCode_ConnectionReadTimeout,
    types.ErrorCode_ConnectionWriteTimeout,
    types.ErrorCode_HttpResponseTimeout,
)
_DENIALS = (types.ErrorCode_HttpRequestDenied, types.ErrorCode_DestinationIpProhibited)
_WORDS = {
    "DnsError": "its name cannot be resolved",
    "DestinationNotFound": "its name cannot be resolved",
    "ConnectionRefused": "the connection was refused",
    "ConnectionTerminated": "the connection was closed",
    "TlsCertificateError": "its certificate is not trusted",
}


class _Exchange:
    """A request that is under way, with the moment at which it has to be over."""

    def __init__(self, request: Request):
        self.request = request
        self.ends = time.monotonic() + request.timeout

    def wait(self, ready: Any) -> None:
        """Waits until something is ready or the time of the request is over."""
        left = max(0.0, self.ends - time.monotonic())
        with ready, monotonic_clock.subscribe_duration(int(left * 1e9)) as timer:
            if 0 not in poll.poll([ready, timer]):
                raise self.timeout()

    def timeout(self) -> HttpError:
        """The error for a request that takes too long."""
        text = f"{self.request.origin} did not answer within {self.request.timeout:g} s"
        return HttpError("unavailable", text)

    def unreachable(self, reason: str) -> HttpError:
        """The error for a service that cannot be reached."""
        text = f"{self.request.origin} could not be reached: {reason}"
        return HttpError("unavailable", text)

    def error(self, code: Any) -> HttpError:
        """Words an error of the host."""
        if isinstance(code, _DENIALS):
            text = f"{self.request.origin} may not be reached: the policy does not grant it"
            return HttpError("denied", text)
        if isinstance(code, _TIMEOUTS):
            return self.timeout()
        if isinstance(code, types.ErrorCode_HttpResponseBodySize):
            return too_large(self.request)
        name = type(code).__name__.partition("_")[2]
        if name.startswith("HttpRequest"):
            return invalid(_spaced(name))
        detail = getattr(code, "value", None) if name == "InternalError" else None
        return self.unreachable(detail or _WORDS.get(name) or _spaced(name))

    def stream_error(self, error: Any) -> HttpError:
        """Words an error of a stream. The cause is behind it."""
        if isinstance(error, streams.StreamError_Closed):
            return self.unreachable("the connection was closed")
        with error.value as cause:
            code = types.http_error_code(cause)
        return self.unreachable("the connection broke") if code is None else self.error(code)


def send(request: Request) -> Response:
    """Sends a request and reads the whole response."""
    exchange = _Exchange(request)
    outgoing = _outgoing(request)
    body = outgoing.body()
    try:
        answer = outgoing_handler.handle(outgoing, _options(request.timeout))
    except Err as error:
        raise exchange.error(error.value) from None
    _write(exchange, body)
    with answer:
        exchange.wait(answer.subscribe())
        response = _response(exchange, answer.get())
    with response:
        status, headers = response.status(), _headers(response)
        return Response(status, _read(exchange, response), headers)


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def _outgoing(request: Request) -> Any:
    parts = urlsplit(request.url)
    headers = [(name, value.encode()) for name, value in request.headers]
    try:
        outgoing = types.OutgoingRequest(types.Fields.from_list(headers))
    except Err as error:
        reason = _spaced(type(error.value).__name__.partition("_")[2])
        raise invalid(f"a header is refused: {reason}") from None
    make = _METHODS.get(request.method)
    https = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    steps = (
        ("method", outgoing.set_method, make() if make else types.Method_Other(request.method)),
        ("scheme", outgoing.set_scheme, types.Scheme_Https() if https else types.Scheme_Http()),
        ("host", outgoing.set_authority, parts.netloc),
        ("path", outgoing.set_path_with_query, path),
    )
    for name, set_part, value in steps:
        try:
            set_part(value)
        except Err:
            raise invalid(f"the {name} is refused") from None
    return outgoing


def _options(timeout: float) -> Any:
    """Passes the time to the host, which may ignore it: the exchange keeps its own."""
    options = types.RequestOptions()
    nanoseconds = max(0, int(timeout * 1e9))
    for set_time in (
        options.set_connect_timeout,
        options.set_first_byte_timeout,
        options.set_between_bytes_timeout,
    ):
        try:
            set_time(nanoseconds)
        except Err:
            pass
    return options


def _write(exchange: _Exchange, body: Any) -> None:
    try:
        if exchange.request.body:
            with body.write() as stream:
                _write_all(exchange, stream, exchange.request.body)
        types.OutgoingBody.finish(body, None)
    except Err as error:
        is_stream = type(error.value).__name__.startswith("StreamError")
        raise (exchange.stream_error if is_stream else exchange.error)(error.value) from None


def _write_all(exchange: _Exchange, stream: Any, rest: bytes) -> None:
    while rest:
        exchange.wait(stream.subscribe())
        room = min(stream.check_write(), _CHUNK_BYTES)
        stream.write(rest[:room])
        rest = rest[room:]
    stream.flush()
    exchange.wait(stream.subscribe())


def _response(exchange: _Exchange, answer: Any) -> Any:
    if not isinstance(answer, Ok):
        raise exchange.unreachable("no answer")
    if isinstance(answer.value, Err):
        raise exchange.error(answer.value.value)
    return answer.value.value


def _headers(response: Any) -> list[tuple[str, str]]:
    with response.headers() as fields:
        return [(name, value.decode("utf-8", "replace")) for name, value in fields.entries()]


def _read(exchange: _Exchange, response: Any) -> bytes:
    pieces: list[bytes] = []
    length = 0
    # The stream has to be dropped before its body.
    with response.consume() as body, body.stream() as stream:
        while True:
            try:
                piece = stream.read(_CHUNK_BYTES)
            except Err as error:
                if isinstance(error.value, streams.StreamError_Closed):
                    return b"".join(pieces)
                raise exchange.stream_error(error.value) from None
            if not piece:
                exchange.wait(stream.subscribe())
            length += len(piece)
            if length > exchange.request.max_bytes:
                raise too_large(exchange.request)
            pieces.append(piece)
