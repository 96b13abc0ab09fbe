//! One view in one layer: the forms in progress, and how far each has come.

use std::{collections::VecDeque, mem};

use aho_corasick::{
    Anchored, PatternID,
    automaton::{Automaton, StateID},
};

use super::table::{HEAD_BYTES_MAX, ViewForms};

/// Most forms that one reader follows at the same time. Only a secret that repeats its own
/// beginning is followed more than once; the oldest reach furthest.
pub(super) const PARTIAL_MATCHES_MAX: usize = 64;

/// Most readings of one stretch that are kept apart. Two are common where a secret itself contains
/// something that looks like an escape; more occur only in a stretch that consists of nothing else.
const READINGS_MAX: usize = 8;

/// Fewest letters or digits of a form on a line before the line may break. Shorter ones are not
/// held back, because otherwise every message that ends its line with such a letter would wait.
pub(super) const LINE_LETTERS_MIN: usize = 4;

/// A byte, and the bytes of the stream that it represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecodedByte {
    pub(super) byte: u8,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A stretch of bytes that is a secret; positions count from the start of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SecretMatch {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: usize,
}

/// The forms that may have begun.
#[derive(Clone, Default)]
pub(super) struct FormMatcher {
    /// No reading is in the start state; an empty list means that nothing has begun.
    readings: Vec<EscapeReading>,
    pub(super) partial_matches: Vec<PartialMatch>,
}

/// One way to read possible escapes.
#[derive(Clone)]
struct EscapeReading {
    state: StateID,
    /// The starts of the last units, at most as many as a head has.
    starts: VecDeque<u64>,
    /// Everything that begins before this position has been passed on.
    start_min: u64,
}

/// A form whose head was found at `start` and that the units since then continue.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PartialMatch {
    form: PatternID,
    start: u64,
    tail_bytes: usize,
}

impl FormMatcher {
    pub(super) fn is_idle(&self) -> bool {
        self.readings.is_empty() && self.partial_matches.is_empty()
    }

    /// Reads a character, or its escaped form, whichever is part of a form. `literal` is empty
    /// without an escape.
    pub(super) fn read_character(
        &mut self,
        forms: &ViewForms,
        plain: &[DecodedByte],
        literal: &[DecodedByte],
        found_matches: &mut VecDeque<SecretMatch>,
    ) {
        if !self.partial_matches.is_empty() {
            self.follow_partial_matches(forms, plain, literal, found_matches);
        }
        let mut readings = mem::take(&mut self.readings);
        if readings.is_empty() {
            readings.push(EscapeReading {
                state: forms.start,
                starts: VecDeque::new(),
                start_min: 0,
            });
        }
        let escaped = if literal.is_empty() { Vec::new() } else { readings.clone() };
        for reading in &mut readings {
            plain.iter().for_each(|decoded| {
                reading.read_byte(forms, *decoded, &mut self.partial_matches, found_matches)
            });
        }
        readings.extend(escaped.into_iter().map(|mut reading| {
            literal.iter().for_each(|decoded| {
                reading.read_byte(forms, *decoded, &mut self.partial_matches, found_matches)
            });
            reading
        }));
        readings.retain(|reading| reading.state != forms.start);
        self.readings = distinct_readings(readings);
    }

    /// Also follows what another reading of the same bytes has begun.
    pub(super) fn join(&mut self, other: Self) {
        for partial in other.partial_matches {
            let is_new = !self.partial_matches.contains(&partial);
            if is_new && self.partial_matches.len() < PARTIAL_MATCHES_MAX {
                self.partial_matches.push(partial);
            }
        }
        let readings = mem::take(&mut self.readings);
        self.readings = distinct_readings(readings.into_iter().chain(other.readings).collect());
    }

    /// Where the earliest incomplete form may have begun; `is_strict` also counts bytes that have
    /// been passed on.
    pub(super) fn earliest_open_start(&self, forms: &ViewForms, is_strict: bool) -> Option<u64> {
        let open = self.readings.iter().filter_map(|reading| {
            let open = forms.open_byte_count(reading.state);
            let start = reading.starts.get(reading.starts.len().checked_sub(open)?)?;
            Some(if is_strict { *start } else { reading.start_min.max(*start) })
        });
        open.min()
    }

    fn follow_partial_matches(
        &mut self,
        forms: &ViewForms,
        plain: &[DecodedByte],
        literal: &[DecodedByte],
        found_matches: &mut VecDeque<SecretMatch>,
    ) {
        let Some(last) = literal.last().or(plain.last()) else { return };
        let mut first: Option<(u64, usize)> = None;
        self.partial_matches.retain_mut(|tracked| {
            let form = forms.form_tail(tracked.form);
            let so_far = tracked.tail_bytes;
            let advance = |units: &[DecodedByte]| {
                let bytes = units.iter().filter_map(|decoded| forms.view.fold_byte(decoded.byte));
                bytes.into_iter().try_fold(so_far, |at, byte| {
                    (form.tail.get(at) == Some(&byte)).then_some(at + 1)
                })
            };
            let escaped = || if literal.is_empty() { None } else { advance(literal) };
            let Some(bytes) = advance(plain).or_else(escaped) else { return false };
            tracked.tail_bytes = bytes;
            if bytes > so_far && first.is_none_or(|(start, _)| tracked.start < start) {
                first = Some((tracked.start, form.name));
            }
            true
        });
        found_matches.extend(first.map(|(start, name)| SecretMatch { start, end: last.end, name }));
    }
}

/// At most [`READINGS_MAX`] readings, each of another state.
fn distinct_readings(mut readings: Vec<EscapeReading>) -> Vec<EscapeReading> {
    if readings.len() > 1 {
        readings.sort_by_key(|reading| reading.state);
        readings.dedup_by_key(|reading| reading.state);
        readings.truncate(READINGS_MAX);
    }
    readings
}

impl EscapeReading {
    fn read_byte(
        &mut self,
        forms: &ViewForms,
        decoded: DecodedByte,
        tracked: &mut Vec<PartialMatch>,
        found_matches: &mut VecDeque<SecretMatch>,
    ) {
        let Some(byte) = forms.view.fold_byte(decoded.byte) else {
            if decoded.byte == b'\n' && forms.open_byte_count(self.state) < LINE_LETTERS_MIN {
                self.start_min = decoded.end;
            }
            return;
        };
        self.state = forms.heads.next_state(Anchored::No, self.state, byte);
        if self.state == forms.start {
            self.starts.clear();
            return;
        }
        if self.starts.len() == HEAD_BYTES_MAX {
            self.starts.pop_front();
        }
        self.starts.push_back(decoded.start);
        if forms.heads.is_match(self.state) {
            self.record_matches(forms, decoded.end, tracked, found_matches);
        }
    }

    fn record_matches(
        &self,
        forms: &ViewForms,
        end: u64,
        tracked: &mut Vec<PartialMatch>,
        found_matches: &mut VecDeque<SecretMatch>,
    ) {
        for index in 0..forms.heads.match_len(self.state) {
            let pattern = forms.heads.match_pattern(self.state, index);
            let first = self.starts.len().saturating_sub(forms.heads.pattern_len(pattern));
            let start =
                self.starts.get(first).map_or(self.start_min, |start| self.start_min.max(*start));
            let form = forms.form_tail(pattern);
            if !form.tail.is_empty() && tracked.len() < PARTIAL_MATCHES_MAX {
                tracked.push(PartialMatch { form: pattern, start, tail_bytes: 0 });
            }
            found_matches.push_back(SecretMatch { start, end, name: form.name });
        }
    }
}
