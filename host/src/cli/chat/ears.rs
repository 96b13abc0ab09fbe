//! Everything that happens beside the session: keys, signals, what calls do, and the time.

use std::{io, time::Duration};

use sallyport_terminal::editor::{Answer, Input};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
    time::{Interval, MissedTickBehavior, interval},
};

use crate::cli::watch::Aside;

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(100);

/// What came from the keyboard.
pub(super) enum Typed {
    /// A line, or what came in its place.
    Line(Input),
    /// A key that answers a question.
    Key(u64, Answer),
    /// Other arguments for the call that a question is about.
    Arguments(u64, Input),
    /// Why the answer to a question is no.
    Reason(u64, Input),
}

/// Where everything arrives that is no event of the session.
pub(super) struct Ears {
    pub(super) typed: UnboundedReceiver<Typed>,
    pub(super) asides: UnboundedReceiver<Aside>,
    pub(super) interrupts: Signal,
    pub(super) terminations: Signal,
    pub(super) hangups: Signal,
    pub(super) resizes: Signal,
    pub(super) ticks: Interval,
}

impl Ears {
    pub(super) fn new(
        typed: UnboundedReceiver<Typed>,
        asides: UnboundedReceiver<Aside>,
    ) -> Result<Self, io::Error> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self {
            typed,
            asides,
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
            resizes: signal(SignalKind::window_change())?,
            ticks,
        })
    }
}
