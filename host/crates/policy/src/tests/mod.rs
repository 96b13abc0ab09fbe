//! Tests of the crate from its users' point of view, as tables of data.

use std::{net::IpAddr, path::Path};

use sallyport_contract::{Decision, Denial, ToolCallContext, ToolId};
use serde_json::{Map, Value, json};
use url::Url;

use crate::{
    Grant, Manifest, Policy, PolicyQuestion, PolicyVerdict, SourceError, group::NO_LOGIN_GROUPS,
};

mod access;
mod action_rules;
mod asking;
mod capability;
mod check;
mod condition;
mod decision;
mod denied_files;
mod document;
mod edit;
mod explain;
mod fix;
mod fix_tiers;
mod folder;
mod glob;
pub(crate) mod grammar;
mod grammar_rules;
mod grant_choice;
mod group;
mod hostile;
mod learn;
mod limits;
mod manifest;
mod network;
mod policy_errors;
mod property;
mod property_rules;
mod property_tiers;
mod property_urls;
mod proxy;
mod rules;
mod secret;
mod tiers;

/// The digest of every component in these tests.
const DIGEST: &str = "16ee56a487a0c4c3c29a6d1cf9d5ee4a17e0a5b6c7d8e9f00112233445566778";

/// Requests all of the network that the tests use, any folder, two variables, two secrets and every
/// capability.
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
    [[request.secrets]]
    name = "key"
    reveal = true
    why = "w"
    [[request.secrets]]
    name = "pin"
    reveal = true
    why = "w"
    [[request.state]]
    why = "w"
    [[request.schedule]]
    why = "w"
    [[request.notify]]
    why = "w"
    [[request.progress]]
    why = "w"
    [[request.open-url]]
    why = "w"
    [[request.packages]]
    why = "w"
    [[request.scratch]]
    name = "sandbox"
    why = "w"
    [[request.listen]]
    kind = "http"
    why = "w"
    [[request.listen]]
    kind = "websocket"
    why = "w"
    [[request.listen]]
    kind = "stdin"
    why = "w"
    [[request.ui]]
    confirm = true
    why = "w"
    [[request.process]]
    why = "w"
"#;

fn manifest(body: &str) -> Manifest {
    let head = "name = 'weather'\nversion = '1.0.0'\ndescription = 'd'\n";
    Manifest::parse("plugin.toml", &format!("{head}{body}")).unwrap()
}

fn parse_policy(text: &str) -> Result<Policy, SourceError> {
    Policy::from_user_file("policy.toml", text, Some(Path::new("/home/me")))
}

fn policy(text: &str) -> Policy {
    parse_policy(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The grant of a plugin whose policy has this `net` list and whose manifest requests everything.
fn net_grant(net: &str) -> Grant {
    grant(&format!("[plugin.weather]\nnet = {net}"), GREEDY)
}

fn grant(policy_text: &str, manifest_body: &str) -> Grant {
    policy(policy_text).effective_grant(&manifest(manifest_body), &Map::new())
}

fn settings(pairs: &[(&str, &str)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
}

/// Checks `METHOD URL` against the grant.
fn send(grant: &Grant, request: &str) -> Result<(), Denial> {
    let (method, url) = request.split_once(' ').unwrap();
    grant.net().check_request(method, &Url::parse(url).unwrap()).map(|_| ())
}

/// Checks `METHOD URL`, and an address that the host name might resolve to.
fn reaches(grant: &Grant, request: &str, addr: &str) -> bool {
    let (method, url) = request.split_once(' ').unwrap();
    let url = Url::parse(url).unwrap();
    let addr: IpAddr = addr.parse().unwrap();
    grant.net().check_request(method, &url).is_ok_and(|permit| permit.allows_address(addr))
}

fn tool(text: &str) -> ToolId {
    text.parse().unwrap()
}

/// A question of a user who never logged in at an identity server.
fn question_about<'a>(
    tool: &'a ToolId,
    arguments: &'a Value,
    context: &'a ToolCallContext,
) -> PolicyQuestion<'a> {
    PolicyQuestion { tool, digest: DIGEST, arguments, context, login_groups: &NO_LOGIN_GROUPS }
}

/// The verdict on a call without arguments, of the component with the digest [`DIGEST`].
fn verdict(policy: &Policy, grant: &Grant, id: &str) -> PolicyVerdict {
    verdict_with(policy, grant, id, &json!({}))
}

fn verdict_with(policy: &Policy, grant: &Grant, id: &str, arguments: &Value) -> PolicyVerdict {
    let context = ToolCallContext::default();
    let id = tool(id);
    let question = question_about(&id, arguments, &context);
    policy.decide_call(&question, grant)
}

fn decide(policy: &Policy, grant: &Grant, id: &str) -> (Decision, String) {
    let verdict = verdict(policy, grant, id);
    (verdict.decision, verdict.reason)
}

/// Checks the place, the message and the hint (empty for none) of a refused file.
#[track_caller]
fn check_error<T: std::fmt::Debug>(parsed: Result<T, SourceError>, want: &str, hint: &str) {
    let error = parsed.expect_err(want);
    assert_eq!(error.to_string(), want);
    assert_eq!(error.hint.as_deref().unwrap_or_default(), hint, "{want}");
}

/// The refusal of an address, for a request as `METHOD URL`.
fn deny_address(grant: &Grant, request: &str, addr: IpAddr) -> Denial {
    let (method, url) = request.split_once(' ').unwrap();
    grant.deny_address(method, &Url::parse(url).unwrap(), addr)
}
