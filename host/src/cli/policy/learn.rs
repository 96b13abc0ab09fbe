//! `sallyport policy learn`: runs a command, and proposes what a plugin was refused in it.
//!
//! Nothing is granted for the run: it meets the policy as it is. What it was refused becomes the
//! least grant that would have let it through, which a person agrees to, and the command runs again,
//! until nothing is refused.

use std::sync::Arc;

use clap::Parser;
use sallyport_contract::{Denial, PluginName, text};
use sallyport_policy::learn::{Learned, Need, Proposal};

use super::{
    args::LearnArgs,
    change::{Wish, change},
};
use crate::{
    cli::{
        args::{Args, Command},
        call, compose,
        exit::{Exit, Failure},
        output::Output,
        run,
        watch::{Notebook, Watch},
    },
    config::{Flags, Settings},
    registry::{Missing, Selection},
};

/// Most runs. A plugin that is refused something new each time asks for more than it says.
const RUNS_MAX: usize = 8;

/// Runs the command.
pub(super) fn learn(
    flags: &Flags,
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
    // A name that is misspelt would be refused nothing.
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
    let message = format!("{plugin} was refused something in each of {RUNS_MAX} runs");
    Err(Failure::new(Exit::Failed, message).with_hint("`sallyport audit show` tells what"))
}

/// Flags of the inner command go before those around it.
fn inner_flags(outer: &Flags, inner: &Args) -> Flags {
    let inner = inner.flags();
    let own_dirs = !inner.plugin_dirs.is_empty();
    Flags {
        plugin_dirs: if own_dirs { inner.plugin_dirs } else { outer.plugin_dirs.clone() },
        config: inner.config.or_else(|| outer.config.clone()),
        policy: inner.policy.or_else(|| outer.policy.clone()),
        ..inner
    }
}

fn run_once(
    flags: &Flags,
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

/// Shows the least grant for what was refused, and writes it if that is agreed to. Returns whether
/// another run may go further.
fn propose(
    settings: &Settings,
    plugin: &PluginName,
    refused: &[Denial],
    yes: bool,
    out: &Output,
) -> Result<bool, Failure> {
    let proposal = compose::on_this_thread(proposal(settings, plugin, refused, out))?;
    for open in &proposal.open {
        out.warn(&format!("not proposed: {open}"));
    }
    if proposal.additions.is_empty() && proposal.rules.is_empty() {
        out.note("No grant could be proposed for what was refused.");
        return Ok(false);
    }
    if yes {
        out.note("Agreed to by --yes:");
    }
    let what = format!("grants what a run was refused: {}", in_words(refused));
    change(settings, &Wish { plugin, what, yes }, |text| proposal.apply(text), out)
}

async fn proposal(
    settings: &Settings,
    plugin: &PluginName,
    refused: &[Denial],
    out: &Output,
) -> Result<Proposal, Failure> {
    let registry = compose::registry_of(settings, Selection::Only(plugin.clone()), out).await?;
    let entry = registry.plugin(plugin.as_str()).map_err(Missing::into_failure)?;
    let policy = registry.gate().standing.present().policy;
    let (mut learned, mut unclear) = (Learned::nothing(), Vec::new());
    for denial in refused {
        match Need::of_refusal(plugin, denial) {
            Some(need) => learned.note(need),
            None => unclear.push(text::one_line(&format!("{}: {}", denial.what, denial.why))),
        }
    }
    let own = settings.plugin_settings.get(plugin).cloned().unwrap_or_default();
    let mut proposal = learned.proposal(entry.manifest(), &own, &policy, Some(entry.digest()));
    unclear.dedup();
    proposal.open.extend(unclear);
    registry.shutdown().await;
    Ok(proposal)
}

/// What was refused, for the record, which is cut where it is long.
fn in_words(refused: &[Denial]) -> String {
    let mut acts: Vec<&str> = refused.iter().map(|denial| denial.what.as_str()).collect();
    acts.dedup();
    acts.join("; ")
}
