//! Refusals, and the needs that are parsed from them.

use sallyport_contract::{Decision, Denial};
use serde_json::Map;
use url::Url;

use super::{REQUESTS, manifest, net, path, policy, tool};
use crate::{
    Capability,
    FsAccess::{Read, ReadWrite},
    Grant,
    learn::RefusedAccess,
    tests::deny_address,
};

fn grant(text: &str) -> Grant {
    policy(text).effective_grant(&manifest(REQUESTS), &Map::new())
}

#[track_caller]
fn check(grant: &Grant, denial: &Denial, want: Option<RefusedAccess>) {
    assert_eq!(RefusedAccess::from_denial(grant.plugin(), denial), want, "{denial:?}");
}

#[test]
fn every_refusal_of_the_host_says_what_it_was_about() {
    let grant = grant("");
    for request in ["GET https://api.example.com/v1/a", "PUT https://evil.example:8443/"] {
        let (method, url) = request.split_once(' ').unwrap();
        let denial = grant.net().check_request(method, &Url::parse(url).unwrap()).unwrap_err();
        check(&grant, &denial, Some(net(request)));
    }
    for (host, addr) in [("intern.example", "10.0.0.7"), ("localhost:8080", "127.0.0.1")] {
        let request = format!("GET http://{host}/x");
        let denial = deny_address(&grant, &request, addr.parse().unwrap());
        check(&grant, &denial, Some(net(&format!("{request} {addr}"))));
    }
    let literal = deny_address(&grant, "GET http://[fd00::1]/", "fd00::1".parse().unwrap());
    check(&grant, &literal, Some(net("GET http://[fd00::1]/ fd00::1")));
    for access in [Read, ReadWrite] {
        check(&grant, &grant.deny_path("/data/a b", access), Some(path("/data/a b", access)));
    }
    for name in ["pin", "key", "no name"] {
        check(&grant, &grant.deny_secret(name), Some(RefusedAccess::Secret(name.into())));
    }
}

#[test]
fn a_refused_call_says_which() {
    let grant = grant("");
    let id = tool(&format!("{}.act", grant.plugin()));
    let verdict = policy("").expected_verdict(&id, "", &grant);
    assert_eq!(verdict.decision, Decision::Allow);
    check(&grant, &verdict.to_denial(&id), Some(RefusedAccess::Call(id)));
}

#[test]
fn what_a_sentence_would_cut_or_escape_is_known_all_the_same() {
    let grant = grant("");
    let long = format!("GET https://a.example/{}", "x".repeat(400));
    let url = Url::parse(long.strip_prefix("GET ").unwrap()).unwrap();
    check(&grant, &grant.net().check_request("GET", &url).unwrap_err(), Some(net(&long)));
    check(&grant, &grant.deny_path("/data/a\nb", Read), Some(path("/data/a\nb", Read)));
}

#[test]
fn what_is_too_long_or_about_another_plugin_is_not_guessed_at() {
    let grant = grant("");
    let too_long = "x".repeat(1 << 20);
    let denial = grant.deny_path(&too_long, Read);
    assert!(format!("{denial:?}").len() < 2000);
    check(&grant, &denial, None);
    let other = Grant::empty("other".parse().unwrap());
    check(&grant, &other.deny_path("/data/a", Read), None);
    check(&grant, &other.deny_capability(Capability::State, "keep it"), None);
}

#[test]
fn a_sentence_is_not_taken_apart() {
    let grant = grant("");
    let plugin = grant.plugin();
    for what in [
        "other may not GET https://a.example/".to_owned(),
        format!("{plugin} may not GET https://a.example/"),
        format!("{plugin} may not read /data/a"),
        format!("{plugin} may not rename /a to /b"),
        format!("{plugin}.act may not be called"),
        "may not be called".to_owned(),
        String::new(),
    ] {
        check(&grant, &Denial::new(what, "no"), None);
    }
}
