//! A line that is still arriving, made fit to be shown: what may be the first half of a mark waits,
//! and what was opened is closed.
//!
//! This is for the eye only. The final lines come from the text as it was written.

use super::scan::Scanner;

/// Marks that begin blocks, or underline headings: what they mean shows when more arrives.
const BLOCK_MARKS: &str = "#*-+_=~`>|:.) \t";

/// Marks of which the second half may follow.
const INLINE_MARKS: [char; 6] = ['*', '_', '`', '~', '[', '!'];

/// Returns what of the line is to be shown.
pub(super) fn mended(scanner: &Scanner, pending: &str) -> String {
    let line = pending.trim_end_matches('\r');
    if let Some(fence) = scanner.fence() {
        return if fence.may_be_closed_by(line) { String::new() } else { line.to_owned() };
    }
    if is_unclear(line) {
        return String::new();
    }
    if scanner.is_in_inner_code() {
        return line.to_owned();
    }
    let shown = line.trim_end_matches(INLINE_MARKS);
    let closers = open_marks(shown).into_iter().rev().collect::<String>();
    // A mark after a space would open, not close.
    let shown = if closers.is_empty() { shown } else { shown.trim_end() };
    format!("{shown}{closers}")
}

/// Returns whether it cannot be told yet what kind of block the line is of.
fn is_unclear(line: &str) -> bool {
    let text = line.trim_start();
    let is_mark = |c: char| BLOCK_MARKS.contains(c) || c.is_ascii_digit();
    text.starts_with("```")
        || text.starts_with("~~~")
        || text.starts_with('|')
        || text.chars().all(is_mark)
}

/// Returns what would close the marks that the line leaves open, the outermost first.
fn open_marks(line: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let run = rest.chars().take_while(|next| *next == c).count();
        let mark = &rest[..c.len_utf8() * run];
        let after = &rest[mark.len()..];
        match c {
            '\\' => rest = skip(after),
            '`' => match after.find(mark) {
                Some(end) => rest = &after[end + mark.len()..],
                None => {
                    open.push(mark.to_owned());
                    return open;
                }
            },
            '*' | '_' | '~' => {
                toggle(&mut open, mark, before, after);
                rest = after;
            }
            ']' if after.starts_with('(') && !after.contains(')') => {
                open.push(")".to_owned());
                return open;
            }
            _ => rest = after,
        }
        before = c;
    }
    open
}

/// Opens or closes an emphasis, as far as its neighbours allow it.
fn toggle(open: &mut Vec<String>, mark: &str, before: char, after: &str) {
    let next = after.chars().next().unwrap_or(' ');
    let inside_word = before.is_alphanumeric() && (mark.starts_with('_') || mark == "*");
    if !before.is_whitespace() && open.last().is_some_and(|last| last == mark) {
        open.pop();
    } else if !next.is_whitespace() && !inside_word && mark.len() <= 3 && mark != "~" {
        open.push(mark.to_owned());
    }
}

fn skip(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}
