//! Properties of any policy, manifest and request.

use proptest::prelude::*;
use serde_json::Map;
use url::Url;

use super::{grant, manifest, policy, send};
use crate::net::{
    NetPattern,
    pattern::{NetDenyPattern, RequestTarget},
};

fn methods() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["*", "GET", "POST", "GET,POST"])
}

fn hosts() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "https://a.example.com",
        "https://*.example.com",
        "https://b.example.com:8443",
        "https://b.example.com:400-8443",
        "https://*.example.com:443-9000",
        "http://127.0.0.1:8080",
        "http://localhost:8080",
        "http://localhost:8000-8080",
    ])
}

/// Further hosts, which only an entry that denies may name.
fn wide_hosts() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "https://*",
        "https://*:443",
        "http://*:8000-9000",
        "https://*.com",
        "http://*",
    ])
}

fn segment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "a", "b", "ab", "*", "a*", "*b", "a*b", "%61", "*b*"])
}

/// Patterns from so few words that many of them overlap.
fn pattern() -> impl Strategy<Value = String> {
    pattern_of(hosts())
}

/// The possible patterns of an entry that denies.
fn deny_pattern() -> impl Strategy<Value = String> {
    prop_oneof![pattern(), pattern_of(wide_hosts()), Just("* https://**".to_owned())]
}

fn pattern_of(hosts: impl Strategy<Value = &'static str>) -> impl Strategy<Value = String> {
    let path = (prop::collection::vec(segment(), 0..4), any::<bool>());
    (methods(), hosts, path).prop_map(|(methods, host, (segments, open))| {
        let path: String = segments.iter().map(|segment| format!("/{segment}")).collect();
        format!("{methods} {host}{path}{}", if open { "/**" } else { "" })
    })
}

fn request() -> impl Strategy<Value = String> {
    let hosts = prop::sample::select(vec![
        "https://a.example.com",
        "https://b.example.com:8443",
        "https://b.example.com:8444",
        "https://x.y.example.com",
        "http://127.0.0.1:8080",
        "http://localhost:8080",
    ]);
    let segment = prop::sample::select(vec!["", "a", "b", "ab", "aab", "%62", "%2561"]);
    let methods = prop::sample::select(vec!["GET", "POST", "PUT"]);
    let path = prop::collection::vec(segment, 0..5);
    (methods, hosts, path).prop_map(|(method, host, segments)| {
        let path: String = segments.iter().map(|segment| format!("/{segment}")).collect();
        format!("{method} {host}{path}")
    })
}

fn patterns(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(pattern(), 0..most)
}

fn denies(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(deny_pattern(), 0..most)
}

fn list(entries: &[String], key: &str) -> String {
    let entries: Vec<_> = entries.iter().map(|p| format!("{{ {key} = '{p}' }}")).collect();
    entries.join(", ")
}

fn requests(patterns: &[String]) -> String {
    let entries = patterns.iter().map(|p| format!("[[request.net]]\nallow = '{p}'\nwhy = 'w'\n"));
    entries.collect()
}

fn matches(pattern: &NetPattern, request: &str) -> bool {
    let (method, url) = request.split_once(' ').unwrap();
    let url = Url::parse(url).unwrap();
    RequestTarget::new(method, &url).is_ok_and(|target| pattern.matches(&target))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn adding_a_deny_never_allows_more(
        asked in patterns(4), allows in patterns(4), denies in denies(3), more in deny_pattern(),
        request in request(),
    ) {
        let table = |denies: &[String]| {
            let entries = [list(&allows, "allow"), list(denies, "deny")].join(", ");
            let entries = entries.trim_matches([',', ' ']);
            grant(&format!("[plugin.weather]\nnet = [{entries}]"), &requests(&asked))
        };
        let before = send(&table(&denies), &request);
        let more: Vec<_> = denies.iter().cloned().chain([more]).collect();
        prop_assert!(send(&table(&more), &request).is_err() || before.is_ok());
    }

    #[test]
    fn a_request_passes_only_with_both_keys(
        asked in patterns(4), allows in patterns(4), request in request(),
    ) {
        let any = |patterns: &[String]| {
            patterns.iter().any(|pattern| matches(&pattern.parse().unwrap(), &request))
        };
        let text = format!("[plugin.weather]\nnet = [{}]", list(&allows, "allow"));
        let grant = grant(&text, &requests(&asked));
        prop_assert_eq!(send(&grant, &request).is_ok(), any(&asked) && any(&allows));
        prop_assert!(send(&grant, &request).is_err() || grant.can_change_or_leak());
    }

    #[test]
    fn a_pattern_that_covers_another_matches_all_of_it(
        a in deny_pattern(), b in deny_pattern(), request in request(),
    ) {
        let (NetDenyPattern(a), NetDenyPattern(b)) = (a.parse().unwrap(), b.parse().unwrap());
        prop_assert!(a.covers(&a));
        prop_assert!(!(a.covers(&b) && matches(&b, &request)) || matches(&a, &request));
    }

    #[test]
    fn the_meet_of_two_patterns_misses_nothing(
        a in pattern(), b in pattern(), request in request(),
    ) {
        let (a, b): (NetPattern, NetPattern) = (a.parse().unwrap(), b.parse().unwrap());
        let both = matches(&a, &request) && matches(&b, &request);
        prop_assert!(!both || a.intersect_with(&b).is_some_and(|meet| matches(&meet, &request)));
    }

    #[test]
    fn the_text_of_a_pattern_reads_back(pattern in deny_pattern()) {
        let pattern: NetDenyPattern = pattern.parse().unwrap();
        prop_assert_eq!(pattern.0.to_string().parse::<NetDenyPattern>().unwrap(), pattern);
    }

    #[test]
    fn a_fix_always_parses_and_lifts_the_refusal(
        asked in patterns(4), allows in patterns(3), denies in denies(2), request in request(),
    ) {
        let entries = [list(&allows, "allow"), list(&denies, "deny")].join(", ");
        let entries = entries.trim_matches([',', ' ']);
        let asked = requests(&asked);
        let grant = grant(&format!("[plugin.weather]\nnet = [{entries}]"), &asked);
        if let Some(fix) = send(&grant, &request).err().and_then(|denial| denial.fix_toml().map(str::to_owned)) {
            let fixed = policy(&fix).effective_grant(&manifest(&asked), &Map::new());
            prop_assert_eq!(send(&fixed, &request), Ok(()), "{}", fix);
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC*", toml in "[\\[\\]{}a-z.\"'= \n,*/:0-9]{0,80}") {
        let _ = text.parse::<NetPattern>();
        let _ = format!("GET https://{text}").parse::<NetPattern>();
        let _ = format!("GET https://a.io/{text}").parse::<NetPattern>();
        let _ = format!("GET https://*:{text}").parse::<NetDenyPattern>();
        let _ = format!("https://{text}").parse::<crate::UrlOrigin>();
        for text in [&text, &toml, &format!("[plugin.weather]\nnet = {toml}")] {
            let _ = super::parse_policy(text);
            let _ = crate::GlobSet::parse([text.as_str()]);
            let _ = text.parse::<crate::UrlOrigin>();
            let _ = crate::Manifest::parse("plugin.toml", text);
        }
        let denied = grant("", super::GREEDY).deny_path(&text, crate::FsAccess::Read);
        prop_assert!(denied.fix_toml().is_none_or(|fix| super::parse_policy(fix).is_ok()));
    }
}
