//! Draws the line of a file that an error refers to, with a mark under the place, for terminals.
//!
//! Quoted text elsewhere on the line is left out, and so is the value of a secret key: a mistake is
//! often next to a password, and others may see the screen.

use std::{
    fmt,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError,
    MietteSpanContents, SourceCode, SourceSpan, SpanContents,
};
use sallyport_contract::text;
use sallyport_policy::SourceLocation;
use sallyport_runtime::config::setting_rows::is_secret_name;
use sallyport_untrusted_file as untrusted_file;

/// Longest file from which a line is shown, in bytes. The parser's limit is lower.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Longest part of a line that is shown, in characters: two lines on most screens.
const LINE_CHARS_MAX: usize = 160;

/// Replacement for omitted text.
const LEFT_OUT: &str = "…";

/// A line split around its marked part.
#[derive(Debug, PartialEq)]
struct MarkedLine {
    before: String,
    token: String,
    after: &'static str,
}

/// A marked line in the form that the renderer needs.
#[derive(Debug)]
struct ExcerptDiagnostic {
    location: SourceLocation,
    line: String,
    label: LabeledSpan,
}

/// Draws the line of a place. Returns `None` if it does not exist any more.
pub(super) fn draw_excerpt(location: &SourceLocation) -> Option<String> {
    let file = untrusted_file::open_regular(Path::new(&location.file)).ok()?.take(FILE_BYTES_MAX);
    let line = BufReader::new(file).lines().nth(location.line.checked_sub(1)?)?.ok()?;
    let MarkedLine { before, token, after } = mark_line(&line, location.column)?;
    let label = LabeledSpan::at(before.len()..before.len() + token.len(), "here");
    let diagnostic =
        ExcerptDiagnostic { location: location.clone(), line: before + &token + after, label };
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode());
    handler.render_report(&mut drawn, &diagnostic).ok()?;
    // Skip the message, which has been printed already.
    let lines = drawn.lines().skip_while(|line| !line.contains('╭'));
    Some(lines.map(|line| format!("{}\n", line.trim_end())).collect())
}

fn mark_line(line: &str, column: usize) -> Option<MarkedLine> {
    let (at, _) = line.char_indices().nth(column.checked_sub(1)?)?;
    let (before, rest) = line.split_at(at);
    let token = first_token(rest);
    let name = before.trim_end().strip_suffix('=').unwrap_or_default();
    let is_secret = name.split_whitespace().next_back().is_some_and(is_secret_name);
    let after = if rest.len() > token.len() { " …" } else { "" };
    let token =
        if is_secret { LEFT_OUT.to_owned() } else { text::escape_excerpt(token, LINE_CHARS_MAX) };
    let before = strip_strings(before);
    let is_short = before.chars().count() <= LINE_CHARS_MAX;
    let before = if is_short { text::escape_line(&before) } else { format!("{LEFT_OUT} ") };
    Some(MarkedLine { before, token, after })
}

/// The first token of the rest of a line: a string with its quotation marks, or a word.
fn first_token(rest: &str) -> &str {
    let end = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        Some(first) => {
            let is_end = |c: char| c.is_whitespace() || "=,]}".contains(c);
            let from = first.len_utf8();
            rest[from..].find(is_end).map_or(rest.len(), |end| end + from)
        }
        None => 0,
    };
    &rest[..end]
}

/// Removes quoted text.
fn strip_strings(text: &str) -> String {
    let mut kept = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => continue,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                kept.push(c);
                kept.push_str(LEFT_OUT);
                continue;
            }
            None => {}
        }
        kept.push(c);
    }
    kept
}

impl fmt::Display for ExcerptDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.location.fmt(f)
    }
}

impl std::error::Error for ExcerptDiagnostic {}

impl Diagnostic for ExcerptDiagnostic {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(self.label.clone())))
    }
}

impl SourceCode for ExcerptDiagnostic {
    /// Returns the one line, regardless of the span. The header requests no lines of context, and
    /// only it gets the column.
    fn read_span<'a>(
        &'a self,
        _: &SourceSpan,
        lines_before: usize,
        _: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let Self { location, line, .. } = self;
        let column = if lines_before == 0 { location.column - 1 } else { 0 };
        let span = SourceSpan::from((0, line.len()));
        let (name, row) = (location.file.clone(), location.line - 1);
        let contents = MietteSpanContents::new_named(name, line.as_bytes(), span, row, column, 1);
        Ok(Box::new(contents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_marked_and_what_is_beside_it_is_not_shown() {
        let rows = [
            ("plugindir = 'sk-1'", 1, "", "plugindir", " …"),
            ("provider = 'gpt'", 12, "provider = ", "'gpt'", ""),
            ("a = { key = 'sk-1', x = 2 }", 21, "a = { key = '…', ", "x", " …"),
            ("key = 'sk-1 ${NOPE}'", 7, "key = ", "…", ""),
            ("a = { x = 1, api_token='sk ${NOPE}' }", 24, "a = { x = 1, api_token=", "…", " …"),
            ("[model.a]", 2, "[", "model.a", " …"),
            ("größe = 1", 9, "größe = ", "1", ""),
            ("a\u{1b}[2J = 1", 2, "a", "\\u{1b}[2J", " …"),
        ];
        for (line, column, before, token, after) in rows {
            let want = MarkedLine { before: before.into(), token: token.into(), after };
            assert_eq!(mark_line(line, column), Some(want), "{line}");
        }
        for (line, column) in [("", 1), ("ab", 3), ("ab", 0)] {
            assert_eq!(mark_line(line, column), None);
        }
    }

    #[test]
    fn the_line_is_drawn_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sallyport.toml");
        std::fs::write(&path, "\n\n[chat]\nmemry = 'none'\n").unwrap();
        let file = path.display().to_string();
        let drawn =
            draw_excerpt(&SourceLocation { file: file.clone(), line: 4, column: 1 }).unwrap();
        let plain = anstream::adapter::strip_str(&drawn).to_string();
        assert!(plain.contains("4 │ memry …") && plain.contains("here"), "{plain}");
        assert!(plain.contains(":4:1]"), "{plain}");
        assert_eq!(draw_excerpt(&SourceLocation { file, line: 9, column: 1 }), None);
        assert_eq!(
            draw_excerpt(&SourceLocation { file: "/nowhere".into(), line: 1, column: 1 }),
            None
        );
    }
}
