//! A session: one user's conversation with a model that has tools.
//!
//! A session is an actor. One task owns the transcript and does everything in order;
//! [`FrontEndCommand`]s go in and [`SessionEvent`]s come out. Every front end, whether a terminal,
//! a single question or a server, consumes the same events and produces the same commands, so none
//! of them has rules of its own. Nothing is locked because nothing is shared. With the same model
//! and the same toolbox, the same commands at the same events produce the same events again.
//!
//! Everything that a session must not lose leaves it as [`JournalRecord`]s for a [`Journal`]. The
//! transcript consists of these records, applied one after another, both in a live session and in
//! one that [`history::restore_session`] brings back.
//!
//! Not every text comes from the user or the model. An input can carry another origin, a plugin can
//! send the user a message at any time ([`FrontEndCommand::Notice`]), and earlier turns can come
//! back by meaning ([`SessionMemory`]). Text from others reaches the model as data under its
//! author's name, in marked lines, never as the user's words.
//!
//! Suggested reading order: [`SessionEvent`] and [`FrontEndCommand`], then the loop in `turn`, then
//! `calls`, then `transcript`.

mod abortable_task;
mod account;
pub mod approval;
mod budget;
mod call_ending;
mod call_meaning;
mod calls;
mod client_port;
mod command;
mod event;
pub mod history;
pub mod journal;
pub mod memory;
mod model_exchange;
mod outbox;
mod progress_throttle;
mod recall;
mod recall_backlog;
pub mod recording;
pub mod results;
mod session;
mod session_log;
mod session_memory;
mod snapshot;
#[cfg(test)]
mod tests;
mod tool_names;
pub mod toolset;
pub mod transcript;
mod turn;

use std::{sync::Arc, time::Duration};

use sallyport_contract::{Toolbox, TraceParent, mangle::ToolNameCollision};
use sallyport_model::ChatModel;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

pub use account::{AccountState, BudgetRefusal, SpendingAccount};
pub use approval::{ApprovalSender, PendingApprovals, UnattendedConsent};
pub use budget::{BudgetLimit, ModelSpending, SessionLimits, TurnLimits, TurnUsage};
pub use command::FrontEndCommand;
pub use event::{CallPosition, InputError, SessionActivity, SessionEvent, SessionNotice, TurnEnd};
pub use history::{RestoredSession, restore_session};
pub use journal::{Journal, JournalError, JournalRecord, MemoryJournal};
pub use memory::{MemoryMode, RecalledMemory};
pub use results::{KeptResult, ResultLookup};
pub use session_memory::{RecallError, RecallQuery, SessionMemory};
pub use snapshot::{OpenQuestion, SessionSnapshot};
pub use tool_names::ToolRef;

use client_port::SessionChannels;
use command::SessionRequest;
use outbox::SessionOutbox;
use session::Session;

/// Most commands that may wait; a front end that sends more waits itself. No human types that fast,
/// and a program that floods the session is slowed down.
const REQUESTS_WAITING_MAX: usize = 64;

/// Events that may wait for a slow front end before the session itself waits. This is a screenful
/// of streamed words, so a short pause of the reader does not stop the model.
const EVENTS_WAITING_MAX: usize = 256;

/// How often a failing journal is tried again for a message that only its sender has.
const JOURNAL_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Most tokens, by estimate, that the definitions of all tools may take before the model gets a
/// search instead. It is a small part of a model's context, and more tools than a model
/// distinguishes with ease.
pub const TOOL_TOKENS_MAX: u64 = 10_000;

/// The parts of a session.
pub struct SessionParts {
    /// The model that answers.
    pub model: Arc<dyn ChatModel>,
    /// The tools that the model can call. The list is read at the begin of each turn.
    pub toolbox: Arc<dyn Toolbox>,
    /// Receives the toolbox's questions to the user, see [`approval::approval_channel`].
    pub approvals: PendingApprovals,
    /// Stores everything that must not be lost.
    pub journal: Box<dyn Journal>,
    /// Finds earlier turns by meaning, for [`MemoryMode::ByMeaning`].
    pub recall: Option<Arc<dyn SessionMemory>>,
    /// The earlier conversation; `RestoredSession::default()` for a new session.
    pub past: RestoredSession,
    /// The account of the user over all sessions; `None` for one without limits.
    pub account: Option<Arc<dyn SpendingAccount>>,
    /// All other settings.
    pub options: SessionOptions,
}

/// The settings of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOptions {
    /// Identifies the session in every call that it makes.
    pub session_id: String,
    /// The user on whose behalf its calls are made. It is not serialized, because a recording is
    /// replayed by another user.
    #[serde(skip)]
    pub user_id: Option<String>,
    /// Instructions for the model. A continued session keeps its own if this is `None`.
    pub system_prompt: Option<String>,
    /// Facts that the model knows from the start. A continued session keeps its own if this is
    /// empty.
    pub memories: Vec<String>,
    /// What the model is told about the user's accounts. It is of this moment, so a continued
    /// session does not keep its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<String>,
    /// Which part of a long conversation the model sees.
    pub memory: MemoryMode,
    /// Sampling temperature, from 0 up; overrides the endpoint's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Most estimated tokens of tool definitions before the model gets a search instead; `None`
    /// always lists all tools.
    pub tool_tokens_max: Option<u64>,
    /// Most bytes of JSON of a call's result that the model reads whole. A longer one is kept, and
    /// the model reads it in parts; see [`results`]. `None` cuts results at the model's limit and
    /// keeps nothing. Less than [`results::RESULT_BYTES_LEAST`] counts as that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bytes_max: Option<usize>,
    /// True when answers are spoken: a tool's own sentence then ends the turn.
    pub spoken: bool,
    /// Limits of one turn.
    pub limits: TurnLimits,
    /// Limits of the whole session, including what it used before it was restored.
    pub session_limits: SessionLimits,
}

impl SessionOptions {
    /// Options of a written session without a system prompt, in which the model sees the whole
    /// conversation, with the default limits.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            user_id: None,
            system_prompt: None,
            memories: Vec::new(),
            accounts: None,
            memory: MemoryMode::None,
            temperature: None,
            tool_tokens_max: Some(TOOL_TOKENS_MAX),
            result_bytes_max: Some(results::RESULT_BYTES_DEFAULT),
            spoken: false,
            limits: TurnLimits::default(),
            session_limits: SessionLimits::default(),
        }
    }
}

/// A session's handle. Clones refer to the same session; it closes when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    requests: mpsc::Sender<SessionRequest>,
    notice_count: watch::Receiver<u64>,
}

/// The session has ended and takes no more commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended")]
pub struct SessionEndedError;

/// Why the state of a session cannot be returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The session has ended.
    #[error(transparent)]
    Ended(#[from] SessionEndedError),
    /// Its records cannot be read.
    #[error("the records of this session cannot be read: {0}")]
    Journal(#[from] JournalError),
}

impl SessionHandle {
    /// Sends a command.
    ///
    /// # Errors
    ///
    /// The session has ended.
    pub async fn send(&self, command: FrontEndCommand) -> Result<(), SessionEndedError> {
        self.send_request(SessionRequest::Command(command)).await
    }

    /// Sends a command. A turn that it starts belongs to the trace of its caller, if there is one.
    ///
    /// # Errors
    ///
    /// The session has ended.
    pub async fn send_traced(
        &self,
        command: FrontEndCommand,
        caller: Option<TraceParent>,
    ) -> Result<(), SessionEndedError> {
        let request = match (command, caller) {
            (FrontEndCommand::SubmitInput { input }, Some(caller)) => {
                SessionRequest::TracedInput(input, caller)
            }
            (command, _) => SessionRequest::Command(command),
        };
        self.send_request(request).await
    }

    /// Switches to another model, after the current turn.
    ///
    /// # Errors
    ///
    /// The session has ended.
    pub async fn use_model(&self, model: Arc<dyn ChatModel>) -> Result<(), SessionEndedError> {
        self.send_request(SessionRequest::UseModel(model)).await
    }

    /// Returns the state of the session at this moment, also during a turn. Keep reading the events
    /// while you wait: a session whose events are not read does nothing else, so it does not answer.
    ///
    /// # Errors
    ///
    /// The session has ended, or its records cannot be read.
    pub async fn snapshot(&self) -> Result<SessionSnapshot, SnapshotError> {
        let (reply, snapshot) = oneshot::channel();
        self.send_request(SessionRequest::Snapshot(reply)).await?;
        Ok(snapshot.await.map_err(|_| SessionEndedError)??)
    }

    /// Returns the texts of the kept results of some records, as far as they are still kept: for
    /// an export of a [`snapshot`](Self::snapshot), and on the same condition.
    ///
    /// # Errors
    ///
    /// The session has ended, or its results cannot be read.
    pub async fn kept_texts(
        &self,
        records: &[JournalRecord],
    ) -> Result<history::KeptTexts, SnapshotError> {
        let mut texts = history::KeptTexts::new();
        for number in history::kept_numbers(records) {
            let (reply, found) = oneshot::channel();
            self.send_request(SessionRequest::FindResult(number, reply)).await?;
            if let ResultLookup::Found(text) = found.await.map_err(|_| SessionEndedError)?? {
                texts.insert(number, text);
            }
        }
        Ok(texts)
    }

    async fn send_request(&self, request: SessionRequest) -> Result<(), SessionEndedError> {
        self.requests.send(request).await.map_err(|_| SessionEndedError)
    }

    /// Waits until `count` plugin messages since the session started are safe in its journal, see
    /// [`FrontEndCommand::Notice`]. Before that, only their senders have them. A journal that fails
    /// is tried again from time to time.
    ///
    /// # Errors
    ///
    /// The session has ended, and fewer are safe.
    pub async fn wait_for_notices(&self, count: u64) -> Result<(), SessionEndedError> {
        let mut notice_count = self.notice_count.clone();
        loop {
            let recorded = notice_count.wait_for(|notice_count| *notice_count >= count);
            match timeout(JOURNAL_RETRY_PAUSE, recorded).await {
                Ok(recorded) => return recorded.map(drop).map_err(|_| SessionEndedError),
                // A session that is busy tries it when it has time.
                Err(_) => drop(self.requests.try_send(SessionRequest::RetryJournal)),
            }
        }
    }
}

/// Starts a session on the current tokio runtime. It runs until it receives
/// [`FrontEndCommand::Close`] or all its handles or its event receiver are dropped. The channel
/// ends after the last event.
///
/// # Errors
///
/// Two tools have the same model name.
pub fn spawn_session(
    parts: SessionParts,
) -> Result<(SessionHandle, mpsc::Receiver<SessionEvent>), ToolNameCollision> {
    let (requests, inbox) = mpsc::channel(REQUESTS_WAITING_MAX);
    let (outbox, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let (notice_counter, notice_count) = watch::channel(0);
    let outbox = SessionOutbox::new(outbox, notice_counter);
    let session = Session::new(parts, SessionChannels { inbox, outbox })?;
    tokio::spawn(session.run());
    Ok((SessionHandle { requests, notice_count }, events))
}
