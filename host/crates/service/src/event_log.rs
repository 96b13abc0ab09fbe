//! The newest events of a session, for streams that begin late or begin again.
//!
//! Every event has an ID: the run of the session, and a number in it. A session that is opened again
//! is another run, so an ID of an earlier one is never taken for a newer event.

use std::{
    collections::VecDeque,
    fmt,
    str::FromStr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_runtime::session_id::new_session_id;
use tokio::sync::watch;

use crate::problem::{Problem, ProblemKind};

/// Most events that are kept: some turns, with every word of the model's.
const EVENTS_MAX: usize = 4096;

/// Most bytes of events that are kept. The newest one is kept in any case.
const EVENTS_BYTES_MAX: usize = 4 << 20;

/// Digits of a run. It only has to differ from those of the same session.
const RUN_CHARS: usize = 8;

/// Between a run and a number.
const SEPARATOR: char = '-';

/// The place of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventId {
    run: Arc<str>,
    number: u64,
}

/// The newest events of one run of a session.
#[derive(Debug)]
pub(crate) struct EventLog {
    run: Arc<str>,
    events: Mutex<LoggedEvents>,
    /// The number of the newest event, and whether it is the last one.
    newest: watch::Sender<(u64, bool)>,
}

#[derive(Debug, Default)]
struct LoggedEvents {
    /// The number of the oldest event that is kept.
    first: u64,
    events: VecDeque<Arc<str>>,
    bytes: usize,
}

/// What follows a place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogRead {
    /// Events as JSON, each with its number.
    Events(Vec<(u64, Arc<str>)>),
    /// Some events are not kept any more.
    Forgotten,
    /// Nothing yet.
    Nothing,
    /// Nothing, and nothing will.
    Ended,
}

impl EventLog {
    /// Begins the log of a new run.
    pub(crate) fn new() -> Self {
        let id = new_session_id();
        let run = id[id.len().saturating_sub(RUN_CHARS)..].into();
        let events = LoggedEvents { first: 1, ..LoggedEvents::default() };
        Self { run, events: Mutex::new(events), newest: watch::Sender::new((0, false)) }
    }

    /// Adds an event, and removes the oldest ones beyond the limits.
    pub(crate) fn add(&self, event: String) {
        let mut log = self.events();
        log.bytes += event.len();
        log.events.push_back(event.into());
        while log.events.len() > EVENTS_MAX
            || (log.bytes > EVENTS_BYTES_MAX && log.events.len() > 1)
        {
            let removed = log.events.pop_front().map_or(0, |event| event.len());
            log.bytes -= removed;
            log.first += 1;
        }
        let newest = log.newest();
        drop(log);
        self.newest.send_modify(|state| state.0 = newest);
    }

    /// Notes that no more events come.
    pub(crate) fn end(&self) {
        self.newest.send_modify(|state| state.1 = true);
    }

    /// Returns the newest event's ID, also before the first one.
    pub(crate) fn newest_id(&self) -> EventId {
        self.id(self.newest.borrow().0)
    }

    /// Returns the ID of an event.
    pub(crate) fn id(&self, number: u64) -> EventId {
        EventId { run: Arc::clone(&self.run), number }
    }

    /// Receives the news about the log.
    pub(crate) fn subscribe(&self) -> watch::Receiver<(u64, bool)> {
        self.newest.subscribe()
    }

    /// Returns the number of the event after which a client wants to read on. Without an ID it is
    /// the oldest one that is kept.
    ///
    /// # Errors
    ///
    /// The ID was not given out yet, or events after it are not kept any more.
    pub(crate) fn start_after(&self, id: Option<&EventId>) -> Result<u64, Problem> {
        let log = self.events();
        let Some(id) = id else { return Ok(log.first - 1) };
        if id.run == self.run && id.number > log.newest() {
            let title = "the event with this ID has not happened yet";
            return Err(Problem::new(ProblemKind::EventFromTheFuture, title));
        }
        if id.run != self.run || id.number + 1 < log.first {
            let title = "events after this one are not kept any more";
            let problem = Problem::new(ProblemKind::EventsForgotten, title);
            return Err(problem.with_detail(
                "read the session, and then its events after the last_event_id that it names",
            ));
        }
        Ok(id.number)
    }

    /// Returns what follows event number `after`, of at most `bytes_max` bytes unless it is one.
    pub(crate) fn read_after(&self, after: u64, bytes_max: usize) -> LogRead {
        let log = self.events();
        if after + 1 < log.first {
            return LogRead::Forgotten;
        }
        let skipped = usize::try_from(after + 1 - log.first).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let events: Vec<_> = (after + 1..)
            .zip(log.events.iter().skip(skipped).cloned())
            .take_while(|(number, event)| {
                bytes += event.len();
                bytes <= bytes_max || *number == after + 1
            })
            .collect();
        match events.is_empty() {
            false => LogRead::Events(events),
            true if self.newest.borrow().1 => LogRead::Ended,
            true => LogRead::Nothing,
        }
    }

    fn events(&self) -> MutexGuard<'_, LoggedEvents> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoggedEvents {
    /// The number of the newest event; one less than the first if there is none.
    fn newest(&self) -> u64 {
        self.first + self.events.len() as u64 - 1
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.run, self.number)
    }
}

impl FromStr for EventId {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let invalid = || Problem::bad_request("the event ID is not one of this service");
        let (run, number) = text.split_once(SEPARATOR).ok_or_else(invalid)?;
        let is_run = run.len() == RUN_CHARS && run.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number| *number < u64::MAX && is_number);
        match number {
            Some(number) if is_run => Ok(Self { run: run.into(), number }),
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_cannot_be_followed_is_told_apart() {
        let log = EventLog::new();
        for number in 1..=3 {
            log.add(number.to_string());
        }
        let id = |text: &str| text.parse::<EventId>();
        let newest = log.newest_id().to_string();
        assert_eq!(id(&newest).unwrap(), log.id(3));
        let start = |number| log.start_after(Some(&log.id(number)));
        assert_eq!((start(0), start(3)), (Ok(0), Ok(3)));
        assert_eq!(start(4).unwrap_err().kind, ProblemKind::EventFromTheFuture);
        let earlier = EventLog::new().id(2);
        let error = log.start_after(Some(&earlier)).unwrap_err();
        assert_eq!(error.kind, ProblemKind::EventsForgotten, "it is of another run");
        let huge = format!("{}{SEPARATOR}{}", log.run, u64::MAX);
        let run = log.run.to_string();
        for wrong in ["", "-", "1", &run, &format!("{run}-"), &format!("{run}-+1"), &huge, "x-1"] {
            assert!(id(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_newest_events_are_kept() {
        let log = EventLog::new();
        let count = EVENTS_MAX as u64 + 10;
        (1..=count).for_each(|number| log.add(number.to_string()));
        assert_eq!(log.start_after(None), Ok(10), "from the oldest one");
        let forgotten = log.start_after(Some(&log.id(9))).unwrap_err();
        assert_eq!(forgotten.kind, ProblemKind::EventsForgotten);
        assert_eq!(log.read_after(9, 1), LogRead::Forgotten);
        assert_eq!(log.read_after(10, 0), LogRead::Events(vec![(11, "11".into())]));
        assert_eq!(log.read_after(count, 100), LogRead::Nothing);
        log.add("x".repeat(EVENTS_BYTES_MAX + 1));
        assert!(matches!(log.read_after(count, 1), LogRead::Events(one) if one.len() == 1));
        assert_eq!(log.read_after(count - 1, 1), LogRead::Forgotten, "one event takes all room");
        log.end();
        assert_eq!(log.read_after(count + 1, 1), LogRead::Ended);
    }
}
