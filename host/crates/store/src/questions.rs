//! Questions that wait for an answer, so that another program of the same user can give it.
//!
//! Whoever asks publishes a question and looks for its answer. Of several answers the first one
//! counts: it is written in one step, and only if it names the hash of the question that its giver
//! has seen, in time. What a question is about is text here.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// Most questions of one user that may wait. Nobody answers more.
pub const QUESTIONS_OPEN_MAX: usize = 64;

/// Longest text of a question.
pub const QUESTION_TEXT_BYTES_MAX: usize = 512 * 1024;

/// Longest id, hash, answer or name of a carrier.
const SHORT_TEXT_BYTES_MAX: usize = 16 * 1024;

/// How long the end of a question is known, so that a late answer is told about it.
pub(crate) const CLOSED_AGE_MS_MAX: u64 = 60 * 60 * 1000;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredQuestion {
    /// Its id, which is never used again.
    pub id: String,
    /// The user who may answer it.
    pub user: String,
    /// The whole question.
    pub text: String,
    /// The hash of the whole question.
    pub hash: String,
    /// When it was asked, in milliseconds since 1970.
    pub asked_ms: u64,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The answer.
    pub answer: String,
    /// Who gave it: a program, or another way to answer.
    pub carrier: String,
    /// When it was given, in milliseconds since 1970.
    pub at_ms: u64,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerResult {
    /// It is the first one, and counts.
    Accepted,
    /// Another one came first.
    AnsweredBefore(StoredAnswer),
    /// It came too late.
    Expired,
    /// It is about another question than the one with this id.
    OtherHash,
    /// There is no such question, or nobody asks it any more.
    NotAsked,
}

/// The questions of all programs. Every method fails if the database cannot be used.
#[async_trait]
pub trait QuestionStore: Send + Sync {
    /// Publishes a question. Also removes those that have ended a while ago.
    ///
    /// # Errors
    ///
    /// A text is too long, or too many questions of the user wait.
    async fn publish_question(&self, question: StoredQuestion) -> Result<(), StoreError>;

    /// Lists the questions of a user that wait for an answer, the oldest first.
    async fn open_questions(
        &self,
        user: &str,
        now_ms: u64,
    ) -> Result<Vec<StoredQuestion>, StoreError>;

    /// Answers a question of a user. `hash` is that of the question that the giver has seen.
    ///
    /// # Errors
    ///
    /// A text is too long.
    async fn answer_question(
        &self,
        user: &str,
        id: &str,
        hash: &str,
        answer: StoredAnswer,
    ) -> Result<AnswerResult, StoreError>;

    /// Returns the answer to a question, if there is one.
    async fn find_answer(&self, id: &str) -> Result<Option<StoredAnswer>, StoreError>;

    /// Notes that whoever asked has received the answer. The text of the question is removed. `kept`
    /// takes the place of the answer, if that has something that nobody else may read.
    async fn close_question(&self, id: &str, kept: Option<&str>) -> Result<(), StoreError>;

    /// Returns whether the answer to a question was received.
    async fn is_received(&self, id: &str) -> Result<bool, StoreError>;

    /// Removes a question that nobody asks any more, unless it has an answer.
    async fn withdraw_question(&self, id: &str) -> Result<(), StoreError>;
}

impl StoredQuestion {
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("a question", &self.text, QUESTION_TEXT_BYTES_MAX)?;
        let texts = [
            ("the id of a question", &self.id),
            ("the name of a user", &self.user),
            ("a hash", &self.hash),
        ];
        texts
            .into_iter()
            .try_for_each(|(what, text)| check_length(what, text, SHORT_TEXT_BYTES_MAX))
    }
}

impl StoredAnswer {
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("an answer", &self.answer, SHORT_TEXT_BYTES_MAX)?;
        check_length("the giver of an answer", &self.carrier, SHORT_TEXT_BYTES_MAX)
    }
}
