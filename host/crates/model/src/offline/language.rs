//! The English that the matcher knows.
//!
//! The lists are short on purpose, because each further word is one more way to mistake a sentence
//! for a request. A word that is neither in a list nor one of the tool's own prevents the call.

use std::{collections::HashSet, sync::LazyLock};

use sallyport_lexical::{contains_word, split_into_words};

/// Introductions that do not change a request.
const LEADS: &str = "\
    please|hey|hi|hello|ok|okay|kindly|now|just|i want to|i want you to|i'd like to|\
    i'd like you to|i would like to|i would like you to|go ahead and|can you|could you";

/// Words that may occur anywhere without adding to the request.
pub(super) const FILLERS: &str = "\
    a an the my me us please thanks of in on at to for from with into by and it its this here \
    there now current currently right just";

/// Prepositions that need a word after them.
pub(super) const OPEN_PREPOSITIONS: &str = "for to from with of by into in on at";

/// Fillers that refer to an object: "process this" does not ask for processes.
pub(super) const PRONOUNS: &str = "it this me us";

/// Further such words in questions, and in requests to show something.
pub(super) const QUESTION_FILLERS: &str = "\
    what what's whats which how how's is are am be will do does have has i you know any much \
    many like running run active got today today's need";

/// First words of questions that may ask a tool to look something up.
pub(super) const QUESTIONS: &str = "\
    what what's whats which how how's is are will do does";

/// Words that change the meaning of a sentence: negations, conditions, doubts, reports, the past.
const TURNS: &str = "\
    not never no none nothing nobody neither nor without instead except avoid cannot dont doesnt \
    didnt wont cant shouldnt wouldnt couldnt mustnt isnt if unless when whenever until till \
    before after otherwise else lest provided providing suppose supposing assuming imagine \
    pretend hypothetically case whether should shall would could might must may why said says \
    say told asked asks wrote thinks thought was were had did been ago yesterday ignore \
    disregard forget rather refrain hardly";

/// First words of a text whose author changes their mind.
const SECOND_THOUGHTS: &str = "\
    wait actually stop cancel sorry";

/// Words that select one or several of many. No name begins with one.
pub(super) const DETERMINERS: &str = "\
    your his her their its our my some any this that these those which what another other every \
    each all both everything next last same old first whole general";

/// Groups of verbs with one meaning, as imperatives. The first verb names the group; a group either
/// looks something up or acts.
const VERBS: &[(VerbEffect, &str)] = &[
    (VerbEffect::LooksUp, "get tell show check display fetch describe"),
    (VerbEffect::LooksUp, "list show enumerate ls"),
    (VerbEffect::LooksUp, "read show view display print cat open"),
    (VerbEffect::LooksUp, "stat inspect get check"),
    (VerbEffect::LooksUp, "search find look"),
    (VerbEffect::Acts, "write save put store create make"),
    (VerbEffect::Acts, "remove delete erase rm"),
    (VerbEffect::Acts, "cancel stop abort end delete remove"),
    (VerbEffect::Acts, "create make add set"),
    (VerbEffect::Acts, "set start begin create"),
    (VerbEffect::Acts, "open visit browse launch go show"),
    (VerbEffect::Acts, "execute run evaluate compute calculate"),
    (VerbEffect::Acts, "play"),
    (VerbEffect::Acts, "send mail email"),
    (VerbEffect::Acts, "add"),
    (VerbEffect::Acts, "complete finish"),
    (VerbEffect::Acts, "change modify update"),
];

/// Verbs that include their object, with the verb and the object that they mean.
const SHORT_FORMS: &[(&str, &str, &str)] = &[
    ("remind", "create", "reminder"),
    ("wake", "set", "timer"),
    ("mkdir", "create", "folder"),
    ("rmdir", "remove", "folder"),
];

/// Verbs that mean nothing without an object.
pub(super) const VAGUE_VERBS: &str = "create make add set start begin get cancel";

/// Groups of other words with one meaning. A word may be in several groups.
const NOUNS: &[&str] = &[
    "time clock hour oclock late",
    "date today day weekday",
    "weather temperature rain rainy snow sunny wind windy umbrella degree cold warm hot",
    "weather forecast",
    "forecast tomorrow tonight week weekend next",
    "folder directory",
    "file document",
    "read content",
    "stat size big large",
    "system computer machine cpu core memory ram os hardware processor kernel uptime",
    "info information detail",
    "website url site webpage page web browser",
    "timer alarm countdown",
    "music song track",
    "mail email",
    "picture image photo",
    "task todo",
    "ps process",
    "limit top first",
];

/// Words for times.
pub(super) const TIMES: &str = "\
    second seconds minute minutes hour hours day days week weeks fortnight month months year years \
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays \
    fridays saturdays sundays weekday weekdays weekend weekends today tonight tomorrow daily \
    morning afternoon evening night noon midday midnight";

/// Whether a verb asks for information or for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerbEffect {
    LooksUp,
    Acts,
}

/// Returns the number of leading words that only introduce the request, and whether they make it a
/// polite question ("can you …?").
pub(super) fn count_lead_words(words: &[&str]) -> (usize, bool) {
    let (mut at, mut is_polite) = (0, false);
    let begins = |at: usize, lead: &str| {
        let count = lead.split(' ').count();
        words.get(at..at + count).is_some_and(|words| words.join(" ") == lead)
    };
    while let Some(lead) = LEADS.split('|').find(|lead| begins(at, lead)) {
        is_polite |= lead.ends_with(" you");
        at += lead.split(' ').count();
    }
    (at, is_polite)
}

/// Returns true for a word that changes the meaning of its sentence.
pub(super) fn is_meaning_modifier(word: &str) -> bool {
    contains_word(TURNS, word) || word.ends_with("n't")
}

/// Returns true if the first word of a text takes back what came before.
pub(super) fn is_retraction(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or("");
    let word = word.to_lowercase();
    contains_word(SECOND_THOUGHTS, &word) || is_meaning_modifier(&word)
}

/// Returns true for an English word that the matcher knows.
pub(super) fn is_known_word(word: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let lists =
            [FILLERS, QUESTION_FILLERS, DETERMINERS].iter().flat_map(|list| list.split(' '));
        lists.chain(known_words()).collect()
    });
    KNOWN.contains(word) || KNOWN.contains(word_root(word).as_str())
}

/// Returns every word that a misspelt one may be corrected to, except the tools' own.
pub(super) fn known_words() -> impl Iterator<Item = &'static str> {
    let verbs = VERBS.iter().map(|(_, group)| *group);
    let lists = verbs.chain(NOUNS.iter().copied()).chain([TURNS, TIMES]);
    lists.flat_map(|list| list.split(' ')).chain(SHORT_FORMS.iter().map(|(form, ..)| *form))
}

pub(super) fn is_verb(word: &str) -> bool {
    VERBS.iter().any(|(_, group)| contains_word(group, word)) || short_form(word).is_some()
}

/// Returns the verb and the object that a short form means.
pub(super) fn short_form(word: &str) -> Option<(&'static str, &'static str)> {
    SHORT_FORMS.iter().find(|(form, ..)| *form == word).map(|(_, verb, object)| (*verb, *object))
}

/// Returns the group of a verb in a tool's name: the group that it names, or else the first that
/// contains it.
pub(super) fn verb_group(word: &str) -> Option<(VerbEffect, impl Iterator<Item = &'static str>)> {
    let named = VERBS.iter().find(|(_, group)| group.split(' ').next() == Some(word));
    let (effect, group) =
        named.or_else(|| VERBS.iter().find(|(_, group)| contains_word(group, word)))?;
    Some((*effect, group.split(' ')))
}

/// Returns true if a word is one of these or means the same.
pub(super) fn is_synonym_of(names: &[String], word: &str) -> bool {
    names.iter().any(|name| name == word || synonyms_of(name).any(|known| known == word))
}

/// Returns the words with the same meaning, including the word itself if it is known.
pub(super) fn synonyms_of(noun: &str) -> impl Iterator<Item = &'static str> {
    NOUNS.iter().filter(move |group| contains_word(group, noun)).flat_map(|group| group.split(' '))
}

/// Returns the common form of a word: `timer` for `timers`, `rain` for `raining`, `email` for
/// `e-mail`.
pub(super) fn word_root(word: &str) -> String {
    let word: String = split_into_words(word).collect();
    let stem = word.strip_suffix("ing").filter(|stem| stem.len() > 2);
    match stem.map(str::as_bytes) {
        Some([.., a, b]) if a == b && !b"lsz".contains(b) => word[..word.len() - 4].to_owned(),
        Some(_) => word[..word.len() - 3].to_owned(),
        None => word,
    }
}
