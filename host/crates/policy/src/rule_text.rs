//! Rules as text, as a policy file has them.

use std::fmt;

use sallyport_contract::Decision;

use crate::{capability::PAGE_RULE_KEY, toml_text::toml_string};

/// A rule as text: proposed by a refusal, and written by the answer "always".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// The tools, as a rule writes them: `PLUGIN.TOOL`, `PLUGIN.*`, `*.TOOL`, `*`.
    pub tool: String,
    /// The requests of a running call, for a rule about requests.
    pub net: Option<String>,
    /// The pages that a running call opens, for a rule about pages.
    pub page: Option<String>,
    /// The digest of the only component that the rule is about.
    pub digest: Option<String>,
    /// The decision.
    pub decision: Decision,
    /// The message for a call that the rule stops.
    pub message: Option<String>,
}

impl RuleText {
    /// Returns the rule that allows a tool, or all tools of a plugin.
    pub fn new_allow(tool: String) -> Self {
        Self { tool, net: None, page: None, digest: None, decision: Decision::Allow, message: None }
    }
}

impl fmt::Display for RuleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[rule]]\ntool = {}", toml_string(&self.tool))?;
        let optional = [("net", &self.net), (PAGE_RULE_KEY, &self.page), ("digest", &self.digest)];
        for (key, text) in optional {
            if let Some(text) = text {
                writeln!(f, "{key} = {}", toml_string(text))?;
            }
        }
        writeln!(f, "decision = \"{}\"", self.decision.as_str())?;
        match &self.message {
            Some(message) => writeln!(f, "message = {}", toml_string(message)),
            None => Ok(()),
        }
    }
}
