//! All forms of all secrets: one automaton per view of the bytes.
//!
//! An automaton contains at most the first [`HEAD_BYTES_MAX`] bytes of a form, so a long secret
//! costs neither much memory nor a long wait for the rest of it. A form whose head was found is
//! followed as long as the bytes continue it, so half of a long secret is removed as well.
//!
//! A secret has at most [`FORMS_MAX`] forms, so fifty secrets of four kilobytes take no more than a
//! few megabytes; a test checks that.

use std::collections::{BTreeMap, HashMap};

use aho_corasick::{
    Anchored, MatchKind, PatternID,
    automaton::{Automaton, StateID},
    nfa::contiguous::NFA,
};

use super::{cursor::RedactionCursor, escape::EscapeFamily, forms::ByteView};
use crate::secret::Secret;

/// Longest beginning of a form in an automaton, in bytes after undoing escapes. Beginnings that
/// many secrets share (of a private key, of a signed token) are shorter.
pub(super) const HEAD_BYTES_MAX: usize = 128;

/// Most forms of one secret: verbatim and without the blanks around it, each with six as text, nine
/// as base64, one as digits.
#[cfg(test)]
const FORMS_MAX: usize = 2 * (6 + 9 + 1);

/// All forms of all secrets.
pub(super) struct SecretFormTable {
    names: Vec<String>,
    replacements: Vec<String>,
    /// In the order of [`ByteView::ALL`].
    views: [ViewForms; 3],
    pairs: BytePairSet,
}

/// The forms of one view.
pub(super) struct ViewForms {
    pub(super) view: ByteView,
    /// Indexed by the pattern of its head.
    all: Vec<FormTail>,
    pub(super) heads: NFA,
    pub(super) start: StateID,
    /// For every state, how many of the last bytes may begin a head that is still incomplete.
    open: HashMap<StateID, usize>,
}

/// One form, without its head.
pub(super) struct FormTail {
    pub(super) name: usize,
    pub(super) tail: Vec<u8>,
}

impl SecretFormTable {
    pub(super) fn new(secrets: &[(&str, &Secret)]) -> Self {
        let names = secrets.iter().map(|(name, _)| (*name).to_owned()).collect();
        let views = ByteView::ALL.map(|view| ViewForms::new(view, secrets));
        let pairs = BytePairSet::from_views(&views);
        Self { names, replacements: Vec::new(), views, pairs }.with_marks()
    }

    /// A mark may itself contain a secret, or a name may be another's value; then the bare mark is
    /// used.
    fn with_marks(mut self) -> Self {
        let replacement = |name: &String| format!("[secret {name}]");
        let is_secret_free = |replacement: &String| {
            RedactionCursor::new().find_secret_in(&self, replacement.as_bytes(), &[]).is_none()
        };
        let replacement_texts = self.names.iter().map(replacement);
        self.replacements =
            replacement_texts
                .map(|replacement| {
                    if is_secret_free(&replacement) { replacement } else { BARE_REPLACEMENT.into() }
                })
                .collect();
        self
    }

    pub(super) fn secret_names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn secret_name(&self, name: usize) -> &String {
        &self.names[name]
    }

    pub(super) fn replacement_text(&self, name: usize) -> &str {
        &self.replacements[name]
    }

    pub(super) fn views(&self) -> &[ViewForms; 3] {
        &self.views
    }

    /// The earliest position at which a form, or an escape in one, can begin.
    pub(super) fn first_candidate(&self, bytes: &[u8]) -> usize {
        self.pairs.first_candidate(bytes)
    }
}

/// Replaces a secret whose name would reveal a secret; shorter than any form.
const BARE_REPLACEMENT: &str = "[***]";

impl ViewForms {
    fn new(view: ByteView, secrets: &[(&str, &Secret)]) -> Self {
        let mut named = BTreeMap::new();
        for (index, (_, secret)) in secrets.iter().enumerate() {
            for form in view.secret_forms(secret.expose()) {
                named.entry(form).or_insert(index);
            }
        }
        let split = named.iter().map(|(form, name)| {
            let (head, tail) = form.split_at(form.len().min(HEAD_BYTES_MAX));
            (head, FormTail { name: *name, tail: tail.to_vec() })
        });
        let (heads, all): (Vec<&[u8]>, Vec<FormTail>) = split.unzip();
        let nfa = NFA::builder().match_kind(MatchKind::Standard).build(&heads);
        let nfa = nfa.expect("heads are short, so their states can be numbered");
        let start = nfa.start_state(Anchored::No).expect("this automaton searches anywhere");
        let open = count_open_bytes(&nfa, start, &heads);
        Self { view, all, heads: nfa, start, open }
    }

    pub(super) fn form_tail(&self, form: PatternID) -> &FormTail {
        &self.all[form]
    }

    pub(super) fn open_byte_count(&self, state: StateID) -> usize {
        self.open[&state]
    }

    /// The first two bytes of every head.
    fn head_byte_pairs(&self) -> impl Iterator<Item = (u8, u8)> {
        // The anchored automaton yields them, so the heads need not be stored separately.
        let root =
            self.heads.start_state(Anchored::Yes).expect("this automaton searches at a place");
        let next = |state, byte| self.heads.next_state(Anchored::Yes, state, byte);
        let goes_on = move |state: &StateID| !self.heads.is_dead(*state);
        (0..=u8::MAX).flat_map(move |first| {
            let state = next(root, first);
            let seconds = (0..=u8::MAX).filter(move |_| goes_on(&state));
            seconds.filter(move |second| goes_on(&next(state, *second))).map(move |b| (first, b))
        })
    }
}

/// Finds the open bytes of every state of a search. A complete head leaves open only the bytes that
/// begin another head at one of its shorter endings.
fn count_open_bytes(nfa: &NFA, start: StateID, heads: &[&[u8]]) -> HashMap<StateID, usize> {
    let root = nfa.start_state(Anchored::Yes).expect("this automaton searches at a place");
    let mut open = HashMap::from([(start, 0)]);
    let mut ends = Vec::new();
    for head in heads {
        let mut state = root;
        for (index, byte) in head.iter().enumerate() {
            state = nfa.next_state(Anchored::Yes, state, *byte);
            if index + 1 < head.len() {
                open.insert(state, index + 1);
            }
        }
        ends.push((*head, state));
    }
    // The endings of a head are shorter than it, so they have their entry by then.
    ends.sort_by_key(|(head, _)| head.len());
    for (head, end) in ends {
        if !open.contains_key(&end) {
            let walk = |state, byte: &u8| nfa.next_state(Anchored::No, state, *byte);
            let ending = head[1..].iter().fold(start, walk);
            open.insert(end, open[&ending]);
        }
    }
    open
}

/// The pairs of bytes that can begin a form or an escape, as a bit set. Checking these alone skips
/// most ordinary text, many times faster than the automata read.
struct BytePairSet(Box<[u64; 1024]>);

impl BytePairSet {
    fn from_views(views: &[ViewForms; 3]) -> Self {
        let mut pairs = Self(Box::new([0; 1024]));
        let begins_escape = |byte: &u8| {
            EscapeFamily::Signs.can_begin_with(*byte) || EscapeFamily::Mail.can_begin_with(*byte)
        };
        for escape in (0..=u8::MAX).filter(begins_escape) {
            (0..=u8::MAX).for_each(|second| pairs.insert(escape, second));
        }
        for forms in views {
            let written = |wanted: u8| {
                (0..=u8::MAX).filter(move |byte| forms.view.fold_byte(*byte) == Some(wanted))
            };
            let is_between =
                |byte: &u8| forms.view.fold_byte(*byte).is_none() || begins_escape(byte);
            for (first, second) in forms.head_byte_pairs() {
                for first in written(first) {
                    let between = (0..=u8::MAX).filter(is_between);
                    written(second).chain(between).for_each(|second| pairs.insert(first, second));
                }
            }
        }
        pairs
    }

    fn insert(&mut self, first: u8, second: u8) {
        let (word, bit) = Self::bit_position(first, second);
        self.0[word] |= bit;
    }

    /// The earliest position at which a form can begin. The last byte counts as one: the byte after
    /// it is not known yet.
    fn first_candidate(&self, bytes: &[u8]) -> usize {
        let may_begin = |pair: &[u8]| {
            let (word, bit) = Self::bit_position(pair[0], pair[1]);
            self.0[word] & bit != 0
        };
        bytes.windows(2).position(may_begin).unwrap_or(bytes.len().saturating_sub(1))
    }

    fn bit_position(first: u8, second: u8) -> (usize, u64) {
        let pair = usize::from(first) << 8 | usize::from(second);
        (pair / 64, 1 << (pair % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most memory for the forms of one secret, in bytes.
    const SECRET_BYTES_MAX: usize = 256 * 1024;

    #[test]
    fn no_head_is_longer_than_it_may_be() {
        let secret = Secret::new("\"é\\".repeat(2000));
        let table = SecretFormTable::new(&[("a", &secret)]);
        for forms in &table.views {
            assert_eq!(forms.heads.max_pattern_len(), HEAD_BYTES_MAX);
            assert!(forms.open.values().all(|open| *open < HEAD_BYTES_MAX));
        }
    }

    #[test]
    fn many_long_secrets_stay_small() {
        let long = |seed: usize| {
            let signs = (0..4096usize).map(|i| {
                let sign = (i * 7919 + seed * 104_729 + i * i * 31) % 94;
                char::from(b'!' + sign as u8)
            });
            Secret::new(format!(" {} é", signs.collect::<String>()))
        };
        let secrets: Vec<Secret> = (0..50).map(long).collect();
        let named: Vec<_> = secrets.iter().map(|secret| ("n", secret)).collect();
        let table = SecretFormTable::new(&named);
        let mut forms = 0;
        let mut bytes = 0;
        for view in &table.views {
            forms += view.all.len();
            let tails: usize = view.all.iter().map(|form| form.tail.len()).sum();
            let entry = size_of::<(StateID, usize)>();
            bytes += view.heads.memory_usage() + view.open.capacity() * entry + tails;
        }
        assert!(forms <= secrets.len() * FORMS_MAX, "{forms}");
        assert!(bytes <= secrets.len() * SECRET_BYTES_MAX, "{bytes}");
    }
}
