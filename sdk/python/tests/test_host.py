"""What plugins ask of their host, with the stand-in."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
import sallyport
from sallyport import http, log, notify, progress, secrets, settings, state
from sallyport.http import HttpError
from sallyport.state import ATTEMPTS_MAX, Conflict
from sallyport.testing import FakeHost, Response


@pytest.fixture(autouse=True)
def _empty_host():
    with FakeHost():
        yield


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda: state.get("a"), "denied"),
        (lambda: state.set("a", 1), "denied"),
        (lambda: state.delete("a"), "denied"),
        (lambda: state.keys(), "denied"),
        (lambda: secrets.get("a"), "denied"),
        (lambda: notify.send("a"), "denied"),
        (lambda: http.get("https://a.example/?token=1"), "denied"),
        (lambda: settings.get("a"), "unavailable"),
    ],
)
def test_nothing_is_granted_that_a_test_does_not_give(ask, kind):
    with pytest.raises(sallyport.ToolError) as raised:
        ask()
    assert raised.value.kind == kind
    assert "token" not in raised.value.message


def test_settings_are_read_with_and_without_default():
    with FakeHost(settings={"base": "EUR", "none": None, "list": [1]}):
        assert settings.get("base") == "EUR"
        assert settings.get("list") == [1]
        assert settings.get("absent", 3) == 3
        assert settings.get("none", 4) == 4
        assert settings.all() == {"base": "EUR", "none": None, "list": [1]}
        with pytest.raises(sallyport.MissingSetting, match="the setting 'absent' is not given"):
            settings.get("absent")


def test_state_keeps_json():
    with FakeHost(state={"old": {"a": 1}}) as host:
        state.set("new", ["x"])
        state.set("gone", 1, expires_in=timedelta(0))
        assert (state.get("old"), state.get("new"), state.get("none", 7)) == ({"a": 1}, ["x"], 7)
        assert state.update("count", lambda count: count + 1, default=0) == 1
        assert state.keys() == ["count", "new", "old"]
        assert state.keys("n") == ["new"]
        assert (state.delete("new"), state.delete("new")) == (True, False)
        assert host.state == {"old": {"a": 1}, "count": 1}


def test_keys_come_from_all_pages():
    keys = [f"k{number:04}" for number in range(700)]
    with FakeHost(state=dict.fromkeys(keys, 0)):
        assert state.keys("k") == keys


def test_what_cannot_be_stored_says_why():
    with FakeHost(state={}) as host:
        for key, value, reason in (
            ("a", float("nan"), "the value of 'a' cannot be stored: the result: nan"),
            ("a", b"x", "bytes is not JSON"),
            ("", 1, "a key has 1 to 256 bytes"),
            ("ä" * 129, 1, "a key has 1 to 256 bytes"),
        ):
            with pytest.raises(sallyport.Failed, match=reason):
                state.set(key, value)
        state.compare_and_set("raw", None, b"\xff")
        with pytest.raises(sallyport.Failed, match="the value of 'raw' is not JSON"):
            state.get("raw")
        assert host.state_entry("a") is None


def test_an_update_tries_again_until_nobody_was_faster():
    with FakeHost(state={}):
        rivals = [5, 7]

        def add(total):
            if rivals:
                state.set("sum", rivals.pop())
            return (total or 0) + 1

        assert state.update("sum", add) == 6

        def flood(_total):
            state.set("sum", 0)
            tries.append(1)

        tries: list[int] = []
        with pytest.raises(Conflict):
            state.update("sum", flood)
        assert len(tries) == ATTEMPTS_MAX


def test_messages_progress_and_log_reach_the_host():
    with FakeHost(notify=True, secrets={"key": "s3"}) as host:
        notify.send("Done.", speech="All done.", audience="user")
        progress.report(0.5, "half")
        log.warn("odd \ud800")
        log.debug(3)
        assert secrets.get("key") == "s3"
    assert host.notices == [("Done.", "All done.", "user")]
    assert host.progressed == [(0.5, "half")]
    assert host.logged == [("warn", "odd ?"), ("debug", "3")]
    with pytest.raises(ValueError, match="audience is conversation or user"):
        notify.send("a", audience="all")


def test_logging_of_the_standard_library_reaches_the_host():
    logger = logging.getLogger("mine")
    logger.addHandler(log.LogHandler())
    logger.setLevel(logging.DEBUG)
    with FakeHost() as host:
        for level in ("debug", "info", "warning", "critical"):
            getattr(logger, level)("a %s", level)
    assert [level for level, _ in host.logged] == ["debug", "info", "warn", "error"]


@pytest.mark.parametrize(
    ("options", "url", "headers", "body"),
    [
        ({}, "https://a.example/x", [], b""),
        ({"params": {"q": "a b", "n": 1}}, "https://a.example/x?q=a+b&n=1", [], b""),
        (
            {"params": {"l": [1, 2], "none": None, "yes": True}},
            "https://a.example/x?l=1&l=2&yes=true",
            [],
            b"",
        ),
        ({"json": {"ä": 1}}, None, [("content-type", "application/json")], '{"ä": 1}'.encode()),
        ({"json": 0}, None, [("content-type", "application/json")], b"0"),
        (
            {"json": [], "headers": {"Content-Type": "text/x"}},
            None,
            [("Content-Type", "text/x")],
            b"[]",
        ),
        ({"data": "ä"}, None, [("content-type", "text/plain; charset=utf-8")], "ä".encode()),
        ({"data": b"\0"}, None, [], b"\0"),
        (
            {"data": {"a": "b c"}},
            None,
            [("content-type", "application/x-www-form-urlencoded")],
            b"a=b+c",
        ),
    ],
)
def test_a_request_is_made_of_its_options(options, url, headers, body):
    with FakeHost(http=lambda _request: Response(200)) as host:
        http.post("https://a.example/x", **options)
    (request,) = host.requests
    assert request.method == "POST"
    assert request.url == (url or "https://a.example/x")
    assert (request.headers, request.body) == (headers, body)


def test_a_query_is_added_before_the_fragment():
    with FakeHost(http=lambda request: Response(200, request.url.encode())):
        assert http.get("http://a/?x=1#top", params={"y": 2}).text == "http://a/?x=1&y=2#top"


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("ftp://a", {}, "'ftp://a' is no http or https address"),
        ("a.example", {}, "is no http or https address"),
        ("http://", {}, "is no http or https address"),
        ("http://[::1", {}, "is no http or https address"),
        ("http://a/b c", {}, "a space or a control character; quote it"),
        ("http://a/\r\nx", {}, "a space or a control character"),
        ("http://a", {"json": 1, "data": b""}, "json and data are two bodies"),
        ("http://a", {"headers": {"x": 1}}, "the header x has to be text"),
    ],
)
def test_a_request_that_cannot_be_sent_says_why(url, options, reason):
    with FakeHost(http=lambda _request: Response(200)) as host, pytest.raises(HttpError) as raised:
        http.get(url, **options)
    assert reason in raised.value.message
    assert host.requests == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [(301, "failed"), (401, "auth-required"), (404, "failed"), (408, "unavailable"),
     (429, "unavailable"), (500, "unavailable")],
)
def test_every_status_has_its_kind(status, kind):
    with pytest.raises(HttpError) as raised:
        Response(status).raise_for_status()
    assert (raised.value.kind, raised.value.status) == (kind, status)
    assert str(status) in raised.value.message


def test_a_response_is_read():
    response = Response(204, "ä".encode("latin-1"), [("Content-Type", "a/b; charset=ISO-8859-1")])
    assert (response.ok, response.text, response.header("content-type")[:3]) == (True, "ä", "a/b")
    assert response.raise_for_status() is response
    assert Response(200, b"\xff", [("content-type", "a; charset=none")]).text == "\ufffd"
    assert Response(200, b'{"a": 1}').json() == {"a": 1}
    for body in (b"<html>", b"", b"\xff", b"[" * 100_000):
        with pytest.raises(HttpError, match="it is not JSON"):
            Response(200, body).json()


def test_a_response_that_is_too_long_is_refused():
    with FakeHost(http=lambda _request: Response(200, b"x" * 11)):
        with pytest.raises(HttpError, match="http://a sent more than 10 bytes"):
            http.get("http://a/?secret", max_bytes=10)
