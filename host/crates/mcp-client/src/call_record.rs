//! What happens during a call besides its answer.

use std::sync::Mutex;

use sallyport_contract::text;

use crate::mutex::lock;

/// Most remarks, and most questions, that are noted. A server that causes more is not heard any more.
pub(crate) const REMARKS_MAX: usize = 20;

/// Longest remark, in characters.
const REMARK_CHARS_MAX: usize = 300;

/// Longest part of a question that is noted, in characters.
const QUESTION_CHARS_MAX: usize = 2000;

/// A question of a server to the user, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion {
    /// The server's words; untrusted.
    pub what: String,
    /// How it ended, with the names of the values and without the values.
    pub answer: String,
}

/// What happened during one call besides its answer, for the user of the call.
#[derive(Debug, Default)]
pub struct CallRecord {
    questions: Mutex<Vec<AskedQuestion>>,
    remarks: Mutex<Vec<String>>,
}

impl CallRecord {
    /// Returns the questions of the server to the user since the last time.
    pub fn take_questions(&self) -> Vec<AskedQuestion> {
        std::mem::take(&mut lock(&self.questions))
    }

    /// Returns what else happened since the last time: requests of the server that were refused, what
    /// it logged, and lines that are not messages. One sentence each, safe to show.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.remarks))
    }

    /// Notes a remark without secrets, unless it has the same one.
    pub(crate) fn add_remark(&self, remark: &str) {
        let remark = text::escape_excerpt(remark, REMARK_CHARS_MAX);
        let mut remarks = lock(&self.remarks);
        if remarks.len() < REMARKS_MAX && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }

    /// Notes a question of the server to the user, and how it ended. Neither has secrets.
    pub(crate) fn add_question(&self, words: &str, answer: &str) {
        let what = words.chars().take(QUESTION_CHARS_MAX).collect();
        let answer = text::escape_excerpt(answer, REMARK_CHARS_MAX);
        let mut questions = lock(&self.questions);
        if questions.len() < REMARKS_MAX {
            questions.push(AskedQuestion { what, answer });
        }
    }
}
