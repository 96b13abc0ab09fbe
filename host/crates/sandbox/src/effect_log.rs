//! The record of a call, written while it happens.
//!
//! The effect log is shared by everything that serves one guest: its log, its standard output, its
//! connections. It is bounded in bytes and entries, so a guest cannot fill the host's memory by
//! logging.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU16, AtomicU64, Ordering},
};

use sallyport_contract::{Denial, Effect, LogLevel};
use sallyport_policy::Capability;

use crate::mutex::lock_mutex;

/// Most requests that are recorded per call. The policy's own limit is usually lower.
const REQUESTS_MAX: usize = 1000;

/// Most refusals that are recorded per call. They have a limit of their own, so that a guest that
/// keeps trying does not use up the space for requests.
const REFUSALS_MAX: usize = 100;

/// Most changed files, used secrets and answered questions that are recorded per call.
const OTHER_EFFECTS_MAX: usize = 1000;

/// Most uses of capabilities that are recorded per call. They have a limit of their own, so that a
/// guest which writes thousands of keys does not use up the space for its other effects.
const USES_MAX: usize = 1000;

/// Longest log line in bytes; the rest is cut.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// The least that a log line counts, in bytes, so that empty lines are not free.
const LINE_BYTES_MIN: u64 = 16;

/// The level of a guest's standard error.
pub(crate) const STDERR_LEVEL: LogLevel = LogLevel::Warn;

/// The text between the thread and the location in a panic message of Rust's standard library.
const PANIC_MARKER: &str = " panicked at ";

/// Longest panic message in the result, in bytes. The log has the full text.
const PANIC_BYTES_MAX: usize = 500;

/// The effects of one call. Clones write to the same log.
#[derive(Debug, Clone)]
pub(crate) struct EffectLog(Arc<Mutex<EffectLogState>>);

#[derive(Debug)]
struct EffectLogState {
    effects: Vec<Effect>,
    /// The traffic of each recorded request, by its index in `effects`.
    traffic: Vec<(usize, Arc<RequestTraffic>)>,
    /// The questions that are open.
    questions: Vec<String>,
    requests_left: usize,
    refusals_left: usize,
    /// The last refusal that the guest noticed, by its index in `effects`.
    last_refusal: Option<usize>,
    other_effects_left: usize,
    uses_left: usize,
    log_bytes_left: u64,
    is_log_truncated: bool,
    limit: Option<String>,
    has_undelivered_notice: bool,
}

/// A use of a capability that is still running.
pub(crate) struct CapabilityUse {
    effect_log: EffectLog,
    effect: Effect,
    /// Whether the entry belongs to this use alone.
    is_new: bool,
}

impl CapabilityUse {
    /// Adds the outcome to the entry. If the entry belongs to another use, it adds an entry of its
    /// own.
    pub(crate) fn record_outcome(self, how: &str) {
        let Effect::Used { capability, what } = &self.effect else { return };
        let (capability, what) = (capability.clone(), format!("{what}{how}"));
        let with_outcome = Effect::Used { capability, what };
        match self.is_new {
            true => self.effect_log.replace_effect(&self.effect, with_outcome),
            false => {
                lock_mutex(&self.effect_log.0).add_use(&with_outcome);
            }
        }
    }
}

/// A question to the user or to the policy. If this is dropped before there is an answer, the
/// unanswered question is recorded.
pub(crate) struct QuestionGuard {
    effect_log: EffectLog,
    what: String,
    is_answered: bool,
}

impl QuestionGuard {
    /// Marks the question as answered. The caller records the answer.
    pub(crate) fn mark_answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let mut state = lock_mutex(&self.effect_log.0);
        if state.close_question(&self.what) && !self.is_answered {
            state.record_effect(unanswered_effect(std::mem::take(&mut self.what)));
        }
    }
}

fn unanswered_effect(what: String) -> Effect {
    let answer = "the call was cancelled before there was an answer".to_owned();
    Effect::Asked { what, answer }
}

/// The traffic of one request, counted while its bodies pass.
#[derive(Debug, Default)]
pub(crate) struct RequestTraffic {
    /// 0 until a response has arrived.
    status: AtomicU16,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl RequestTraffic {
    pub(crate) fn set_status(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn add_sent_bytes(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_received_bytes(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of the body that have been sent so far.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    fn write_to_effect(&self, effect: &mut Effect) {
        if let Effect::Requested { status, sent_bytes, received_bytes, .. } = effect {
            *status = Some(self.status.load(Ordering::Relaxed)).filter(|status| *status != 0);
            *sent_bytes = self.sent_bytes();
            *received_bytes = self.received_bytes.load(Ordering::Relaxed);
        }
    }
}

impl EffectLog {
    pub(crate) fn new(log_bytes_max: u64) -> Self {
        Self(Arc::new(Mutex::new(EffectLogState {
            effects: Vec::new(),
            traffic: Vec::new(),
            questions: Vec::new(),
            requests_left: REQUESTS_MAX,
            refusals_left: REFUSALS_MAX,
            last_refusal: None,
            other_effects_left: OTHER_EFFECTS_MAX,
            uses_left: USES_MAX,
            log_bytes_left: log_bytes_max,
            is_log_truncated: false,
            limit: None,
            has_undelivered_notice: false,
        })))
    }

    /// Records a log line, as far as the limit allows.
    pub(crate) fn log_line(&self, level: LogLevel, text: &str) {
        let mut state = lock_mutex(&self.0);
        let line = truncate_line(text);
        let cost = (line.len() as u64).max(LINE_BYTES_MIN);
        if cost <= state.log_bytes_left {
            state.log_bytes_left -= cost;
            state.effects.push(Effect::Logged { level, text: line.to_owned() });
        } else if !std::mem::replace(&mut state.is_log_truncated, true) {
            let text = "… the log limit (limits.log) is reached, further lines are dropped";
            let text = text.to_owned();
            state.effects.push(Effect::Logged { level: LogLevel::Warn, text });
        }
    }

    /// Records a request that leaves the host. Its [`RequestTraffic`] counts the bytes and the
    /// status.
    pub(crate) fn record_request(&self, what: String) -> Arc<RequestTraffic> {
        let traffic = Arc::new(RequestTraffic::default());
        let mut state = lock_mutex(&self.0);
        if state.requests_left > 0 {
            state.requests_left -= 1;
            let place = state.effects.len();
            state.traffic.push((place, Arc::clone(&traffic)));
            let (status, sent_bytes, received_bytes) = (None, 0, 0);
            state.effects.push(Effect::Requested { what, status, sent_bytes, received_bytes });
        }
        traffic
    }

    /// Records an effect, unless it is recorded already.
    pub(crate) fn record_effect(&self, effect: Effect) {
        lock_mutex(&self.0).record_effect(effect);
    }

    /// Registers a question, so that it is recorded even if it is never answered.
    pub(crate) fn begin_question(&self, what: &str) -> QuestionGuard {
        lock_mutex(&self.0).questions.push(what.to_owned());
        QuestionGuard { effect_log: self.clone(), what: what.to_owned(), is_answered: false }
    }

    /// Records the use of a capability, unless it is recorded already.
    pub(crate) fn record_use(&self, capability: Capability, what: String) {
        self.begin_use(capability, what);
    }

    /// Records the use of a capability before it happens, because the guest may be stopped while it
    /// is running.
    pub(crate) fn begin_use(&self, capability: Capability, what: String) -> CapabilityUse {
        let effect = Effect::Used { capability: capability.as_str().to_owned(), what };
        let is_new = lock_mutex(&self.0).add_use(&effect);
        CapabilityUse { effect_log: self.clone(), effect, is_new }
    }

    /// Replaces the entry of a use. If the new entry is recorded already, the old one is removed if
    /// possible.
    fn replace_effect(&self, old: &Effect, new: Effect) {
        let mut state = lock_mutex(&self.0);
        let Some(place) = state.effects.iter().rposition(|effect| effect == old) else { return };
        // Only the last entry can be removed: others are referred to by index.
        if place + 1 == state.effects.len() && state.effects.contains(&new) {
            state.effects.pop();
            state.uses_left += 1;
        } else {
            state.effects[place] = new;
        }
    }

    /// Records a refusal, unless it is recorded already.
    pub(crate) fn record_refusal(&self, denial: Denial) {
        let mut state = lock_mutex(&self.0);
        if state.add_effect(|state| &mut state.refusals_left, Effect::Refused(denial)) {
            state.last_refusal = Some(state.effects.len() - 1);
        }
    }

    /// Records a refusal that the guest cannot notice, so that it is not the reason for a failure.
    pub(crate) fn record_silent_refusal(&self, denial: Denial) {
        let mut state = lock_mutex(&self.0);
        state.add_effect(|state| &mut state.refusals_left, Effect::Refused(denial));
    }

    /// Records the limit that the guest reached. Only the first one is kept.
    pub(crate) fn record_limit(&self, what: impl Into<String>) {
        lock_mutex(&self.0).limit.get_or_insert(what.into());
    }

    /// The limit that the guest reached, if any.
    pub(crate) fn reached_limit(&self) -> Option<String> {
        lock_mutex(&self.0).limit.clone()
    }

    /// Records that a message to the user was not accepted, through no fault of the guest.
    pub(crate) fn record_undelivered(&self) {
        lock_mutex(&self.0).has_undelivered_notice = true;
    }

    /// Whether a message to the user was not accepted.
    pub(crate) fn has_undelivered(&self) -> bool {
        lock_mutex(&self.0).has_undelivered_notice
    }

    /// Closes the log and returns its entries.
    pub(crate) fn close(&self) -> Vec<Effect> {
        let mut state = lock_mutex(&self.0);
        // The questions of a guest that is given up end a little later than the guest, so they are
        // recorded here.
        for what in std::mem::take(&mut state.questions) {
            state.record_effect(unanswered_effect(what));
        }
        let mut effects = std::mem::take(&mut state.effects);
        for (place, traffic) in state.traffic.drain(..) {
            traffic.write_to_effect(&mut effects[place]);
        }
        effects
    }

    /// The last refusal that the guest noticed, if there was one.
    pub(crate) fn last_denial(&self) -> Option<Denial> {
        let state = lock_mutex(&self.0);
        match state.effects.get(state.last_refusal?) {
            Some(Effect::Refused(denial)) => Some(denial.clone()),
            _ => None,
        }
    }

    /// What the guest wrote to standard error, up to an empty line or a stack: the reason why it
    /// stopped itself. `None` if it wrote nothing.
    pub(crate) fn last_words(&self) -> Option<String> {
        if let Some(panic) = self.panic_message() {
            return Some(format!("it panicked {panic}"));
        }
        let state = lock_mutex(&self.0);
        let lines = state.effects.iter().filter_map(|effect| match effect {
            Effect::Logged { level: STDERR_LEVEL, text } => Some(text.as_str()),
            _ => None,
        });
        let is_reason = |line: &&str| !line.trim().is_empty() && !line.starts_with("goroutine ");
        let words: Vec<&str> = lines.take_while(is_reason).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// The guest's last panic as Rust's standard library writes it to standard error: the location,
    /// then the message up to a note.
    pub(crate) fn panic_message(&self) -> Option<String> {
        let state = lock_mutex(&self.0);
        let lines = state.effects.iter().filter_map(|effect| match effect {
            Effect::Logged { level: STDERR_LEVEL, text } => Some(text.as_str()),
            _ => None,
        });
        let lines: Vec<&str> = lines.collect();
        let head = |line: &&str| line.starts_with("thread '") && line.contains(PANIC_MARKER);
        let at = lines.iter().rposition(head)?;
        let place = lines[at].split_once(PANIC_MARKER)?.1.trim_end();
        let words = lines[at + 1..].iter().take_while(|line| !line.starts_with("note: "));
        let words: Vec<&str> = words.copied().collect();
        let mut text = format!("at {place} {}", words.join(" ").trim());
        text.truncate(text.floor_char_boundary(PANIC_BYTES_MAX));
        Some(text)
    }
}

impl EffectLogState {
    /// Adds an effect, unless it is recorded already or there is no room. Returns whether it was
    /// added.
    fn add_effect(&mut self, room: impl FnOnce(&mut Self) -> &mut usize, effect: Effect) -> bool {
        if self.effects.contains(&effect) {
            return false;
        }
        let left = room(self);
        let is_new = *left > 0;
        if is_new {
            *left -= 1;
            self.effects.push(effect);
        }
        is_new
    }

    fn record_effect(&mut self, effect: Effect) {
        self.add_effect(|state| &mut state.other_effects_left, effect);
    }

    /// Removes a question. Returns whether it was open.
    fn close_question(&mut self, what: &str) -> bool {
        let place = self.questions.iter().position(|open| open == what);
        place.map(|place| self.questions.remove(place)).is_some()
    }

    /// Adds a use, unless it is recorded already. Returns whether it was added.
    fn add_use(&mut self, effect: &Effect) -> bool {
        let is_new = self.add_effect(|state| &mut state.uses_left, effect.clone());
        if is_new && self.uses_left == 0 {
            let text = "… there were more uses of capabilities, which are not written down";
            let text = text.to_owned();
            self.effects.push(Effect::Logged { level: LogLevel::Warn, text });
        }
        is_new
    }
}

/// Cuts a line to the limit, between characters.
fn truncate_line(text: &str) -> &str {
    &text[..text.floor_char_boundary(LINE_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_log_is_cut_with_a_mark() {
        let effect_log = EffectLog::new(100);
        for _ in 0..1000 {
            effect_log.log_line(LogLevel::Info, "0123456789012345678901234567890123456789");
        }
        let effects = effect_log.close();
        assert_eq!(effects.len(), 3, "two lines and the mark: {effects:?}");
        assert!(format!("{:?}", effects[2]).contains("(limits.log) is reached"));
    }

    #[test]
    fn an_entry_tells_what_its_request_came_to_also_after_others() {
        let effect_log = EffectLog::new(100);
        let (first, second) =
            (effect_log.record_request("GET a".into()), effect_log.record_request("GET b".into()));
        second.set_status(204);
        first.add_sent_bytes(3);
        first.add_received_bytes(2);
        first.add_received_bytes(2);
        first.set_status(200);
        let requested = |what: &str, status, sent_bytes, received_bytes| Effect::Requested {
            what: what.into(),
            status: Some(status),
            sent_bytes,
            received_bytes,
        };
        assert_eq!(
            effect_log.close(),
            [requested("GET a", 200, 3, 4), requested("GET b", 204, 0, 0)]
        );
    }

    #[test]
    fn a_refusal_that_the_guest_cannot_notice_is_on_record_and_explains_no_failure() {
        let log = EffectLog::new(100);
        let denial = |what: &str| Denial::new(what, "");
        log.record_silent_refusal(denial("draw"));
        assert_eq!(log.last_denial(), None);
        log.record_refusal(denial("open"));
        log.record_silent_refusal(denial("draw again"));
        assert_eq!(log.last_denial(), Some(denial("open")));
        assert_eq!(log.close().len(), 3);
    }

    #[test]
    fn uses_without_end_are_cut_with_a_mark_and_take_no_room_from_others() {
        let effect_log = EffectLog::new(100);
        for n in 0..2 * USES_MAX {
            effect_log.record_use(Capability::State, format!("set {n}"));
            effect_log.record_use(Capability::State, "the same".to_owned());
        }
        effect_log.record_effect(Effect::Changed { path: "/sandbox/x".to_owned() });
        let effects = effect_log.close();
        assert_eq!(effects.len(), USES_MAX + 2);
        assert!(format!("{:?}", effects[USES_MAX]).contains("there were more uses"));
    }

    #[test]
    fn a_use_is_on_record_from_its_beginning_and_once_with_its_end() {
        let effect_log = EffectLog::new(100);
        let with_outcome = || {
            let effects = lock_mutex(&effect_log.0).effects.clone();
            effects.iter().map(|effect| format!("{effect:?}")).collect::<String>()
        };
        let begin = || effect_log.begin_use(Capability::State, "set k".to_owned());
        let first = begin();
        assert!(with_outcome().contains("\"set k\""));
        first.record_outcome(": no room");
        for _ in 0..2 * USES_MAX {
            begin().record_outcome(": no room");
        }
        assert_eq!(with_outcome().matches("set k").count(), 1, "{}", with_outcome());
        drop(begin());
        begin().record_outcome(": no room");
        begin().record_outcome(": no disk");
        assert_eq!(with_outcome().matches("set k").count(), 3, "{}", with_outcome());
    }

    #[test]
    fn empty_lines_are_not_free() {
        let effect_log = EffectLog::new(160);
        (0..1000).for_each(|_| effect_log.log_line(LogLevel::Info, ""));
        assert_eq!(effect_log.close().len(), 11);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let effect_log = EffectLog::new(1 << 20);
        effect_log.log_line(LogLevel::Info, &"é".repeat(LINE_BYTES_MAX));
        let Effect::Logged { text, .. } = &effect_log.close()[0] else { panic!("no line") };
        assert_eq!(text.len(), LINE_BYTES_MAX);
    }
}
