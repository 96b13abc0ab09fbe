//! `sallyport timer …`: timers and reminders of all plugins.

use clap::Subcommand;
use jiff::Zoned;
use sallyport_contract::{services::StoredTimer, text};
use sallyport_runtime::config::ConfigFlags;
use sallyport_schedule::{describe_moment, is_repeating};
use serde_json::{Value, json};

use super::{
    args::{Format, OutputArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

/// Most timers in a list without `--all`: one screen. JSON output contains all.
const SHOWN_MAX: usize = 20;

/// Most characters of a label in a list.
const LABEL_CHARS_MAX: usize = 60;

/// Commands for timers.
#[derive(Debug, Subcommand)]
pub(super) enum TimerCommand {
    /// List the timers of all plugins and sessions, the next to fire first
    List {
        /// List all timers, not only the first 20
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Cancel a timer of any plugin
    Cancel {
        /// The timer, by the id that the list shows
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub(super) fn timer(
    flags: &ConfigFlags,
    command: &TimerCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let timers = compose::store(&settings)?.timers();
    match command {
        TimerCommand::List { all, output } => {
            let timers = timers.all()?;
            let most = if *all { usize::MAX } else { SHOWN_MAX };
            list(&timers, most, output.output, out);
        }
        TimerCommand::Cancel { id } => {
            let timer = timers.cancel_for_any_owner(id)?.ok_or_else(|| {
                let message = format!("there is no timer {}", text::escape_excerpt(id, 40));
                let failure = Failure::new(Exit::Failed, message);
                failure.with_hint("list the timers with `sallyport timer list --all`")
            })?;
            out.line(&format!("Cancelled: {}", line(&timer, &Zoned::now())));
        }
    }
    Ok(Exit::Done)
}

fn list(timers: &[StoredTimer], most: usize, format: Format, out: &Output) {
    let now = Zoned::now();
    if format == Format::Json {
        // List all, because a program would not notice that some are missing.
        return out.json(&timers.iter().map(|timer| about(timer, &now)).collect());
    }
    let shown = timers.get(..most).unwrap_or(timers);
    shown.iter().for_each(|timer| out.line(&line(timer, &now)));
    match timers.len() - shown.len() {
        0 if timers.is_empty() => out.note("No timer is set."),
        0 => {}
        more => out.note(&format!("{more} more; show them with --all")),
    }
}

/// Formats a timer: `ID  in 5 minutes  timer  "pasta"  session 1a-2b`.
fn line(timer: &StoredTimer, now: &Zoned) -> String {
    let when = describe_moment(&timer.moment, timer.next_ms, now);
    let label = timer.label.as_deref().map(|label| text::escape_excerpt(label, LABEL_CHARS_MAX));
    let label = label.map(|label| format!("  \"{label}\"")).unwrap_or_default();
    let (id, plugin) = (&timer.id, &timer.owner.plugin);
    format!("{id}  {when}  {plugin}{label}  session {}", text::escape_line(&timer.session_id))
}

fn about(timer: &StoredTimer, now: &Zoned) -> Value {
    json!({
        "id": timer.id,
        "plugin": timer.owner.plugin.as_str(),
        "label": timer.label,
        "when": describe_moment(&timer.moment, timer.next_ms, now),
        "next_ms": timer.next_ms,
        "repeats": is_repeating(&timer.moment),
        "session_id": timer.session_id,
    })
}
