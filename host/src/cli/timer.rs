//! `sallyport timer …`: timers and reminders of all plugins.

use clap::Subcommand;
use jiff::Zoned;
use sallyport_contract::{services::StoredTimer, text};
use sallyport_runtime::config::ConfigFlags;
use sallyport_schedule::{describe_moment, is_repeating};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

/// Most timers in a list without `--all`: one screen. JSON output contains all.
const SHOWN_MAX: usize = 20;

// Commands for timers.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum TimerCommand {
    /// List the timers of all plugins and sessions, the next to fire first
    #[command(visible_alias = "ls")]
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

pub(super) async fn run_timer_command(
    flags: &ConfigFlags,
    command: &TimerCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let timers = setup::open_store(&settings)?.timers;
    match command {
        TimerCommand::List { all, output } => {
            let timers = timers.all().await?;
            let count_max = if *all { usize::MAX } else { SHOWN_MAX };
            print_timers(&timers, count_max, output.output, out);
        }
        TimerCommand::Cancel { id } => {
            let timer = timers.cancel_for_any_owner(id).await?.ok_or_else(|| {
                let message = format!("there is no timer {}", text::escape_excerpt(id, 40));
                let failure = CommandFailure::new(ExitStatus::Failed, message);
                failure.with_hint("list the timers with `sallyport timer list --all`")
            })?;
            out.print_line(&format!(
                "Cancelled: {}",
                text::escape_line(&timer_cells(&timer, &Zoned::now()).join("  "))
            ));
        }
    }
    Ok(ExitStatus::Done)
}

fn print_timers(timers: &[StoredTimer], count_max: usize, format: OutputFormat, out: &CliOutput) {
    let now = Zoned::now();
    if format == OutputFormat::Json {
        // List all, because a program would not notice that some are missing.
        return out.print_json(&timers.iter().map(|timer| timer_to_json(timer, &now)).collect());
    }
    let shown = timers.get(..count_max).unwrap_or(timers);
    let row = |timer: &StoredTimer| ListRow::new(timer_cells(timer, &now));
    out.print_list(&shown.iter().map(row).collect::<Vec<_>>());
    match timers.len() - shown.len() {
        0 if timers.is_empty() => out.print_note(
            "No timer is set. Ask for one in a chat, such as \"remind me of the oven in 20 minutes\".",
        ),
        0 => {}
        more => out.print_note(&format!("{more} more; show them with --all")),
    }
}

/// Describes a timer: `ID`, `in 5 minutes`, `timer`, `"pasta"`, `session 1a-2b`.
fn timer_cells(timer: &StoredTimer, now: &Zoned) -> [String; 5] {
    let when = describe_moment(&timer.schedule, timer.next_ms, now);
    let label = timer.label.as_ref().map(|label| format!("\"{label}\"")).unwrap_or_default();
    let session = format!("session {}", timer.session_id);
    [timer.id.clone(), when, timer.owner.plugin.to_string(), label, session]
}

fn timer_to_json(timer: &StoredTimer, now: &Zoned) -> Value {
    json!({
        "id": timer.id,
        "plugin": timer.owner.plugin.as_str(),
        "label": timer.label,
        "when": describe_moment(&timer.schedule, timer.next_ms, now),
        "next_ms": timer.next_ms,
        "repeats": is_repeating(&timer.schedule),
        "session_id": timer.session_id,
    })
}
