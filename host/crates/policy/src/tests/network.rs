//! Network patterns: every element, with requests that it permits and requests that it does not.

use super::{net_grant, reaches, send};
use crate::net::{NetPattern, pattern::NetDenyPattern};

/// A pattern, a request that it permits, and one that it does not.
const ROWS: &[(&str, &str, &str)] = &[
    // Methods.
    (
        "GET https://api.example.com/a",
        "GET https://api.example.com/a",
        "POST https://api.example.com/a",
    ),
    (
        "GET,POST https://api.example.com/a",
        "POST https://api.example.com/a",
        "PUT https://api.example.com/a",
    ),
    (
        "* https://api.example.com/a",
        "DELETE https://api.example.com/a",
        "CONNECT https://api.example.com/a",
    ),
    (
        "* https://api.example.com/a",
        "BREW https://api.example.com/a",
        "TRACE https://api.example.com/a",
    ),
    (
        "GET https://api.example.com/a",
        "GET https://api.example.com/a",
        "get https://api.example.com/a",
    ),
    // Schemes.
    (
        "GET https://api.example.com/a",
        "GET https://api.example.com/a",
        "GET http://api.example.com/a",
    ),
    ("GET http://127.0.0.1:8080/a", "GET http://127.0.0.1:8080/a", "GET https://127.0.0.1:8080/a"),
    // Hosts.
    (
        "GET https://api.example.com/a",
        "GET https://API.example.COM/a",
        "GET https://www.example.com/a",
    ),
    ("GET https://API.Example.com/a", "GET https://api.example.com/a", "GET https://example.com/a"),
    ("GET https://*.example.com/a", "GET https://www.example.com/a", "GET https://example.com/a"),
    (
        "GET https://*.example.com/a",
        "GET https://api.example.com/a",
        "GET https://a.b.example.com/a",
    ),
    ("GET https://*.example.com/a", "GET https://x.example.com/a", "GET https://xexample.com/a"),
    ("GET http://127.0.0.1:8080/a", "GET http://2130706433:8080/a", "GET http://127.0.0.2:8080/a"),
    ("GET https://[::1]/a", "GET https://[0:0::1]/a", "GET https://[::2]/a"),
    ("GET https://[0:0:0::1]/a", "GET https://[::1]/a", "GET https://[::]/a"),
    // Ports.
    (
        "GET https://api.example.com/a",
        "GET https://api.example.com:443/a",
        "GET https://api.example.com:8443/a",
    ),
    (
        "GET https://api.example.com:443/a",
        "GET https://api.example.com/a",
        "GET https://api.example.com:80/a",
    ),
    ("GET http://127.0.0.1:8080/a", "GET http://127.0.0.1:8080/a", "GET http://127.0.0.1/a"),
    (
        "GET http://127.0.0.1:8000-8080/a",
        "GET http://127.0.0.1:8080/a",
        "GET http://127.0.0.1:8081/a",
    ),
    (
        "GET http://127.0.0.1:8080-8081/a",
        "GET http://127.0.0.1:8080/a",
        "GET http://127.0.0.1:8079/a",
    ),
    (
        "GET https://api.example.com:1-65535/a",
        "GET https://api.example.com/a",
        "GET http://api.example.com/a",
    ),
    // Paths.
    ("GET https://api.example.com", "GET https://api.example.com", "GET https://api.example.com/a"),
    (
        "GET https://api.example.com/",
        "GET https://api.example.com/?q",
        "GET https://api.example.com//",
    ),
    (
        "GET https://api.example.com/a",
        "GET https://api.example.com/a?q=1#f",
        "GET https://api.example.com/a/",
    ),
    (
        "GET https://api.example.com/a",
        "GET https://api.example.com/%61",
        "GET https://api.example.com/A",
    ),
    (
        "GET https://api.example.com/%C3%A9",
        "GET https://api.example.com/é",
        "GET https://api.example.com/e",
    ),
    ("GET https://api.example.com/**", "GET https://api.example.com/", "GET https://example.com/"),
    (
        "GET https://api.example.com/**",
        "GET https://api.example.com/a/b/c",
        "GET https://api.example.org/a",
    ),
    (
        "GET https://api.example.com/a/**",
        "GET https://api.example.com/a",
        "GET https://api.example.com/ab",
    ),
    (
        "GET https://api.example.com/a/**",
        "GET https://api.example.com/a/",
        "GET https://api.example.com/",
    ),
    (
        "GET https://api.example.com/a/**",
        "GET https://api.example.com/a/b/c",
        "GET https://api.example.com/b/a",
    ),
    (
        "GET https://api.example.com/a/*",
        "GET https://api.example.com/a/b",
        "GET https://api.example.com/a/b/c",
    ),
    (
        "GET https://api.example.com/a/*",
        "GET https://api.example.com/a/%2A",
        "GET https://api.example.com/a/",
    ),
    (
        "GET https://api.example.com/*/c",
        "GET https://api.example.com/b/c",
        "GET https://api.example.com/b/b/c",
    ),
    (
        "GET https://api.example.com/a*",
        "GET https://api.example.com/a",
        "GET https://api.example.com/ba",
    ),
    (
        "GET https://api.example.com/*.json",
        "GET https://api.example.com/x.json",
        "GET https://api.example.com/x.json5",
    ),
    (
        "GET https://api.example.com/a*b*c",
        "GET https://api.example.com/axbxc",
        "GET https://api.example.com/acb",
    ),
    (
        "GET https://api.example.com/ab*ba",
        "GET https://api.example.com/abba",
        "GET https://api.example.com/aba",
    ),
    (
        "GET https://api.example.com/*/v/**",
        "GET https://api.example.com/x/v/y/z",
        "GET https://api.example.com/x/w/v",
    ),
];

#[test]
fn each_element_of_a_pattern_allows_one_thing_and_not_its_neighbour() {
    for (pattern, allowed, denied) in ROWS {
        let grant = net_grant(&format!("['{pattern}']"));
        assert_eq!(send(&grant, allowed), Ok(()), "{pattern} should allow {allowed}");
        assert!(send(&grant, denied).is_err(), "{pattern} should not allow {denied}");
    }
}

#[test]
fn the_canonical_text_of_a_pattern_is_the_same_pattern() {
    for (pattern, ..) in ROWS {
        let parsed: NetPattern = pattern.parse().unwrap();
        assert_eq!(parsed.to_string().parse::<NetPattern>().unwrap(), parsed, "{pattern}");
    }
    let rows = [
        ("GET,GET,PUT https://API.Example.com:443", "GET,PUT https://api.example.com/"),
        ("* http://bücher.example:8080/a*/**", "* http://xn--bcher-kva.example:8080/a*/**"),
        ("GET https://[0:0::1]/x", "GET https://[::1]/x"),
        ("GET http://[::1]:80-90/x", "GET http://[::1]:80-90/x"),
    ];
    for (pattern, canonical) in rows {
        assert_eq!(pattern.parse::<NetPattern>().unwrap().to_string(), canonical);
    }
}

#[test]
fn a_denying_entry_beats_every_allowing_one() {
    let net = "['GET https://api.example.com/**', { deny = 'GET https://api.example.com/s/**' },
               'GET https://api.example.com/s/public', { deny = '* https://*.example.com/x' }]";
    let grant = net_grant(net);
    let rows = [
        ("GET https://api.example.com/a", true),
        ("GET https://api.example.com/ss", true),
        ("GET https://api.example.com/s", false),
        ("GET https://api.example.com/s/", false),
        ("GET https://api.example.com/s/public", false),
        ("GET https://api.example.com/%73/public", false),
        // Servers that ignore empty segments would serve the denied path.
        ("GET https://api.example.com//s/public", false),
        ("GET https://api.example.com/s//public", false),
        ("GET https://api.example.com/x", false),
        ("GET https://api.example.com/x/", false),
        ("GET https://api.example.com/x/y", true),
    ];
    for (request, allowed) in rows {
        assert_eq!(send(&grant, request).is_ok(), allowed, "{request}");
    }
    let denial = send(&grant, "GET https://api.example.com/s/a").unwrap_err();
    assert_eq!((denial.reason.to_string().as_str(), denial.fix), ("denied by policy.toml:2", None));
}

#[test]
fn both_keys_are_needed() {
    let manifest = "[[request.net]]\nallow = 'GET https://api.example.com/v1/*'\nwhy = 'w'";
    let policy = "[plugin.weather]\nnet = ['GET,POST https://api.example.com/*/a']";
    let grant = super::grant(policy, manifest);
    let rows = [
        ("GET https://api.example.com/v1/a", None),
        ("GET https://api.example.com/v1/b", Some("no grant covers it")),
        ("GET https://api.example.com/v2/a", Some("its manifest does not request it")),
        ("POST https://api.example.com/v1/a", Some("its manifest does not request it")),
    ];
    for (request, why) in rows {
        let refused = send(&grant, request).err().map(|denial| denial.reason.to_string());
        assert_eq!(refused.as_deref(), why, "{request}");
    }
    assert_eq!(grant.permission_lines(), ["GET https://api.example.com/v1/a"]);
    assert!(grant.notes().is_empty());
}

/// A port range of the manifest, one of the policy, and the ports in both.
#[test]
fn port_ranges_meet() {
    let rows = [
        ("8000-8100", "8050-8200", Some("8050-8100")),
        ("8000-8100", "8100-8200", Some("8100")),
        ("8000-8100", "8010-8020", Some("8010-8020")),
        ("8080", "8000-8100", Some("8080")),
        ("8000-8100", "8101", None),
        ("1-65535", "443", Some("443")),
    ];
    for (asked, granted, both) in rows {
        let url = |ports: &str| format!("GET http://a.example:{ports}/**");
        let manifest = format!("[[request.net]]\nallow = '{}'\nwhy = 'w'", url(asked));
        let grant =
            super::grant(&format!("[plugin.weather]\nnet = ['{}']", url(granted)), &manifest);
        let powers: Vec<String> = both.map(url).into_iter().collect();
        assert_eq!(grant.permission_lines(), powers, "{asked} {granted}");
    }
}

/// Two patterns, and whether the first certainly matches every request of the second.
#[test]
fn what_covers_what() {
    let rows = [
        ("* https://a.io:80-90/**", "GET https://a.io:82-90/x", true),
        ("* https://a.io:80-90/**", "GET https://a.io:82-91/x", false),
        ("* https://a.io:80-90/**", "GET https://a.io:79-85/x", false),
        ("* https://a.io:400-500/**", "GET https://a.io/x", true),
        ("* https://a.io/**", "GET https://a.io:400-500/x", false),
        ("* https://**", "GET https://a.io:8443/x", true),
        ("* https://**", "GET https://*.a.io/x", true),
        ("* https://**", "GET https://*.com/x", true),
        ("* https://**", "GET https://[::1]/x", true),
        ("* https://*:443/**", "GET https://*/x", false),
        ("* https://*.com/**", "GET https://a.com/x", true),
        ("* https://*.com/**", "GET https://*/x", false),
        ("* https://*.com/**", "GET https://*.a.com/x", false),
    ];
    for (one, other, want) in rows {
        let (NetDenyPattern(a), NetDenyPattern(b)) = (one.parse().unwrap(), other.parse().unwrap());
        assert_eq!(a.covers(&b), want, "{one} {other}");
    }
}

#[test]
fn what_does_not_meet_is_no_power() {
    let manifest = "[[request.net]]\nallow = 'GET https://api.example.com/v1/**'\nwhy = 'w'";
    for pattern in [
        "GET https://api.example.com/v2/**",
        "POST https://api.example.com/v1/**",
        "GET http://api.example.com/v1/**",
        "GET https://api.example.com:8443/v1/**",
        "GET https://www.example.com/v1/**",
        "GET https://api.example.com",
        "GET https://api.example.com/w*/**",
    ] {
        let policy = format!("[plugin.weather]\nnet = ['{pattern}']");
        let grant = super::grant(&policy, manifest);
        assert!(grant.net().is_empty() && !grant.can_change_or_leak(), "{pattern}");
        let note = format!("policy.toml:2 grants {}", pattern.parse::<NetPattern>().unwrap());
        assert!(grant.notes()[0].starts_with(&note), "{:?}", grant.notes());
    }
}

#[test]
fn addresses_are_public_unless_a_range_is_named_on_purpose() {
    let intern = "GET https://intern.example/a";
    let rows = [
        ("['GET https://intern.example/**']", intern, "93.184.216.34", true),
        ("['GET https://intern.example/**']", intern, "10.1.2.3", false),
        ("['GET https://intern.example/**']", intern, "169.254.169.254", false),
        ("['GET https://intern.example/**']", intern, "::ffff:10.1.2.3", false),
        (RANGE, intern, "10.1.2.3", true),
        (RANGE, intern, "::ffff:10.1.2.3", true),
        (RANGE, intern, "93.184.216.34", true),
        (RANGE, intern, "11.0.0.1", true),
        (RANGE, intern, "192.168.0.1", false),
        (RANGE, intern, "64:ff9b::a01:203", false),
        (RANGES, intern, "fd00::1", true),
        (RANGES, intern, "192.168.7.7", true),
        (RANGES, intern, "192.168.7.8", false),
        // One of several matching entries is enough.
        (TWO, "GET https://intern.example/a", "10.1.2.3", false),
        (TWO, "GET https://intern.example/b", "10.1.2.3", true),
        (LITERAL, "GET http://127.0.0.1:8080/", "127.0.0.1", true),
        (LITERAL, "GET http://127.0.0.1:8080/", "127.0.0.2", false),
        (LOCALHOST, "GET http://localhost:8080/", "127.0.0.2", true),
        (LOCALHOST, "GET http://localhost:8080/", "::1", true),
        (LOCALHOST, "GET http://localhost:8080/", "0.0.0.0", false),
        (LOCALHOST, "GET http://localhost:8080/", "10.0.0.1", false),
        ("['GET http://127.0.0.1:8080/**']", "GET http://127.0.0.1:8080/", "127.0.0.1", false),
    ];
    for (net, request, addr, want) in rows {
        assert_eq!(reaches(&net_grant(net), request, addr), want, "{net} {request} {addr}");
    }
}

const RANGE: &str =
    "[{ allow = 'GET https://intern.example/**', to-private = true, range = '10.0.0.0/8' }]";
const RANGES: &str = "[{ allow = 'GET https://intern.example/**', to-private = true,
                         range = ['fd00::/8', '192.168.7.7'] }]";
const TWO: &str = "['GET https://intern.example/**',
    { allow = 'GET https://intern.example/b', to-private = true, range = '10.0.0.0/8' }]";
const LITERAL: &str = "[{ allow = 'GET http://127.0.0.1:8080/**', to-private = true }]";
const LOCALHOST: &str = "[{ allow = 'GET http://localhost:8080/**', to-private = true }]";

#[test]
fn powers_name_what_can_be_reached_and_what_not() {
    let net = "[{ allow = 'GET https://intern.example/**', to-private = true,
                range = '10.0.0.0/8' }, 'POST https://api.example.com/x',
                { deny = '* https://intern.example/x' }]";
    let want = [
        "GET https://intern.example/** (also at private addresses: 10.0.0.0/8)",
        "POST https://api.example.com/x",
        "never * https://intern.example/x",
    ];
    assert_eq!(net_grant(net).permission_lines(), want);
    assert_eq!(net_grant("[{ deny = '* https://intern.example/x' }]").permission_lines(), [""; 0]);
}
