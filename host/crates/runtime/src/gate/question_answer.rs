//! Answers to a question that waits in the store, from whoever has read it there.

use sallyport_contract::ApprovalAnswer;
use sallyport_store::{AnswerResult, QuestionStore, StoreError, StoredAnswer, StoredQuestion};
use serde_json::{Map, Value};

use super::sealed_question::{AnswerDetails, AnswerWord, BrokenSealError, SealedQuestion};
use crate::clock::now_ms;

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The answer.
    pub word: AnswerWord,
    /// The hash of the question that its giver has seen. Only a no needs none.
    pub hash: Option<String>,
    /// The folder, for a grant that needs one.
    pub folder: Option<String>,
    /// The reason of a no, for the model.
    pub reason: Option<String>,
    /// The values, for the question of a server.
    pub values: Option<Map<String, Value>>,
}

impl GivenAnswer {
    fn details(&self) -> AnswerDetails<'_> {
        let (folder, reason) = (self.folder.as_deref(), self.reason.as_deref());
        AnswerDetails { folder, reason, values: self.values.as_ref() }
    }
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum QuestionAnswerError {
    /// The question cannot be read.
    #[error(transparent)]
    Broken(#[from] BrokenSealError),
    /// The question offers other answers.
    #[error("the question offers {}{}", offered.join(", "), needed_text(*needs_folder, *needs_values))]
    NotOffered {
        /// The words that it offers.
        offered: &'static [&'static str],
        /// Whether a yes needs a folder.
        needs_folder: bool,
        /// Whether a yes needs values that fit its fields.
        needs_values: bool,
    },
    /// A yes names no question.
    #[error("a yes needs the hash of the question")]
    HashMissing,
    /// It is about another question.
    #[error("the hash is not the one of this question; nothing was answered")]
    OtherHash,
    /// Another answer came first.
    #[error("the question was answered before, by {}", .0.carrier)]
    AnsweredBefore(StoredAnswer),
    /// It came too late.
    #[error("the question has expired; it was refused")]
    Expired,
    /// Nobody asks the question any more.
    #[error("the question is not asked any more; nothing was answered")]
    NotAsked,
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn needed_text(needs_folder: bool, needs_values: bool) -> &'static str {
    match (needs_folder, needs_values) {
        (true, _) => "; a yes needs a folder",
        (false, true) => "; a yes needs values that fit the fields",
        (false, false) => "",
    }
}

/// Enters an answer, if the question offers it and no other one came first. `carrier` is who gives it.
///
/// # Errors
///
/// The answer does not count.
pub async fn answer_question(
    questions: &dyn QuestionStore,
    stored: &StoredQuestion,
    given: &GivenAnswer,
    carrier: &str,
) -> Result<ApprovalAnswer, QuestionAnswerError> {
    let question = SealedQuestion::open(&stored.text, &stored.hash)?;
    let answer = question.answer_for_word(given.word, given.details()).ok_or_else(|| {
        let (offered, request) = (question.offered_words(), &question.request);
        let (needs_folder, needs_values) =
            (request.needs_folder(), request.form_question().is_some());
        QuestionAnswerError::NotOffered { offered, needs_folder, needs_values }
    })?;
    check_hash(given, stored)?;
    enter_answer(questions, stored, &answer, carrier).await?;
    Ok(answer)
}

/// Enters an answer whose giver has seen the whole question.
///
/// # Errors
///
/// The answer does not count.
pub async fn enter_answer(
    questions: &dyn QuestionStore,
    stored: &StoredQuestion,
    answer: &ApprovalAnswer,
    carrier: &str,
) -> Result<(), QuestionAnswerError> {
    let StoredQuestion { user, id, hash, .. } = stored;
    let entered = store_answer(questions, user, (id, hash), answer, carrier).await?;
    match entered {
        AnswerResult::Accepted => Ok(()),
        AnswerResult::AnsweredBefore(before) => Err(QuestionAnswerError::AnsweredBefore(before)),
        AnswerResult::Expired => Err(QuestionAnswerError::Expired),
        AnswerResult::OtherHash | AnswerResult::NotAsked => Err(QuestionAnswerError::NotAsked),
    }
}

/// Writes an answer to the question with an ID and a hash, if it is the first one.
pub(super) async fn store_answer(
    questions: &dyn QuestionStore,
    user: &str,
    (id, hash): (&str, &str),
    answer: &ApprovalAnswer,
    carrier: &str,
) -> Result<AnswerResult, QuestionAnswerError> {
    let answer = serde_json::to_string(answer).map_err(|_| BrokenSealError)?;
    let answer = StoredAnswer { answer, carrier: carrier.to_owned(), at_ms: now_ms() };
    Ok(questions.answer_question(user, id, hash, answer).await?)
}

/// A yes names the question that its giver has seen. A no harms nobody.
fn check_hash(given: &GivenAnswer, stored: &StoredQuestion) -> Result<(), QuestionAnswerError> {
    match &given.hash {
        None if given.word == AnswerWord::No => Ok(()),
        None => Err(QuestionAnswerError::HashMissing),
        Some(hash) if *hash == stored.hash => Ok(()),
        Some(_) => Err(QuestionAnswerError::OtherHash),
    }
}
