//! Words without their endings, and words that say nothing.
//!
//! Both sides of every comparison go through the same few rules, so a stem has to be alike for the
//! forms of a word, not to be a word itself.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words that carry no meaning for choosing a tool.
const STOP_WORDS: &str = "\
    a about all also am an and any are as at be been but by can could d did do does doing for \
    from give given go had has have hello her hey hi him his how i i'd i'm if in into is it \
    it's its just know let let's like ll look looks many may me might mine much my need no not \
    of ok okay on or our out please re s should so some t tell thank thanks that that's the \
    their them then there these they this those to up us using ve want was we were what what's \
    whats when where which who will with would you your yours yes specified provided how's";

/// Forms of a word that the rules leave apart, with the stem that they share.
const IRREGULAR: &[(&str, &str)] = &[("reminder", "remind"), ("reminders", "remind")];

/// True for a word (in lower case) that carries no meaning.
pub(super) fn is_stop_word(lower: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    WORDS.contains(lower) || (lower.contains('’') && WORDS.contains(&*lower.replace('’', "'")))
}

/// Returns a word (in lower case) without its ending.
pub(super) fn stem(lower: &str) -> String {
    let word =
        ["'s", "’s", "'", "’"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(lower);
    if let Some((_, stem)) = IRREGULAR.iter().find(|(form, _)| *form == word) {
        return (*stem).to_owned();
    }
    if word.len() < 4 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let word = without_plural(word);
    let word = without_suffix(&word);
    word.strip_suffix('e').filter(|stem| stem.len() > 2).unwrap_or(&word).to_owned()
}

/// True when a stem is that of a word. Stemming keeps the first letter, so most words are told
/// apart without it.
pub(super) fn is_stem_of(known: &str, word: &str) -> bool {
    known.as_bytes().first() == word.as_bytes().first() && stem(word) == known
}

fn without_plural(word: &str) -> String {
    if let Some(root) = word.strip_suffix("ies").filter(|root| root.len() > 1) {
        format!("{root}y")
    } else if let Some(root) = word.strip_suffix("sses") {
        format!("{root}ss")
    } else if word == "news" || ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) {
        word.to_owned()
    } else {
        word.strip_suffix('s').unwrap_or(word).to_owned()
    }
}

/// Takes off `-ing`, `-ed`, `-ation` and `-ion` where a vowel remains, and undoes a doubled letter.
fn without_suffix(word: &str) -> String {
    let is_root = |root: &&str| root.len() > 2 && root.bytes().any(|b| b"aeiouy".contains(&b));
    let root = ["ing", "ed"].iter().find_map(|end| word.strip_suffix(end).filter(is_root));
    if let Some(root) = root {
        return undoubled(root).to_owned();
    }
    match word.strip_suffix("ion").filter(|root| root.len() > 3 && root.ends_with(['s', 't'])) {
        Some(root) => root.to_owned(),
        None => word.to_owned(),
    }
}

fn undoubled(root: &str) -> &str {
    let bytes = root.as_bytes();
    match bytes {
        [.., a, b] if a == b && !b"lsz".contains(b) => &root[..root.len() - 1],
        _ => root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        let families: [&[&str]; 13] = [
            &["remind", "reminds", "reminder", "reminders"],
            &["file", "files", "file's"],
            &["play", "plays", "playing", "played"],
            &["set", "sets", "setting"],
            &["stop", "stopped", "stopping"],
            &["create", "creates", "created", "creating", "creation"],
            &["city", "cities"],
            &["time", "times", "timed"],
            &["calculate", "calculation", "calculating"],
            &["directory", "directories"],
            &["address", "addresses"],
            &["list", "lists", "listing"],
            &["rain", "rains", "raining"],
        ];
        for family in families {
            for word in family {
                assert_eq!(stem(word), stem(family[0]), "{word}");
            }
        }
        assert_ne!(stem("time"), stem("timer"));
        for plain in ["", "s", "is", "os", "bus", "string", "bring", "café", "東京", "a1b2ing"] {
            assert_eq!(stem(plain), plain);
        }
    }

    #[test]
    fn stop_words_are_told_from_others() {
        assert!(is_stop_word("what’s") && !is_stop_word("time"));
    }
}
