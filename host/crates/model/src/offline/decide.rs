//! What to do about a sentence.

use serde_json::{Map, Value};

use super::fill::{self, Missing};
use super::score::Catalogue;
use super::tokens::Sentence;
use crate::chat::ToolDefinition;

/// At how many places a sentence is tried to be parted in two.
const PARTINGS_MAX: usize = 4;

/// What a sentence asks for.
#[derive(Debug)]
pub(super) enum Decision<'a> {
    /// These calls.
    Call(Vec<Planned<'a>>),
    /// A tool for which something is missing.
    Ask { tool: &'a ToolDefinition, missing: Vec<Missing> },
    /// Nothing that a tool is for.
    Nothing,
}

/// One call with its arguments.
#[derive(Debug)]
pub(super) struct Planned<'a> {
    pub(super) tool: &'a ToolDefinition,
    pub(super) arguments: Map<String, Value>,
}

/// Decides about a sentence: two calls where it clearly asks for two things, else one.
pub(super) fn decide<'a>(catalogue: &Catalogue<'a>, text: &str) -> Decision<'a> {
    let sentence = Sentence::new(text);
    for (first, second) in partings(&sentence) {
        let pair = (decide_one(catalogue, first), decide_one(catalogue, second));
        if let (Decision::Call(mut first), Decision::Call(second)) = pair
            && first.iter().zip(&second).all(|(first, second)| first.tool.name != second.tool.name)
        {
            first.extend(second);
            return Decision::Call(first);
        }
    }
    one(catalogue, &sentence)
}

fn decide_one<'a>(catalogue: &Catalogue<'a>, text: &str) -> Decision<'a> {
    one(catalogue, &Sentence::new(text))
}

fn one<'a>(catalogue: &Catalogue<'a>, sentence: &Sentence<'_>) -> Decision<'a> {
    let Some(found) = catalogue.best(sentence) else { return Decision::Nothing };
    let filled = fill::arguments(found.tool, sentence, &found.naming);
    if filled.missing.is_empty() {
        Decision::Call(vec![Planned { tool: found.tool, arguments: filled.arguments }])
    } else {
        Decision::Ask { tool: found.tool, missing: filled.missing }
    }
}

/// Returns the sentence in two parts, at each "and", "then" and semicolon outside of quotations.
fn partings<'t>(sentence: &Sentence<'t>) -> Vec<(&'t str, &'t str)> {
    let words = &sentence.words;
    let is_joint = |at: usize| matches!(words[at].lower.as_str(), "and" | "then");
    let mut partings = Vec::new();
    for at in 1..words.len() {
        let ends_before = words[at - 1].pause == Some(';') || (is_joint(at) && !is_joint(at - 1));
        if ends_before && let Some(begin) = (at..words.len()).find(|&at| !is_joint(at)) {
            partings.push((sentence.slice(0..at), sentence.slice(begin..words.len())));
        }
        if partings.len() == PARTINGS_MAX {
            break;
        }
    }
    partings
}
