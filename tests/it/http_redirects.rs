//! Redirects that the host follows: each of them is a request like any other.

use std::sync::{Arc, OnceLock};

use sallyport_contract::{CallReport, Effect};
use serde_json::{Value, json};

use crate::{
    network::ScriptedNames,
    support::{
        Guarded, Response, Scripted, Server,
        registry::{data, told},
        warden::{entry, hostile, policy, requests},
    },
};

fn redirect(status: u16, location: &str) -> Response {
    Response::with(status, &[("location", location)], "moved")
}

fn follows(hops: u32) -> String {
    format!("limits = {{ http-redirects = {hops} }}")
}

fn to(server: &Server, path: &str) -> Value {
    json!({ "authority": server.authority(), "path": path })
}

/// The requests that are on record.
fn requested(report: &CallReport) -> Vec<String> {
    let effects = report.effects.iter().filter_map(|effect| match effect {
        Effect::Requested { what, status, .. } => Some(format!("{what} {status:?}")),
        _ => None,
    });
    effects.collect()
}

/// A server whose paths count down: `/3` leads to `/2` and so on.
fn countdown(status: u16) -> Server {
    Server::start(move |request| match request.target.trim_start_matches('/').parse::<u32>() {
        Ok(0) | Err(_) => Response::ok("arrived"),
        Ok(n) => redirect(status, &format!("/{}", n - 1)),
    })
}

#[test]
fn as_many_redirects_are_followed_as_the_policy_says() {
    let server = countdown(302);
    let tools = Guarded::by(hostile(&server, &follows(3)));
    let report = tools.call("fetches", &to(&server, "/3"));
    assert_eq!(
        (&data(&report)["status"], &data(&report)["body"]),
        (&json!(200), &json!("arrived"))
    );
    let paths: Vec<String> = server.seen().into_iter().map(|request| request.target).collect();
    assert_eq!(paths, ["/3", "/2", "/1", "/0"]);
    let what = |n: u32, status: u32| format!("GET {}/{n} Some({status})", server.url());
    assert_eq!(requested(&report), [what(3, 302), what(2, 302), what(1, 302), what(0, 200)]);
    assert_eq!(tools.warden.asked().len(), 4, "each of them is agreed to");
    let report = tools.call("fetches", &to(&server, "/4"));
    assert!(told(&report).contains("LoopDetected"), "{}", told(&report));
    let limit = "3 redirects of one request (limits.http-redirects)";
    assert!(told(&report).contains(limit), "{}", told(&report));
    assert_eq!(server.seen().len(), 8, "the fifth request never left");
}

#[test]
fn h41_a_loop_ends_at_the_limit() {
    let server = Server::start(|_| redirect(301, "/"));
    let tools = Guarded::by(hostile(&server, &follows(20)));
    let report = tools.call("fetches", &to(&server, "/"));
    assert!(told(&report).contains("20 redirects of one request"), "{}", told(&report));
    assert_eq!(server.seen().len(), 21);
    // Redirects are requests, and those are counted too.
    let tools =
        Guarded::by(hostile(&server, "limits = { http-redirects = 20, http-requests = 5 }"));
    let report = tools.call("fetches", &to(&server, "/"));
    assert!(told(&report).contains("5 requests per call"), "{}", told(&report));
    assert_eq!(server.seen().len(), 26);
}

#[test]
fn only_what_can_be_sent_again_is_followed() {
    let body = json!("the body");
    for (method, body, status, want) in [
        ("GET", Value::Null, 301, "GET 200"),
        ("GET", Value::Null, 302, "GET 200"),
        ("GET", Value::Null, 303, "GET 200"),
        ("GET", Value::Null, 307, "GET 200"),
        ("GET", Value::Null, 308, "GET 200"),
        ("HEAD", Value::Null, 302, "HEAD 200"),
        ("HEAD", Value::Null, 303, "HEAD 200"),
        ("POST", body.clone(), 303, "GET 200"),
        ("POST", body.clone(), 301, "POST 301"),
        ("POST", body.clone(), 302, "POST 302"),
        ("POST", body.clone(), 307, "POST 307"),
        ("POST", body, 308, "POST 308"),
        ("GET", json!("the body"), 302, "GET 302"),
        ("GET", Value::Null, 300, "GET 300"),
        ("GET", Value::Null, 304, "GET 304"),
    ] {
        let server = countdown(status);
        let tools = Guarded::by(hostile(&server, &follows(5)));
        let mut arguments = to(&server, "/1");
        arguments["method"] = json!(method);
        let mut headers = vec![["content-type", "text/x"], ["x-own", "1"]];
        let length = body.as_str().map(|text| text.len().to_string());
        headers.extend(length.as_deref().map(|length| ["content-length", length]));
        arguments["headers"] = json!(headers);
        arguments["body"] = body;
        let report = tools.call("fetches", &arguments);
        let last = server.seen().pop().unwrap();
        assert_eq!(
            format!("{} {}", last.method, data(&report)["status"]),
            want,
            "{method} {status}"
        );
        assert_eq!(last.header("x-own"), Some("1"));
        if server.seen().len() == 2 {
            assert_eq!((last.body.as_str(), last.header("content-type")), ("", None));
        }
    }
}

#[test]
fn a_redirect_without_a_place_is_an_answer() {
    let server = Server::start(|_| Response::with(302, &[], "nowhere"));
    let tools = Guarded::by(hostile(&server, &follows(5)));
    assert_eq!(data(&tools.call("fetches", &to(&server, "/")))["status"], 302);
}

#[test]
fn h41_every_hop_needs_a_grant_of_its_own() {
    let other = Server::saying("secret");
    for location in [
        format!("{}/x", other.url()),
        format!("//{}/x", other.authority()),
        format!("http://user@{}/", other.authority()),
        "http://169.254.169.254/latest/meta-data/".into(),
        "http://2852039166/".into(),
        "http://[::ffff:169.254.169.254]/".into(),
        "file:///etc/passwd".into(),
        "javascript:1".into(),
        "\\\\evil.example\\x".into(),
    ] {
        let place = location.clone();
        let server = Server::start(move |_| redirect(302, &place));
        let report = Guarded::by(hostile(&server, &follows(5))).call("fetches", &to(&server, "/"));
        assert_eq!(report.outcome.as_str(), "denied", "{location}: {}", told(&report));
        assert_eq!(server.seen().len(), 1, "{location}");
    }
    assert!(other.seen().is_empty(), "{:?}", other.seen());
}

#[test]
fn h41_the_name_that_a_redirect_leads_to_is_resolved_and_checked() {
    let server = Server::start(|_| redirect(302, "http://inside.example/x"));
    let allow = "GET http://inside.example/**";
    let request = requests(&[&format!("GET {}/**", server.url()), allow]);
    let entries = [entry(&server, ""), format!("\"{allow}\"")];
    let warden = Scripted::new("hostile", &request, &policy(&entries, &follows(5)));
    let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["169.254.169.254"]]));
    let report = tools.call("fetches", &to(&server, "/"));
    assert!(told(&report).contains("169.254.169.254, which is not a public address"), "{report:?}");
}

#[test]
fn h67_a_grant_that_is_revoked_between_two_hops_ends_the_chain() {
    let warden: Arc<OnceLock<Arc<Scripted>>> = Arc::default();
    let known = Arc::clone(&warden);
    let server = Server::start(move |_| {
        known.get().unwrap().change(&policy(&[], &follows(5)));
        redirect(302, "/next")
    });
    let tools = Guarded::by(hostile(&server, &follows(5)));
    assert!(warden.set(Arc::clone(&tools.warden)).is_ok());
    let report = tools.call("fetches", &to(&server, "/"));
    assert_eq!(report.outcome.as_str(), "denied", "{}", told(&report));
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn h41_credentials_stay_with_their_origin() {
    let other = Server::saying("hello");
    let place = format!("{}/x", other.url());
    let server = Server::start(move |request| match request.target.as_str() {
        "/here" => redirect(302, "/there"),
        _ => redirect(302, &place),
    });
    let patterns = [&server, &other].map(|server| format!("GET {}/**", server.url()));
    let secret = "[[request.secrets]]\nname = \"token\"\nwhy = \"tests\"\n";
    let request = requests(&[&patterns[0], &patterns[1]]) + secret;
    let table = format!(
        "{}\nsecrets = [{{ name = \"token\", to = \"{}\", header = \"x-token\" }}]\n[secret.token]\nenv = \"T\"\n",
        follows(5),
        server.url(),
    );
    let entries = [entry(&server, ""), entry(&other, "")];
    let warden = Scripted::new("hostile", &request, &policy(&entries, &table))
        .secret("token", Ok("token-4711"));
    let mut arguments = to(&server, "/here");
    arguments["headers"] = json!([
        ["authorization", "Bearer own"],
        ["cookie", "a=b"],
        ["x-copy", "token-4711"],
        ["x-own", "1"],
    ]);
    let report = Guarded::by(warden).call("fetches", &arguments);
    assert_eq!(data(&report)["status"], 200, "{}", told(&report));
    let carried = |request: &crate::support::server::Request| {
        ["authorization", "cookie", "x-copy", "x-token", "x-own"]
            .map(|name| request.header(name).is_some())
    };
    for request in server.seen() {
        assert_eq!(carried(&request), [true; 5], "{request:?}");
    }
    assert_eq!(carried(&other.seen()[0]), [false, false, false, false, true], "{:?}", other.seen());
}

/// A server that is granted sends the guest's request on to the origin of a secret, with a path of
/// the server's own choice: what is asked there is asked without the secret.
#[test]
fn a_redirect_from_another_origin_gets_no_secret_of_the_place_that_it_leads_to() {
    let own = Server::start(|request| match request.target.as_str() {
        "/within" => redirect(302, "/there"),
        _ => Response::ok("hello"),
    });
    let place = format!("{}/delete-all", own.url());
    let other = Server::start(move |_| redirect(302, &place));
    let patterns = [&own, &other].map(|server| format!("GET {}/**", server.url()));
    let secret = "[[request.secrets]]\nname = \"token\"\nwhy = \"tests\"\n";
    let request = requests(&[&patterns[0], &patterns[1]]) + secret;
    let table = format!(
        "{}\nsecrets = [{{ name = \"token\", to = \"{}\", header = \"x-token\" }}]\n[secret.token]\nenv = \"T\"\n",
        follows(5),
        own.url(),
    );
    let entries = [entry(&own, ""), entry(&other, "")];
    let warden = Scripted::new("hostile", &request, &policy(&entries, &table))
        .secret("token", Ok("token-4711"));
    let tools = Guarded::by(warden);
    for (server, path) in [(&other, "/"), (&own, "/within")] {
        let report = tools.call("fetches", &to(server, path));
        assert_eq!(data(&report)["status"], 200, "{}", told(&report));
    }
    let carried: Vec<(String, bool)> = own
        .seen()
        .iter()
        .map(|request| (request.target.clone(), request.header("x-token").is_some()))
        .collect();
    let want = [("/delete-all", false), ("/within", true), ("/there", true)];
    assert_eq!(carried, want.map(|(path, is_carried)| (path.to_owned(), is_carried)));
}

#[test]
fn h46_a_redirect_cannot_carry_a_secret_away() {
    let other = Server::saying("hello");
    let place = format!("{}/?stolen=token-4711", other.url());
    let server = Server::start(move |_| redirect(302, &place));
    let patterns = [&server, &other].map(|server| format!("GET {}/**", server.url()));
    let request = requests(&[&patterns[0], &patterns[1]]);
    let entries = [entry(&server, ""), entry(&other, "")];
    let warden = Scripted::new("hostile", &request, &policy(&entries, &follows(5)))
        .secret("token", Ok("token-4711"));
    let report = Guarded::by(warden).call("fetches", &to(&server, "/"));
    assert!(told(&report).contains("would carry the secret token"), "{}", told(&report));
    assert!(other.seen().is_empty());
}

/// Nothing that was asked for over TLS is asked for without it.
#[test]
fn h41_a_redirect_does_not_lead_from_https_down_to_http() {
    let plain = Server::saying("hello");
    let authority = crate::tls::authority();
    let port = crate::tls::serve(
        crate::tls::certificate(&authority, "localhost", 2100),
        &format!("HTTP/1.1 302 Found\r\nlocation: {}/x\r\ncontent-length: 0\r\n\r\n", plain.url()),
    );
    let allows = [format!("GET https://localhost:{port}/**"), format!("GET {}/**", plain.url())];
    let grants =
        allows.each_ref().map(|allow| format!("{{ allow = \"{allow}\", to-private = true }}"));
    let home =
        crate::network::home(&[&allows[0], &allows[1]], &[&grants[0], &grants[1]], &follows(5));
    let home = crate::tls::trusting(home, &authority);
    let arguments = json!({ "scheme": "https", "authority": format!("localhost:{port}") });
    let (told, _) = home.call("hostile.fetches", &arguments);
    assert!(told.to_string().contains("a redirect leads from https down to http"), "{told}");
    assert!(plain.seen().is_empty());
}
