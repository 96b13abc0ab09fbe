//! Properties of the text of any URL: its explanation matches its treatment.

use http::Uri;
use proptest::prelude::*;
use sallyport_contract::{Decision, ToolCallContext};
use serde_json::{Map, json};

use super::{GREEDY, manifest, policy, question_about, tool};
use crate::{Grant, rebuild_url};

const POLICY: &str = "[plugin.weather]\nnet = [
    'GET,POST https://api.example.com/**',
    'GET https://*.example.com/a/*',
    { allow = 'GET http://127.0.0.1:8080/**', to-private = true },
    'GET http://localhost:8080/**',
    'GET https://[::1]/**',
    { deny = 'GET https://api.example.com/never/**' },
]";

/// Texts in which two parsers could find different hosts or paths.
fn url() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec!["https", "http", "HTTP", "ftp", ""]);
    let mark = prop::sample::select(vec!["://", "://", "://", ":", ":/", ":\\\\", "://\t"]);
    let host = prop::sample::select(vec![
        "api.example.com",
        "API.example.com",
        "api.example.com.",
        "x.example.com",
        "api%2eexample.com",
        "127.0.0.1",
        "2130706433",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "localhost",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::1%25lo]",
        "user@api.example.com",
        "api.example.com\\@evil.example",
        "\u{ff11}27.0.0.1",
        "",
    ]);
    let port = prop::sample::select(vec!["", ":8080", ":443", ":0", ":08080", ":65536", ":x"]);
    let path = prop::sample::select(vec![
        "",
        "/",
        "/a/b",
        "/never/x",
        "/%6eever/x",
        "/a/../never/x",
        "/a/%2e%2e/x",
        "\\a",
        "/a\\b",
        "//a",
        "/a b",
        "/a\tb",
        "/\u{e9}",
        "?q=/../",
        "/x#y",
        "/x;y",
    ]);
    let pieces = (scheme, mark, host, port, path);
    let built = pieces
        .prop_map(|(scheme, mark, host, port, path)| format!("{scheme}{mark}{host}{port}{path}"));
    prop_oneof![4 => built, 1 => "[ -~]{0,30}", 1 => "https://\\PC{0,30}"]
}

fn method() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["GET", "POST", "get", "CONNECT", "TRACE", "", "GE T", "G\u{e9}T"])
}

/// Whether a request is sent if a guest passes its parts, split as the SDK splits a text.
fn is_sent(grant: &Grant, method: &str, text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let method = http::Method::from_bytes(method.as_bytes());
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build();
    let (Ok(method), Ok(uri), false) = (method, uri, authority.is_empty()) else { return false };
    let url = rebuild_url(&uri);
    url.is_ok_and(|url| grant.check_request(method.as_str(), &url).is_ok())
}

fn explained(method: &str, url: &str) -> (Decision, bool) {
    let policy = policy(POLICY);
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    let (id, context, arguments) = (tool("weather.get"), ToolCallContext::default(), json!({}));
    let question = question_about(&id, &arguments, &context);
    let explanation = policy.explain_net(&question, &grant, method, url);
    (explanation.decision, is_sent(&grant, method, url))
}

proptest! {
    /// 76
    #[test]
    fn a_url_is_explained_as_it_is_treated(method in method(), url in url()) {
        let (decision, is_sent) = explained(method, &url);
        prop_assert_eq!(decision != Decision::Deny, is_sent, "{} {:?}", method, url);
    }
}

/// 76
#[test]
fn a_url_that_the_host_refuses_is_not_explained_as_another_one() {
    for (url, want) in [
        ("https://api.example.com/a", Decision::Allow),
        ("https://API.example.com/a", Decision::Allow),
        ("http://127.0.0.1:8080/", Decision::Allow),
        ("http://2130706433:8080/", Decision::Deny),
        ("http://127.1:8080/", Decision::Deny),
        ("http://0x7f000001:8080/", Decision::Deny),
        ("http://0177.0.0.1:8080/", Decision::Deny),
        ("http:\\\\127.0.0.1:8080/", Decision::Deny),
        ("http://127.0.0.1:8080\\a", Decision::Deny),
        (" https://api.example.com/a", Decision::Deny),
        ("https://api.example.com/a ", Decision::Deny),
        ("https://api.example.com/a\\b", Decision::Deny),
        ("https://api.example.com/a/../never/x", Decision::Deny),
        // Entries without to-private, for hosts that always mean this machine.
        ("http://localhost:8080/", Decision::Deny),
        ("https://[::1]/", Decision::Deny),
    ] {
        assert_eq!(explained("GET", url), (want, want == Decision::Allow), "{url}");
    }
}
