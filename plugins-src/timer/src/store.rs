//! The timers as the host keeps them, and what this plugin notes on each.

use std::time::Duration;

use sallyport_sdk::{
    prelude::*,
    schedule::{self, Firing, Moment, Timer},
    settings, state,
};

/// The key under which timers are counted.
const COUNT: &str = "count";

/// What is noted on a timer; the host brings it back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note {
    /// How long it runs in all.
    pub(crate) seconds: u64,
    /// Counts up: the highest is the most recent, whatever the clock says.
    number: u64,
    /// When it was set, in milliseconds since 1970.
    set_ms: u64,
}

/// A timer that runs.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) timer: Timer,
    pub(crate) note: Note,
}

impl Running {
    pub(crate) fn label(&self) -> Option<&str> {
        self.timer.label.as_deref()
    }

    /// A second that has begun counts.
    pub(crate) fn remaining_seconds(&self) -> u64 {
        self.timer.next_ms.saturating_sub(schedule::now_ms()).div_ceil(1_000)
    }
}

/// Sets a timer.
///
/// # Errors
///
/// What the store says.
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
/// What the store says.
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
    // It may have rung while the list was read.
    let was_there = schedule::cancel(&found.timer.id)?;
    Ok(was_there.then_some(found))
}

/// Lists the timers that run, the next to end first. What is left over from before is cancelled.
///
/// # Errors
///
/// What the store says.
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

/// Tells whether a timer that fires should have ended with the host that it was set in. A host that
/// does not say when it started leaves one sign: the timer is late, so nobody was there in time.
///
/// # Errors
///
/// A setting or a note that does not fit.
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
