//! Choices and yes-or-no: found by the words of their values and names.

use serde_json::Value;

use super::clues::Clues;
use super::params::Param;
use crate::offline::profile::{is_generic, split_name};
use crate::offline::stem::{is_stem_of, stem};
use crate::offline::synonyms::alike;
use crate::offline::tokens::Kind;

/// Names of choices about the form of an answer, not about what is done. For these the first value,
/// which authors put there because it is the usual one, is taken when the sentence says nothing.
const FORMS: &[&str] = &["type", "kind", "unit", "format", "units"];

/// Words before a name that turn it round.
const NEGATIONS: &[&str] = &["no", "not", "without", "don't", "dont", "never", "exclude", "skip"];

/// How many words before a name a negation may stand: "not to include".
const NEGATION_REACH: usize = 3;

/// Words of names that say that something is a yes-or-no, not what about.
const AUXILIARIES: &[&str] = &[
    "is", "has", "include", "use", "with", "enable", "allow", "should", "want", "need", "enabled",
];

/// Returns the value whose words stand in the sentence; of several the longest.
pub(super) fn fill(
    clues: &mut Clues<'_, '_>,
    param: &Param<'_>,
    values: &[&Value],
) -> Option<Value> {
    let mut best: Option<(usize, Vec<usize>, &Value)> = None;
    for value in values {
        if let Some(words) = said(clues, value)
            && best.as_ref().is_none_or(|(most, ..)| words.len() > *most)
        {
            best = Some((words.len(), words, value));
        }
    }
    let usual = || values.first().copied().filter(|_| param.required && param.is_called(FORMS));
    let Some((_, words, value)) = best else { return usual().cloned() };
    for at in words {
        clues.take(at..at + 1);
    }
    Some(value.clone())
}

/// Returns every value whose words stand in the sentence, in the order of the schema.
pub(super) fn fill_all(clues: &mut Clues<'_, '_>, values: &[&Value]) -> Vec<Value> {
    let mut found = Vec::new();
    for value in values {
        if let Some(words) = said(clues, value) {
            for at in words {
                clues.take(at..at + 1);
            }
            found.push((*value).clone());
        }
    }
    found
}

/// Returns the places of a value's words, when all of them stand in the sentence. A word may have
/// named the tool as well: in "will it rain tomorrow" nothing is said twice.
fn said(clues: &Clues<'_, '_>, value: &Value) -> Option<Vec<usize>> {
    let text = match value {
        Value::String(text) => split_name(text),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let parts: Vec<String> =
        text.split_whitespace().map(|word| stem(&word.to_lowercase())).collect();
    let words = clues.words();
    let place = |part: &String| {
        (0..words.len())
            .filter(|&at| clues.is_free(at) || clues.is_naming(at))
            .find(|&at| words[at].kind != Kind::Quoted && words[at].stem == *part)
    };
    let places: Option<Vec<usize>> = parts.iter().map(place).collect();
    places.filter(|places| !places.is_empty())
}

/// Returns yes when the sentence speaks of what the name says, no when it says so with a negation.
pub(super) fn fill_boolean(clues: &mut Clues<'_, '_>, param: &Param<'_>) -> Option<Value> {
    let names: Vec<&String> = param
        .words
        .iter()
        .filter(|word| {
            !AUXILIARIES.iter().any(|known| is_stem_of(word, known)) && !is_generic(word)
        })
        .collect();
    let words = clues.words();
    let speaks = |at: &usize| {
        let word = &words[*at];
        // A word that named the tool counts only as itself: "weather" does not ask for a forecast.
        let says = |name: &&&String| match clues.is_naming(*at) {
            true => ***name == word.stem,
            false => clues.is_free(*at) && alike(name, &word.stem),
        };
        word.kind == Kind::Word && names.iter().any(|name| says(&name))
    };
    let at = (0..words.len()).find(speaks)?;
    let before = &words[at.saturating_sub(NEGATION_REACH)..at];
    let negated =
        before.iter().any(|word| NEGATIONS.contains(&word.lower.replace('’', "'").as_str()));
    clues.take(at..at + 1);
    Some(Value::Bool(!negated))
}
