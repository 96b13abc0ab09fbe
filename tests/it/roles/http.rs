//! Incoming HTTP: a request goes in, a response comes out, and whatever goes wrong is a 502.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use sallyport_contract::CallReport;
use sallyport_sandbox::roles::{HttpBodyError, ServedRequest};

use super::{GRANTS, ROLES, admitted, listener::Tray, used, warden};
use crate::support::{Guarded, Scripted, registry::told};

/// What came back of a request.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Result<String, HttpBodyError>,
    report: CallReport,
}

fn request(path: &str, body: &str) -> Request<Full<Bytes>> {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    Request::post(format!("http://hooks.local{path}")).body(body).unwrap()
}

fn begin(player: &Guarded, tray: &Arc<Tray>, request: Request<Full<Bytes>>) -> ServedRequest {
    let inbox = Some(Arc::clone(tray) as _);
    let call = admitted(player, "http");
    player.wait(async { player.plugin.serve_request(call, inbox, None, request) })
}

fn serve(player: &Guarded, tray: &Arc<Tray>, request: Request<Full<Bytes>>) -> Answer {
    let ServedRequest { response, report } = begin(player, tray, request);
    let (head, body) = player.wait(response).into_parts();
    let body = player.wait(body.collect());
    let body = body.map(|body| String::from_utf8(body.to_bytes().to_vec()).unwrap());
    Answer { status: head.status, headers: head.headers, body, report: player.wait(report) }
}

fn get(player: &Guarded, path: &str) -> Answer {
    serve(player, &Arc::default(), request(path, ""))
}

#[test]
fn a_request_is_told_as_the_host_gives_it() {
    let mut request = request("/told?", "");
    *request.uri_mut() = "http://hooks.local/told".parse().unwrap();
    for (name, value) in [
        ("host", "evil.example"),
        ("connection", "close"),
        ("upgrade", "h2c"),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-own", "yes"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = serve(&Guarded::by(warden("")), &Arc::default(), request);
    let told = answer.body.unwrap();
    assert!(told.contains("Scheme::Http)") && told.contains("hooks.local"), "{told}");
    assert!(told.contains("x-own=yes"), "{told}");
    for hidden in ["evil", "connection", "upgrade", "10.0.0.1"] {
        assert!(!told.contains(hidden), "{told}");
    }
    assert_eq!(answer.headers["content-type"], "text/plain");
    assert_eq!(answer.report.outcome.as_str(), "completed");
}

#[test]
fn bodies_pass_both_ways() {
    let (player, tray) = (Guarded::by(warden("")), Arc::<Tray>::default());
    let text = "x".repeat(3 << 20);
    let echo = serve(&player, &tray, request("/echo", &text));
    assert!(echo.body.unwrap() == text, "it comes back as it went in");
    assert_eq!(get(&player, "/large").body.unwrap().len(), 3 << 20);
    let empty = get(&player, "/empty");
    assert_eq!((empty.status, empty.body), (StatusCode::NO_CONTENT, Ok(String::new())));
    assert_eq!(get(&player, "/other").status, StatusCode::NOT_FOUND);
    let submitted = serve(&player, &tray, request("/submit", "hello"));
    assert_eq!(submitted.body.unwrap(), "taken");
    assert_eq!(used(&submitted.report), ["input (5 bytes)"]);
    assert_eq!(tray.inputs.lock().unwrap()[0].0, "hello");
}

#[test]
fn h40_framing_and_hops_are_the_hosts() {
    let odd = get(&Guarded::by(warden("")), "/odd");
    assert_eq!(odd.body.unwrap(), "four");
    assert_eq!(odd.headers["x-taken"], "0", "the guest is told at once");
    for name in ["connection", "transfer-encoding", "upgrade", "content-length"] {
        assert!(!odd.headers.contains_key(name), "{name}");
    }
}

#[test]
fn who_gives_no_answer_is_a_bad_gateway() {
    let player = Guarded::by(warden(super::LIMITS));
    for (path, want) in [
        ("/nothing", "completed"),
        ("/error", "completed"),
        ("/informational", "completed"),
        ("/traps", "failed: the plugin trapped"),
        ("/traps_after_head", "failed: the plugin trapped"),
        ("/loops", "timed-out"),
    ] {
        let answer = get(&player, path);
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{path}");
        assert_eq!(answer.body.unwrap(), "the plugin gave no answer\n");
        let told = told(&answer.report);
        assert!(answer.report.outcome.as_str() == want || told.starts_with(want), "{path}: {told}");
    }
    assert_eq!(get(&player, "/told").status, StatusCode::OK);
}

#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    let player = Guarded::by(warden(super::LIMITS));
    for path in ["/traps_in_body", "/loops_in_body", "/never_finishes"] {
        let answer = get(&player, path);
        assert_eq!(answer.body, Err(HttpBodyError::Unfinished), "{path}");
    }
}

#[test]
fn a_body_has_a_limit_both_ways() {
    let player = Guarded::by(warden("limits = { http-body = \"64KiB\" }"));
    let long = "x".repeat((64 << 10) + 1);
    let echo = serve(&player, &Arc::default(), request("/echo", &long));
    assert!(echo.body.unwrap().contains("broken"), "the guest sees that it is not all");
    let large = get(&player, "/large");
    assert_eq!(large.body, Err(HttpBodyError::TooLong(64 << 10)));
    assert!(told(&large.report).contains("limits.http-body"), "{:?}", large.report);
    let fits = serve(&player, &Arc::default(), request("/echo", &long[1..]));
    assert_eq!(fits.body.unwrap().len(), 64 << 10);
}

#[test]
fn a_guest_may_go_on_after_its_answer() {
    let (player, tray) = (Guarded::by(warden("")), Arc::<Tray>::default());
    let answer = serve(&player, &tray, request("/goes_on", ""));
    assert_eq!(answer.body.unwrap(), "done");
    assert_eq!(tray.inputs.lock().unwrap()[0].0, "after the answer");
}

#[test]
fn who_goes_away_ends_the_run() {
    let player = Guarded::by(warden("limits = { time = \"1h\" }"));
    let ServedRequest { response, report } =
        begin(&player, &Arc::default(), request("/loops_in_body", ""));
    let response = player.wait(response);
    assert_eq!(response.status(), StatusCode::OK);
    drop(response);
    assert_eq!(player.wait(report).outcome.as_str(), "cancelled");
}

#[test]
fn what_was_done_before_somebody_went_away_is_on_record() {
    let player = Guarded::by(warden("limits = { time = \"1h\" }"));
    let tray = Arc::<Tray>::default();
    let ServedRequest { response, report } =
        begin(&player, &tray, request("/submits_and_loops", ""));
    let submitted = async {
        while tray.inputs.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    player.wait(async { tokio::time::timeout(Duration::from_secs(20), submitted).await.unwrap() });
    drop(response);
    let report = player.wait(report);
    assert_eq!((report.outcome.as_str(), used(&report)), ("cancelled", vec!["input (16 bytes)"]));
}

/// In an instance that lives on, what belongs to a request ends with it.
#[test]
fn what_is_kept_of_one_request_is_nothing_to_the_next() {
    let manifest = format!("instance = \"session\"\n{ROLES}");
    let player = Guarded::by(Scripted::new("player", &manifest, GRANTS));
    for _ in 0..2 {
        assert_eq!(get(&player, "/keeps").status, StatusCode::BAD_GATEWAY);
        assert_eq!(get(&player, "/keeps_body").body, Err(HttpBodyError::Unfinished));
        let released = get(&player, "/releases");
        assert_eq!(released.body.unwrap(), "of its own");
        assert_eq!(released.report.outcome.as_str(), "completed");
    }
    assert_eq!(player.plugin.instances().len(), 1);
}

#[test]
fn no_secret_is_answered() {
    let secret = "hunter2-hunter2-hunter2";
    let player = Guarded::by(warden("").secret("key", Ok(secret)));
    let text = format!("{}{secret}", "x".repeat(4090));
    let echo = serve(&player, &Arc::default(), request("/echo", &text));
    let body = echo.body.unwrap();
    assert!(!body.contains("hunter2") && body.len() > 4090, "also where it lies across two pieces");
}
