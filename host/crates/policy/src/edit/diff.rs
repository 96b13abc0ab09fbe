//! The line diff of an edit, for the user who confirms it.

/// Unchanged lines that are shown around a change, so that the reader recognises its place.
const CONTEXT_LINES: usize = 2;

/// Most line comparisons per diff. An edit changes a few lines; if the texts differ in more than
/// this, the whole middle counts as changed.
const COMPARISONS_MAX: usize = 1 << 22;

/// The status of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// It is in both texts.
    Unchanged,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

impl LineChange {
    /// The mark in front of the line.
    pub fn mark(self) -> char {
        match self {
            Self::Unchanged => ' ',
            Self::Added => '+',
            Self::Removed => '-',
        }
    }
}

/// A line of one of two texts. The text is unescaped and must not reach a terminal as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Its status.
    pub change: LineChange,
    /// Its number, from 1: in the old text for a removed line, otherwise in the new text. A gap in
    /// the numbers means that unchanged lines were left out.
    pub number: usize,
    /// The line, without its end.
    pub text: String,
}

/// Compares two texts and returns the removed and added lines, with two lines of context around
/// each change.
pub fn diff_lines(before: &str, after: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let same_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tails = old[same_head..].iter().rev().zip(new[same_head..].iter().rev());
    let same_tail = tails.take_while(|(a, b)| a == b).count();
    let old_middle = same_head..old.len() - same_tail;
    let new_middle = same_head..new.len() - same_tail;
    let mut lines: Vec<_> =
        (0..same_head).map(|at| diff_line(LineChange::Unchanged, &new, at)).collect();
    for (change, at) in line_changes(&old[old_middle], &new[new_middle.clone()]) {
        let text = if change == LineChange::Removed { &old } else { &new };
        lines.push(diff_line(change, text, same_head + at));
    }
    lines.extend((new_middle.end..new.len()).map(|at| diff_line(LineChange::Unchanged, &new, at)));
    keep_context_lines(lines)
}

fn diff_line(change: LineChange, text: &[&str], at: usize) -> DiffLine {
    DiffLine { change, number: at + 1, text: text[at].to_owned() }
}

/// The status of each line of two texts along a longest common subsequence, with its index in its
/// own text.
fn line_changes(old: &[&str], new: &[&str]) -> Vec<(LineChange, usize)> {
    let all = (0..old.len()).map(|at| (LineChange::Removed, at));
    if old.len().saturating_mul(new.len()) > COMPARISONS_MAX {
        return all.chain((0..new.len()).map(|at| (LineChange::Added, at))).collect();
    }
    let common = common_lengths(old, new);
    let (mut from, mut to) = (0, 0);
    let mut found = Vec::new();
    while from < old.len() || to < new.len() {
        let ended = from == old.len() || to == new.len();
        if !ended && old[from] == new[to] {
            found.push((LineChange::Unchanged, to));
            (from, to) = (from + 1, to + 1);
        } else if to == new.len() || (!ended && common[from + 1][to] >= common[from][to + 1]) {
            found.push((LineChange::Removed, from));
            from += 1;
        } else {
            found.push((LineChange::Added, to));
            to += 1;
        }
    }
    found
}

/// The length of the longest common subsequence of the two remainders, for each pair of start
/// indexes.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<Vec<u32>> {
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for from in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            common[from][to] = match old[from] == new[to] {
                true => common[from + 1][to + 1] + 1,
                false => common[from + 1][to].max(common[from][to + 1]),
            };
        }
    }
    common
}

/// Keeps the changes and their context lines.
fn keep_context_lines(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let mut shown = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.change != LineChange::Unchanged)
    {
        let end = lines.len().min(at + CONTEXT_LINES + 1);
        shown[at.saturating_sub(CONTEXT_LINES)..end].fill(true);
    }
    lines.into_iter().zip(shown).filter(|(_, shown)| *shown).map(|(line, _)| line).collect()
}
