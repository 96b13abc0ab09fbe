//! The change that a call would make to a file, as a short unified diff.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use sallyport_contract::text;
use similar::{ChangeTag, TextDiff};

use super::argument::{DetailLevel, has_hidden_characters};
use crate::style::StyledLine;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 2;

/// Most lines before the user asks for `More`.
const BRIEF_LINES_MAX: usize = 16;

/// Longest search for a short diff. After it the diff is longer, but still correct.
const SEARCH_TIME_MAX: Duration = Duration::from_millis(200);

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The contents of a file before and after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The text in the file now.
    pub old: String,
    /// The text that the call would leave in it.
    pub new: String,
}

impl FileChange {
    /// Returns the diff, shortened. Hidden characters are spelt out.
    pub fn brief_diff_lines(&self) -> Vec<StyledLine> {
        self.diff_lines(DetailLevel::Brief)
    }

    /// Returns the diff. Hidden characters are spelt out.
    pub(super) fn diff_lines(&self, detail_level: DetailLevel) -> Vec<StyledLine> {
        let mut lines = self.all_diff_lines();
        if lines.is_empty() {
            return vec![StyledLine::styled("nothing: the file has this text already", DIM)];
        }
        let hidden = lines.len().saturating_sub(BRIEF_LINES_MAX);
        if detail_level == DetailLevel::Brief && hidden > 0 {
            lines.truncate(BRIEF_LINES_MAX);
            lines.push(StyledLine::styled(format!("… and {hidden} more lines"), BOLD));
        }
        lines
    }

    fn all_diff_lines(&self) -> Vec<StyledLine> {
        let mut config = TextDiff::configure();
        let diff = config.timeout(SEARCH_TIME_MAX).diff_lines(&self.old, &self.new);
        let line_break = self.line_break();
        let mut lines = Vec::new();
        for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
            lines.push(StyledLine::styled(hunk.header().to_string(), DIM));
            for change in hunk.iter_changes() {
                lines.push(change_line(change.tag(), change.value(), line_break));
                if change.missing_newline() {
                    lines.push(StyledLine::styled("\\ no line break at the end", DIM));
                }
            }
        }
        lines
    }

    /// The line break of both texts. If they have several, the diff shows which lines have another
    /// one than `\n`.
    fn line_break(&self) -> &'static str {
        let is_windows = |text: &str| text.matches('\n').count() == text.matches("\r\n").count();
        if is_windows(&self.old) && is_windows(&self.new) { "\r\n" } else { "\n" }
    }

    /// Whether the file contains characters that a reader could not see.
    pub(super) fn has_deceptive_text(&self) -> bool {
        has_hidden_characters(&self.old)
    }
}

fn change_line(tag: ChangeTag, value: &str, line_break: &str) -> StyledLine {
    let (mark, style) = match tag {
        ChangeTag::Delete => ("-", REMOVED),
        ChangeTag::Insert => ("+", ADDED),
        ChangeTag::Equal => (" ", Style::new()),
    };
    let line = text::escape_line(value.strip_suffix(line_break).unwrap_or(value));
    StyledLine::styled(format!("{mark}{line}"), style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_with_line_breaks_of_windows_had_a_warning() {
        let rows: [(&str, &str, &[&str], bool); 5] = [
            ("a\r\nb\r\n", "a\r\nc\r\n", &[" a", "-b", "+c"], false),
            // A change of the line breaks alone has to be visible.
            ("a\r\n", "a\n", &["-a\\r", "+a"], false),
            ("a\n", "a\r\n", &["-a", "+a\\r"], false),
            ("a\rb\n", "b\n", &["-a\\r", " b"], true),
            ("a\u{200b}\r\n", "b\r\n", &["-a\\u{200b}", "+b"], true),
        ];
        for (old, new, want, is_deceptive) in rows {
            let change = FileChange { old: old.to_owned(), new: new.to_owned() };
            let lines = change.diff_lines(DetailLevel::Full);
            let lines: Vec<String> = lines.iter().skip(1).map(StyledLine::text).collect();
            assert_eq!(lines, want, "{old:?} {new:?}");
            assert_eq!(change.has_deceptive_text(), is_deceptive, "{old:?}");
        }
    }
}
