//! Styled text.
//!
//! Text for the user ([`markdown`](crate::markdown), [`card`](crate::card)) is laid out as these
//! lines, so that it can be measured, folded and compared before it reaches a terminal. The text of
//! a span never contains control characters: any code that makes one from foreign text escapes it
//! first. Styles are the only source of escape sequences.

use std::fmt::{self, Write};

use anstyle::Style;

use crate::columns::text_columns;

/// A piece of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    /// The text, without line breaks and control characters.
    pub text: String,
    /// Its style.
    pub style: Style,
}

/// A line of styled text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StyledLine {
    /// The spans, from left to right.
    pub spans: Vec<StyledSpan>,
}

/// Whether styles are written as escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourMode {
    /// Styles are written.
    On,
    /// Styles are left out: the output does not show them, or the user turned colours off.
    Off,
}

impl ColourMode {
    /// Returns the mode for a terminal, from the values of `TERM` and `NO_COLOR`. Returns `None` for
    /// an output without a movable cursor: a file, a pipe, or a terminal without escape sequences.
    pub fn from_environment(
        is_terminal: bool,
        term: Option<&str>,
        no_color: Option<&str>,
    ) -> Option<Self> {
        // Terminals on Windows do not set `TERM`.
        let supports_escapes =
            term.map_or(cfg!(windows), |term| term != "dumb" && !term.is_empty());
        let is_off = no_color.is_some_and(|setting| !setting.is_empty());
        let mode = if is_off { Self::Off } else { Self::On };
        (is_terminal && supports_escapes).then_some(mode)
    }
}

impl StyledSpan {
    /// Creates a span.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl StyledLine {
    /// Creates a line of plain text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::styled(text, Style::new())
    }

    /// Creates a line in one style.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { spans: vec![StyledSpan::new(text, style)] }
    }

    /// Appends text. It joins the last span if the style is the same.
    pub fn push(&mut self, text: &str, style: Style) {
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.spans.push(StyledSpan::new(text, style)),
        }
    }

    /// Returns the line without the spaces at its end.
    pub fn trim_end(mut self) -> Self {
        while let Some(last) = self.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
            if !last.text.is_empty() {
                break;
            }
            self.spans.pop();
        }
        self
    }

    /// Returns the width on a terminal, in columns. Where terminals disagree, it is the larger one.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| text_columns(&span.text)).sum()
    }

    /// Returns the text without its styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the line as it is sent to a terminal, without a line break.
    pub fn to_terminal_text(&self, colour: ColourMode) -> String {
        let mut out = String::new();
        for StyledSpan { text, style } in &self.spans {
            // Writing to a String cannot fail.
            let _ = match colour {
                ColourMode::On => write!(out, "{style}{text}{style:#}"),
                ColourMode::Off => out.write_str(text),
            };
        }
        out
    }
}

impl fmt::Display for StyledLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_codes_are_obeyed() {
        let rows = [
            (true, Some("xterm-256color"), None, Some(ColourMode::On)),
            (true, Some("xterm"), Some(""), Some(ColourMode::On)),
            (true, Some("xterm"), Some("1"), Some(ColourMode::Off)),
            (true, Some("dumb"), None, None),
            (true, Some(""), None, None),
            (false, Some("xterm"), None, None),
            (false, None, Some("1"), None),
        ];
        for (is_terminal, term, no_color, want) in rows {
            let mode = ColourMode::from_environment(is_terminal, term, no_color);
            assert_eq!(mode, want, "{term:?} {no_color:?}");
        }
    }
}
