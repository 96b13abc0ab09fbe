//! Network patterns, URLs and addresses: what passes is what the pattern says, to a second opinion.
//!
//! Parts: a pattern, another pattern, a request as `METHOD URL`, an address.
#![no_main]

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv6Addr},
};

use libfuzzer_sys::fuzz_target;
use sallyport_fuzz::{naive, parts, situation::user_policy, toml_string};
use sallyport_policy::{Grant, Manifest, NetPattern, Policy, is_public_address};
use serde_json::Map;
use url::Url;

fuzz_target!(|input: &str| {
    let [pattern, other, request, address] = parts(input);
    let address = read_address(address);
    check_address(address);
    let patterns = [pattern, other].map(|text| Some((text, text.parse::<NetPattern>().ok()?)));
    for (_, pattern) in patterns.iter().flatten() {
        check_round_trip(pattern);
    }
    let request = request.split_once(' ');
    let Some((method, Ok(url))) = request.map(|(method, url)| (method, Url::parse(url))) else {
        return;
    };
    for (text, _) in patterns.iter().flatten() {
        check_pattern(text, method, &url, address);
    }
    if let [Some((pattern, _)), Some((other, _))] = patterns {
        check_covering(pattern, other, method, &url);
    }
});

fn read_address(text: &str) -> IpAddr {
    text.trim().parse().unwrap_or_else(|_| {
        let bytes = std::array::from_fn(|at| text.as_bytes().get(at).copied().unwrap_or(0));
        IpAddr::V6(Ipv6Addr::from(bytes))
    })
}

fn check_address(address: IpAddr) {
    assert!(!(is_public_address(address) && naive::is_surely_private(address)), "{address}");
    assert_eq!(is_public_address(address), is_public_address(address.to_canonical()), "{address}");
}

fn check_round_trip(pattern: &NetPattern) {
    let text = pattern.to_string();
    assert_eq!(text.parse().as_ref(), Ok(pattern), "{text}");
}

/// The policy of a plugin with this `net` list.
fn policy(net: &str) -> Option<Policy> {
    user_policy(&format!("[plugin.weather]\nnet = [{net}]"))
}

/// What it grants to a plugin whose manifest requests a pattern.
fn grant(policy: &Policy, pattern: &str) -> Option<Grant> {
    let manifest = format!(
        "name = 'weather'\nversion = '1.0.0'\ndescription = 'd'\n\
         request.net = [{{ allow = {}, why = 'w' }}]",
        toml_string(pattern)
    );
    Some(policy.effective_grant(&Manifest::parse("plugin.toml", &manifest).ok()?, &Map::new()))
}

fn check_pattern(pattern: &str, method: &str, url: &Url, address: IpAddr) {
    let own = toml_string(pattern);
    let allowing = policy(&own).expect("a pattern is an entry");
    // In a manifest, braces are for settings.
    let Some(grant) = grant(&allowing, pattern) else { return };
    let is_match = naive::matches(pattern, method, url);
    match grant.net().check_request(method, url) {
        Ok(permit) => {
            assert!(is_match, "{pattern} matches {method} {url}");
            assert!(!naive::hides(url.path()), "{pattern} matches {method} {url}");
            assert_eq!(permit.allows_address(address), is_public_address(address), "{address}");
        }
        Err(why) => {
            assert!(
                !(is_match && naive::is_plain(method, url)),
                "{pattern}, {method} {url}: {why:?}"
            );
        }
    }
    let denying = policy(&format!("{own}, {{ deny = {own} }}")).expect("it can be denied too");
    let grant = self::grant(&denying, pattern).expect("the manifest is the same");
    assert!(grant.net().check_request(method, url).is_err(), "{pattern} denies {method} {url}");
}

/// What is said to be covered is covered.
fn check_covering(pattern: &str, other: &str, method: &str, url: &Url) {
    let [pattern_text, other_text] = [pattern, other].map(toml_string);
    let asking = format!("{pattern_text}, {{ allow = {other_text}, decision = 'ask' }}");
    if remarks(&asking, "never asks") && naive::matches(other, method, url) {
        assert!(naive::matches(pattern, method, url), "{pattern} covers {other}: {method} {url}");
    }
    let denying = format!("{other_text}, {{ deny = {pattern_text} }}");
    if remarks(&denying, "allows nothing") {
        let policy = policy(&denying).expect("it parsed before");
        let Some(grant) = grant(&policy, other) else { return };
        assert!(
            grant.net().check_request(method, url).is_err(),
            "{pattern}, {other}: {method} {url}"
        );
    }
}

fn remarks(net: &str, words: &str) -> bool {
    let policy = policy(net).expect("both are entries");
    let tools = BTreeSet::from(["get".parse().expect("the name is right")]);
    let installed = BTreeMap::from([("weather".parse().expect("the name is right"), tools)]);
    policy.find_remarks(&installed).iter().any(|remark| remark.message.starts_with(words))
}
