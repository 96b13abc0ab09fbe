//! What a call did, written down while it happens.
//!
//! The ledger is shared by everything that serves one guest: its log, its standard output, its
//! connections. It is bounded in bytes and in entries, so a guest cannot fill the host's memory by
//! talking.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sallyport_contract::{Denial, Effect, LogLevel};

/// Requests kept of one call. The policy's own limit is usually nearer.
const REQUESTS_MAX: usize = 1000;

/// Refusals kept of one call; a guest that tries one door after another tells nothing new, and takes
/// no room from the requests.
const REFUSALS_MAX: usize = 100;

/// Longest single log line; the rest of it is cut.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// What every log line costs of the limit beside its text, so that empty lines are not free.
const LINE_BYTES_MIN: u64 = 16;

/// One call's ledger. Clones write into the same book.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<Mutex<Book>>);

#[derive(Debug)]
struct Book {
    effects: Vec<Effect>,
    requests_left: usize,
    refusals_left: usize,
    log_bytes_left: u64,
    log_cut: bool,
    limit: Option<String>,
}

impl Ledger {
    pub(crate) fn new(log_bytes_max: u64) -> Self {
        Self(Arc::new(Mutex::new(Book {
            effects: Vec::new(),
            requests_left: REQUESTS_MAX,
            refusals_left: REFUSALS_MAX,
            log_bytes_left: log_bytes_max,
            log_cut: false,
            limit: None,
        })))
    }

    /// Writes a log line, as far as the limit allows.
    pub(crate) fn log(&self, level: LogLevel, text: &str) {
        let mut book = self.book();
        let line = cut(text);
        let cost = (line.len() as u64).max(LINE_BYTES_MIN);
        if cost <= book.log_bytes_left {
            book.log_bytes_left -= cost;
            book.effects.push(Effect::Logged { level, text: line.to_owned() });
        } else if !std::mem::replace(&mut book.log_cut, true) {
            let text = "… the log limit is reached, further lines are dropped".to_owned();
            book.effects.push(Effect::Logged { level: LogLevel::Warn, text });
        }
    }

    /// Writes down a request that left the host.
    pub(crate) fn requested(&self, what: String, status: Option<u16>) {
        let mut book = self.book();
        if book.requests_left > 0 {
            book.requests_left -= 1;
            let (sent_bytes, received_bytes) = (0, 0);
            book.effects.push(Effect::Requested { what, status, sent_bytes, received_bytes });
        }
    }

    /// Writes down a refusal; a guest that tries the same thing again adds nothing.
    pub(crate) fn refused(&self, denial: Denial) {
        let effect = Effect::Refused(denial);
        let mut book = self.book();
        if book.refusals_left > 0 && !book.effects.contains(&effect) {
            book.refusals_left -= 1;
            book.effects.push(effect);
        }
    }

    /// Notes which limit the guest ran into; the first one stays.
    pub(crate) fn limit_reached(&self, what: impl Into<String>) {
        self.book().limit.get_or_insert(what.into());
    }

    /// The limit that the guest ran into, if any.
    pub(crate) fn limit(&self) -> Option<String> {
        self.book().limit.clone()
    }

    /// Closes the book and returns its entries.
    pub(crate) fn close(&self) -> Vec<Effect> {
        std::mem::take(&mut self.book().effects)
    }

    /// The last refusal, if the gate refused anything.
    pub(crate) fn last_refusal(&self) -> Option<Denial> {
        self.book().effects.iter().rev().find_map(|effect| match effect {
            Effect::Refused(denial) => Some(denial.clone()),
            _ => None,
        })
    }

    /// Each entry is pushed whole, so a panic elsewhere leaves the book readable.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts a line at its limit, between characters.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LINE_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_log_is_cut_with_a_mark() {
        let ledger = Ledger::new(100);
        for _ in 0..1000 {
            ledger.log(LogLevel::Info, "0123456789012345678901234567890123456789");
        }
        let effects = ledger.close();
        assert_eq!(effects.len(), 3, "two lines and the mark: {effects:?}");
        assert!(format!("{:?}", effects[2]).contains("limit is reached"));
    }

    #[test]
    fn empty_lines_are_not_free() {
        let ledger = Ledger::new(160);
        (0..1000).for_each(|_| ledger.log(LogLevel::Info, ""));
        assert_eq!(ledger.close().len(), 11);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let ledger = Ledger::new(1 << 20);
        ledger.log(LogLevel::Info, &"é".repeat(LINE_BYTES_MAX));
        let Effect::Logged { text, .. } = &ledger.close()[0] else { panic!("no line") };
        assert_eq!(text.len(), LINE_BYTES_MAX);
    }
}
