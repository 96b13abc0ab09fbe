//! All forms of all secrets as one automaton, and a place in it.
//!
//! The automaton holds no more than the first [`HEAD_BYTES_MAX`] bytes of a form, so that a long
//! secret costs neither much memory nor a long wait for the rest of it. A form whose head was met is
//! followed for as long as the bytes go on like it: half of a long secret is taken out as well.

use std::{
    cmp::min_by_key,
    collections::{BTreeMap, HashMap},
};

use aho_corasick::{
    Anchored, MatchKind, PatternID,
    automaton::{Automaton, StateID},
    nfa::contiguous::NFA,
};

use super::forms;
use crate::secret::Secret;

/// Longest beginning of a form that the automaton holds, in bytes. Beginnings that many secrets
/// share (of a private key, of a signed token) are shorter even when they are escaped; and no more
/// than this is ever held back of a stream.
pub(super) const HEAD_BYTES_MAX: usize = 512;

/// Most forms that one place follows at once. Only a secret that repeats its own beginning is
/// followed more than once; the oldest reach furthest.
const FOLLOWED_MAX: usize = 64;

/// All forms of all secrets.
pub(super) struct Table {
    names: Vec<String>,
    marks: Vec<String>,
    /// By the pattern that is their head.
    forms: Vec<Form>,
    heads: NFA,
    start: StateID,
    pairs: Pairs,
    /// For every state, how many of the last bytes may be the beginning of a head that goes on.
    open: HashMap<StateID, usize>,
}

/// One form, behind its head.
struct Form {
    name: usize,
    tail: Vec<u8>,
}

/// A stretch of bytes that is a secret; positions count from the beginning of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: usize,
}

impl Table {
    pub(super) fn new(secrets: &[(&str, &Secret)]) -> Self {
        let mut all = BTreeMap::new();
        for (index, (_, secret)) in secrets.iter().enumerate() {
            for form in forms::of(secret.expose()) {
                all.entry(form).or_insert(index);
            }
        }
        let split = all.iter().map(|(form, name)| {
            let (head, tail) = form.as_bytes().split_at(form.len().min(HEAD_BYTES_MAX));
            (head, Form { name: *name, tail: tail.to_vec() })
        });
        let (heads, forms): (Vec<&[u8]>, Vec<Form>) = split.unzip();
        let names = secrets.iter().map(|(name, _)| (*name).to_owned()).collect();
        Self::of_heads(names, &heads, forms).with_marks()
    }

    fn of_heads(names: Vec<String>, heads: &[&[u8]], forms: Vec<Form>) -> Self {
        let nfa = NFA::builder().match_kind(MatchKind::Standard).build(heads);
        let nfa = nfa.expect("heads are short, so their states can be numbered");
        let start = nfa.start_state(Anchored::No).expect("this automaton searches anywhere");
        let open = open_bytes(&nfa, start, heads);
        let pairs = Pairs::that_begin(heads);
        Self { names, marks: Vec::new(), forms, heads: nfa, start, pairs, open }
    }

    /// A mark may itself look like a secret, or a name like another's value; then it says less.
    fn with_marks(mut self) -> Self {
        let mark = |name: &String| format!("[secret {name}]");
        let hides = |mark: &String| Cursor::new(&self).find(&self, mark.as_bytes(), &[]).is_none();
        let marks = self.names.iter().map(mark);
        self.marks = marks.map(|mark| if hides(&mark) { mark } else { BARE_MARK.into() }).collect();
        self
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn mark(&self, name: usize) -> &str {
        &self.marks[name]
    }
}

/// What stands for a secret whose name would give one away; shorter than any form.
const BARE_MARK: &str = "[***]";

/// Looks every state up that a search can be in. A head that cannot go on leaves open only what
/// some shorter ending of it begins.
fn open_bytes(nfa: &NFA, start: StateID, heads: &[&[u8]]) -> HashMap<StateID, usize> {
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
    // The endings of a head are shorter than it, and so have their entry by then.
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

/// The pairs of bytes that a form can begin with, as a set of bits. Most of ordinary text is passed
/// over by looking at these alone, many times faster than the automaton reads.
struct Pairs(Box<[u64; 1024]>);

impl Pairs {
    fn that_begin(heads: &[&[u8]]) -> Self {
        let mut bits = Box::new([0; 1024]);
        for head in heads {
            let (word, bit) = Self::place(head[0], head[1]);
            bits[word] |= bit;
        }
        Self(bits)
    }

    /// Where a form can begin at the earliest. Of the last byte nobody knows.
    fn first_in(&self, bytes: &[u8]) -> usize {
        let may_begin = |pair: &[u8]| {
            let (word, bit) = Self::place(pair[0], pair[1]);
            self.0[word] & bit != 0
        };
        bytes.windows(2).position(may_begin).unwrap_or(bytes.len().saturating_sub(1))
    }

    fn place(first: u8, second: u8) -> (usize, u64) {
        let pair = usize::from(first) << 8 | usize::from(second);
        (pair / 64, 1 << (pair % 64))
    }
}

/// A place in a stream of bytes.
#[derive(Clone)]
pub(super) struct Cursor {
    state: StateID,
    at: u64,
    followed: Vec<Followed>,
}

/// A form whose head was met at `start` and that the bytes since then go on with.
#[derive(Clone)]
struct Followed {
    form: PatternID,
    start: u64,
    tail_bytes: usize,
}

impl Cursor {
    pub(super) fn new(table: &Table) -> Self {
        Self { state: table.start, at: 0, followed: Vec::new() }
    }

    /// How many bytes have been read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Where the earliest form may have begun that is not complete yet.
    pub(super) fn open_since(&self, table: &Table) -> u64 {
        self.at - table.open[&self.state] as u64
    }

    /// Reads one byte. Returns the longest stretch that is known to be a secret and ends here.
    fn step(&mut self, table: &Table, byte: u8) -> Option<Hit> {
        self.at += 1;
        let followed = if self.followed.is_empty() { None } else { self.follow(table, byte) };
        self.state = table.heads.next_state(Anchored::No, self.state, byte);
        let met = if table.heads.is_match(self.state) { self.meet(table) } else { None };
        match (followed, met) {
            (Some(followed), Some(met)) => Some(min_by_key(followed, met, |hit| hit.start)),
            (followed, met) => followed.or(met),
        }
    }

    /// Reads bytes up to the next end of a stretch that is a secret, and leaves the others.
    pub(super) fn next_hit(&mut self, table: &Table, bytes: &mut &[u8]) -> Option<Hit> {
        loop {
            if self.state == table.start && self.followed.is_empty() {
                let skipped = table.pairs.first_in(bytes);
                self.at += skipped as u64;
                *bytes = &bytes[skipped..];
            }
            let (byte, rest) = bytes.split_first()?;
            *bytes = rest;
            if let Some(hit) = self.step(table, *byte) {
                return Some(hit);
            }
        }
    }

    /// Reads bytes up to the first secret that is not spared, and returns its name.
    pub(super) fn find<'t>(
        &mut self,
        table: &'t Table,
        mut bytes: &[u8],
        spared: &[String],
    ) -> Option<&'t str> {
        while let Some(hit) = self.next_hit(table, &mut bytes) {
            let name = &table.names[hit.name];
            if !spared.contains(name) {
                return Some(name);
            }
        }
        None
    }

    fn follow(&mut self, table: &Table, byte: u8) -> Option<Hit> {
        self.followed.retain_mut(|followed| {
            let tail = &table.forms[followed.form].tail;
            followed.tail_bytes += 1;
            tail.get(followed.tail_bytes - 1) == Some(&byte)
        });
        let first = self.followed.iter().min_by_key(|followed| followed.start)?;
        Some(Hit { start: first.start, end: self.at, name: table.forms[first.form].name })
    }

    fn meet(&mut self, table: &Table) -> Option<Hit> {
        let patterns = 0..table.heads.match_len(self.state);
        let met = patterns.map(|index| {
            let form = table.heads.match_pattern(self.state, index);
            let start = self.at - table.heads.pattern_len(form) as u64;
            if !table.forms[form].tail.is_empty() && self.followed.len() < FOLLOWED_MAX {
                self.followed.push(Followed { form, start, tail_bytes: 0 });
            }
            Hit { start, end: self.at, name: table.forms[form].name }
        });
        met.min_by_key(|hit| hit.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_repeats_itself_is_followed_a_bounded_number_of_times() {
        let secret = Secret::new("a".repeat(10 * HEAD_BYTES_MAX));
        let table = Table::new(&[("a", &secret)]);
        let mut cursor = Cursor::new(&table);
        for _ in 0..5 * HEAD_BYTES_MAX {
            cursor.step(&table, b'a');
            assert!(cursor.followed.len() <= FOLLOWED_MAX);
        }
        assert_eq!(cursor.followed.len(), FOLLOWED_MAX);
    }

    #[test]
    fn no_head_is_longer_than_it_may_be() {
        let secret = Secret::new("\"é\\".repeat(2000));
        let table = Table::new(&[("a", &secret)]);
        assert_eq!(table.heads.max_pattern_len(), HEAD_BYTES_MAX);
        assert!(table.open.values().all(|open| *open < HEAD_BYTES_MAX));
    }
}
