//! The routes of approvals: the questions that wait, and answers to them.
//!
//! A question is a card that can be carried elsewhere: its hash covers everything that it is about.
//! A yes names the hash, so it applies to what its giver has seen and to nothing else.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Extension,
    extract::{Path, State},
};
use sallyport_contract::ApprovalRequest;
use sallyport_runtime::{
    clock::now_ms,
    gate::{
        question_answer::{GivenAnswer, QuestionAnswerError, answer_question},
        sealed_question::{AnswerWord, SealedQuestion},
    },
    question_text::question_text,
};
use sallyport_store::StoredQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    caller::RequestCaller,
    problem::{Problem, ProblemKind},
    request_body::{JsonBody, JsonReply},
    role::{ServiceUser, UserRole},
    service::Service,
    session_routes::check_answer_role,
};

/// A question that waits for an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QuestionCard {
    /// Its ID.
    id: String,
    /// The hash of everything that it is about. A yes names it.
    hash: String,
    /// Whose call it is about.
    user: String,
    /// When it was asked, in milliseconds since 1970.
    asked_ms: u64,
    /// When it expires, in milliseconds since 1970.
    expires_ms: u64,
    /// The answers that it offers.
    answers: &'static [&'static str],
    /// The whole question in words. Absent if it is too long to be shown whole; refuse it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// What it is about.
    question: ApprovalRequest,
}

/// The questions that wait, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalList {
    approvals: Vec<QuestionCard>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerToGive {
    /// One of those that the question offers: `once` and `session` are for approvers, `always` is for
    /// operators.
    answer: AnswerWord,
    /// The hash of the question. Only a no needs none.
    hash: Option<String>,
    /// The folder, for a grant that needs one.
    folder: Option<String>,
    /// The reason of a no, for the model.
    reason: Option<String>,
    /// The values, for the question of an MCP server.
    values: Option<Map<String, Value>>,
}

/// The answer counts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerTaken {
    /// The question.
    id: String,
    /// The answer.
    answer: AnswerWord,
}

pub(crate) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
) -> Result<JsonReply<ApprovalList>, Problem> {
    let mut waiting = Vec::new();
    for user in readable_users(&service, &caller.user) {
        waiting.extend(service.host.store().questions.open_questions(&user, now_ms()).await?);
    }
    waiting.sort_by_key(|question| question.asked_ms);
    // One whose text is damaged cannot be answered here.
    let approvals = waiting.into_iter().filter_map(|stored| card(stored).ok()).collect();
    Ok(JsonReply(ApprovalList { approvals }))
}

pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
) -> Result<JsonReply<QuestionCard>, Problem> {
    card(find_question(&service, &caller.user, &id).await?).map(JsonReply)
}

pub(crate) async fn answer(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<RequestCaller>,
    Path(id): Path<String>,
    JsonBody(given): JsonBody<AnswerToGive>,
) -> Result<JsonReply<AnswerTaken>, Problem> {
    let stored = find_question(&service, &caller.user, &id).await?;
    let AnswerToGive { answer: word, hash, folder, reason, values } = given;
    // What an MCP server asks of a user is not an approval, so its user answers in any role.
    let is_own_form = values.is_some() && stored.user == caller.user.name;
    let (is_yes, is_always) = (word != AnswerWord::No && !is_own_form, word == AnswerWord::Always);
    check_answer_role(is_yes, is_always, caller.user.role)?;
    let given = GivenAnswer { word, hash, folder, reason, values };
    let carrier = format!("{} over the service", caller.user.name);
    let questions = &*service.host.store().questions;
    match answer_question(questions, &stored, &given, &carrier).await {
        Ok(_) => Ok(JsonReply(AnswerTaken { id, answer: word })),
        Err(error) => Err(answer_problem(error)),
    }
}

/// What the client reads about an answer that does not count.
fn answer_problem(error: QuestionAnswerError) -> Problem {
    match error {
        QuestionAnswerError::AnsweredBefore(before) => {
            let problem =
                Problem::new(ProblemKind::AlreadyAnswered, "the question was answered before");
            problem.with_detail(format!("by {}", before.carrier))
        }
        QuestionAnswerError::Expired => {
            Problem::new(ProblemKind::QuestionExpired, "the question has expired")
        }
        QuestionAnswerError::NotAsked => no_question(),
        QuestionAnswerError::HashMissing | QuestionAnswerError::OtherHash => {
            Problem::bad_request(error.to_string())
        }
        QuestionAnswerError::NotOffered { .. } => {
            let problem = Problem::bad_request("the question does not offer this answer");
            problem.with_detail(error.to_string())
        }
        QuestionAnswerError::Broken(broken) => {
            Problem::new(ProblemKind::Internal, broken.to_string())
        }
        QuestionAnswerError::Store(error) => error.into(),
    }
}

/// The users whose questions a user may read.
fn readable_users(service: &Service, reader: &ServiceUser) -> BTreeSet<String> {
    match reader.role >= UserRole::Approver {
        true => service.users(),
        false => BTreeSet::from([reader.name.clone()]),
    }
}

/// Finds a question that waits and that a user may read. Any other one does not exist.
async fn find_question(
    service: &Service,
    reader: &ServiceUser,
    id: &str,
) -> Result<StoredQuestion, Problem> {
    for user in readable_users(service, reader) {
        let open = service.host.store().questions.open_questions(&user, now_ms()).await?;
        if let Some(found) = open.into_iter().find(|question| question.id == id) {
            return Ok(found);
        }
    }
    Err(no_question())
}

fn no_question() -> Problem {
    Problem::not_found("no such question waits for an answer")
}

fn open_question(stored: &StoredQuestion) -> Result<SealedQuestion, Problem> {
    SealedQuestion::open(&stored.text, &stored.hash)
        .map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))
}

fn card(stored: StoredQuestion) -> Result<QuestionCard, Problem> {
    let question = open_question(&stored)?;
    let StoredQuestion { id, user, hash, asked_ms, expires_ms, .. } = stored;
    let (answers, text) = (question.offered_words(), question_text(&question.request));
    let question = question.request;
    Ok(QuestionCard { id, hash, user, asked_ms, expires_ms, answers, text, question })
}
