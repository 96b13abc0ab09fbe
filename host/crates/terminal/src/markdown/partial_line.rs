//! Prepares an incomplete line for display: a possible first half of a mark is withheld, and open
//! marks are closed.
//!
//! The result is only for display. The final lines are rendered from the original text.

use super::scan::MarkdownScanner;

/// Marks that begin blocks or underline headings. Their meaning depends on what follows.
const BLOCK_MARKS: &str = "#*-+_=~`>|:.) \t";

/// Marks whose second half may follow.
const INLINE_MARKS: [char; 6] = ['*', '_', '`', '~', '[', '!'];

/// Returns the part of the line to show.
pub(super) fn complete_partial_line(scanner: &MarkdownScanner, pending: &str) -> String {
    let line = pending.trim_end_matches('\r');
    if let Some(fence) = scanner.current_fence() {
        return if fence.may_be_closed_by(line) { String::new() } else { line.to_owned() };
    }
    if is_block_unknown(line) {
        return String::new();
    }
    if scanner.is_in_inner_code() {
        return line.to_owned();
    }
    let shown = line.trim_end_matches(INLINE_MARKS);
    let closers = find_open_marks(shown).into_iter().rev().collect::<String>();
    // Remove trailing spaces: a mark after a space would open, not close.
    let shown = if closers.is_empty() { shown } else { shown.trim_end() };
    format!("{shown}{closers}")
}

/// Whether the block that the line belongs to is still unknown.
fn is_block_unknown(line: &str) -> bool {
    let text = line.trim_start();
    let is_mark = |c: char| BLOCK_MARKS.contains(c) || c.is_ascii_digit();
    text.starts_with("```")
        || text.starts_with("~~~")
        || text.starts_with('|')
        || text.chars().all(is_mark)
}

/// Returns the marks that the line leaves open, the outermost first.
fn find_open_marks(line: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let run = rest.chars().take_while(|next| *next == c).count();
        let mark = &rest[..c.len_utf8() * run];
        let after = &rest[mark.len()..];
        match c {
            '\\' => rest = skip_char(after),
            '`' => match after.find(mark) {
                Some(end) => rest = &after[end + mark.len()..],
                None => {
                    open.push(mark.to_owned());
                    return open;
                }
            },
            '*' | '_' | '~' => {
                toggle_mark(&mut open, mark, before, after);
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

/// Opens or closes emphasis if the neighbouring characters allow it.
fn toggle_mark(open: &mut Vec<String>, mark: &str, before: char, after: &str) {
    let next = after.chars().next().unwrap_or(' ');
    let inside_word = before.is_alphanumeric() && (mark.starts_with('_') || mark == "*");
    if !before.is_whitespace() && open.last().is_some_and(|last| last == mark) {
        open.pop();
    } else if !next.is_whitespace() && !inside_word && mark.len() <= 3 && mark != "~" {
        open.push(mark.to_owned());
    }
}

fn skip_char(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}
