//! A session: one person's conversation with a model that has tools.
//!
//! A session is an actor. One task owns the transcript and does everything in order; the world
//! sees it through [`Command`]s going in and [`Event`]s coming out. Every front end, whether it is
//! a terminal, a single question or a server, is a consumer of the same events and a producer of
//! the same commands, so none of them has a rule of its own. Nothing is shared, so nothing is
//! locked; given the same model and the same toolbox, the same commands at the same events give the
//! same events again.
//!
//! What a session must not lose leaves it as [`Record`]s for a [`Journal`]; the transcript is
//! nothing but these records, one applied after another, in a live session as in one that
//! [`history::restore`] brings back.
//!
//! Not all of it is between a person and a model. An input can come from elsewhere and says so, a
//! plugin can tell the person something at any moment ([`Command::Notice`]), and what was said long
//! ago can come back by what it means ([`Recall`]). What others wrote reaches the model as data under
//! their name, in lines that are marked, never as the person's words.
//!
//! Suggested reading order: [`Event`] and [`Command`], then the loop in `turn`, then `calls`, then
//! `transcript`.

pub mod approval;
mod ask;
mod book;
mod budget;
mod calls;
mod command;
mod ending;
mod event;
mod front;
pub mod history;
pub mod journal;
mod meaning;
pub mod memory;
mod naming;
mod pace;
mod recall;
mod session;
pub mod tape;
#[cfg(test)]
mod tests;
pub mod toolset;
pub mod transcript;
mod turn;
mod work;

use std::sync::Arc;

use sallyport_contract::{Toolbox, mangle::Collision};
use sallyport_model::ChatModel;
use tokio::sync::{mpsc, watch};

pub use approval::{Approvals, Desk, NobodyToAsk};
pub use budget::{Budget, Limits, SessionLimits, Spent};
pub use command::{Command, Speaker};
pub use event::{Event, InputError, Notice, Position, State, TurnEnd, TurnUsage};
pub use history::{Restored, restore};
pub use journal::{Journal, JournalError, NoJournal, Record};
pub use memory::Memory;
pub use naming::ToolRef;
pub use recall::{Recall, RecallError, Recalled, Wanted};

use front::Line;
use session::Session;

/// Commands that may wait; a front end that sends more waits itself. A person never does, a
/// program that floods the session is slowed down.
const COMMANDS_WAITING_MAX: usize = 64;

/// Events that may wait for a slow front end before the session itself waits. It is a screenful of
/// streamed words, so that a short pause of the reader does not stop the model.
const EVENTS_WAITING_MAX: usize = 256;

/// Most tokens, by estimate, that the definitions of all tools may take before the model is given a
/// search in their place. It is a small part of what models hold, and more tools than a model tells
/// apart with ease.
pub const TOOL_TOKENS_MAX: u64 = 10_000;

/// What a session is made of.
pub struct Parts {
    /// Who answers.
    pub model: Arc<dyn ChatModel>,
    /// What it can call. The list of tools is read once, when the session starts.
    pub toolbox: Arc<dyn Toolbox>,
    /// Where the toolbox's questions to the person arrive, see [`approval::channel`].
    pub approvals: Approvals,
    /// Where everything is written that must not be lost.
    pub journal: Box<dyn Journal>,
    /// What finds earlier turns by what they mean, for [`Memory::ByMeaning`].
    pub recall: Option<Arc<dyn Recall>>,
    /// What was said before; `Restored::default()` for a new session.
    pub past: Restored,
    /// Everything else.
    pub options: Options,
}

/// What can be chosen about a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Names the session in every call that it makes.
    pub session_id: String,
    /// The user on whose behalf its calls are made.
    pub user_id: Option<String>,
    /// What the model should be and do. A session that goes on keeps its own when there is none.
    pub system_prompt: Option<String>,
    /// What the model should know from the start. A session that goes on keeps its own when there
    /// are none.
    pub memories: Vec<String>,
    /// What the model is shown of a long conversation.
    pub memory: Memory,
    /// How freely the model is wished to answer, from 0 up, in place of what its endpoint says.
    pub temperature: Option<f64>,
    /// Most estimated tokens of tool definitions before the model is given a search in their place;
    /// without it, all tools are always listed.
    pub tool_tokens_max: Option<u64>,
    /// True when answers are spoken: a tool's own sentence then ends the turn.
    pub spoken: bool,
    /// How much one turn may use.
    pub limits: Limits,
    /// How much the whole session may use, what it used before it was restored included.
    pub session_limits: SessionLimits,
}

impl Options {
    /// A written session without a system prompt, with all of its conversation in the model's sight
    /// and with the usual limits.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            user_id: None,
            system_prompt: None,
            memories: Vec::new(),
            memory: Memory::None,
            temperature: None,
            tool_tokens_max: Some(TOOL_TOKENS_MAX),
            spoken: false,
            limits: Limits::default(),
            session_limits: SessionLimits::default(),
        }
    }
}

/// The way into a session. Clones lead to the same one; when the last is dropped, it closes.
#[derive(Debug, Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    noted: watch::Receiver<u64>,
}

/// The session has ended and takes no commands any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended")]
pub struct Ended;

impl Handle {
    /// Sends a command.
    ///
    /// # Errors
    ///
    /// The session has ended.
    pub async fn send(&self, command: Command) -> Result<(), Ended> {
        self.commands.send(command).await.map_err(|_| Ended)
    }

    /// Waits until the session has written down so many messages of plugins since it was started, see
    /// [`Command::Notice`]. Before that, only whoever sent them has them.
    ///
    /// # Errors
    ///
    /// The session has ended, and has written down fewer.
    pub async fn noted(&self, count: u64) -> Result<(), Ended> {
        let mut noted = self.noted.clone();
        noted.wait_for(|noted| *noted >= count).await.map(drop).map_err(|_| Ended)
    }
}

/// Starts a session on the current tokio runtime. It lives until it is told to close or until
/// nobody is left to talk to, and its last event is followed by the end of the channel.
///
/// # Errors
///
/// Two tools whose names a model could not tell apart.
pub fn spawn(parts: Parts) -> Result<(Handle, mpsc::Receiver<Event>), Collision> {
    let (commands, inbox) = mpsc::channel(COMMANDS_WAITING_MAX);
    let (outbox, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let (noting, noted) = watch::channel(0);
    let session = Session::new(parts, Line { inbox, outbox, noting })?;
    tokio::spawn(session.run());
    Ok((Handle { commands, noted }, events))
}
