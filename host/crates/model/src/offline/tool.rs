//! The verbs, nouns and parameters of a tool, for matching.

use std::collections::HashSet;

use sallyport_lexical::{contains_word, split_into_words};

use super::{
    ToolReach,
    language::{self, VerbEffect, word_root},
    params::{self, ParameterKind, ToolParameter},
};
use crate::chat::ModelToolDefinition;

/// Longest part of a description that is read, in characters. The purpose of a tool comes first.
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Words that end the first noun phrase of a description.
const HEAD_ENDS: &[&str] =
    &["that", "which", "with", "for", "in", "of", "on", "from", "to", "by", "or", "what", "user"];

/// Most words of a description that name the tool.
const HEAD_WORDS_MAX: usize = 5;

/// A tool and the words that it matches.
#[derive(Debug)]
pub(super) struct CatalogTool<'a> {
    pub(super) definition: &'a ModelToolDefinition,
    pub(super) params: Vec<ToolParameter<'a>>,
    /// The verb in its name or its description.
    verb: Option<String>,
    /// Verbs that request it, as imperatives.
    verbs: HashSet<String>,
    /// Whether its verb is vague and needs an object.
    is_vague: bool,
    pub(super) effect: VerbEffect,
    /// Roots of its own nouns and their synonyms.
    nouns: HashSet<String>,
    /// Roots of the nouns in its name.
    pub(super) own_words: HashSet<String>,
    /// Roots of words that belong to the tool but do not identify it.
    known: HashSet<String>,
    /// The parameter whose value is the verb, as in `task(action = "add")`.
    action: Option<ActionParameter<'a>>,
}

/// A choice of actions.
#[derive(Debug)]
struct ActionParameter<'a> {
    name: &'a str,
    values: Vec<&'a str>,
}

/// A request for a tool, as its verb makes it.
#[derive(Debug, Clone)]
pub(super) struct VerbRequest<'a> {
    pub(super) effect: VerbEffect,
    pub(super) is_vague: bool,
    /// Whether the verb names the object too: "remind", "settimer".
    pub(super) names_object: bool,
    /// The parameter that the verb sets, and its value.
    pub(super) action: Option<(&'a str, &'a str)>,
}

impl<'a> CatalogTool<'a> {
    pub(super) fn new(definition: &'a ModelToolDefinition, reach: ToolReach) -> Self {
        let (plugin, name) = definition.name.split_once("__").unwrap_or(("", &definition.name));
        let mut name: Vec<String> = split_into_words(name).collect();
        if let [only] = name.as_slice()
            && let Some((verb, object)) = language::short_form(only)
        {
            name = vec![verb.to_owned(), object.to_owned()];
        }
        let about: String = definition.description.chars().take(DESCRIPTION_CHARS_MAX).collect();
        let head: Vec<String> = head_words(&about);
        let verb = find_verb(&name, &head);
        let own_verb = verb.as_ref().map(|(word, _)| word.clone());
        // An object in the tool's name takes precedence over the plugin's name, because "mkdir" of
        // "files" creates folders.
        let object = |words: &[String]| -> HashSet<String> {
            words.iter().filter(|word| Some(*word) != own_verb.as_ref()).cloned().collect()
        };
        let plugin: Vec<String> = split_into_words(plugin).collect();
        let own = Some(object(&name)).filter(|own| !own.is_empty());
        let own = own.unwrap_or_else(|| object(&plugin));
        let params = params::parse_parameters(&definition.parameters);
        let mut tool = Self {
            definition,
            action: ActionParameter::from_parameters(&params),
            params,
            verb: None,
            verbs: HashSet::new(),
            is_vague: verb
                .as_ref()
                .is_none_or(|(word, _)| contains_word(language::VAGUE_VERBS, word)),
            effect: verb.as_ref().map_or(VerbEffect::Acts, |(_, effect)| *effect),
            nouns: HashSet::new(),
            own_words: own.iter().map(|word| word_root(word)).collect(),
            known: HashSet::new(),
        };
        tool.verbs = match &own_verb {
            Some(word) => {
                let group = language::verb_group(word).into_iter().flat_map(|(_, group)| group);
                group.map(str::to_owned).chain([word.clone()]).collect()
            }
            // An unknown name is its own verb.
            None => name.into_iter().chain(head.first().cloned()).collect(),
        };
        let head_nouns = head.into_iter().skip(1).filter(|word| !language::is_verb(word));
        let object_words: Vec<String> =
            own.into_iter().chain(head_nouns).chain(own_verb.clone()).collect();
        tool.nouns = object_words
            .iter()
            .flat_map(|word| language::synonyms_of(word).map(word_root))
            .collect();
        let nouns = object_words.iter().filter(|word| Some(*word) != own_verb.as_ref());
        tool.nouns.extend(nouns.map(|word| word_root(word)));
        tool.verb = own_verb;
        tool.known = plugin.iter().map(|word| word_root(word)).collect();
        tool.add_known_words(&about, reach);
        tool
    }

    /// Adds the words of the parameters to the known words. Those of the description are added only
    /// if an unintended call can do no harm.
    fn add_known_words(&mut self, about: &str, reach: ToolReach) {
        let names = self.params.iter().flat_map(|param| &param.words).map(|word| word_root(word));
        self.known.extend(names);
        if reach == ToolReach::Nothing {
            let telling = |word: &String| {
                !contains_word(language::DETERMINERS, word) && !language::is_meaning_modifier(word)
            };
            self.known.extend(split_into_words(about).filter(telling).map(|word| word_root(&word)));
        }
    }

    /// Returns the request that a verb makes to this tool; `None` if it makes none.
    pub(super) fn verb_request(&self, word: &str) -> Option<VerbRequest<'a>> {
        let (verb, has_object) = match language::short_form(word) {
            Some((_, object)) if !self.nouns.contains(object) => return None,
            Some((verb, _)) => (verb, true),
            None => (word, false),
        };
        if let Some(action) = self.action.as_ref().and_then(|action| action.verb_request(verb)) {
            return Some(action);
        }
        let name: Vec<String> = split_into_words(own_tool_name(&self.definition.name)).collect();
        let is_joined = name.len() > 1 && name.concat() == word;
        let (effect, is_vague) = (self.effect, self.is_vague);
        let is_own = self.verbs.contains(verb) || is_joined || self.is_mode_verb(verb);
        let names_object = has_object || is_joined;
        is_own.then_some(VerbRequest { effect, is_vague, names_object, action: None })
    }

    /// Returns true for a verb that sets a mode of the tool: "append" for one that writes.
    fn is_mode_verb(&self, verb: &str) -> bool {
        let sets = |param: &ToolParameter<'_>| match &param.kind {
            ParameterKind::Choice(values) => {
                values.iter().any(|value| value.as_str() == Some(verb))
            }
            ParameterKind::Boolean => param.words == [verb],
            _ => false,
        };
        self.effect == VerbEffect::Acts && self.params.iter().any(sets)
    }

    /// Returns the request that a question makes to this tool; `None` if its actions include no
    /// listing.
    pub(super) fn question_request(&self) -> Option<VerbRequest<'a>> {
        let Some(action) = &self.action else {
            let effect = self.effect;
            return Some(VerbRequest { effect, is_vague: true, names_object: false, action: None });
        };
        action.verb_request("list")
    }

    /// Returns true if a word names the object of the tool. A tool that acts or needs a path
    /// handles one object, so a plural does not match: "cancel my timers" does not ask to cancel
    /// one.
    pub(super) fn is_noun(&self, lower: &str, root: &str, effect: VerbEffect) -> bool {
        let is_plural = lower.ends_with('s') && lower != root && !root.ends_with('s');
        let is_about_one = effect == VerbEffect::Acts || self.has_path_parameter();
        self.nouns.contains(root) && !(is_plural && is_about_one && self.own_words.contains(root))
    }

    pub(super) fn has_path_parameter(&self) -> bool {
        self.params.iter().any(|param| param.is_required && param.kind == ParameterKind::Path)
    }

    pub(super) fn is_known_root(&self, root: &str) -> bool {
        self.known.contains(root)
    }

    /// Returns true if unquoted text may follow a verb. An object follows "create" and "make", not
    /// a text, unless the verb is the tool's own.
    pub(super) fn can_take_text(&self, verb: &str) -> bool {
        self.verb.as_deref() == Some(verb) || !matches!(verb, "create" | "make")
    }

    pub(super) fn is_verb(&self, lower: &str) -> bool {
        self.verbs.contains(lower)
    }

    /// Returns all words that name the tool.
    pub(super) fn naming_words(&self) -> impl Iterator<Item = String> {
        let joined = split_into_words(own_tool_name(&self.definition.name)).collect::<String>();
        self.verbs.iter().chain(&self.own_words).cloned().chain([joined])
    }
}

impl<'a> ActionParameter<'a> {
    fn from_parameters(params: &[ToolParameter<'a>]) -> Option<Self> {
        let is_action = |param: &&ToolParameter<'a>| {
            param.is_required
                && param.words.iter().any(|word| word == "action" || word == "command")
        };
        let param = params.iter().find(is_action)?;
        let ParameterKind::Choice(values) = &param.kind else { return None };
        let values: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
        Some(Self { name: param.name, values })
    }

    fn verb_request(&self, verb: &str) -> Option<VerbRequest<'a>> {
        let means = |value: &&&str| {
            language::verb_group(value).is_some_and(|(_, mut group)| group.any(|like| like == verb))
        };
        let exact = self.values.iter().find(|value| **value == verb);
        let value = exact.or_else(|| self.values.iter().find(means))?;
        let effect = language::verb_group(value).map_or(VerbEffect::Acts, |(effect, _)| effect);
        let action = Some((self.name, *value));
        Some(VerbRequest { effect, is_vague: true, names_object: false, action })
    }
}

/// Returns the verb in a tool's name, or else the first word of its description if it is a verb.
fn find_verb(name: &[String], head: &[String]) -> Option<(String, VerbEffect)> {
    let known = |word: &String| Some((word.clone(), language::verb_group(word)?.0));
    name.iter().find_map(known).or_else(|| head.first().and_then(known))
}

/// Returns the first words of a description, up to the end of its first noun phrase.
fn head_words(about: &str) -> Vec<String> {
    let end = about.find([':', '.', ',', ';', '(']).unwrap_or(about.len());
    let head =
        split_into_words(&about[..end]).take_while(|word| !HEAD_ENDS.contains(&word.as_str()));
    head.filter(|word| !contains_word(language::FILLERS, word)).take(HEAD_WORDS_MAX).collect()
}

/// Returns a tool's own name, without its plugin's name.
pub(super) fn own_tool_name(name: &str) -> &str {
    name.split_once("__").map_or(name, |(_, name)| name)
}
