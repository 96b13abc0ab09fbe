//! Edits of policy files: the intended change, and no other.

use std::path::Path;

use sallyport_contract::{Decision, PluginName};

use crate::{
    Access, Capability, Policy, RuleText,
    edit::{
        self, Addition, CapabilityAddition, EditError, FsAddition, ListenAddition, NetAddition,
        ReachText, ScratchAddition, Target,
    },
    source::Mistake,
};

mod addition;
mod capability;
mod diff;
mod property;
mod removal;

fn plugin(name: &str) -> PluginName {
    name.parse().unwrap()
}

fn net(pattern: &str) -> Addition {
    Addition::Net(NetAddition { pattern: pattern.into(), decision: None, reach: ReachText::Public })
}

fn env(name: &str) -> Addition {
    Addition::Env(name.into())
}

fn limit(key: &str, value: &str) -> Addition {
    Addition::Limit { key: key.into(), value: value.into() }
}

fn folder(path: &str, access: Access) -> FsAddition {
    let (path, deny) = (path.to_owned(), Vec::new());
    FsAddition { path, mount: None, access, deny, quota: None, sensitive: false }
}

fn fs(path: &str) -> Addition {
    Addition::Fs(folder(path, Access::Read))
}

fn capability(capability: Capability, setting: Option<(&str, &str)>) -> Addition {
    let setting = setting.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Addition::Capability(CapabilityAddition { capability, setting })
}

fn page(pattern: &str) -> Addition {
    Addition::Page(pattern.into())
}

fn package(text: &str) -> Addition {
    Addition::Package(text.into())
}

fn scratch(name: &str) -> Addition {
    Addition::Scratch(ScratchAddition { name: name.into(), mount: None, quota: None })
}

fn listen(at: &str) -> Addition {
    Addition::Listen(ListenAddition { at: at.into(), public: false })
}

fn rule(tool: &str, decision: Decision) -> RuleText {
    RuleText { tool: tool.into(), net: None, open_url: None, digest: None, decision, message: None }
}

/// Grants something to the plugin `w`.
fn grant(text: &str, addition: &Addition) -> Result<String, EditError> {
    edit::grant(text, &plugin("w"), addition)
}

/// Takes something away from the plugin `w`.
fn revoke(text: &str, target: &Target) -> Result<String, EditError> {
    edit::revoke(text, &plugin("w"), target)
}

fn reads(text: &str) -> bool {
    Policy::of_user("policy.toml", text, Some(Path::new("/home/me"))).is_ok()
}

/// Checks the text after an edit, that it is a policy, and that a second such edit changes nothing.
#[track_caller]
fn check_grant(before: &str, addition: &Addition, want: &str) {
    let after = grant(before, addition).unwrap_or_else(|error| panic!("{error}\n{before}"));
    assert_eq!(after, want, "\n{after}");
    assert!(reads(&after), "{after}");
    assert_eq!(grant(&after, addition).as_deref(), Ok(want), "twice");
}

/// Checks the text after an edit, and that it is a policy.
#[track_caller]
fn check_revoke(before: &str, target: &Target, want: &str) {
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
