//! Tests of the crate as its users see it, in rows of data.

use std::{net::IpAddr, path::Path};

use sallyport_contract::{Decision, Denial, ToolId};
use serde_json::{Map, Value};
use url::Url;

use crate::{Grant, Manifest, Policy, SourceError};

mod decision;
mod document;
mod fix;
mod folder;
mod hostile;
mod limits;
mod manifest;
mod network;
mod policy_errors;
mod property;

/// Asks for all of the network that the tests use, for any folder, and for two variables.
const GREEDY: &str = r#"
    [[request.net]]
    allow = "* https://api.example.com/**"
    why = "w"
    [[request.net]]
    allow = "* https://*.example.com/**"
    why = "w"
    [[request.net]]
    allow = "* http://127.0.0.1:8080/**"
    why = "w"
    [[request.net]]
    allow = "* http://localhost:8080/**"
    why = "w"
    [[request.net]]
    allow = "* https://[::1]/**"
    why = "w"
    [[request.net]]
    allow = "* https://intern.example/**"
    why = "w"
    [[request.fs]]
    access = "read-write"
    why = "w"
    [[request.env]]
    name = "TZ"
    why = "w"
    [[request.env]]
    name = "LANG"
    why = "w"
"#;

fn manifest(body: &str) -> Manifest {
    let head = "name = 'weather'\nversion = '1.0.0'\ndescription = 'd'\n";
    Manifest::parse("plugin.toml", &format!("{head}{body}")).unwrap()
}

fn parse_policy(text: &str) -> Result<Policy, SourceError> {
    Policy::parse("policy.toml", text, Some(Path::new("/home/me")))
}

fn policy(text: &str) -> Policy {
    parse_policy(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The grant of a plugin whose policy has this `net` list and whose manifest asks for everything.
fn net_grant(net: &str) -> Grant {
    grant(&format!("[plugin.weather]\nnet = {net}"), GREEDY)
}

fn grant(policy_text: &str, manifest_body: &str) -> Grant {
    policy(policy_text).grant(&manifest(manifest_body), &Map::new())
}

fn settings(pairs: &[(&str, &str)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
}

/// Sends `METHOD URL` through the check.
fn send(grant: &Grant, request: &str) -> Result<(), Denial> {
    let (method, url) = request.split_once(' ').unwrap();
    grant.net().check(method, &Url::parse(url).unwrap()).map(|_| ())
}

/// Sends `METHOD URL` and looks at an address that the host name might lead to.
fn reaches(grant: &Grant, request: &str, addr: &str) -> bool {
    let (method, url) = request.split_once(' ').unwrap();
    let url = Url::parse(url).unwrap();
    let addr: IpAddr = addr.parse().unwrap();
    grant.net().check(method, &url).is_ok_and(|permit| permit.allows_address(addr))
}

fn tool(text: &str) -> ToolId {
    text.parse().unwrap()
}

fn decide(policy: &Policy, grant: &Grant, id: &str) -> (Decision, String) {
    let verdict = policy.decide(&tool(id), grant);
    (verdict.decision, verdict.reason)
}

/// Checks where a file is refused, in which words, and with which hint (empty for none).
#[track_caller]
fn check_error<T: std::fmt::Debug>(parsed: Result<T, SourceError>, want: &str, hint: &str) {
    let error = parsed.expect_err(want);
    assert_eq!(error.to_string(), want);
    assert_eq!(error.hint.as_deref().unwrap_or_default(), hint, "{want}");
}
