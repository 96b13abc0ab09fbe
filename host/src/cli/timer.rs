//! `sallyport timer …`: the timers and reminders that are set, whoever set them.

use clap::Subcommand;
use jiff::Zoned;
use sallyport_contract::{services::Timer, text};
use sallyport_schedule::{describe, repeats};
use serde_json::{Value, json};

use super::{
    args::{Format, OutputArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
};
use crate::config::Flags;

/// Most timers that are shown when not all are asked for: a screen of them.
const SHOWN_MAX: usize = 20;

/// Most characters of a label in a list.
const LABEL_CHARS_MAX: usize = 60;

/// What can be done with timers.
#[derive(Debug, Subcommand)]
pub(super) enum TimerCommand {
    /// List the timers of all plugins and sessions, the next to fire first
    List {
        /// Every timer, however many there are
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Cancel a timer, whoever set it
    Cancel {
        /// The timer, by the id that the list shows
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub(super) fn timer(flags: &Flags, command: &TimerCommand, out: &Output) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let timers = compose::store(&settings)?.timers();
    match command {
        TimerCommand::List { all, output } => {
            let timers = timers.all()?;
            let most = if *all { usize::MAX } else { SHOWN_MAX };
            list(&timers, most, output.output, out);
        }
        TimerCommand::Cancel { id } => {
            let timer = timers.cancel_any(id)?.ok_or_else(|| {
                let message = format!("there is no timer {}", text::excerpt(id, 40));
                let failure = Failure::new(Exit::Failed, message);
                failure.with_hint("`sallyport timer list --all` shows which there are")
            })?;
            out.line(&format!("Cancelled: {}", line(&timer, &Zoned::now())));
        }
    }
    Ok(Exit::Done)
}

fn list(timers: &[Timer], most: usize, format: Format, out: &Output) {
    let (shown, now) = (&timers[..timers.len().min(most)], Zoned::now());
    if format == Format::Json {
        return out.json(&shown.iter().map(|timer| about(timer, &now)).collect());
    }
    shown.iter().for_each(|timer| out.line(&line(timer, &now)));
    match timers.len() - shown.len() {
        0 if timers.is_empty() => out.note("No timer is set."),
        0 => {}
        more => out.note(&format!("{more} more; --all shows them")),
    }
}

/// `ID  in 5 minutes  timer  "pasta"  session 1a-2b`.
fn line(timer: &Timer, now: &Zoned) -> String {
    let when = describe(&timer.moment, timer.next_ms, now);
    let label = timer.label.as_deref().map(|label| text::excerpt(label, LABEL_CHARS_MAX));
    let label = label.map(|label| format!("  \"{label}\"")).unwrap_or_default();
    let (id, plugin) = (&timer.id, &timer.owner.plugin);
    format!("{id}  {when}  {plugin}{label}  session {}", text::one_line(&timer.session_id))
}

fn about(timer: &Timer, now: &Zoned) -> Value {
    json!({
        "id": timer.id,
        "plugin": timer.owner.plugin.as_str(),
        "label": timer.label,
        "when": describe(&timer.moment, timer.next_ms, now),
        "next_ms": timer.next_ms,
        "repeats": repeats(&timer.moment),
        "session_id": timer.session_id,
    })
}
