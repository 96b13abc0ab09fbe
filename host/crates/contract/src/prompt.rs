//! Prompts: conversations that a plugin begins for the user.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question to a plugin that offers prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum PromptQuery {
    /// One page of its prompts: the first one, or the one that `after` names. The answer's data is
    /// an [`OfferPage`](crate::OfferPage) of [`PromptSpec`].
    List {
        /// What the page before returned.
        after: Option<String>,
    },
    /// A prompt, filled in. The answer's data is a [`FilledPrompt`], and its further parts are the
    /// contents of the messages.
    Get {
        /// Its name.
        name: String,
        /// Texts, by the name of the argument.
        arguments: Map<String, Value>,
    },
}

/// Something that the user fills in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Unique in the prompt.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What to fill in.
    pub description: Option<String>,
    /// The prompt cannot do without it.
    pub required: bool,
}

/// A prompt that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSpec {
    /// Unique in the plugin.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// What the user fills in.
    pub arguments: Vec<PromptArgument>,
}

/// A prompt that is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilledPrompt {
    /// What it is for.
    pub description: Option<String>,
    /// Whose words each message is, in the order of the messages.
    pub roles: Vec<PromptRole>,
}

/// Whose words a message of a prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptRole {
    /// The user's.
    User,
    /// The model's.
    Assistant,
}
