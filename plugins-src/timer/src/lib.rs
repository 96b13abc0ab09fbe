//! Timers that notify the user, even after a restart.

mod store;
mod words;

use sallyport_sdk::{
    notify::{self, Audience, Message},
    prelude::*,
    schedule::Firing,
};

use store::Running;

/// Maximum duration of a timer, in seconds: a year.
const DURATION_SECONDS_MAX: u64 = 365 * 24 * 60 * 60;

/// Maximum length of a label, in characters.
const LABEL_CHARS_MAX: usize = 80;

/// How long, and what for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetTimer {
    /// How long the timer runs, in seconds: 480 for eight minutes.
    #[schemars(range(min = 1, max = DURATION_SECONDS_MAX))]
    duration: Option<u64>,
    /// Another name of `duration`; give one of the two.
    #[schemars(range(min = 1, max = DURATION_SECONDS_MAX))]
    duration_seconds: Option<u64>,
    /// What the timer is for, such as "pasta".
    label: Option<String>,
}

impl SetTimer {
    /// Returns the duration, from either argument.
    fn seconds(&self) -> Result<u64, ToolError> {
        let invalid = |reason| Err(ToolError::InvalidArguments(reason));
        match (self.duration, self.duration_seconds) {
            (None, None) => {
                invalid("argument `duration` is missing: say how many seconds".to_owned())
            }
            (Some(one), Some(other)) if one != other => {
                invalid("`duration` and `duration_seconds` differ: give one of the two".to_owned())
            }
            (Some(seconds), _) | (None, Some(seconds)) => match seconds {
                1..=DURATION_SECONDS_MAX => Ok(seconds),
                _ => invalid(format!(
                    "argument `duration`: a timer runs from 1 to {DURATION_SECONDS_MAX} seconds"
                )),
            },
        }
    }
}

/// Which timer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelTimer {
    /// The label that the timer was set with. The most recent timer when absent.
    label: Option<String>,
}

/// A timer that runs.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct TimerReport {
    /// Names the timer.
    id: String,
    /// How long it runs in all, in words.
    duration: String,
    /// The same in seconds.
    duration_seconds: u64,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// How long it still runs, in seconds.
    remaining_seconds: u64,
}

/// The timers that run.
#[derive(Debug, Serialize, JsonSchema)]
struct TimerList {
    /// The next to end first.
    timers: Vec<TimerReport>,
}

/// Sets a timer for cooking, a break or anything else. The user is told when it ends, even if this
/// conversation has ended by then.
#[tool(destructive = false, idempotent = false, open_world = false)]
fn set_timer(args: SetTimer) -> Result<Output<TimerReport>, ToolError> {
    let seconds = args.seconds()?;
    let running = store::add(seconds, label(args.label.as_deref())?)?;
    let duration = words::duration(seconds);
    let speech = match running.label() {
        Some(label) => format!("Timer set for {duration} for {label}."),
        None => format!("Timer set for {duration}."),
    };
    Ok(Output::new(running.into()).speech(speech))
}

/// Cancels a timer: the one with that label, or the most recent one.
#[tool(destructive, idempotent = false, open_world = false)]
fn cancel_timer(
    args: CancelTimer,
    context: &CallContext,
) -> Result<Output<TimerReport>, ToolError> {
    let label = label(args.label.as_deref())?;
    let running = store::cancel(label.as_deref(), context)?
        .ok_or_else(|| ToolError::NotFound("No matching timer found".to_owned()))?;
    let speech = format!("The {} is cancelled.", words::name(&running));
    Ok(Output::new(running.into()).speech(speech))
}

/// Lists the timers that run, with the time that is left of each.
#[tool(read_only, idempotent = false, open_world = false)]
fn list_timers(context: &CallContext) -> Result<Output<TimerList>, ToolError> {
    let running = store::list(context)?;
    let speech = words::summary(&running);
    let timers = running.into_iter().map(Into::into).collect();
    Ok(Output::new(TimerList { timers }).speech(speech))
}

/// Notifies the user that a timer has ended.
fn ring(firing: Firing, context: &CallContext) -> Result<(), ToolError> {
    if store::is_left_over(&firing, context)? {
        return Ok(());
    }
    let text = words::rings(&firing);
    let message = Message::new(&text).speech(text).to(Audience::User);
    Ok(notify::send(&message)?)
}

fn label(given: Option<&str>) -> Result<Option<String>, ToolError> {
    let Some(label) = given.map(str::trim).filter(|label| !label.is_empty()) else {
        return Ok(None);
    };
    if label.chars().count() > LABEL_CHARS_MAX || label.contains(char::is_control) {
        let reason = format!("a label is one line of at most {LABEL_CHARS_MAX} characters");
        return Err(ToolError::InvalidArguments(format!("argument `label`: {reason}")));
    }
    Ok(Some(label.to_owned()))
}

impl From<Running> for TimerReport {
    fn from(running: Running) -> Self {
        Self {
            duration: words::duration(running.note.seconds),
            duration_seconds: running.note.seconds,
            remaining_seconds: running.remaining_seconds(),
            id: running.timer.id,
            label: running.timer.label,
        }
    }
}

sallyport_sdk::export_plugin!(tools = [set_timer, cancel_timer, list_timers], on_timer = ring,);

#[cfg(test)]
mod tests;
