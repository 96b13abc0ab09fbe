//! What a sentence still offers: its words, and which of them have been used.
//!
//! A word gives its value to one parameter only. What named the tool is used from the start.

use std::ops::Range;

use crate::offline::stem::is_stop_word;
use crate::offline::tokens::{Kind, Sentence, Word};

/// A sentence on its way into arguments.
#[derive(Debug, Clone)]
pub(super) struct Clues<'s, 't> {
    pub(super) sentence: &'s Sentence<'t>,
    used: Vec<bool>,
    /// Which words named the tool.
    naming: &'s [bool],
}

impl<'s, 't> Clues<'s, 't> {
    pub(super) fn new(sentence: &'s Sentence<'t>, naming: &'s [bool]) -> Self {
        Self { sentence, used: naming.to_vec(), naming }
    }

    pub(super) fn words(&self) -> &'s [Word<'t>] {
        &self.sentence.words
    }

    /// True for a word that no parameter has used.
    pub(super) fn is_free(&self, at: usize) -> bool {
        self.used.get(at).is_some_and(|used| !used)
    }

    /// True for a word that named the tool.
    pub(super) fn is_naming(&self, at: usize) -> bool {
        self.naming.get(at).copied().unwrap_or(false)
    }

    /// Which words have been used.
    pub(super) fn used(&self) -> &[bool] {
        &self.used
    }

    /// True for a free word that carries meaning.
    pub(super) fn is_telling(&self, at: usize) -> bool {
        self.is_free(at) && !is_stop_word(&self.words()[at].lower)
    }

    /// Uses words and returns them as the person wrote them.
    pub(super) fn take(&mut self, words: Range<usize>) -> &'t str {
        self.used[words.clone()].fill(true);
        self.sentence.slice(words)
    }

    /// Finds the first free word of one of these kinds.
    pub(super) fn first(&self, kinds: &[Kind]) -> Option<usize> {
        (0..self.words().len())
            .find(|&at| self.is_free(at) && kinds.contains(&self.words()[at].kind))
    }

    /// Returns the stretches of free words between used ones, those with most meaning first.
    pub(super) fn stretches(&self) -> Vec<Range<usize>> {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for at in (0..self.words().len()).filter(|&at| self.is_free(at)) {
            match stretches.last_mut().filter(|last| last.end == at) {
                Some(last) => last.end = at + 1,
                None => stretches.push(at..at + 1),
            }
        }
        let meaning =
            |words: &Range<usize>| words.clone().filter(|&at| self.is_telling(at)).count();
        stretches.sort_by_key(|words| std::cmp::Reverse(meaning(words)));
        stretches
    }
}
