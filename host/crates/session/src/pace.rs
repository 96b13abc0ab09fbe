//! How often a person is told how far a call has come.
//!
//! A tool may say so a thousand times a second; nobody reads that, and every event costs each front
//! end something. So of each call only so much is passed on in a moment, and of what comes in
//! between the last word is kept: it is told when the moment is over, or when the call ends.

use std::{collections::BTreeMap, time::Duration};

use sallyport_contract::services::Progress;
use tokio::time::Instant;

/// Shortest time between two words about one call: what an eye still sees as a movement.
const INTERVAL: Duration = Duration::from_millis(250);

/// Longest words, in characters, that are passed on: a line of a terminal.
const MESSAGE_CHARS_MAX: usize = 200;

/// The calls that run, and what is to be told of them.
#[derive(Debug, Default)]
pub(super) struct Pace {
    calls: BTreeMap<String, Step>,
}

#[derive(Debug, Default)]
struct Step {
    /// When something was told last.
    told: Option<Instant>,
    waiting: Option<Progress>,
}

impl Pace {
    /// Hears of a call from here on.
    pub(super) fn begin(&mut self, call_id: String) {
        self.calls.insert(call_id, Step::default());
    }

    /// Takes in how far a call has come, and returns it if it can be told now. A call that does not
    /// run has come nowhere.
    pub(super) fn take(&mut self, call_id: &str, progress: Progress) -> Option<Progress> {
        let step = self.calls.get_mut(call_id)?;
        step.waiting = Some(readable(progress));
        let is_due = step.due().is_some_and(|due| due <= Instant::now());
        if is_due { step.tell() } else { None }
    }

    /// When the next word is due that waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.calls.values().filter_map(Step::due).min()
    }

    /// Returns a word that is due, and which call it is about.
    pub(super) fn next(&mut self) -> Option<(String, Progress)> {
        let now = Instant::now();
        let mut steps = self.calls.iter_mut();
        let (id, step) = steps.find(|(_, step)| step.due().is_some_and(|due| due <= now))?;
        Some((id.clone(), step.tell()?))
    }

    /// Hears no more of a call, and returns the last word on it if that was not told.
    pub(super) fn end(&mut self, call_id: &str) -> Option<Progress> {
        self.calls.remove(call_id)?.waiting
    }
}

impl Step {
    /// When what waits can be told; nothing when nothing waits.
    fn due(&self) -> Option<Instant> {
        self.waiting.as_ref()?;
        Some(self.told.map_or_else(Instant::now, |told| told + INTERVAL))
    }

    fn tell(&mut self) -> Option<Progress> {
        self.told = Some(Instant::now());
        self.waiting.take()
    }
}

/// What a front end can draw: a part of the whole, and a few words.
fn readable(Progress { part, message }: Progress) -> Progress {
    let part = part.filter(|part| part.is_finite()).map(|part| part.clamp(0.0, 1.0));
    let message = message.map(|words| words.chars().take(MESSAGE_CHARS_MAX).collect());
    Progress { part, message }
}
