//! Inputs other than session events: keys, signals, notices about calls, and the timer.

use std::{io, time::Duration};

use sallyport_terminal::editor::{CardAnswer, LineInput, TypedAheadInput};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
    time::{Interval, MissedTickBehavior, interval},
};

use crate::cli::observers::SideMessage;

/// Interval between movements of the spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Input from the keyboard.
pub(super) enum KeyboardInput {
    /// A line, or the reason why there is none.
    Line(LineInput),
    /// What was typed while the session was busy.
    TypedAhead(TypedAheadInput),
    /// A key that answers the question with this id.
    Key(u64, CardAnswer),
    /// Edited arguments for the call of a question.
    Arguments(u64, LineInput),
    /// The reason for a denial.
    Reason(u64, LineInput),
    /// The answer to the question whether files are put back.
    Undo(LineInput),
    /// The folder that a question about a grant needs.
    Folder(u64, LineInput),
    /// The value of the next field of a question with a form.
    Field(u64, LineInput),
}

/// Receivers of all inputs that are not session events.
pub(super) struct ChatInputs {
    pub(super) keyboard_input: UnboundedReceiver<KeyboardInput>,
    pub(super) side_messages: UnboundedReceiver<SideMessage>,
    pub(super) interrupts: Signal,
    pub(super) terminations: Signal,
    pub(super) hangups: Signal,
    pub(super) resizes: Signal,
    pub(super) ticks: Interval,
}

impl ChatInputs {
    pub(super) fn new(
        keyboard_input: UnboundedReceiver<KeyboardInput>,
        side_messages: UnboundedReceiver<SideMessage>,
    ) -> Result<Self, io::Error> {
        let mut ticks = interval(SPINNER_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self {
            keyboard_input,
            side_messages,
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
            resizes: signal(SignalKind::window_change())?,
            ticks,
        })
    }
}
