//! Places: what stands after "in", or what is written like a name.

use std::ops::Range;

use super::clues::Clues;
use super::params::Param;
use crate::offline::stem::is_stop_word;
use crate::offline::tokens::Kind;

/// Longest name of a place, in words.
const WORDS_MAX: usize = 6;

/// Prepositions that lead to a place, the surest first.
const LEADS: &[&str] = &["in", "near", "around", "at", "for", "to", "from", "of", "on"];

/// Words that begin or end a place without being part of it: times, units and courtesies.
const NOT_PLACES: &str = "\
    today tomorrow tonight yesterday now right currently later soon moment morning afternoon \
    evening night noon midnight day days week weeks weekend month year next this during until \
    monday tuesday wednesday thursday friday saturday sunday hour hours minute minutes second \
    seconds celsius fahrenheit degrees please thanks thank again total general detail english \
    january";

/// Returns a place. An optional one needs a preposition or a capital letter.
pub(super) fn fill(clues: &mut Clues<'_, '_>, param: &Param<'_>) -> Option<String> {
    let found = leads(param)
        .iter()
        .find_map(|lead| after(clues, lead))
        .or_else(|| written_as_name(clues))
        .or_else(|| in_the_rest(clues).filter(|_| param.required))?;
    Some(clues.take(found).to_owned())
}

/// "from Paris to Rome" leads to two places; the name of the parameter says which is which.
fn leads(param: &Param<'_>) -> &'static [&'static str] {
    if param.is_called(&["from", "origin", "departure", "source", "start"]) {
        &["from", "in"]
    } else if param.is_called(&["to", "destination", "arrival", "target", "end"]) {
        &["to", "in", "for"]
    } else {
        LEADS
    }
}

fn after(clues: &Clues<'_, '_>, lead: &str) -> Option<Range<usize>> {
    let words = clues.words();
    let leading = (1..words.len()).filter(|&at| {
        words[at - 1].lower == lead && words[at - 1].pause.is_none() && !clues.is_naming(at - 1)
    });
    leading.filter_map(|at| name_from(clues, at)).next()
}

/// Returns the words of a name that begins here, without an article before it.
fn name_from(clues: &Clues<'_, '_>, at: usize) -> Option<Range<usize>> {
    let words = clues.words();
    let begin = at + usize::from(words.get(at).is_some_and(|word| word.lower == "the"));
    let mut end = begin;
    while end < words.len() && end - begin < WORDS_MAX && belongs(clues, begin, end) {
        end += 1;
    }
    while end > begin && is_stop_word(&words[end - 1].lower) {
        end -= 1;
    }
    (end > begin).then_some(begin..end)
}

/// True when a word goes on with the name that began at `begin`. "Paris, France" is one name,
/// "Paris, please" is not; "Bosnia and Herzegovina" is, "paris and tell" is not.
fn belongs(clues: &Clues<'_, '_>, begin: usize, at: usize) -> bool {
    let words = clues.words();
    let capital = |at: usize| words.get(at).is_some_and(|word| is_capital(word.text));
    let pause = if at > begin { words[at - 1].pause } else { None };
    let goes_on = match pause {
        None => true,
        Some(',') => capital(at),
        Some('.') => words[at - 1].text.len() < 4 && capital(at),
        Some(_) => false,
    };
    let word = &words[at];
    let joins = word.lower == "and" && at > begin && capital(at - 1) && capital(at + 1);
    let inside =
        matches!(word.lower.as_str(), "of" | "de" | "la" | "the") && at > begin && capital(at + 1);
    let is_name = (word.kind == Kind::Word || word.kind == Kind::Quoted)
        && !is_no_place(&word.lower)
        && (!is_stop_word(&word.lower) || joins || inside);
    goes_on && is_name && clues.is_free(at)
}

/// A capital in the middle of a sentence, or at its beginning right before what names the tool:
/// "Tokyo time".
fn written_as_name(clues: &Clues<'_, '_>) -> Option<Range<usize>> {
    let words = clues.words();
    let begins_name = |at: &usize| is_capital(words[*at].text) && !is_stop_word(&words[*at].lower);
    (0..words.len()).filter(begins_name).find_map(|at| {
        let found = name_from(clues, at)?;
        let in_the_middle = at > 0 && words[at - 1].pause.is_none_or(|pause| pause == ',');
        (in_the_middle || clues.is_naming(found.end)).then_some(found)
    })
}

fn in_the_rest(clues: &Clues<'_, '_>) -> Option<Range<usize>> {
    let begins = |at: usize| clues.is_telling(at).then(|| name_from(clues, at)).flatten();
    clues.stretches().into_iter().flatten().find_map(begins)
}

fn is_no_place(lower: &str) -> bool {
    NOT_PLACES.split_whitespace().any(|word| word == lower)
}

fn is_capital(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_uppercase)
}
