//! Refusals, and the needs that are parsed from them.

use sallyport_contract::{Decision, Denial};
use serde_json::Map;
use url::Url;

use super::{REQUESTS, manifest, net, path, policy, tool};
use crate::{
    FsAccess::{Read, ReadWrite},
    Grant,
    learn::RefusedAccess,
};

fn grant(text: &str) -> Grant {
    policy(text).effective_grant(&manifest(REQUESTS), &Map::new())
}

#[track_caller]
fn check(grant: &Grant, denial: &Denial, want: Option<RefusedAccess>) {
    assert_eq!(RefusedAccess::from_denial(grant.plugin(), denial), want, "{denial:?}");
}

/// A refusal with this sentence, from any author.
fn saying(what: &str) -> Denial {
    Denial { what: what.into(), why: "no".into(), fix: None, nobody_to_ask: false }
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
        let denial = grant.deny_address(&request, addr.parse().unwrap());
        check(&grant, &denial, Some(net(&format!("{request} {addr}"))));
    }
    let literal = grant.deny_address("GET http://[fd00::1]/", "fd00::1".parse().unwrap());
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
fn what_does_not_say_it_any_more_is_not_guessed_at() {
    let grant = grant("");
    let plugin = grant.plugin();
    let long = Url::parse(&format!("https://a.example/{}", "x".repeat(400))).unwrap();
    check(&grant, &grant.net().check_request("GET", &long).unwrap_err(), None);
    check(&grant, &grant.deny_path("/data/a\nb", Read), None);
    for what in [
        "other may not GET https://a.example/".to_owned(),
        format!("{plugin} may not rename /a to /b"),
        format!("{plugin} may not GET nothing"),
        format!("{plugin} may not dance"),
        format!("{plugin} may not GET file:///etc/passwd"),
        "may not be called".to_owned(),
        String::new(),
    ] {
        check(&grant, &saying(&what), None);
    }
}
