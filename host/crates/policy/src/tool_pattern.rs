//! The tools of a rule: one, some, or all of a plugin or of every plugin.

use std::{fmt, str::FromStr};

use sallyport_contract::{NameError, PluginName, ToolId, ToolName};

use crate::source::HintedError;

/// Matches any characters, including none.
const WILDCARD: char = '*';

/// The pattern of every tool of every plugin.
const EVERYTHING: &str = "*";

/// The tools of a rule, written `PLUGIN.TOOL`. Either half may contain wildcards; a single `*`
/// matches every tool of every plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    plugin: ToolNamePattern,
    tool: ToolNamePattern,
}

/// A pattern of names: a name, or text with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolNamePattern {
    text: String,
    /// Whether a pattern with wildcards ignores case.
    ignores_case: bool,
}

/// Why a text is not a tool pattern.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct ToolPatternError {
    source: NameError,
    hint: String,
}

impl HintedError for ToolPatternError {
    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }
}

impl FromStr for ToolPattern {
    type Err = ToolPatternError;

    fn from_str(text: &str) -> Result<Self, ToolPatternError> {
        Self::parse(text)
            .map_err(|source| ToolPatternError { source, hint: tool_pattern_hint(text) })
    }
}

fn tool_pattern_hint(text: &str) -> String {
    match text.parse::<PluginName>() {
        Ok(plugin) => format!("write \"{plugin}.*\" for all tools of the plugin"),
        Err(_) => {
            "write PLUGIN.TOOL, PLUGIN.* for all tools of a plugin, *.TOOL for a tool of any \
                   plugin, or * for all tools"
                .to_owned()
        }
    }
}

impl ToolPattern {
    fn parse(text: &str) -> Result<Self, NameError> {
        if text == EVERYTHING {
            return Ok(Self::everything());
        }
        if !text.contains(WILDCARD) {
            let ToolId { plugin, tool } = text.parse()?;
            let [plugin, tool] =
                [plugin.to_string(), tool.to_string()].map(ToolNamePattern::from_text);
            return Ok(Self { plugin, tool });
        }
        // Plugin names contain no dot; tool names may.
        let (plugin, tool) = text.split_once('.').ok_or_else(|| NameError::Id(text.to_owned()))?;
        // A wildcard may be anywhere that a letter may be.
        let with_letters = |part: &str| part.replace(WILDCARD, "a");
        if with_letters(plugin).parse::<PluginName>().is_err() {
            return Err(NameError::Plugin(plugin.to_owned()));
        }
        if with_letters(tool).parse::<ToolName>().is_err() {
            return Err(NameError::Tool(tool.to_owned()));
        }
        let [plugin, tool] = [plugin, tool].map(|part| ToolNamePattern::from_text(part.to_owned()));
        Ok(Self { plugin, tool })
    }

    /// The pattern of every tool of every plugin.
    pub(crate) fn everything() -> Self {
        Self { plugin: ToolNamePattern::any(), tool: ToolNamePattern::any() }
    }

    /// Returns the same pattern for a rule that stops calls: with wildcards, it matches letters of
    /// either case, because the wider reading is the safe one.
    pub(crate) fn ignoring_case(mut self) -> Self {
        self.plugin.ignores_case = true;
        self.tool.ignores_case = true;
        self
    }

    /// Whether the pattern matches a tool.
    pub fn matches(&self, tool: &ToolId) -> bool {
        self.plugin.matches(tool.plugin.as_str()) && self.tool.matches(tool.tool.as_str())
    }

    /// The plugin, if the pattern names a single one.
    pub(crate) fn single_plugin(&self) -> Option<PluginName> {
        self.plugin.exact_name()?.parse().ok()
    }

    /// The tool, if the pattern names a single one.
    pub(crate) fn single_tool(&self) -> Option<ToolId> {
        Some(ToolId::new(self.single_plugin()?, self.tool.exact_name()?.parse().ok()?))
    }

    pub(crate) fn can_match_plugin(&self, plugin: &PluginName) -> bool {
        self.plugin.matches(plugin.as_str())
    }

    /// Whether the pattern names a plugin, alone or with others whose names are similar.
    pub(crate) fn names_plugin(&self, plugin: &PluginName) -> bool {
        !self.plugin.is_any() && self.can_match_plugin(plugin)
    }

    /// Whether the pattern matches all tools of a plugin.
    pub(crate) fn matches_whole_plugin(&self, plugin: &PluginName) -> bool {
        self.tool.is_any() && self.can_match_plugin(plugin)
    }

    /// Whether the pattern certainly matches every tool of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.plugin.covers(&other.plugin) && self.tool.covers(&other.tool)
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.plugin.is_any() && self.tool.is_any() {
            true => f.write_str(EVERYTHING),
            false => write!(f, "{}.{}", self.plugin.text, self.tool.text),
        }
    }
}

impl ToolNamePattern {
    fn any() -> Self {
        Self::from_text(EVERYTHING.to_owned())
    }

    fn from_text(mut text: String) -> Self {
        // Two adjacent wildcards match what one matches.
        while text.contains("**") {
            text = text.replace("**", EVERYTHING);
        }
        Self { text, ignores_case: false }
    }

    fn is_any(&self) -> bool {
        self.text == EVERYTHING
    }

    /// The name, if the pattern has no wildcard.
    fn exact_name(&self) -> Option<&str> {
        (!self.text.contains(WILDCARD)).then_some(self.text.as_str())
    }

    fn matches(&self, name: &str) -> bool {
        match (self.exact_name(), self.ignores_case) {
            (Some(own), _) => own == name,
            (None, false) => wildcard_matches(self.text.as_bytes(), name.as_bytes()),
            (None, true) => wildcard_matches(
                self.text.to_ascii_lowercase().as_bytes(),
                name.to_ascii_lowercase().as_bytes(),
            ),
        }
    }

    /// Only a wildcard matches a wildcard of the other text: no name contains that character.
    fn covers(&self, other: &Self) -> bool {
        let is_as_wide = self.ignores_case || !other.ignores_case || other.exact_name().is_some();
        is_as_wide && self.matches(&other.text)
    }
}

/// Whether a pattern matches a text. Only the last wildcard is ever retried: an earlier one could
/// not find more.
fn wildcard_matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut next, mut at) = (0, 0);
    let mut again = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(b'*') => {
                next += 1;
                again = Some((next, at));
            }
            Some(byte) if *byte == text[at] => {
                next += 1;
                at += 1;
            }
            Some(_) | None => {
                let Some((behind, taken)) = again else { return false };
                (next, at) = (behind, taken + 1);
                again = Some((behind, taken + 1));
            }
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> ToolPattern {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_wildcard_in_either_half_takes_any_characters() {
        let rows = [
            ("*", "a.b", true),
            ("*.*", "files.remove", true),
            ("files.*", "files.remove", true),
            ("files.*", "file.remove", false),
            ("*.remove", "files.remove", true),
            ("*.remove", "files.remove_all", false),
            ("*.*delete*", "mail.delete", true),
            ("*.*delete*", "mail.bulk_delete_all", true),
            ("*.*delete*", "delete.mail", false),
            ("*.*delete*", "mail.x.delete", true),
            ("f*s.re*e", "files.remove", true),
            ("f*s.re*e", "files.remover", false),
            ("*a*b*.x", "zazbz.x", true),
            ("*a*b*.x", "zbzaz.x", false),
            ("files.role:*", "files.role:timer", true),
            ("*.*DELETE*", "mail.delete", false),
        ];
        for (text, tool, want) in rows {
            assert_eq!(pattern(text).matches(&tool.parse().unwrap()), want, "{text} {tool}");
        }
    }

    #[test]
    fn what_stops_calls_ignores_the_case_of_a_wildcards_name() {
        for (text, tool, want) in [
            ("*.*delete*", "mail.bulkDelete", true),
            ("*.*DELETE*", "mail.delete", true),
            // A name without wildcards is that name.
            ("mail.Delete", "mail.delete", false),
            ("*.Delete", "mail.delete", false),
        ] {
            let stops = pattern(text).ignoring_case();
            assert_eq!(stops.matches(&tool.parse().unwrap()), want, "{text} {tool}");
        }
    }

    #[test]
    fn one_pattern_covers_another_only_where_every_tool_is_one_of_its_own() {
        let rows = [
            ("*", "files.remove", true),
            ("*", "*.*delete*", true),
            ("*.*delete*", "*", false),
            ("*.*delete*", "mail.*delete_all*", true),
            ("*.*delete*", "mail.delete", true),
            ("mail.*", "*.delete", false),
            ("mail.*", "mail.*", true),
            ("m*.*", "mail.*", true),
            ("mail.*", "m*.*", false),
        ];
        for (one, other, want) in rows {
            assert_eq!(pattern(one).covers(&pattern(other)), want, "{one} {other}");
        }
        let (exact, loose) = (pattern("a.*x*"), pattern("a.*x*").ignoring_case());
        assert!(loose.covers(&exact) && !exact.covers(&loose));
    }

    #[test]
    fn a_pattern_reads_back_as_it_is_written() {
        let rows = [("*.*", "*"), ("a.**b**", "a.*b*"), ("a.b.c", "a.b.c"), ("*.b", "*.b")];
        for (text, want) in rows {
            assert_eq!(pattern(text).to_string(), want);
            assert_eq!(pattern(want), pattern(text));
        }
    }

    #[test]
    fn what_no_name_can_hold_is_refused() {
        for text in ["", ".", "*.", ".*", "a*", "A*.b", "*.b c", "*/x.b", "*.ä", "-*.b", "**"] {
            assert!(text.parse::<ToolPattern>().is_err(), "{text}");
        }
    }
}
