//! Requests that imitate other requests. The numbers are those of the hostile cases.

use sallyport_contract::PluginName;
use serde_json::Map;
use url::Url;

use super::{GREEDY, deny_address, grant, manifest, net_grant, parse_policy, send};
use crate::{FsAccess, Grant, Manifest, Policy};

const NET: &str = "['GET https://api.example.com/v1/**']";

/// Checks that none of the requests passes, each for the given reason.
#[track_caller]
fn check_denied(rows: &[(&str, &str)]) {
    let grant = net_grant(NET);
    for (request, why) in rows {
        let (method, text) = request.split_once(' ').unwrap();
        // A URL that the parser refuses cannot be dialled either.
        let Ok(url) = Url::parse(text) else {
            assert_eq!(*why, "no URL", "{request}");
            continue;
        };
        match grant.net().check_request(method, &url) {
            Ok(_) => panic!("{request:?} passes as {url}"),
            Err(denial) => assert_eq!(denial.reason.to_string(), *why, "{request:?} as {url}"),
        }
    }
}

const UNREQUESTED: &str = "its manifest does not request it";
const HIDDEN: &str = "the path hides a dot, a slash, a backslash or a control character";
const USER: &str = "the URL holds a user name or password";
const HOST: &str = "the host is empty or ends in a dot";

/// 38
#[test]
fn urls_that_look_like_an_allowed_one() {
    check_denied(&[
        ("GET https://api.example.com@evil.example/v1/a", USER),
        ("GET https://api.example.com%40evil.example/v1/a", "no URL"),
        ("GET https://user:pw@api.example.com/v1/a", USER),
        ("GET https://:pw@api.example.com/v1/a", USER),
        ("GET https://api.example.com.evil.example/v1/a", UNREQUESTED),
        ("GET https://evil.example#api.example.com/v1/a", UNREQUESTED),
        ("GET https://evil.example/#https://api.example.com/v1/a", UNREQUESTED),
        ("GET https://evil.example\\@api.example.com/v1/a", UNREQUESTED),
        ("GET https://api.example.com./v1/a", HOST),
        ("GET https://api.example.com../v1/a", HOST),
        ("GET https://.api.example.com/v1/a", HOST),
        ("GET https://api.example.com\0.evil.example/v1/a", "no URL"),
        ("GET https://api.example.com%00.evil.example/v1/a", "no URL"),
        ("GET https://аpi.example.com/v1/a", "no grant covers it"),
        ("GET https://api-example.com/v1/a", UNREQUESTED),
        ("GET https://apiXexample.com/v1/a", UNREQUESTED),
        ("GET https://api.example.com:8443/v1/a", UNREQUESTED),
        ("GET https://api.example.com:0/v1/a", UNREQUESTED),
        ("GET https://api.example.com:65536/v1/a", "no URL"),
        ("GET https:/\\evil.example/v1/a", UNREQUESTED),
        ("GET https://2130706433/v1/a", UNREQUESTED),
        ("GET https://[::ffff:7f00:1]/v1/a", UNREQUESTED),
        ("GET https://[fe80::1%25eth0]/v1/a", "no URL"),
    ]);
}

/// 38
#[test]
fn addresses_in_odd_notations_are_that_address() {
    let grant = net_grant("[{ allow = 'GET http://127.0.0.1:8080/**', to-private = true }]");
    for host in [
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f000001",
        "１２７.0.0.1",
        "127。0。0。1",
    ] {
        assert_eq!(send(&grant, &format!("GET http://{host}:8080/")), Ok(()), "{host}");
        let public = net_grant("['GET https://api.example.com/**']");
        assert!(send(&public, &format!("GET https://{host}/")).is_err(), "{host}");
    }
    // A policy accepts only the usual notation, so that its reader sees the granted address.
    for host in [
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f000001",
        "１２７.0.0.1",
        "127。0。0。1",
    ] {
        let text = format!("[plugin.weather]\nnet = ['GET http://{host}:8080/**']");
        let error = parse_policy(&text).unwrap_err();
        assert!(error.message.ends_with("is an odd way to write the address 127.0.0.1"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("write 127.0.0.1"));
    }
}

/// 38, 39
#[test]
fn paths_that_mean_another_one() {
    check_denied(&[
        ("GET https://api.example.com/v1/../admin", "no grant covers it"),
        ("GET https://api.example.com/v1/%2e%2e/admin", "no grant covers it"),
        ("GET https://api.example.com/v1/.%2E/admin", "no grant covers it"),
        ("GET https://api.example.com/v1/..%2fadmin", HIDDEN),
        ("GET https://api.example.com/v1/..%5cadmin", HIDDEN),
        ("GET https://api.example.com/v1/..%5Cadmin", HIDDEN),
        ("GET https://api.example.com/v1/x%2ey", HIDDEN),
        ("GET https://api.example.com/v1/%252e%252e/admin", HIDDEN),
        ("GET https://api.example.com/v1/%25252fadmin", HIDDEN),
        ("GET https://api.example.com/v1/%25%32%65%25%32%65/admin", HIDDEN),
        ("GET https://api.example.com/v1/%%32e%%32e/admin", HIDDEN),
        ("GET https://api.example.com/v1/%25%32%35%25%33%32%65/admin", HIDDEN),
        ("GET https://api.example.com/v1/%2525252541", HIDDEN),
        ("GET https://api.example.com/v1/%00", HIDDEN),
        ("GET https://api.example.com/v1/%0d%0aHost:evil", HIDDEN),
        ("GET https://api.example.com/v1/%7F", HIDDEN),
        ("GET https://api.example.com/v1/..;/admin", HIDDEN),
        ("GET https://api.example.com/v1/..%3bx=1/admin", HIDDEN),
        ("GET https://api.example.com/v1/.;/admin", HIDDEN),
        ("GET https://api.example.com/v1\\..\\admin", "no grant covers it"),
        ("GET https://api.example.com/https://api.example.com/v1/a", "no grant covers it"),
        ("GET https://api.example.com//v1/a", "no grant covers it"),
        ("GET https://api.example.com/V1/a", "no grant covers it"),
    ]);
    let long = format!("GET https://api.example.com/v1/{}", "a".repeat(20_000));
    let denial = send(&net_grant(NET), &long).unwrap_err();
    assert_eq!(denial.reason.to_string(), "the URL is longer than 16384 bytes");
    assert!(denial.subject.to_string().chars().count() < 400, "{}", denial.subject.to_string());
}

/// 38: the parser drops tabs and line breaks; the rest is checked and dialled.
#[test]
fn white_space_in_a_url_does_not_hide_anything() {
    let grant = net_grant(NET);
    assert_eq!(send(&grant, "GET https://api.exam\tple.com/v\n1/a"), Ok(()));
    assert!(send(&grant, "GET https://api.example.com/v1/.\t./admin").is_err());
    assert!(send(&grant, "GET https://api.example.com\t.evil.example/v1/a").is_err());
}

/// 42
#[test]
fn wrong_schemes_ports_and_methods() {
    check_denied(&[
        ("GET ftp://api.example.com/v1/a", "only http and https are possible"),
        ("GET file:///v1/a", "only http and https are possible"),
        ("GET wss://api.example.com/v1/a", "only http and https are possible"),
        ("GET data:text/plain,x", "only http and https are possible"),
        ("GET http://api.example.com/v1/a", UNREQUESTED),
        ("GET http://api.example.com:443/v1/a", UNREQUESTED),
        ("GET https://api.example.com:80/v1/a", UNREQUESTED),
        ("CONNECT https://api.example.com/v1/a", "the method is never allowed"),
        ("connect https://api.example.com/v1/a", "the method is never allowed"),
        ("TRACE https://api.example.com/v1/a", "the method is never allowed"),
        ("POST https://api.example.com/v1/a", "no grant covers it"),
        ("get https://api.example.com/v1/a", "no grant covers it"),
        ("GET\0 https://api.example.com/v1/a", "no grant covers it"),
        (" https://api.example.com/v1/a", "no grant covers it"),
    ]);
}

/// 40, 51
#[test]
fn refusals_show_neither_secrets_nor_control_characters() {
    let grant = net_grant(NET);
    let denial =
        send(&grant, "G\x1b[2J https://me:pw@api.example.com/x?token=secret#frag").unwrap_err();
    assert_eq!(denial.subject.to_string(), "weather may not G\\u{1b}[2J https://api.example.com/x");
    let denial = grant.deny_path("/a\x1b]0;x\u{202e}", FsAccess::Read);
    assert_eq!(denial.subject.to_string(), "weather may not read /a\\u{1b}]0;x\\u{202e}");
    let denial =
        deny_address(&grant, "G\u{202e}T https://a.example/\u{202e}x", "10.0.0.1".parse().unwrap());
    assert_eq!(
        denial.subject.to_string(),
        "weather may not G\\u{202e}T https://a.example/%E2%80%AEx"
    );
}

/// 35
#[test]
fn names_that_lead_to_addresses_that_are_not_public() {
    let grant = net_grant(NET);
    let url = Url::parse("https://api.example.com/v1/a").unwrap();
    let permit = grant.net().check_request("GET", &url).unwrap();
    for addr in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "192.168.1.1",
        "0.0.0.0",
        "::1",
        "::",
        "fd00:ec2::254",
        "fe80::1",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "64:ff9b:1::1",
    ] {
        assert!(!permit.allows_address(addr.parse().unwrap()), "{addr}");
    }
    assert!(permit.allows_address("93.184.216.34".parse().unwrap()));
}

/// Checks every capability of a plugin that requests everything under a policy that grants nothing.
#[track_caller]
fn check_nothing(grant: &Grant) {
    for request in
        ["GET https://api.example.com/", "GET http://localhost:8080/", "GET https://[::1]/"]
    {
        assert!(send(grant, request).is_err(), "{request}");
    }
    assert!(grant.net().is_empty());
    assert!(grant.fs().is_empty());
    assert!(grant.env().is_empty());
    assert!(grant.secrets().is_empty());
    assert!(grant.permission_lines().is_empty());
    assert!(!grant.can_change_or_leak());
}

#[test]
fn the_empty_policy_grants_nothing() {
    let (greedy, none) = (manifest(GREEDY), Map::new());
    check_nothing(&Policy::empty().effective_grant(&greedy, &none));
    check_nothing(&Grant::empty("weather".parse().unwrap()));
    check_nothing(&grant("", GREEDY));
    check_nothing(&grant("[plugin.weather]", GREEDY));
    let other = "[plugin.weather2]\nnet = ['* https://api.example.com/**']\nenv = ['TZ']";
    check_nothing(&grant(other, GREEDY));
}

#[test]
fn a_manifest_that_asks_for_nothing_gets_nothing() {
    let all = "[plugin.weather]\nenv = ['TZ']\nnet = ['* https://api.example.com/**']
               fs = [{ path = '/srv', access = 'read-write' }]
               secrets = [{ name = 'key', reveal = true }]\n[secret.key]\nenv = 'KEY'";
    check_nothing(&grant(all, ""));
    let bare = Manifest::for_bare_component("weather".parse::<PluginName>().unwrap());
    let granted = super::policy(all).effective_grant(&bare, &Map::new());
    check_nothing(&granted);
    assert_eq!(granted.notes().len(), 4, "{:?}", granted.notes());
}
