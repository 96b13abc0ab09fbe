//! Decides which calls a sentence asks for.
//!
//! A tool is called only if the sentence is used up: each of its words belongs to the tool, to an
//! argument, or to the few words that mean nothing. Words that change the meaning are none of
//! these, so a negation or a condition prevents every call.

use std::collections::HashSet;

use sallyport_lexical::contains_word;
use sallyport_schedule::TimeExpressionError;
use serde_json::{Map, Value};

use super::{
    ToolReach,
    argument_extraction::ArgumentExtraction,
    language::{self, VerbEffect},
    params::{ParameterKind, ToolParameter},
    sentence::{ParsedSentence, TokenKind},
    tool::{CatalogTool, VerbRequest},
};
use crate::{chat::ModelToolDefinition, tool_index::ToolIndex};

/// The factor by which the best tool must outscore the next one.
const MARGIN: f64 = 1.1;

/// The score of a word from the tool's own name. Other words that name the tool score 1.
const OWN_NOUN: f64 = 3.0;

/// The result of matching a sentence with the tools.
#[derive(Debug)]
pub(super) enum MatchDecision<'c> {
    /// The sentence asks for these calls.
    Call(Vec<ToolCallPlan<'c>>),
    /// The sentence asks for a call, but lacks arguments or names a day that does not exist.
    Ask(ToolCallPlan<'c>),
    /// The sentence asks for nothing, or is ambiguous.
    Nothing,
}

/// One call with its arguments.
#[derive(Debug, Clone)]
pub(super) struct ToolCallPlan<'c> {
    pub(super) tool: &'c ModelToolDefinition,
    pub(super) arguments: Map<String, Value>,
    pub(super) missing: Vec<ToolParameter<'c>>,
    /// Why a time of the sentence cannot be used.
    pub(super) impossible_moment: Option<TimeExpressionError>,
    score: f64,
}

/// All tools, prepared for matching.
#[derive(Debug)]
pub(super) struct ToolCatalog<'a> {
    pub(super) tools: Vec<CatalogTool<'a>>,
    index: ToolIndex,
    names: HashSet<String>,
}

impl<'a> ToolCatalog<'a> {
    pub(super) fn new(
        definitions: &'a [ModelToolDefinition],
        reach: &dyn Fn(&str) -> ToolReach,
    ) -> Self {
        let tool = |definition: &'a ModelToolDefinition| {
            CatalogTool::new(definition, reach(&definition.name))
        };
        let tools: Vec<CatalogTool<'a>> = definitions.iter().map(tool).collect();
        let names = tools.iter().flat_map(CatalogTool::naming_words).collect();
        Self { tools, index: ToolIndex::new(definitions), names }
    }

    /// Matches a text with the tools. It can ask for one call, or for two if both of its parts are
    /// complete requests.
    pub(super) fn match_text(&self, text: &str) -> MatchDecision<'_> {
        let Some(sentence) = ParsedSentence::new(text, &self.names) else {
            return MatchDecision::Nothing;
        };
        if sentence.has_meaning_modifier() {
            return MatchDecision::Nothing;
        }
        let whole = self.best_plan(&sentence);
        if let Some(plan) = whole.as_ref().filter(|plan| plan.is_complete()) {
            return MatchDecision::Call(vec![plan.clone()]);
        }
        let mut pairs = sentence.split_parts().into_iter().filter_map(|(one, other)| {
            let part = |text| {
                let sentence = ParsedSentence::new(text, &self.names)?;
                let first = sentence.tokens.get(sentence.lead)?.lower.as_str();
                let is_whole =
                    language::is_verb(first) || contains_word(language::QUESTIONS, first);
                self.best_plan(&sentence).filter(|_| is_whole)
            };
            Some([part(one)?, part(other)?])
                .filter(|pair| pair.iter().all(ToolCallPlan::is_complete))
        });
        match (pairs.next(), whole) {
            (Some(pair), _) => MatchDecision::Call(pair.into()),
            (None, Some(plan)) => MatchDecision::Ask(plan),
            (None, None) => MatchDecision::Nothing,
        }
    }

    /// Returns all tools, those nearest to the text first.
    pub(super) fn tools_by_relevance(&self, text: &str) -> Vec<&CatalogTool<'a>> {
        let found: Vec<usize> =
            self.index.find_tools(text).iter().map(|found| found.document).collect();
        let others = (0..self.tools.len()).filter(|tool| !found.contains(tool));
        found.iter().copied().chain(others).map(|tool| &self.tools[tool]).collect()
    }

    /// Returns the plan of the best tool, if it is clearly ahead of the others.
    fn best_plan(&self, sentence: &ParsedSentence<'_>) -> Option<ToolCallPlan<'_>> {
        let mut plans: Vec<ToolCallPlan<'_>> =
            self.tools.iter().filter_map(|tool| plan_call(tool, sentence)).collect();
        // A tool that is complete with this sentence is more likely meant than one that needs more.
        if plans.iter().any(ToolCallPlan::is_complete) {
            plans.retain(ToolCallPlan::is_complete);
        }
        if plans.len() > 1 {
            let words = sentence.tokens.iter().filter(|token| token.kind != TokenKind::Quoted);
            let words: Vec<&str> = words.map(|token| token.text).collect();
            for found in self.index.find_tools(&words.join(" ")) {
                let definition = self.tools[found.document].definition;
                let of = plans.iter_mut().filter(|plan| std::ptr::eq(plan.tool, definition));
                of.for_each(|plan| plan.score += found.score);
            }
        }
        plans.sort_by(|one, other| other.score.total_cmp(&one.score));
        let rest = plans.get(1).map_or(0.0, |second| second.score * MARGIN);
        plans.into_iter().next().filter(|first| first.score > rest)
    }
}

impl ToolCallPlan<'_> {
    fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.impossible_moment.is_none()
    }
}

/// Reads a sentence as a request for a tool. Returns `None` unless every word is used.
fn plan_call<'c>(
    tool: &'c CatalogTool<'c>,
    sentence: &ParsedSentence<'_>,
) -> Option<ToolCallPlan<'c>> {
    let first = sentence.tokens.get(sentence.lead)?;
    let is_query = contains_word(language::QUESTIONS, &first.lower);
    if !has_request_form(sentence, is_query) {
        return None;
    }
    let matched_request = if is_query { None } else { tool.verb_request(&first.lower) };
    let is_request = matched_request.is_some();
    if !is_request && (sentence.is_polite || (!is_query && language::is_verb(&first.lower))) {
        return None;
    }
    let request = matched_request.or_else(|| tool.question_request())?;
    let mut extraction = ArgumentExtraction {
        tool,
        sentence,
        used: vec![false; sentence.tokens.len()],
        is_tail_used: false,
        has_recognized_value: false,
        is_sum: false,
        is_request,
        effect: request.effect,
        impossible_moment: None,
    };
    extraction.used[..sentence.lead + usize::from(is_request)].fill(true);
    let mut arguments = Map::new();
    if let Some((name, value)) = request.action {
        arguments.insert(name.to_owned(), value.into());
    }
    let missing = extraction.extract_arguments(&mut arguments);
    let score = mark_known_words(&mut extraction, &request, is_query);
    let is_used_up = extraction.used.iter().all(|used| *used)
        && (extraction.is_tail_used || sentence.tail.is_none());
    let is_recognized = extraction.has_recognized_value && is_request && !request.is_vague;
    let is_named = score > 0.0 || request.names_object || is_recognized || extraction.is_sum;
    let score = score + 1.0 + score_path_examples(tool, &arguments);
    let impossible_moment = extraction.impossible_moment.take();
    let plan = ToolCallPlan { tool: tool.definition, arguments, missing, impossible_moment, score };
    let is_allowed = request.effect == VerbEffect::LooksUp
        || is_action_request(&extraction, &plan, is_query, request.action.is_some());
    (is_used_up && is_named && is_allowed).then_some(plan)
}

/// Scores a path against the examples in the parameter's description. Of two tools that read files,
/// a path below `/notes` is meant for the one whose description mentions "/notes".
fn score_path_examples(tool: &CatalogTool<'_>, arguments: &Map<String, Value>) -> f64 {
    let is_alike = |param: &&ToolParameter<'_>| {
        let path = arguments.get(param.name).and_then(Value::as_str).unwrap_or_default();
        let first = path.strip_prefix('/').and_then(|path| path.split('/').next());
        let first = first.filter(|first| !first.is_empty());
        let shown = |end: char| first.map(|first| format!("\"/{first}{end}"));
        ['/', '"'].into_iter().filter_map(shown).any(|shown| param.description.contains(&shown))
    };
    let paths = tool.params.iter().filter(|param| param.kind == ParameterKind::Path);
    if paths.filter(is_alike).count() > 0 { OWN_NOUN } else { 0.0 }
}

/// Returns true if a sentence can be a request, judged by its first and last words.
fn has_request_form(sentence: &ParsedSentence<'_>, is_query: bool) -> bool {
    let lower = |at: usize| sentence.tokens.get(at).map_or("", |token| token.lower.as_str());
    let (first, second) = (lower(sentence.lead), lower(sentence.lead + 1));
    let is_for_others = matches!(first, "remind" | "wake") && !matches!(second, "me" | "us");
    // Matches "what a day" and "what is a timer".
    let third = lower(sentence.lead + 2);
    let is_thing = |word: &str| matches!(word, "a" | "an");
    let is_exclamation =
        is_query && (is_thing(second) || (first.starts_with("what") && is_thing(third)));
    let is_loose = contains_word(language::OPEN_PREPOSITIONS, first)
        || contains_word(language::PRONOUNS, first);
    let is_open = contains_word(language::OPEN_PREPOSITIONS, lower(sentence.tokens.len() - 1));
    !(is_for_others || is_exclamation || is_loose || is_open)
}

/// Marks the words that belong to the tool or mean nothing as used, and returns the score of those
/// that name the tool.
fn mark_known_words(
    extraction: &mut ArgumentExtraction<'_, '_, '_>,
    request: &VerbRequest<'_>,
    is_query: bool,
) -> f64 {
    let (tool, looks_up) = (extraction.tool, request.effect == VerbEffect::LooksUp);
    let asks_or_tells = is_query || extraction.is_request;
    let asks = (looks_up || extraction.is_sum) && asks_or_tells;
    // Next to a path, a word such as "file" only describes it, unless the verb is vague and needs
    // the word as its object.
    let is_place = extraction.has_recognized_value && extraction.is_request && !request.is_vague;
    let (mut score, last) = (0.0, extraction.used.len() - 1);
    for (at, token) in extraction.sentence.tokens.iter().enumerate() {
        if extraction.used[at] || !matches!(token.kind, TokenKind::Word) {
            continue;
        }
        let is_noun = tool.is_noun(&token.lower, &token.root, request.effect);
        if is_noun {
            score += if tool.own_words.contains(&token.root) { OWN_NOUN } else { 1.0 };
        }
        let is_thing =
            !asks_or_tells && at == last && contains_word(language::PRONOUNS, &token.lower);
        let is_action = request.action.is_some_and(|(_, value)| value == token.lower);
        let again = extraction.is_request && looks_up && tool.is_verb(&token.lower);
        extraction.used[at] = is_noun
            || is_action
            || again
            || (contains_word(language::FILLERS, &token.lower) && !is_thing)
            || (asks && contains_word(language::QUESTION_FILLERS, &token.lower))
            || (extraction.is_request && token.lower == "new")
            || (is_place && matches!(token.root.as_str(), "file" | "folder" | "directory"))
            || tool.is_known_root(&token.root);
    }
    score
}

/// Returns true if the form of a sentence asks for an action: a request, a polite question, or a
/// thing with a duration, as in "timer 5 minutes". A question about an action is none of these.
fn is_action_request(
    extraction: &ArgumentExtraction<'_, '_, '_>,
    plan: &ToolCallPlan<'_>,
    is_query: bool,
    is_action: bool,
) -> bool {
    let sentence = extraction.sentence;
    if extraction.is_sum {
        return true;
    }
    // "Complete the task" does not name the task.
    if is_action && plan.arguments.len() == 1 {
        return false;
    }
    if is_query || (sentence.is_question && !sentence.is_polite) {
        return false;
    }
    let first = sentence.tokens[sentence.lead].lower.as_str();
    let has_length = extraction.tool.params.iter().any(|param| {
        matches!(param.kind, ParameterKind::Duration(_)) && plan.arguments.contains_key(param.name)
    });
    let is_thing = has_length && plan.is_complete() && !matches!(first, "the" | "my" | "this");
    extraction.is_request || is_thing
}
