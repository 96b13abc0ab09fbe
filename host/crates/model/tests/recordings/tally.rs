//! The coverage of a run, and its least values.

use std::collections::BTreeMap;

use crate::{cassettes::Recordings, checks::Differences};

/// The number of documents in the recordings for which the values here were counted. Another set is
/// read and compared too, but its contents are unknown.
const DOCUMENTS: usize = 279;

/// Returns true for the recordings for which the least values were counted.
pub(crate) fn is_known(recordings: &Recordings) -> bool {
    recordings.documents == DOCUMENTS
}

/// Least number of exchanges of each protocol. Fewer mean that the reader of recordings is broken.
const COVERED_MIN: [(&str, usize); 5] =
    [("openai", 155), ("openai-responses", 23), ("anthropic", 43), ("gemini", 36), ("ollama", 5)];

/// Least number of refusals among them.
const REFUSED_MIN: usize = 10;

/// Most requests that our types cannot express, so that only their answers are read.
const ANSWER_ONLY_MAX: usize = 5;

/// Least number of our own earlier answers that are sent back.
const REPLAYED_MIN: usize = 81;

/// Least number of parts in them that only the provider understands.
const KEPT_MIN: usize = 25;

/// The coverage of a run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) covered: BTreeMap<&'static str, usize>,
    pub(crate) refused: usize,
    pub(crate) answer_only: BTreeMap<&'static str, usize>,
    pub(crate) replayed: usize,
    pub(crate) kept: usize,
    pub(crate) left_out: BTreeMap<String, usize>,
    /// The number of recorded answers that end in the middle.
    pub(crate) cut: usize,
    pub(crate) differences: Differences,
}

impl Tally {
    pub(crate) fn tell(&self) {
        let Self { covered, refused, replayed, kept, .. } = self;
        let all: usize = covered.values().sum();
        crate::say(&format!("{all} exchanges covered, {refused} of them refusals: {covered:?}"));
        crate::say(&format!(
            "{replayed} answers of our own sent back, {kept} sealed parts with them"
        ));
        crate::say(&format!("of which only the answer is read: {:#?}", self.answer_only));
        crate::say(&format!("{} answers that end in the middle", self.cut));
        crate::say(&format!("left out, since they are no conversations: {:#?}", self.left_out));
    }

    #[track_caller]
    pub(crate) fn check(&self, is_known: bool) {
        self.differences.assert_none();
        if !is_known {
            return crate::say("another set of recordings: how much there is in it is not checked");
        }
        assert_eq!(self.cut, 0);
        for (protocol, min) in COVERED_MIN {
            let covered = self.covered.get(protocol).copied().unwrap_or(0);
            assert!(covered >= min, "only {covered} of {protocol}");
        }
        assert!(self.refused >= REFUSED_MIN, "only {} refusals", self.refused);
        assert!(self.replayed >= REPLAYED_MIN, "only {} were sent back", self.replayed);
        assert!(self.kept >= KEPT_MIN, "only {} sealed parts went back", self.kept);
        let answer_only: usize = self.answer_only.values().sum();
        assert!(answer_only <= ANSWER_ONLY_MAX, "{:?}", self.answer_only);
    }
}
