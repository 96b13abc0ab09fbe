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
    call,
    command_line::{CliArgs, CliCommand},
    exit::{CommandFailure, ExitStatus},
    observers::{CallObservers, RefusalLog},
    output::CliOutput,
    policy::{
        self, LearnArgs,
        change::{PolicyChangeRequest, change_policy},
    },
    run, setup,
};

/// Most runs. A plugin that is refused something new every time needs more than it declares.
const RUNS_MAX: usize = 8;

/// Runs the command.
pub(super) fn run_learn_command(
    flags: &ConfigFlags,
    args: &LearnArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let plugin = policy::parse_plugin_name(&args.plugin)?;
    let line = std::iter::once("sallyport").chain(args.command.iter().map(String::as_str));
    let inner = match CliArgs::try_parse_from(line) {
        Ok(inner) => inner,
        Err(error) => return Ok(out.print_clap_message(&error)),
    };
    let flags = merge_flags(flags, &inner);
    let settings = setup::read_settings(&flags)?;
    // Check the name first: a misspelt plugin would appear to be refused nothing.
    setup::run_on_current_thread(build_proposal(&settings, &plugin, &[], out))?;
    for _ in 0..RUNS_MAX {
        let refusal_log = Arc::new(RefusalLog::default());
        let observers = CallObservers {
            verbose: observers.verbose || inner.verbose,
            refusal_log: Some(Arc::clone(&refusal_log)),
            ..CallObservers::default()
        };
        let exit = run_learned_command(&flags, inner.command.as_ref(), &observers, out)?;
        let denials = refusal_log.refusals_of(&plugin);
        if denials.is_empty() {
            out.print_note(&format!("{plugin} was refused nothing."));
            return Ok(exit);
        }
        if exit == ExitStatus::Interrupted
            || !propose_grant(&settings, &plugin, &denials, args.yes, out)?
        {
            return Ok(exit);
        }
    }
    let message = format!("{plugin} was still refused something after {RUNS_MAX} runs");
    Err(CommandFailure::new(ExitStatus::Failed, message)
        .with_hint("run `sallyport audit show` to see what"))
}

/// Combines the flags. Those of the inner command take precedence.
fn merge_flags(outer: &ConfigFlags, inner: &CliArgs) -> ConfigFlags {
    let inner = inner.config_flags();
    let own_dirs = !inner.plugin_dirs.is_empty();
    ConfigFlags {
        plugin_dirs: if own_dirs { inner.plugin_dirs } else { outer.plugin_dirs.clone() },
        config: inner.config.or_else(|| outer.config.clone()),
        policy: inner.policy.or_else(|| outer.policy.clone()),
        ..inner
    }
}

fn run_learned_command(
    flags: &ConfigFlags,
    command: Option<&CliCommand>,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    match command {
        Some(CliCommand::Run(args)) => {
            setup::run_on_thread_pool(run::run_prompt(flags, args, observers, out))
        }
        Some(CliCommand::Call(args)) => {
            setup::run_on_current_thread(call::run_call_command(flags, args, observers, out))
        }
        _ => {
            let failure =
                CommandFailure::new(ExitStatus::Usage, "only a call or a run can be learned from");
            Err(failure.with_hint("policy learn PLUGIN -- call PLUGIN.TOOL JSON"))
        }
    }
}

/// Shows the least grant for the refusals, and writes it after confirmation.
///
/// Returns whether another run may succeed.
fn propose_grant(
    settings: &HostSettings,
    plugin: &PluginName,
    denials: &[Denial],
    yes: bool,
    out: &CliOutput,
) -> Result<bool, CommandFailure> {
    let (proposal, folder) =
        setup::run_on_current_thread(build_proposal(settings, plugin, denials, out))?;
    for unresolved in &proposal.unresolved {
        out.print_warning(&format!("no proposal: {unresolved}"));
    }
    if let Some(command) = &folder {
        out.print_hint(&format!("choose the folder yourself: `{command}`"));
    }
    if proposal.additions.is_empty() && proposal.rules.is_empty() {
        out.print_note("Found no grant that would allow what was refused.");
        return Ok(false);
    }
    if yes {
        out.print_note("Accepted by --yes:");
    }
    let what = format!("grants what a run was refused: {}", describe_refusals(denials));
    change_policy(
        settings,
        &PolicyChangeRequest { plugin: plugin.as_str(), description: what, is_confirmed: yes },
        |text| proposal.apply_to(text),
        out,
    )
}

/// Returns the proposal, and the command for a folder that only the user can choose.
async fn build_proposal(
    settings: &HostSettings,
    plugin: &PluginName,
    denials: &[Denial],
    out: &CliOutput,
) -> Result<(PolicyProposal, Option<String>), CommandFailure> {
    let registry =
        setup::load_selected_registry(settings, PluginSelection::Only(plugin.clone()), out).await?;
    let entry = registry.find_plugin(plugin.as_str()).map_err(CommandFailure::from)?;
    let policy = registry.gate().policy_store.current().policy;
    let requested = entry.grant().requested_grants().additions;
    let (mut refusals, mut unclear) = (PluginRefusals::empty(), Vec::new());
    let (mut from_fixes, mut lacks_folder) = (Vec::new(), false);
    for denial in denials {
        let refused_access = RefusedAccess::from_denial(plugin, denial);
        // A refused path, or a refusal with a fix but no need, is about a path in no granted
        // folder.
        lacks_folder |= matches!(
            (&refused_access, &denial.fix),
            (Some(RefusedAccess::Path { .. }) | None, Some(_))
        );
        match refused_access {
            Some(refused_access) => refusals.record_refusal(refused_access),
            None => match requested_fix(denial, &requested) {
                Some(additions) => from_fixes.extend(additions),
                None => unclear.push(text::escape_line(&denial.to_string())),
            },
        }
    }
    let plugin_settings = settings.plugin_settings.get(plugin).cloned().unwrap_or_default();
    let mut proposal =
        refusals.build_proposal(entry.manifest(), &plugin_settings, &policy, Some(entry.digest()));
    from_fixes.retain(|addition| !proposal.additions.contains(addition));
    from_fixes.dedup();
    proposal.additions.extend(from_fixes);
    unclear.dedup();
    proposal.unresolved.extend(unclear);
    let adds_folder =
        proposal.additions.iter().any(|addition| matches!(addition, GrantAddition::Fs(_)));
    let folder = folder_command(entry.manifest()).filter(|_| lacks_folder && !adds_folder);
    registry.shutdown().await;
    Ok((proposal, folder))
}

/// Returns the grants that a refusal's fix names, if the plugin requests all of them as they are.
fn requested_fix(denial: &Denial, requested: &[GrantAddition]) -> Option<Vec<GrantAddition>> {
    let grants = &denial.fix.as_ref()?.grants;
    let named = requested.iter().filter(|addition| grants.contains(&addition.to_fix_grant()));
    let additions: Vec<_> = named.cloned().collect();
    (!additions.is_empty() && additions.len() == grants.len()).then_some(additions)
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
fn describe_refusals(denials: &[Denial]) -> String {
    let mut descriptions: Vec<_> =
        denials.iter().map(|denial| denial.subject.to_string()).collect();
    descriptions.dedup();
    descriptions.join("; ")
}
