//! The kept results of a session that is not stored.

use std::collections::VecDeque;

use super::ResultLookup;

/// Most bytes of all results: what a stored session keeps on disk is too much for memory.
const BYTES_MAX: usize = 32 << 20;

/// Keeps the newest results of one session in memory, within 32 MiB.
#[derive(Debug, Clone, Default)]
pub struct MemoryResults {
    texts: VecDeque<String>,
    /// How many were displaced by newer ones.
    displaced_count: u64,
    bytes: usize,
}

impl MemoryResults {
    /// Keeps a text and returns its number, from 1.
    pub fn keep_text(&mut self, text: String) -> u64 {
        self.bytes += text.len();
        self.texts.push_back(text);
        while self.bytes > BYTES_MAX && self.texts.len() > 1 {
            self.bytes -= self.texts.pop_front().map_or(0, |text| text.len());
            self.displaced_count += 1;
        }
        self.displaced_count + self.texts.len() as u64
    }

    /// Looks up a text by its number.
    pub fn find_text(&self, number: u64) -> ResultLookup {
        let Some(index) = number.checked_sub(self.displaced_count + 1) else {
            return if number == 0 { ResultLookup::Unknown } else { ResultLookup::Displaced };
        };
        let text = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        text.map_or(ResultLookup::Unknown, |text| ResultLookup::Found(text.clone()))
    }
}
