//! Entries that ask before a request is sent, and entries that deny wide hosts.

use sallyport_contract::Decision::{self, Allow, Ask};
use url::Url;

use super::{GREEDY, check_error, decide, grant, net_grant, parse_policy, policy, send};
use crate::net::pattern::NetDenyPattern;

const ASK: &str = "{ allow = 'GET https://api.example.com/**', decision = 'ask' }";
const ALLOW: &str = "{ allow = 'GET https://api.example.com/v1/**', decision = 'allow' }";
const PRIVATE: &str = "{ allow = 'GET https://intern.example/**', to-private = true,
                         range = '10.0.0.0/8', decision = 'ask' }";
const NARROW: &str = "{ allow = 'GET https://intern.example/**', to-private = true,
                        range = '10.1.0.0/16' }";
const WIDE: &str = "{ allow = 'GET https://intern.example/**', to-private = true,
                      range = ['10.0.0.0/8', '192.168.0.0/16'] }";
const PUBLIC: &str = "'GET https://intern.example/**'";

/// The decision about a request, and the line of the entry that made it.
fn decision(net: &str, request: &str) -> (Decision, usize) {
    let grant = net_grant(net);
    let (method, url) = request.split_once(' ').unwrap();
    let permit = grant.net().check_request(method, &Url::parse(url).unwrap()).unwrap();
    (permit.decision(), permit.place().line)
}

#[test]
fn of_several_entries_the_least_strict_decides() {
    let v1 = "GET https://api.example.com/v1/a";
    let rows = [
        (vec![ASK], v1, (Ask, 3)),
        (vec![ALLOW], v1, (Allow, 3)),
        (vec![ASK, ALLOW], v1, (Allow, 4)),
        (vec![ALLOW, ASK], v1, (Allow, 3)),
        (vec![ALLOW, ASK], "GET https://api.example.com/v2", (Ask, 4)),
        (vec!["'GET https://api.example.com/**'"], v1, (Allow, 3)),
    ];
    for (entries, request, want) in rows {
        let net = format!("[\n{}]", entries.join(",\n").replace(",\n   ", ", "));
        assert_eq!(decision(&net, request), want, "{net}");
    }
}

/// An entry for public addresses does not override one that asks before private addresses.
#[test]
fn an_entry_that_reaches_less_does_not_answer_for_one_that_reaches_more() {
    let request = "GET https://intern.example/a";
    let rows = [
        (vec![PRIVATE], Ask),
        (vec![PUBLIC], Allow),
        (vec![PUBLIC, PRIVATE], Ask),
        (vec![PRIVATE, PUBLIC], Ask),
        (vec![NARROW, PRIVATE], Ask),
        (vec![PRIVATE, WIDE], Allow),
        (vec![PRIVATE, WIDE, PUBLIC], Allow),
    ];
    for (entries, want) in rows {
        let net = format!("[{}]", entries.join(", "));
        assert_eq!(decision(&net, request).0, want, "{net}");
    }
}

#[test]
fn an_entry_that_asks_still_counts_as_network() {
    let text = format!("[plugin.weather]\nnet = [{ASK}]");
    let grant = grant(&text, GREEDY);
    assert!(grant.can_change_or_leak());
    assert_eq!(decide(&policy(&text), &grant, "weather.get").0, Ask);
}

#[test]
fn powers_say_what_is_asked_first() {
    let ask = "GET https://api.example.com/** (asks)";
    let v1 = "GET https://api.example.com/v1/**";
    let intern = "GET https://intern.example/**";
    let private = "GET https://intern.example/** (asks) (also at private addresses: 10.0.0.0/8)";
    let rows = [
        (vec![ASK], vec![ask]),
        (vec![ASK, ALLOW], vec![ask, v1]),
        (vec![PUBLIC, PRIVATE], vec![intern, private]),
        // An entry never asks about requests that another entry allows.
        (vec![ASK, "'GET https://api.example.com/**'"], vec!["GET https://api.example.com/**"]),
    ];
    for (entries, want) in rows {
        let grant = net_grant(&format!("[{}]", entries.join(", ")));
        assert_eq!(grant.permission_lines(), want);
        assert!(!grant.net().is_empty());
    }
}

#[test]
fn a_fix_keeps_the_decision() {
    let entry = "{ allow = \"GET https://api.example.com/v1\", decision = \"ask\" }";
    let private = "{ allow = \"GET https://intern.example/\", to-private = true, \
                   range = \"10.0.0.0/8\", decision = \"ask\" }";
    let grant = net_grant(&format!("[{entry}, {private}]"));
    let fix = send(&grant, "GET https://api.example.com/v2").unwrap_err().fix.unwrap().toml;
    assert!(fix.contains(&format!("net = [{entry}, {private}, ")), "{fix}");
}

/// A pattern of an entry that denies, a request that it did not deny, and one that it need not.
#[test]
fn what_a_lenient_server_reads_as_denied_passed() {
    let rows = [
        (
            "* https://api.example.com/admin/",
            "GET https://api.example.com/ADMIN/",
            "GET https://api.example.com/adminx/",
        ),
        (
            "* https://api.example.com/admin/",
            "GET https://api.example.com/admin//",
            "GET https://api.example.com/a/admin/",
        ),
        (
            "* https://api.example.com/admin/",
            "GET https://api.example.com/admin;x/",
            "GET https://api.example.com/admin/x",
        ),
        (
            "* https://api.example.com",
            "GET https://api.example.com//",
            "GET https://api.example.com/x",
        ),
        (
            "* https://api.example.com/a;v=1/b",
            "GET https://api.example.com/A;v=1/b",
            "GET https://api.example.com/a/c",
        ),
        (
            "DELETE https://api.example.com/**",
            "delete https://api.example.com/x",
            "GET https://api.example.com/x",
        ),
        (
            "GET,DELETE https://api.example.com/x",
            "Delete https://api.example.com/x",
            "put https://api.example.com/x",
        ),
    ];
    for (deny, denied, allowed) in rows {
        let grant = net_grant(&format!("['* https://api.example.com/**', {{ deny = '{deny}' }}]"));
        assert!(send(&grant, denied).is_err(), "{deny}: {denied}");
        assert_eq!(send(&grant, allowed), Ok(()), "{deny}: {allowed}");
    }
}

/// A pattern of an entry that denies, requests that it denies, and requests that it does not.
#[test]
fn an_entry_that_denies_may_name_any_host() {
    let (api, www) = ("https://api.example.com/a", "https://www.example.com/a");
    let (local, odd) = ("http://127.0.0.1:8080/a", "https://[::1]/a");
    let rows = [
        ("* https://**", vec![api, www, odd], vec![local]),
        ("* https://*/**", vec![api, www, odd], vec![local]),
        ("* http://**", vec![local], vec![api, www, odd]),
        ("* http://*:8080/**", vec![local], vec![api]),
        ("* http://*:80/**", vec![], vec![local]),
        ("* http://*:8000-9000/**", vec![local], vec![api]),
        ("* https://*/b", vec![], vec![api, www]),
        ("POST https://**", vec![], vec![api, www, odd, local]),
        ("* https://*.com/**", vec![], vec![api, www]),
        ("* https://*", vec![], vec![api, www]),
    ];
    let all =
        "'GET https://*.example.com/**', 'GET https://[::1]/**', 'GET http://127.0.0.1:8080/**'";
    for (deny, denied, allowed) in rows {
        let grant = net_grant(&format!("[{all}, {{ deny = '{deny}' }}]"));
        for url in denied {
            let denial = send(&grant, &format!("GET {url}")).expect_err(deny);
            assert_eq!(denial.reason.to_string(), "denied by policy.toml:2", "{deny} {url}");
        }
        for url in allowed {
            assert_eq!(send(&grant, &format!("GET {url}")), Ok(()), "{deny} {url}");
        }
    }
}

#[test]
fn one_level_below_a_top_level_domain_can_be_denied() {
    let requests = "[[request.net]]\nallow = 'GET https://example.com'\nwhy = 'w'
                    [[request.net]]\nallow = 'GET https://example.org'\nwhy = 'w'";
    let net = "'GET https://example.com', 'GET https://example.org', { deny = '* https://*.com' }";
    let grant = grant(&format!("[plugin.weather]\nnet = [{net}]"), requests);
    assert!(send(&grant, "GET https://example.com/").is_err());
    assert_eq!(send(&grant, "GET https://example.org/"), Ok(()));
}

#[test]
fn wide_hosts_are_read_back_as_they_are_written() {
    let rows = [
        ("* https://**", "* https://*/**"),
        ("* https://*/**", "* https://*/**"),
        ("* https://*:443/**", "* https://*:443/**"),
        ("* https://*:1-65535/x", "* https://*/x"),
        ("GET http://*.com", "GET http://*.com/"),
        ("GET http://a.io:8000-8100/x", "GET http://a.io:8000-8100/x"),
    ];
    for (text, canonical) in rows {
        let NetDenyPattern(pattern) = text.parse().unwrap();
        assert_eq!(pattern.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(NetDenyPattern(pattern)));
    }
}

#[test]
fn an_entry_that_allows_may_not() {
    let rows =
        [("**", "*"), ("*", "*"), ("*/x", "*"), ("*:8000-8100/x", "*"), ("*.com/x", "*.com")];
    for (url, host) in rows {
        let text = format!("[plugin.weather]\nnet = ['GET https://{url}']");
        let want =
            format!("policy.toml:2:8: the host \"{host}\" would allow nearly the whole internet");
        let hint = "name the host, or one level below a domain: *.example.com";
        check_error(parse_policy(&text), &want, hint);
    }
}
