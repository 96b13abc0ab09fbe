//! Free text: what is to be written, what is to be found, what something is to be called.

use std::ops::Range;

use super::clues::Clues;
use super::params::Param;
use super::sight;
use crate::offline::stem::is_stop_word;
use crate::offline::tokens::Kind;

/// How many words that could lead to a text are tried. What nobody finds after these is not there.
const LEADS_MAX: usize = 8;

/// Words that lead to what is to be said or written.
const SAYING: &[&str] = &["say", "says", "saying", "that", "text", "content", "message"];

/// Words before a text that nothing else announces: "remind me to call mum".
const LEADING: &[&str] = &["me", "us", "to", "about", "of", "for"];

/// Words that lead to a name.
const CALLING: &[&str] = &["called", "named", "labelled", "labeled", "titled", "label"];

/// Words at the end of a text that lead to what comes behind it, such as a path.
const TRAILING: &[&str] = &["to", "in", "into", "at", "on", "as", "for", "and"];

/// Words around what is to be found that are not part of it.
const FILLERS: &[&str] =
    &["now", "please", "right", "something", "anything", "today", "about", "by", "called", "named"];

/// Returns what is to be written or said, as it stands in the sentence.
pub(super) fn content(clues: &mut Clues<'_, '_>, param: &Param<'_>) -> Option<String> {
    if let Some(text) = sight::quoted(clues) {
        return Some(text);
    }
    let announced = after_colon(clues).or_else(|| after_word(clues, SAYING));
    let found = match announced {
        None if param.required => without(clues, LEADING, clues.stretches().into_iter().next()?),
        announced => announced?,
    };
    // "a note that says hello": only the last word that leads to the text counts.
    let found = without_tail(clues, without(clues, SAYING, found));
    (!found.is_empty()).then(|| clues.take(found).to_owned())
}

/// Returns a name that the person gives: in quotation marks, after "called", before the noun that
/// names the tool as in "pasta timer", or after "for" and "to".
pub(super) fn label(clues: &mut Clues<'_, '_>, param: &Param<'_>) -> Option<String> {
    if let Some(text) = sight::quoted(clues) {
        return Some(text);
    }
    let found = after_word(clues, CALLING)
        .or_else(|| before_noun(clues))
        .or_else(|| after_word(clues, &["for", "to"]))
        .or_else(|| anything(clues).filter(|_| param.required))?;
    let found = trimmed(clues, found);
    (!found.is_empty()).then(|| clues.take(found).to_owned())
}

/// Returns any other text: beside the name of the parameter, in quotation marks or, where it is
/// required, what remains of the sentence.
pub(super) fn text(clues: &mut Clues<'_, '_>, param: &Param<'_>) -> Option<String> {
    let beside = beside_name(clues, param);
    if let (None, true) = (&beside, param.required)
        && let Some(text) = sight::quoted(clues)
    {
        return Some(text);
    }
    let found = beside.or_else(|| anything(clues).filter(|_| param.required))?;
    Some(clues.take(found).to_owned())
}

/// Returns several texts: quotations, or what is parted by commas and "and".
pub(super) fn texts(clues: &mut Clues<'_, '_>) -> Vec<String> {
    let quoted: Vec<String> = std::iter::from_fn(|| sight::quoted(clues)).collect();
    if !quoted.is_empty() {
        return quoted;
    }
    let Some(all) = anything(clues) else { return Vec::new() };
    let words = clues.words();
    let (mut parts, mut begin) = (Vec::new(), all.start);
    for at in all.clone() {
        let is_joint = words[at].lower == "and";
        if is_joint || words[at].pause.is_some() {
            parts.push(begin..at + usize::from(!is_joint));
            begin = at + 1;
        }
    }
    parts.push(begin..all.end);
    parts.retain(|part: &Range<usize>| !part.is_empty());
    parts.into_iter().map(|part| clues.take(part).to_owned()).collect()
}

/// The longest stretch that is left, without what only leads to it.
fn anything(clues: &Clues<'_, '_>) -> Option<Range<usize>> {
    let found = trimmed(clues, clues.stretches().into_iter().next()?);
    (!found.is_empty()).then_some(found)
}

fn after_colon(clues: &Clues<'_, '_>) -> Option<Range<usize>> {
    let words = clues.words();
    let colon = (0..words.len()).find(|&at| words[at].pause == Some(':'))?;
    free_from(clues, colon + 1)
}

fn after_word(clues: &Clues<'_, '_>, leads: &[&str]) -> Option<Range<usize>> {
    let words = clues.words();
    let leading = (1..words.len()).filter(|&at| leads.contains(&words[at - 1].lower.as_str()));
    leading
        .take(LEADS_MAX)
        .filter_map(|at| free_from(clues, at))
        .find(|found| found.clone().any(|at| clues.is_telling(at)))
}

/// The name of a parameter, perhaps with "is" or "=", and the words behind it up to a pause.
fn beside_name(clues: &Clues<'_, '_>, param: &Param<'_>) -> Option<Range<usize>> {
    let words = clues.words();
    let last = param.words.last()?;
    let named = (1..words.len())
        .filter(|&at| words[at - 1].stem == *last && words[at - 1].kind == Kind::Word);
    named
        .take(LEADS_MAX)
        .filter_map(|at| free_from(clues, at))
        .map(|found| {
            let pause = found.clone().find(|&at| words[at].pause.is_some());
            trimmed(clues, found.start..pause.map_or(found.end, |at| at + 1))
        })
        .find(|found| !found.is_empty())
}

/// Words right before a noun that named the tool.
fn before_noun(clues: &Clues<'_, '_>) -> Option<Range<usize>> {
    let nouns = (1..clues.words().len()).filter(|&at| clues.is_naming(at));
    nouns
        .filter_map(|noun| {
            let begin = (0..noun).rev().take_while(|&at| clues.is_telling(at)).last()?;
            Some(begin..noun)
        })
        .next()
}

/// The free words from here on.
fn free_from(clues: &Clues<'_, '_>, at: usize) -> Option<Range<usize>> {
    let end = (at..clues.words().len()).find(|&at| !clues.is_free(at));
    let found = at..end.unwrap_or(clues.words().len());
    (!found.is_empty()).then_some(found)
}

/// Leaves out words that only lead to the rest.
fn without(clues: &Clues<'_, '_>, leads: &[&str], mut found: Range<usize>) -> Range<usize> {
    while found.len() > 1 && leads.contains(&clues.words()[found.start].lower.as_str()) {
        found.start += 1;
    }
    found
}

fn without_tail(clues: &Clues<'_, '_>, mut found: Range<usize>) -> Range<usize> {
    // Only what leads to something behind it: a text may well end in "to".
    if found.end < clues.words().len() {
        while !found.is_empty() && TRAILING.contains(&clues.words()[found.end - 1].lower.as_str()) {
            found.end -= 1;
        }
    }
    found
}

fn trimmed(clues: &Clues<'_, '_>, mut found: Range<usize>) -> Range<usize> {
    let says_nothing = |at: usize| {
        let lower = clues.words()[at].lower.as_str();
        is_stop_word(lower) || FILLERS.contains(&lower)
    };
    while !found.is_empty() && says_nothing(found.start) {
        found.start += 1;
    }
    while !found.is_empty() && says_nothing(found.end - 1) {
        found.end -= 1;
    }
    found
}
