//! The events that a session must not lose, as records in chronological order.
//!
//! A record is written before its consequences happen: an input before the request to the model, an
//! answer before its calls run, a result the moment its call ends. A host that dies at any moment
//! therefore loses at most the text in flight, and
//! [`restore_session`](crate::history::restore_session) rebuilds the conversation from the rest.
//! Records are only ever appended: even undone turns remain.

use std::future;

use sallyport_contract::{BoxFuture, services::PluginNotice};
use sallyport_model::{
    AssistantMessage, TokenCost, TokenUsage, ToolResultMessage, UserInputMessage,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    budget::TurnUsage,
    memory::RecalledMemory,
    results::{KeptResult, MemoryResults, ResultLookup},
};

/// Version of the records that this build writes.
pub const VERSION: u32 = 1;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum JournalRecord {
    /// A session began, or continues with other instructions: the last such record applies.
    Began {
        /// Version of the records that follow, see [`VERSION`].
        version: u32,
        /// Instructions for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
        /// Facts that it knows from the start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memories: Vec<String>,
        /// What it is told about the user's accounts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accounts: Option<String>,
        /// The facts are recalled where they are relevant to an input, instead of being sent whole.
        #[serde(default, skip_serializing_if = "is_false")]
        by_meaning: bool,
    },
    /// A model takes over.
    Model {
        /// Its display name.
        name: String,
    },
    /// A turn begins.
    Input {
        /// The input of the user, or of the origin that it names.
        message: UserInputMessage,
    },
    /// The model answered.
    Answer {
        /// The message, with safe and unique ids and names for its calls.
        message: AssistantMessage,
        /// Tokens of the exchange; estimated where the provider does not report them.
        usage: TokenUsage,
        /// Their cost, when the price was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<TokenCost>,
    },
    /// A call ended.
    Result {
        /// The result for the model.
        result: ToolResultMessage,
        /// The tool that was called; the model's message may name another that wraps it.
        tool: String,
        /// How it ended, see [`Outcome::as_str`](sallyport_contract::Outcome::as_str).
        outcome: String,
        /// The arguments with which the user replaced the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<String>,
        /// The whole result is kept, and the model received its beginning and its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<KeptResult>,
    },
    /// Text that replaces an answer of the model.
    Note {
        /// The text.
        text: String,
    },
    /// A turn is over.
    TurnEnded {
        /// Its ending, see [`TurnEnd::as_str`](crate::TurnEnd::as_str).
        end: String,
        /// Its usage.
        usage: TurnUsage,
    },
    /// The user undid the last turn.
    Undone,
    /// The model does not see the last turn again: nothing was done in it, or the provider refused
    /// the conversation with it. Its input can still be retried.
    Forgotten,
    /// The model summarized the beginning of the conversation.
    Summary {
        /// The summary.
        text: String,
        /// How many messages after the instructions it replaces.
        through: usize,
        /// Tokens of the exchange; estimated where the provider does not report them.
        usage: TokenUsage,
        /// Their cost, when the price was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<TokenCost>,
    },
    /// The model searched for tools.
    Found {
        /// The names that it received.
        tools: Vec<String>,
    },
    /// Memories relevant to the last input were recalled; the model sees them until the next turn.
    Recalled {
        /// The memories, the nearest first.
        memories: Vec<RecalledMemory>,
    },
    /// A plugin sent the user a message. The model receives it with the next input.
    Noticed {
        /// The message and its sender.
        notice: PluginNotice,
    },
    /// A turn stays in view whatever else drops out of memory.
    Pinned {
        /// Its number, from 1; undone turns are not counted.
        turn: usize,
    },
    /// A record that this build cannot read: a newer one wrote it, or it is damaged.
    #[serde(other)]
    Unknown,
}

impl JournalRecord {
    /// Reads a record from its JSON text. An unreadable one becomes [`JournalRecord::Unknown`], so
    /// that one bad record does not cost the rest.
    pub fn from_json(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or(Self::Unknown)
    }

    /// Returns the text by which a user could search for it: inputs, answers, calls and results.
    pub fn search_text(&self) -> Option<String> {
        match self {
            Self::Input { message } => {
                let files = message.attachments.iter().map(|file| file.name.as_str());
                Some(join_lines([message.text.as_str()].into_iter().chain(files)))
            }
            Self::Answer { message, .. } => {
                let calls = message.calls.iter().flat_map(|call| [&call.name, &call.arguments]);
                let calls = calls.map(String::as_str);
                Some(join_lines([message.text.as_str()].into_iter().chain(calls)))
            }
            Self::Result { result, tool, edited, .. } => {
                Some(join_lines([tool, edited.as_deref().unwrap_or_default(), &result.content]))
            }
            Self::Note { text } | Self::Summary { text, .. } => Some(text.clone()),
            Self::Noticed { notice } => Some(notice.text.clone()),
            _ => None,
        }
    }

    /// Returns the usage of the exchange behind it, if there was one.
    pub fn exchange_usage(&self) -> Option<(TokenUsage, Option<TokenCost>)> {
        match self {
            Self::Answer { usage, cost, .. } | Self::Summary { usage, cost, .. } => {
                Some((*usage, *cost))
            }
            _ => None,
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn join_lines<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// Why records were not written, in human-readable form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    /// What went wrong.
    pub message: String,
}

/// Stores the records of one session.
pub trait Journal: Send {
    /// Appends records, all of them or none. It returns when they are safe.
    ///
    /// # Errors
    ///
    /// The records are not stored. The session passes them again, before the next ones.
    fn write_records(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Returns every record that is stored, in order.
    ///
    /// # Errors
    ///
    /// The records cannot be read.
    fn read_records(&mut self) -> BoxFuture<'_, Result<Vec<JournalRecord>, JournalError>>;

    /// Keeps the text of a long result, at most [`KEPT_BYTES_MAX`](crate::results::KEPT_BYTES_MAX)
    /// bytes, and returns its number, from 1. The oldest ones may be removed to make room.
    ///
    /// # Errors
    ///
    /// The result is not kept.
    fn keep_result(&mut self, text: String) -> BoxFuture<'_, Result<u64, JournalError>>;

    /// Looks up a kept result of this session by its number.
    ///
    /// # Errors
    ///
    /// The results cannot be read.
    fn find_result(&mut self, number: u64) -> BoxFuture<'_, Result<ResultLookup, JournalError>>;
}

/// Keeps the records of a session that is not stored, until it ends.
#[derive(Debug, Clone, Default)]
pub struct MemoryJournal {
    records: Vec<JournalRecord>,
    results: MemoryResults,
}

impl Journal for MemoryJournal {
    fn write_records(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> BoxFuture<'_, Result<(), JournalError>> {
        self.records.extend(records);
        Box::pin(future::ready(Ok(())))
    }

    fn read_records(&mut self) -> BoxFuture<'_, Result<Vec<JournalRecord>, JournalError>> {
        Box::pin(future::ready(Ok(self.records.clone())))
    }

    fn keep_result(&mut self, text: String) -> BoxFuture<'_, Result<u64, JournalError>> {
        Box::pin(future::ready(Ok(self.results.keep_text(text))))
    }

    fn find_result(&mut self, number: u64) -> BoxFuture<'_, Result<ResultLookup, JournalError>> {
        Box::pin(future::ready(Ok(self.results.find_text(number))))
    }
}
