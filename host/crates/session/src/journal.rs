//! What a session must not lose, as records in the order in which it happened.
//!
//! A record is written before the thing that follows from it happens: an input before the model is
//! asked, an answer before its calls run, a result the moment its call ended. So a host that dies
//! at any moment loses at most the words in flight, and [`restore`](crate::history::restore) makes
//! a conversation of what is there. Records are only ever added: even what is taken back stays.

use std::future;

use sallyport_contract::{BoxFuture, services::Notice};
use sallyport_model::{AssistantMessage, Cost, ToolResult, Usage, UserMessage};
use serde::{Deserialize, Serialize};

use crate::{event::TurnUsage, recall::Recalled};

/// Version of the records that this build writes.
pub const VERSION: u32 = 1;

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// A session began, or goes on with other instructions: the last of these holds.
    Began {
        /// Version of the records that follow, see [`VERSION`].
        version: u32,
        /// What the model should be and do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_prompt: Option<String>,
        /// What it should know from the start.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memories: Vec<String>,
        /// What it should know is recalled where it bears on an input, in place of being told whole.
        #[serde(default, skip_serializing_if = "is_false")]
        by_meaning: bool,
    },
    /// A model takes over.
    Model {
        /// Its name for people.
        name: String,
    },
    /// A turn begins.
    Input {
        /// What the person said, or whoever is named as its origin.
        message: UserMessage,
    },
    /// The model answered.
    Answer {
        /// The message, the ids and names of its calls made safe and unique.
        message: AssistantMessage,
        /// Tokens of the exchange; estimated where the provider does not say.
        usage: Usage,
        /// What they cost, when the price was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// A call ended.
    Result {
        /// What the model is told.
        result: ToolResult,
        /// The tool that was called, which may stand behind another in the model's message.
        tool: String,
        /// How it ended, see [`Outcome::word`](sallyport_contract::Outcome::word).
        outcome: String,
        /// The arguments that the person put in place of the model's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edited: Option<String>,
    },
    /// Words that stand in the model's place.
    Note {
        /// The words.
        text: String,
    },
    /// A turn is over.
    TurnEnded {
        /// How, see [`TurnEnd::word`](crate::TurnEnd::word).
        end: String,
        /// What it used.
        usage: TurnUsage,
    },
    /// The person took the last turn back.
    Undone,
    /// What was said in the last turn is not shown to the model again: nothing was done in it, or
    /// the provider refused the conversation with it. Its input can still be asked again.
    Forgotten,
    /// The model summed up the beginning of the conversation.
    Summary {
        /// The summary.
        text: String,
        /// How many messages after the instructions it stands for.
        through: usize,
        /// Tokens of the exchange; estimated where the provider does not say.
        usage: Usage,
        /// What they cost, when the price was known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// The model looked for tools.
    Found {
        /// The names that it was told.
        tools: Vec<String>,
    },
    /// What bears on the last input was recalled; the model is shown it until the turn ends.
    Recalled {
        /// What, the nearest first.
        memories: Vec<Recalled>,
    },
    /// A plugin told the person something. The model is told with the next input.
    Noticed {
        /// What, and who said it.
        notice: Notice,
    },
    /// A turn is to stay in sight whatever else falls out of memory.
    Pinned {
        /// Which, from 1, those that were taken back by the person not counted.
        turn: usize,
    },
    /// Something that this build cannot read: a newer one wrote it, or it is damaged.
    #[serde(other)]
    Unknown,
}

impl Record {
    /// Reads a record from its JSON text. What cannot be read is [`Record::Unknown`], so that one
    /// bad record costs nobody the rest.
    pub fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or(Self::Unknown)
    }

    /// The words by which a person could look for it: what was said, called and told.
    pub fn searchable(&self) -> Option<String> {
        match self {
            Self::Input { message } => {
                let files = message.attachments.iter().map(|file| file.name.as_str());
                Some(lines([message.text.as_str()].into_iter().chain(files)))
            }
            Self::Answer { message, .. } => {
                let calls = message.calls.iter().flat_map(|call| [&call.name, &call.arguments]);
                let calls = calls.map(String::as_str);
                Some(lines([message.text.as_str()].into_iter().chain(calls)))
            }
            Self::Result { result, tool, edited, .. } => {
                Some(lines([tool, edited.as_deref().unwrap_or_default(), &result.content]))
            }
            Self::Note { text } | Self::Summary { text, .. } => Some(text.clone()),
            Self::Noticed { notice } => Some(notice.text.clone()),
            _ => None,
        }
    }

    /// What the exchange behind it used, if there was one.
    pub fn spent(&self) -> Option<(Usage, Option<Cost>)> {
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

fn lines<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// Why records were not written, in words for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    /// What went wrong.
    pub message: String,
}

/// Keeps the records of one session.
pub trait Journal: Send {
    /// Adds records behind those that are there, all of them or none. It returns when they are
    /// safe.
    ///
    /// # Errors
    ///
    /// They are not. They come again, in front of the next ones.
    fn write(&mut self, records: Vec<Record>) -> BoxFuture<'_, Result<(), JournalError>>;
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn write(&mut self, _records: Vec<Record>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(future::ready(Ok(())))
    }
}
