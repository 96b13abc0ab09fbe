//! `sallyport policy learn`: runs a command, and proposes grants for what a plugin was refused.
//!
//! The run itself gets no extra grants. Its refusals become the least grant that would have allowed
//! them, the user confirms it, and the command runs again until nothing is refused.

use std::sync::Arc;

use clap::Parser;
use sallyport_contract::{Denial, PluginName, text};
use sallyport_policy::{
    FsAccess, Manifest,
    edit::GrantAddition,
    learn::{PluginRefusals, PolicyProposal, RefusedAccess},
};
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    registry::PluginSelection,
};

use super::{
    args::LearnArgs,
    change::{Wish, change},
};
use crate::cli::{
    args::{Args, Command},
    call, compose,
    exit::{Exit, Failure},
    output::Output,
    run,
    watch::{Notebook, Watch},
};

/// Most runs. A plugin that is refused something new every time needs more than it declares.
const RUNS_MAX: usize = 8;

/// Runs the command.
pub(super) fn learn(
    flags: &ConfigFlags,
    args: &LearnArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let plugin = super::plugin_name(&args.plugin)?;
    let line = std::iter::once("sallyport").chain(args.command.iter().map(String::as_str));
    let inner = match Args::try_parse_from(line) {
        Ok(inner) => inner,
        Err(error) => return Ok(out.usage(&error)),
    };
    let flags = inner_flags(flags, &inner);
    let settings = compose::settings(&flags)?;
    // Check the name first: a misspelt plugin would appear to be refused nothing.
    compose::on_this_thread(proposal(&settings, &plugin, &[], out))?;
    for _ in 0..RUNS_MAX {
        let notebook = Arc::new(Notebook::default());
        let watch = Watch {
            verbose: watch.verbose || inner.verbose,
            notebook: Some(Arc::clone(&notebook)),
            ..Watch::default()
        };
        let exit = run_once(&flags, &inner.command, &watch, out)?;
        let refused = notebook.refused(&plugin);
        if refused.is_empty() {
            out.note(&format!("{plugin} was refused nothing."));
            return Ok(exit);
        }
        if exit == Exit::Interrupted || !propose(&settings, &plugin, &refused, args.yes, out)? {
            return Ok(exit);
        }
    }
    let message = format!("{plugin} was still refused something after {RUNS_MAX} runs");
    Err(Failure::new(Exit::Failed, message).with_hint("run `sallyport audit show` to see what"))
}

/// Combines the flags. Those of the inner command take precedence.
fn inner_flags(outer: &ConfigFlags, inner: &Args) -> ConfigFlags {
    let inner = inner.flags();
    let own_dirs = !inner.plugin_dirs.is_empty();
    ConfigFlags {
        plugin_dirs: if own_dirs { inner.plugin_dirs } else { outer.plugin_dirs.clone() },
        config: inner.config.or_else(|| outer.config.clone()),
        policy: inner.policy.or_else(|| outer.policy.clone()),
        ..inner
    }
}

fn run_once(
    flags: &ConfigFlags,
    command: &Command,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => compose::on_threads(run::run(flags, args, watch, out)),
        Command::Call(args) => compose::on_this_thread(call::call(flags, args, watch, out)),
        _ => {
            let failure = Failure::new(Exit::Usage, "only a call or a run can be learned from");
            Err(failure.with_hint("policy learn PLUGIN -- call PLUGIN.TOOL JSON"))
        }
    }
}

/// Shows the least grant for the refusals, and writes it after confirmation.
///
/// Returns whether another run may succeed.
fn propose(
    settings: &HostSettings,
    plugin: &PluginName,
    refused: &[Denial],
    yes: bool,
    out: &Output,
) -> Result<bool, Failure> {
    let (proposal, folder) = compose::on_this_thread(proposal(settings, plugin, refused, out))?;
    for open in &proposal.open {
        out.warn(&format!("no proposal: {open}"));
    }
    if let Some(command) = &folder {
        out.hint(&format!("choose the folder yourself: `{command}`"));
    }
    if proposal.additions.is_empty() && proposal.rules.is_empty() {
        out.note("Found no grant that would allow what was refused.");
        return Ok(false);
    }
    if yes {
        out.note("Accepted by --yes:");
    }
    let what = format!("grants what a run was refused: {}", in_words(refused));
    change(
        settings,
        &Wish { plugin: plugin.as_str(), what, yes },
        |text| proposal.apply_to(text),
        out,
    )
}

/// Returns the proposal, and the command for a folder that only the user can choose.
async fn proposal(
    settings: &HostSettings,
    plugin: &PluginName,
    refused: &[Denial],
    out: &Output,
) -> Result<(PolicyProposal, Option<String>), Failure> {
    let registry =
        compose::registry_of(settings, PluginSelection::Only(plugin.clone()), out).await?;
    let entry = registry.find_plugin(plugin.as_str()).map_err(Failure::from)?;
    let policy = registry.gate().standing.current().policy;
    let (mut learned, mut unclear) = (PluginRefusals::empty(), Vec::new());
    let mut lacks_folder = false;
    for denial in refused {
        let need = RefusedAccess::from_denial(plugin, denial);
        // A refused path, or a refusal with a fix but no need, is about a path in no granted
        // folder.
        lacks_folder |=
            matches!((&need, &denial.fix), (Some(RefusedAccess::Path { .. }) | None, Some(_)));
        match need {
            Some(need) => learned.record_refusal(need),
            None => unclear.push(text::escape_line(&format!("{}: {}", denial.what, denial.why))),
        }
    }
    let own = settings.plugin_settings.get(plugin).cloned().unwrap_or_default();
    let mut proposal =
        learned.build_proposal(entry.manifest(), &own, &policy, Some(entry.digest()));
    unclear.dedup();
    proposal.open.extend(unclear);
    let names_one =
        proposal.additions.iter().any(|addition| matches!(addition, GrantAddition::Fs(_)));
    let folder = folder_command(entry.manifest()).filter(|_| lacks_folder && !names_one);
    registry.shutdown().await;
    Ok((proposal, folder))
}

/// Returns the command that grants a folder of the user's choice, if the manifest requests one.
fn folder_command(manifest: &Manifest) -> Option<String> {
    let requests = manifest.request.fs.iter().filter(|request| request.path.is_none());
    let flag = match requests.map(|request| request.access).max()? {
        FsAccess::Read => "--read",
        FsAccess::ReadWrite => "--write",
    };
    Some(format!("sallyport policy grant {} {flag} FOLDER --mount /PATH", manifest.name))
}

/// Describes the refusals for the record, which cuts long text.
fn in_words(refused: &[Denial]) -> String {
    let mut acts: Vec<&str> = refused.iter().map(|denial| denial.what.as_str()).collect();
    acts.dedup();
    acts.join("; ")
}
