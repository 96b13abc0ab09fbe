//! The way out: only what is granted leaves, to the address that was checked, and what comes back
//! is bounded.

use std::{
    collections::VecDeque,
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use sallyport_contract::{BoxFuture, CallReport, Effect, HostNameResolver};
use serde_json::{Value, json};

use crate::support::{
    Home, Response, Server, Tools,
    registry::{data, told},
};

const RULE: &str = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";

/// A home in which the hostile guest requests these patterns and is granted these entries.
pub(crate) fn home(requests: &[&str], grants: &[&str], more: &str) -> Home {
    let request = |allow: &&str| format!("[[request.net]]\nallow = \"{allow}\"\nwhy = \"tests\"\n");
    let requests: String = requests.iter().map(request).collect();
    let policy = format!("[plugin.hostile]\nnet = [{}]\n{more}\n{RULE}", grants.join(", "));
    Home::new().guest("hostile", &requests).policy(policy)
}

/// A home that may fetch everything of one server.
fn granted(server: &Server, more: &str) -> Home {
    let url = server.url();
    let allow = format!("GET,POST {url}/**");
    home(&[&allow], &[&format!("{{ allow = \"{allow}\", to-private = true }}")], more)
}

/// Answers look-ups from a script, one answer after another; the last one stays.
pub(crate) struct ScriptedNames(Mutex<VecDeque<Vec<IpAddr>>>);

impl ScriptedNames {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().map(parse).collect())))
    }
}

impl HostNameResolver for ScriptedNames {
    fn resolve_host<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut answers = self.0.lock().unwrap();
            let last = answers.len() == 1;
            let answer = if last { answers.front().cloned() } else { answers.pop_front() };
            Ok(answer.unwrap_or_default())
        })
    }
}

fn to(authority: &str) -> Value {
    json!({ "authority": authority })
}

/// Nothing was asked of the server, and the call tells why.
#[track_caller]
fn check_refused(server: &Server, report: &CallReport, words: &str) {
    let text = told(report);
    assert!(text.contains(words), "{words:?} is not in {text:?}");
    assert!(server.seen().is_empty(), "a request arrived: {:?}", server.seen());
}

#[test]
fn what_is_granted_arrives() {
    let server = Server::saying("hello");
    let tools = Tools::of(&granted(&server, ""));
    let arguments = json!({
        "method": "POST", "authority": server.authority(), "path": "/a/b?c=d",
        "headers": [["x-own", "1"]], "body": "text",
    });
    let report = tools.call("hostile.fetches", &arguments);
    assert_eq!((&data(&report)["status"], &data(&report)["body"]), (&json!(200), &json!("hello")));
    let seen = server.seen();
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("POST", "/a/b?c=d"));
    assert_eq!(
        (seen[0].header("host"), seen[0].header("x-own")),
        (Some(&*server.authority()), Some("1"))
    );
    assert_eq!(
        report.effects.iter().filter_map(request).collect::<Vec<_>>(),
        [(format!("POST {}/a/b", server.url()), Some(200))]
    );
}

#[test]
fn h42_method_scheme_port_and_path_have_to_be_those_of_the_grant() {
    let server = Server::saying("hello");
    let url = server.url();
    let allow = format!("GET {url}/a/*");
    let grant = format!("{{ allow = \"{allow}\", to-private = true }}");
    let tools = Tools::of(&home(&[&allow], &[&grant], ""));
    let authority = server.authority();
    let port = server.port;
    let rows = [
        json!({ "authority": authority, "path": "/b" }),
        json!({ "authority": authority, "path": "/a/b/c" }),
        json!({ "authority": authority, "path": "/a/../b" }),
        json!({ "authority": authority, "path": "/a/%2e%2e/b" }),
        json!({ "authority": authority, "path": "/a/..%2fb" }),
        json!({ "authority": authority, "path": "/a/b", "method": "POST" }),
        json!({ "authority": authority, "path": "/a/b", "method": "get" }),
        json!({ "authority": authority, "path": "/a/b", "method": "CONNECT" }),
        json!({ "authority": authority, "path": "/a/b", "method": "TRACE" }),
        json!({ "authority": authority, "path": "/a/b", "scheme": "https" }),
        json!({ "authority": authority, "path": "/a/b", "scheme": "ws" }),
        json!({ "authority": authority, "path": "/a/b", "scheme": "file" }),
        json!({ "authority": format!("127.0.0.1:{}", port ^ 1), "path": "/a/b" }),
        json!({ "authority": "127.0.0.1", "path": "/a/b" }),
        json!({ "authority": format!("localhost:{port}"), "path": "/a/b" }),
        json!({ "authority": format!("127.0.0.2:{port}"), "path": "/a/b" }),
    ];
    for arguments in rows {
        let report = tools.call("hostile.fetches", &arguments);
        let text = told(&report);
        assert!(text.starts_with("denied") || text.starts_with("failed"), "{arguments}: {text}");
        assert!(server.seen().is_empty(), "{arguments} arrived: {:?}", server.seen());
    }
    let right = json!({ "authority": authority, "path": "/a/b" });
    assert_eq!(data(&tools.call("hostile.fetches", &right))["status"], 200);
}

/// The address is read once, and a reader that mends a path is a second one.
#[test]
fn h38_a_path_that_has_to_be_mended_is_refused() {
    let server = Server::saying("hello");
    let tools = Tools::of(&granted(&server, ""));
    for path in ["/a\\b", "/a\tb", "/a\nb"] {
        let arguments = json!({ "authority": server.authority(), "path": path });
        let report = tools.call("hostile.fetches", &arguments);
        assert_ne!(report.outcome.as_str(), "completed", "{path:?} became {:?}", server.seen());
    }
}

#[test]
fn h38_h39_urls_that_two_readers_read_differently_are_refused() {
    let server = Server::saying("hello");
    let tools = Tools::resolving(&granted(&server, ""), ScriptedNames::new(&[&["127.0.0.1"]]));
    let port = server.port;
    let rows = [
        (format!("127.0.0.1:{port}@evil.example"), "/"),
        (format!("evil.example@127.0.0.1:{port}"), "/"),
        (format!("127.0.0.1:{port}.evil.example"), "/"),
        (format!("evil.example#127.0.0.1:{port}"), "/"),
        (format!("127.0.0.1.:{port}"), "/"),
        (format!("2130706433:{port}"), "/"),
        (format!("0x7f.0.0.1:{port}"), "/"),
        (format!("0177.0.0.1:{port}"), "/"),
        (format!("127.1:{port}"), "/"),
        (format!("１２７.0.0.1:{port}"), "/"),
        (format!("127.0.0.1\\evil:{port}"), "/"),
        (format!("127.0.0.1\t:{port}"), "/"),
        (format!("127.0.0.1%00:{port}"), "/"),
        (format!("[::ffff:127.0.0.1]:{port}"), "/"),
        (format!("[::1%25lo]:{port}"), "/"),
        (format!("127.0.0.1:{}", u32::from(port) + 65_536), "/"),
        (format!("127.0.0.1:0{port}x"), "/"),
        (String::new(), "/"),
        (server.authority(), "http://evil.example/"),
        (server.authority(), "//evil.example/"),
        (server.authority(), "*"),
        (server.authority(), "/a b"),
        (server.authority(), "/\u{0}"),
        (server.authority(), "/a\r\nx-evil: 1"),
    ];
    for (authority, path) in rows {
        let report =
            tools.call("hostile.fetches", &json!({ "authority": authority, "path": path }));
        let seen = server.seen();
        let own = |request: &crate::support::server::Request| {
            request.header("host") == Some(&*server.authority())
                && request.header("x-evil").is_none()
        };
        // What does arrive is what was granted: this server, and nothing in two readings.
        assert!(seen.iter().all(own), "{authority:?} {path:?}: {seen:?}");
        let text = told(&report);
        assert!(
            path == "//evil.example/" || !text.starts_with("completed"),
            "{authority:?} {path:?}: {text}"
        );
    }
}

/// What the policy says about a URL is what becomes of it, in whatever form it is written.
#[test]
fn h76_a_url_is_explained_as_a_call_meets_it() {
    let server = Server::saying("hello");
    let port = server.port;
    let patterns =
        ["127.0.0.1", "10.0.0.1", "localhost"].map(|host| format!("GET http://{host}:{port}/**"));
    let requests: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let grants = [
        format!("{{ allow = \"{}\", to-private = true }}", patterns[0]),
        format!("\"{}\"", patterns[1]),
        format!("\"{}\"", patterns[2]),
    ];
    let grants: Vec<&str> = grants.iter().map(String::as_str).collect();
    let home = home(&requests, &grants, "");
    let tools = Tools::of(&home);
    let mut allowed = 0;
    for (authority, path) in [
        (format!("127.0.0.1:{port}"), "/a"),
        (format!("127.0.0.1:{port}"), ""),
        (format!("127.0.0.1:{port}"), "?a=http://x.example/"),
        (format!("127.0.0.1:{port}"), "/a/../b"),
        (format!("127.0.0.1:{port}"), "/a/..%2fb"),
        (format!("127.0.0.1:{port}"), "/a\\b"),
        (format!("127.0.0.1:{port}"), "//a"),
        (format!("2130706433:{port}"), "/"),
        (format!("127.1:{port}"), "/"),
        (format!("0x7f.0.0.1:{port}"), "/"),
        (format!("127.0.0.1.:{port}"), "/"),
        (format!("u@127.0.0.1:{port}"), "/"),
        (format!("[::ffff:127.0.0.1]:{port}"), "/"),
        (format!("10.0.0.1:{port}"), "/"),
        (format!("localhost:{port}"), "/"),
    ] {
        let before = server.seen().len();
        let report =
            tools.call("hostile.fetches", &json!({ "authority": authority, "path": path }));
        let request = format!("GET http://{authority}{path}");
        let ran = home.run(&[
            "policy",
            "explain",
            "hostile.fetches",
            "--net",
            &request,
            "--output",
            "json",
        ]);
        let explained = ran.ended(0).json();
        let arrived = server.seen().len() > before;
        let want = if arrived { "allow" } else { "deny" };
        assert_eq!(explained[0]["decision"], want, "{request}: {explained} {}", told(&report));
        allowed += usize::from(arrived);
    }
    assert!((3..8).contains(&allowed), "{allowed} arrived");
}

#[test]
fn h35_a_name_that_leads_to_a_private_address_is_denied_after_it_was_resolved() {
    let server = Server::saying("hello");
    let allow = format!("GET http://api.example:{}/**", server.port);
    let home = || home(&[&allow], &[&format!("\"{allow}\"")], "");
    let arguments = to(&format!("api.example:{}", server.port));
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.168.1.1",
        "0.0.0.0",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "fe80::1",
        "fd00::1",
        "2002:7f00:1::",
        "224.0.0.1",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "2606:4700::5efe:7f00:1",
        "2606:4700::200:5efe:a9fe:a9fe",
    ] {
        let tools = Tools::resolving(&home(), ScriptedNames::new(&[&[address]]));
        let report = tools.call("hostile.fetches", &arguments);
        check_refused(&server, &report, "which is not a public address");
        assert_eq!(report.outcome.as_str(), "denied");
    }
}

#[test]
fn h36_the_address_that_was_checked_is_the_one_that_is_dialled() {
    let server = Server::saying("hello");
    let allow = format!("GET http://api.example:{}/**", server.port);
    let granted = format!("{{ allow = \"{allow}\", to-private = true, range = \"127.0.0.2/32\" }}");
    let home = home(&[&allow], &[&granted], "limits = { time = \"3s\" }");
    // The granted address first, another one for whoever looks again. Nothing listens at the first.
    let resolver = ScriptedNames::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let tools = Tools::resolving(&home, resolver);
    let report = tools.call("hostile.fetches", &to(&format!("api.example:{}", server.port)));
    assert_ne!(report.outcome.as_str(), "completed");
    assert!(server.seen().is_empty(), "the second answer was dialled");
}

#[test]
fn h37_of_mixed_answers_only_the_allowed_ones_are_dialled() {
    let server = Server::saying("hello");
    let allow = format!("GET http://api.example:{}/**", server.port);
    let private = format!("{{ allow = \"{allow}\", to-private = true, range = \"127.0.0.1/32\" }}");
    let arguments = to(&format!("api.example:{}", server.port));
    let tools = Tools::resolving(
        &home(&[&allow], &[&private], ""),
        ScriptedNames::new(&[&["10.0.0.1", "127.0.0.2", "127.0.0.1"]]),
    );
    assert_eq!(data(&tools.call("hostile.fetches", &arguments))["status"], 200);
    let elsewhere = private.replace("127.0.0.1/32", "127.0.0.2/32");
    let tools = Tools::resolving(
        &home(&[&allow], &[&elsewhere], "limits = { time = \"2s\" }"),
        ScriptedNames::new(&[&["127.0.0.1", "127.0.0.2"]]),
    );
    let before = server.seen().len();
    tools.call("hostile.fetches", &arguments);
    assert_eq!(server.seen().len(), before, "the one that is not granted was dialled");
}

/// Whose headers are taken although they belong to the host.
fn taken(server: &Server, names: &[&str], place: &str) -> Vec<String> {
    let tools = Tools::of(&granted(server, ""));
    let is_taken = |name: &&&str| {
        let mut arguments =
            json!({ "method": "POST", "authority": server.authority(), "body": "x" });
        arguments[place] = json!([[name, "evil.example"]]);
        !told(&tools.call("hostile.fetches", &arguments)).starts_with("failed: header")
    };
    names.iter().filter(is_taken).map(|name| format!("{name} in {place}")).collect()
}

#[test]
fn h40_headers_that_belong_to_the_host_cannot_be_set() {
    let server = Server::saying("hello");
    let framing =
        ["host", "Host", "connection", "transfer-encoding", "content-length", "te", "trailer"];
    let hops = ["upgrade", "keep-alive", "expect", "http2-settings", "via", "proxy-connection"];
    let proxies = ["proxy-authorization", "proxy-authenticate", "forwarded", "x-real-ip"];
    let claims = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port"];
    let names = [&framing[..], &hops, &proxies, &claims].concat();
    let all = ["headers", "trailers"].map(|place| taken(&server, &names, place)).concat();
    assert!(all.is_empty(), "{all:?}");
}

#[test]
fn h40_a_header_cannot_hold_a_second_one() {
    let server = Server::saying("hello");
    let tools = Tools::of(&granted(&server, ""));
    let rows = [
        ("x-a", "1\r\nx-evil: 1"),
        ("x-a", "a\nb"),
        ("x-a\r\nx-evil", "1"),
        ("x a", "1"),
        ("", "1"),
    ];
    for (name, value) in rows {
        let arguments = json!({ "authority": server.authority(), "headers": [[name, value]] });
        let text = told(&tools.call("hostile.fetches", &arguments));
        assert!(text.starts_with("failed: header"), "{name:?} {value:?}: {text}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn h41_a_redirect_is_an_answer_and_is_not_followed() {
    let other = Server::saying("secret");
    let target = format!("{}/x", other.url());
    let server = Server::start(move |_| Response::with(302, &[("location", &target)], ""));
    let tools = Tools::of(&granted(&server, ""));
    let report = tools.call("hostile.fetches", &to(&server.authority()));
    assert_eq!(data(&report)["status"], 302);
    assert!(other.seen().is_empty(), "the redirect was followed");
    let report = tools.call("hostile.fetches", &to(&other.authority()));
    check_refused(&other, &report, "denied");
}

#[test]
fn h43_bodies_heads_and_waits_are_bounded() {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
    let piece = vec![b'x'; 64 << 10];
    let floods: [(&str, Response, &str); 4] = [
        ("endless headers", Response::Flood(b"x-a: b\r\n".to_vec()), "failed"),
        ("one endless header", Response::Flood(piece.clone()), "failed"),
        ("nothing", Response::Silence, "timed-out"),
        (
            "a long body",
            Response::Bytes([format!("{head}\r\n").into_bytes(), vec![b'x'; 2 << 20]].concat()),
            "limit",
        ),
    ];
    for (what, answer, words) in floods {
        let server = Server::start(move |_| answer.clone());
        let tools =
            Tools::of(&granted(&server, "limits = { time = \"3s\", http-body = \"1MiB\" }"));
        let text = told(&tools.call("hostile.fetches", &to(&server.authority())));
        assert!(text.contains(words), "{what}: {text}");
    }
    let server = Server::start(|_| Response::Silence);
    let tools = Tools::of(&granted(&server, "limits = { time = \"1s\" }"));
    for (timeout, word) in [(0, "failed"), (1, "failed"), (u64::MAX, "timed-out")] {
        let arguments = json!({ "authority": server.authority(), "timeout": timeout });
        let report = tools.call("hostile.fetches", &arguments);
        assert_eq!(report.outcome.as_str(), word, "{timeout}: {report:?}");
    }
}

#[test]
fn requests_are_counted() {
    let server = Server::saying("hello");
    let tools = Tools::of(&granted(&server, "limits = { http-requests = 5 }"));
    let many = |n| json!({ "authority": server.authority(), "n": n });
    assert_eq!(data(&tools.call("hostile.fetches_many", &many(5))), 5);
    let text = told(&tools.call("hostile.fetches_many", &many(100)));
    assert!(text.contains("5 were answered") && text.contains("limit of 5 requests"), "{text}");
    assert_eq!(server.seen().len(), 10);
}

#[test]
fn a_request_that_left_is_on_record_whatever_was_refused_before() {
    let server = Server::saying("hello");
    let tools = Tools::of(&granted(&server, ""));
    let arguments = json!({ "authority": server.authority(), "n": 1500 });
    let report = tools.call("hostile.floods_then_fetches", &arguments);
    assert_eq!(server.seen().len(), 1);
    let last = (format!("GET {}/last", server.url()), Some(200));
    let on_record = report.effects.iter().filter_map(request).any(|seen| seen == last);
    assert!(on_record, "{} effects without it", report.effects.len());
}

#[test]
fn h45_sockets_names_and_proxies_are_not_there() {
    let server = Server::saying("hello");
    let proxy = Server::saying("proxied");
    let mut home = granted(&server, "");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
        home = home.env(name, proxy.url());
    }
    let tools = Tools::of(&home);
    for (tool, arguments) in [
        ("hostile.opens_socket", json!({ "port": server.port })),
        ("hostile.listens", json!({ "port": 0 })),
        ("hostile.sends_datagram", json!({ "port": 0 })),
        ("hostile.resolves_name", json!({ "name": "localhost" })),
        ("hostile.resolves_name", json!({ "name": "127.0.0.1" })),
    ] {
        let text = told(&tools.call(tool, &arguments));
        assert!(text.starts_with("failed: "), "{tool} {arguments}: {text}");
    }
    assert!(server.seen().is_empty());
    let arguments = to(&server.authority()).to_string();
    let ran = home.run(&["call", "hostile.fetches", &arguments]).ended(0);
    assert_eq!(ran.json()["body"], "hello");
    assert!(proxy.seen().is_empty(), "a proxy of the environment was used");
}

#[test]
fn h48_environment_arguments_and_settings_are_those_that_were_granted() {
    let request = "[[request.env]]\nname = \"LANG\"\nwhy = \"x\"\n[[request.env]]\nname = \"TZ\"\nwhy = \"x\"\n";
    let home = Home::new()
        .guest("hostile", &format!("{}{request}", crate::limits::NET))
        .env("LANG", "fr_FR")
        .env("TZ", "Asia/Tokyo")
        .env("SECRET", "the-secret")
        .env("OPENAI_API_KEY", "sk-the-secret");
    let empty = json!({ "env": {}, "args": [], "folder": null, "folders": [] });
    assert_eq!(home.run(&["call", "hostile.reads_environment"]).ended(0).json(), empty);
    let home = home.policy("[plugin.hostile]\nenv = [\"LANG\", \"SECRET\"]\n");
    let granted = json!({ "env": { "LANG": "fr_FR" }, "args": [], "folder": null, "folders": [] });
    assert_eq!(home.run(&["call", "hostile.reads_environment"]).ended(0).json(), granted);
    home.run(&["policy", "check"])
        .ended(0)
        .answers(&["SECRET, which the manifest does not request"]);
}

/// A request that is on record, and the status that came back.
fn request(effect: &Effect) -> Option<(String, Option<u16>)> {
    match effect {
        Effect::Requested { what, status, .. } => Some((what.clone(), *status)),
        _ => None,
    }
}
