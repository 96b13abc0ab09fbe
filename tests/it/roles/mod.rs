//! Roles: what a plugin is told and answers beside tools, and what stops it where it goes too far.

mod guide;
mod http;
mod listener;
mod load;
mod pages;
mod program;
mod provider;
mod timers;
mod ui;

use sallyport_contract::{AdmittedCall, CallReport, Effect};
use serde_json::json;

use crate::support::{Guarded, Scripted};

/// The end of a manifest that plays every role.
pub(crate) const ROLES: &str = r#"
roles = ["provider", "listener", "guide", "ui"]
    [[request.schedule]]
    why = "tests"
    [[request.listen]]
    kind = "http"
    why = "tests"
    [[request.ui]]
    confirm = true
    why = "tests"
"#;

/// The table of a policy that grants all of it.
pub(crate) const GRANTS: &str = r#"
    [plugin.player]
    schedule = true
    listen = ["http://127.0.0.1:0/hooks"]
    ui = { confirm = true }
"#;

/// Limits that a hostile run meets soon.
const LIMITS: &str = r#"limits = { time = "300ms", output = "64KiB" }"#;

/// A player under a policy with everything granted; `more` are further lines of its table.
fn warden(more: &str) -> Scripted {
    Scripted::new("player", ROLES, &format!("{GRANTS}\n{more}"))
}

/// One of its runs, let through.
fn admitted(player: &Guarded, role: &str) -> AdmittedCall {
    player.admitted(&format!("role:{role}"), &json!({}))
}

/// What a run did through a capability.
fn used(report: &CallReport) -> Vec<&str> {
    let used = report.effects.iter().filter_map(|effect| match effect {
        Effect::Used { what, .. } => Some(what.as_str()),
        _ => None,
    });
    used.collect()
}

/// What a run was refused.
fn refused(report: &CallReport) -> Vec<String> {
    let refused = report.effects.iter().filter_map(|effect| match effect {
        Effect::Refused(denial) => Some(denial.subject.to_string()),
        _ => None,
    });
    refused.collect()
}
