//! Edits of policy files: the intended change, and no other.

use std::path::Path;

use sallyport_contract::{Decision, PluginName};

use crate::{
    Capability, FsAccess, Policy, RuleText,
    edit::{
        self, EditError, FsAddition, GrantAddition, NetAddition, NetReachText, RemovalTarget,
        SecretAddition, SecretUseText,
    },
    source::HintedError,
};

mod addition;
mod capability;
mod diff;
mod grant_text;
mod property;
mod removal;

fn plugin(name: &str) -> PluginName {
    name.parse().unwrap()
}

fn net(pattern: &str) -> GrantAddition {
    GrantAddition::Net(NetAddition {
        pattern: pattern.into(),
        decision: None,
        reach: NetReachText::Public,
    })
}

fn env(name: &str) -> GrantAddition {
    GrantAddition::Env(name.into())
}

fn limit(key: &str, value: &str) -> GrantAddition {
    GrantAddition::Limit { key: key.into(), value: value.into() }
}

fn folder(path: &str, access: FsAccess) -> FsAddition {
    let (path, deny) = (path.to_owned(), Vec::new());
    FsAddition { path, mount: None, access, deny, quota: None, sensitive: false }
}

fn fs(path: &str) -> GrantAddition {
    GrantAddition::Fs(folder(path, FsAccess::Read))
}

fn capability(capability: Capability, setting: Option<(&str, &str)>) -> GrantAddition {
    let setting = setting.map(|(key, value)| (key.to_owned(), value.to_owned()));
    match setting {
        Some((key, value)) => GrantAddition::capability_setting(capability, key, value),
        None => GrantAddition::capability(capability),
    }
}

fn page(pattern: &str) -> GrantAddition {
    GrantAddition::capability_item(Capability::OpenUrl, pattern)
}

fn package(text: &str) -> GrantAddition {
    GrantAddition::capability_item(Capability::Packages, text)
}

fn scratch(name: &str) -> GrantAddition {
    GrantAddition::capability_table(Capability::Scratch, &[("name", name)])
}

fn listen(at: &str) -> GrantAddition {
    GrantAddition::capability_item(Capability::Listen, at)
}

fn rule(tool: &str, decision: Decision) -> RuleText {
    RuleText { tool: tool.into(), net: None, page: None, digest: None, decision, message: None }
}

/// Grants something to the plugin `w`.
fn grant(text: &str, addition: &GrantAddition) -> Result<String, EditError> {
    edit::add_grant(text, &plugin("w"), addition)
}

/// Takes something away from the plugin `w`.
fn revoke(text: &str, target: &RemovalTarget) -> Result<String, EditError> {
    edit::revoke_grant(text, &plugin("w"), target)
}

fn reads(text: &str) -> bool {
    Policy::from_user_file("policy.toml", text, Some(Path::new("/home/me"))).is_ok()
}

/// Checks the text after an edit, that it is a policy, and that a second such edit changes nothing.
#[track_caller]
fn check_grant(before: &str, addition: &GrantAddition, want: &str) {
    let after = grant(before, addition).unwrap_or_else(|error| panic!("{error}\n{before}"));
    assert_eq!(after, want, "\n{after}");
    assert!(reads(&after), "{after}");
    assert_eq!(grant(&after, addition).as_deref(), Ok(want), "twice");
}

/// Checks the text after an edit, and that it is a policy.
#[track_caller]
fn check_revoke(before: &str, target: &RemovalTarget, want: &str) {
    let after = revoke(before, target).unwrap_or_else(|error| panic!("{error}\n{before}"));
    assert_eq!(after, want, "\n{after}");
    assert!(reads(&after), "{after}");
}

/// Checks the message and the hint (empty for none) of a refused edit.
#[track_caller]
fn check_refused(edited: Result<String, EditError>, want: &str, hint: &str) {
    let error = edited.expect_err(want);
    assert_eq!(error.to_string(), want);
    assert_eq!(error.hint().as_deref().unwrap_or_default(), hint, "{want}");
}
