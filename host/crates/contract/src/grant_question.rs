//! The question whether a plugin gets a grant that a running call lacks.
//!
//! The policy finds what would lift the refusal, the gate asks, and a front end shows the choices.
//! An answer grants the entries of one choice, and nothing else.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FixGrant, UserAnswer, fix::FOLDER_PLACEHOLDER};

/// A question about a missing grant. Its texts are untrusted: a plugin or its author chose them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct GrantQuestion {
    /// The refused action: `weather may not GET https://api.open-meteo.com/v1/forecast`.
    pub what: String,
    /// The author's reasons for the requests that the first choice answers.
    pub why: Vec<String>,
    /// The grants that would lift the refusal, the narrowest first. There is at least one.
    pub choices: Vec<GrantChoice>,
}

/// Grants that lift a refusal together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct GrantChoice {
    /// The entries that the plugin would get.
    pub grants: Vec<FixGrant>,
    /// The change to the user's policy file that "always" makes, as the lines of a diff. `None` if
    /// the file cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// What the user has to do besides, such as storing the value of a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How long a grant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantScope {
    /// For the call that asked.
    Once,
    /// For the plugin, until the session ends.
    Session,
    /// Until the user revokes it: it is written into the policy.
    Always,
}

/// A yes to a certain choice of a [`GrantQuestion`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrantAnswer {
    /// How long the grant holds.
    pub scope: GrantScope,
    /// The index of the choice.
    #[serde(default)]
    pub choice: usize,
    /// The folder, where the choice leaves it to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

impl GrantChoice {
    /// Whether the user has to name the folder that is granted.
    pub fn needs_folder(&self) -> bool {
        let placeholder = format!("path = \"{FOLDER_PLACEHOLDER}\"");
        self.grants.iter().any(|grant| grant.key == "fs" && grant.entry.contains(&placeholder))
    }

    /// The entries, one line each: `net = "GET https://example.org/"`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.grants.iter().map(|grant| format!("{} = {}", grant.key, grant.entry))
    }
}

impl GrantQuestion {
    /// The parts that the user decides about, each after its name, for a front end that offers the
    /// first choice only.
    pub fn labeled_parts(&self) -> Vec<(&'static str, String)> {
        let why = self.why.iter().map(|why| ("why", why.clone()));
        let first = self.choices.first();
        let grants = first.into_iter().flat_map(GrantChoice::lines).map(|line| ("grants", line));
        let notes = first.into_iter().flat_map(|choice| &choice.notes);
        why.chain(grants).chain(notes.map(|note| ("note", note.clone()))).collect()
    }
}

impl GrantScope {
    /// The answer in records.
    pub fn user_answer(self) -> UserAnswer {
        match self {
            Self::Once => UserAnswer::Once,
            Self::Session => UserAnswer::Session,
            Self::Always => UserAnswer::Always,
        }
    }
}
