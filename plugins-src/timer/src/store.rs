//! The timers of the host, with this plugin's note on each.

use std::time::Duration;

use sallyport_sdk::{
    prelude::*,
    schedule::{self, Firing, Moment, Timer},
    settings, state,
};

/// The key of the timer counter.
const COUNT: &str = "count";

/// The note on a timer. The host returns it with the timer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The full duration, in seconds.
    pub(crate) seconds: u64,
    /// A counter. The highest number is the most recent timer, even if the clock was changed.
    number: u64,
    /// The time at which it was set, in milliseconds since 1970.
    set_ms: u64,
}

/// A running timer.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) timer: Timer,
    pub(crate) note: Note,
}

impl Running {
    pub(crate) fn label(&self) -> Option<&str> {
        self.timer.label.as_deref()
    }

    /// Returns the remaining seconds, rounded up.
    pub(crate) fn remaining_seconds(&self) -> u64 {
        self.timer.next_ms.saturating_sub(schedule::now_ms()).div_ceil(1_000)
    }
}

/// Sets a timer.
///
/// # Errors
///
/// The store fails.
pub(crate) fn add(seconds: u64, label: Option<String>) -> Result<Running, ToolError> {
    let number = state::update(COUNT, |count: Option<u64>| count.unwrap_or(0).saturating_add(1))?;
    let note = Note { seconds, number, set_ms: schedule::now_ms() };
    let moment = Moment::In(Duration::from_secs(seconds));
    let timer = schedule::add(moment, label.as_deref(), &note)?;
    Ok(Running { timer, note })
}

/// Cancels the timer with that label, or the most recent one, and returns it.
///
/// # Errors
///
/// The store fails.
pub(crate) fn cancel(
    label: Option<&str>,
    context: &CallContext,
) -> Result<Option<Running>, ToolError> {
    let label = label.map(str::to_lowercase);
    let matching = list(context)?.into_iter().filter(|running| match &label {
        Some(label) => running.label().is_some_and(|own| own.to_lowercase() == *label),
        None => true,
    });
    let Some(found) = matching.max_by_key(|running| running.note.number) else { return Ok(None) };
    // The timer may have fired since the list was read.
    let was_there = schedule::cancel(&found.timer.id)?;
    Ok(was_there.then_some(found))
}

/// Lists the running timers, the next to end first. Timers from an earlier run of the host are
/// cancelled unless the setting `keep` applies.
///
/// # Errors
///
/// The store or the setting fails.
pub(crate) fn list(context: &CallContext) -> Result<Vec<Running>, ToolError> {
    let keeps = keeps()?;
    let mut all = Vec::new();
    for timer in schedule::list()? {
        let Ok(note) = timer.payload_as::<Note>() else { continue };
        if !keeps && is_older(&note, context).unwrap_or(false) {
            schedule::cancel(&timer.id)?;
        } else {
            all.push(Running { timer, note });
        }
    }
    Ok(all)
}

/// Returns whether a timer that fires belongs to an earlier run of the host and should have ended
/// with it. If the host does not report its start, a timer that fires late counts as one.
///
/// # Errors
///
/// The setting or the note is invalid.
pub(crate) fn is_left_over(firing: &Firing, context: &CallContext) -> Result<bool, ToolError> {
    if keeps()? {
        return Ok(false);
    }
    let note: Note = firing.timer.payload_as()?;
    Ok(is_older(&note, context).unwrap_or(firing.late))
}

fn keeps() -> Result<bool, ToolError> {
    Ok(settings::get::<Option<bool>>("keep")?.unwrap_or(true))
}

fn is_older(note: &Note, context: &CallContext) -> Option<bool> {
    context.host_started_ms.map(|started_ms| note.set_ms < started_ms)
}
