//! `sallyport policy check`: reads the policy and says what it comes to.

use std::sync::Arc;

use sallyport_contract::text;

use super::{
    args::PolicyCommand,
    compose,
    exit::{Exit, Failure},
    output::Output,
};
use crate::{config::Flags, session::NobodyToAsk};

pub(super) async fn policy(
    flags: &Flags,
    command: &PolicyCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let PolicyCommand::Check = command;
    let settings = compose::settings(flags)?;
    let registry = compose::registry(&settings, Arc::new(NobodyToAsk), out).await;
    let file = &settings.policy_file;
    if file.exists() {
        out.line(&format!("{} is sound.", file.display()));
    } else {
        out.line(&format!("{} does not exist: nothing is granted.", file.display()));
    }
    for entry in registry.entries() {
        out.line("");
        out.heading(entry.name().as_str());
        let powers = entry.grant().powers();
        if powers.is_empty() {
            out.line("  can do nothing but compute");
        }
        for power in powers {
            out.line(&format!("  can {}", text::one_line(&power)));
        }
        for tool in entry.tools() {
            let verdict = settings.policy.decide(&tool.id, entry.grant());
            let reason = text::one_line(&verdict.reason);
            out.line(&format!("  {}: {} ({reason})", tool.id.tool, verdict.decision.word()));
        }
        for note in entry.grant().notes() {
            out.line(&format!("  note: {}", text::one_line(note)));
        }
    }
    for name in settings.policy.plugins().filter(|name| registry.plugin(name.as_str()).is_err()) {
        out.warn(&format!("the policy speaks about {name}, which is not installed"));
    }
    registry.shutdown().await;
    Ok(Exit::Done)
}
