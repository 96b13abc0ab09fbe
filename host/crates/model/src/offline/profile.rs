//! What a tool is about: its words, and how much each says about it.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde_json::Value;

use super::fill::params::{self, Param};
use super::stem::{is_stop_word, stem};
use super::synonyms;
use crate::chat::ToolDefinition;

/// How much of a description is read. What a tool is for stands at the beginning.
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// How many parameters, or values of one, are read for their words.
const ITEMS_MAX: usize = 64;

/// Weight of a word in the tool's own name. The weights are ratios to a word of the description.
const NAME: f64 = 3.0;
/// Weight of a word in the plugin's name.
const PLUGIN: f64 = 2.0;
/// Weight of a name's word that every second tool has.
const GENERIC: f64 = 1.5;
/// Weight of a word in the description.
const DESCRIPTION: f64 = 1.0;
/// Weight of a word in a parameter's name or among its values.
const PARAMETER: f64 = 0.8;
/// Weight of a word in a parameter's description.
const PARAMETER_DESCRIPTION: f64 = 0.4;

/// Words of names that say little about what a tool is for.
const GENERIC_WORDS: &[&str] = &[
    "add",
    "api",
    "check",
    "create",
    "data",
    "detail",
    "do",
    "fetch",
    "find",
    "get",
    "info",
    "information",
    "make",
    "retrieve",
    "run",
    "set",
    "show",
    "tool",
    "update",
    "use",
];

/// The words of one tool.
#[derive(Debug)]
pub(super) struct Profile<'a> {
    pub(super) tool: &'a ToolDefinition,
    /// What it wants to know.
    pub(super) params: Vec<Param<'a>>,
    /// Stems with their weights.
    words: HashMap<String, f64>,
    /// Groups of synonyms with the weight of the weightiest word in each.
    groups: HashMap<usize, f64>,
    /// Stems of the tool's own name, without the plugin's.
    pub(super) name: Vec<String>,
    /// Stems of both names that say what the tool is for.
    pub(super) telling: HashSet<String>,
}

impl<'a> Profile<'a> {
    pub(super) fn new(tool: &'a ToolDefinition) -> Self {
        let (plugin, name) = tool.name.split_once("__").unwrap_or(("", &tool.name));
        let (plugin, name) = (stems(&split_name(plugin)), stems(&split_name(name)));
        let mut profile = Self {
            tool,
            params: params::of(&tool.parameters, &tool.parameters),
            words: HashMap::new(),
            groups: HashMap::new(),
            telling: plugin.iter().chain(&name).filter(|s| !is_generic(s)).cloned().collect(),
            name,
        };
        for stem in profile.name.clone() {
            profile.add(&stem, if is_generic(&stem) { GENERIC } else { NAME });
        }
        // "create" says nothing, so its plugin's name says it all.
        let by_plugin = profile.name.iter().all(|stem| is_generic(stem));
        plugin.iter().for_each(|stem| profile.add(stem, if by_plugin { NAME } else { PLUGIN }));
        let description: String = tool.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
        stems(&description).iter().for_each(|stem| profile.add(stem, DESCRIPTION));
        profile.add_parameters(&tool.parameters);
        profile
    }

    /// Returns the weight of a word itself.
    pub(super) fn own_weight(&self, stem: &str) -> f64 {
        self.words.get(stem).copied().unwrap_or(0.0)
    }

    /// Returns the weight of a word, its own or that of a synonym.
    pub(super) fn weight(&self, stem: &str) -> f64 {
        let own = self.own_weight(stem);
        let groups = synonyms::groups(stem).iter();
        groups
            .filter_map(|group| self.groups.get(group))
            .fold(own, |best, weight| best.max(weight * SYNONYM))
    }

    /// Returns whether a word, or a synonym, stands in the tool's names and says what it is for.
    pub(super) fn is_telling(&self, stem: &str) -> bool {
        self.telling.iter().any(|own| synonyms::alike(own, stem))
    }

    /// Returns all stems, for counting in how many tools each stands.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.keys().map(String::as_str)
    }

    fn add(&mut self, stem: &str, weight: f64) {
        let known = self.words.entry(stem.to_owned()).or_insert(0.0);
        *known = known.max(weight);
        for group in synonyms::groups(stem) {
            let known = self.groups.entry(*group).or_insert(0.0);
            *known = known.max(weight);
        }
    }

    fn add_parameters(&mut self, parameters: &Value) {
        let Some(properties) = parameters.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (name, schema) in properties.iter().take(ITEMS_MAX) {
            stems(&split_name(name)).iter().for_each(|stem| self.add(stem, PARAMETER));
            let about = schema.get("description").and_then(Value::as_str).unwrap_or("");
            let about: String = about.chars().take(DESCRIPTION_CHARS_MAX).collect();
            stems(&about).iter().for_each(|stem| self.add(stem, PARAMETER_DESCRIPTION));
            let values = schema.get("enum").and_then(Value::as_array);
            for value in values.into_iter().flatten().take(ITEMS_MAX).filter_map(Value::as_str) {
                stems(&split_name(value)).iter().for_each(|stem| self.add(stem, PARAMETER));
            }
        }
    }
}

/// A synonym says a little less than the word itself.
const SYNONYM: f64 = 0.8;

/// True for the stem of a word that stands in many names.
pub(super) fn is_generic(stem_of_name: &str) -> bool {
    static STEMS: LazyLock<HashSet<String>> =
        LazyLock::new(|| GENERIC_WORDS.iter().map(|word| stem(word)).collect());
    STEMS.contains(stem_of_name)
}

/// Returns the stems of the words in a text that carry meaning, in their order.
pub(super) fn stems(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’');
    words
        .map(|word| word.trim_matches(['\'', '’']).to_lowercase())
        .filter(|word| !word.is_empty() && !is_stop_word(word))
        .map(|word| stem(&word))
        .collect()
}

/// Puts spaces into a name as programs write it: `getUserName`, `get_user-name`, `HTTPServer`.
pub(super) fn split_name(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut previous = ' ';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let before_lower = rest.peek().is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase()
            && (previous.is_lowercase() || (previous.is_uppercase() && before_lower));
        if begins {
            words.push(' ');
        }
        words.push(if c.is_alphanumeric() { c } else { ' ' });
        previous = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_where_their_authors_joined_them() {
        let rows = [
            ("getUserName", "get User Name"),
            ("get_user-name.v2", "get user name v2"),
            ("HTTPServer", "HTTP Server"),
            ("ISBN", "ISBN"),
            ("", ""),
        ];
        for (name, want) in rows {
            assert_eq!(split_name(name), want);
        }
    }
}
