//! Rules over tools: who may be called without asking, and who may not be called at all.

use std::str::FromStr;

use sallyport_contract::{Decision, NameError, PluginName, ToolId};

use crate::{
    document::Item,
    source::{Mistake, Place, SourceError},
};

const DECISIONS: [(&str, Decision); 3] =
    [("allow", Decision::Allow), ("ask", Decision::Ask), ("deny", Decision::Deny)];

/// One `[[rule]]` of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) tools: ToolPattern,
    pub(crate) decision: Decision,
    message: Option<String>,
    pub(crate) place: Place,
}

/// The tools that a rule speaks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolPattern {
    /// This one.
    One(ToolId),
    /// Every tool of a plugin.
    AllOf(PluginName),
}

/// Why a text names no tools.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(crate) struct ToolPatternError {
    source: NameError,
    hint: Option<String>,
}

impl Mistake for ToolPatternError {
    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

impl FromStr for ToolPattern {
    type Err = ToolPatternError;

    fn from_str(text: &str) -> Result<Self, ToolPatternError> {
        let parsed = match text.strip_suffix(".*") {
            Some(plugin) => plugin.parse().map(Self::AllOf),
            None => text.parse().map(Self::One),
        };
        let hint = || match text.parse::<PluginName>() {
            Ok(plugin) => Some(format!("write \"{plugin}.*\" for all tools of the plugin")),
            Err(_) => Some("write PLUGIN.TOOL, or PLUGIN.* for all tools of a plugin".to_owned()),
        };
        parsed.map_err(|source| ToolPatternError { source, hint: hint() })
    }
}

impl ToolPattern {
    pub(crate) fn matches(&self, tool: &ToolId) -> bool {
        match self {
            Self::One(id) => id == tool,
            Self::AllOf(plugin) => *plugin == tool.plugin,
        }
    }
}

impl Rule {
    pub(crate) fn read(item: Item<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.section(|section| {
            Ok(Self {
                tools: section.required("tool", Item::parsed)?,
                decision: section.required("decision", |item| item.choice(&DECISIONS))?,
                message: section.optional("message", Item::prose)?,
                place,
            })
        })
    }

    /// The rule's own words, if it has any, and its place.
    pub(crate) fn reason(&self) -> String {
        match &self.message {
            Some(message) => format!("{message} (rule at {})", self.place),
            None => format!("rule at {}", self.place),
        }
    }
}
