//! Folds lines and messages to the width of a terminal.

use crate::{
    columns::text_columns,
    style::{StyledLine, StyledSpan},
    wrap::{self, LongWord},
};

/// Columns by which the continued lines of a message are indented.
const MESSAGE_INDENT: usize = 2;

/// Narrowest column for the explanation of a name. A narrower one is hard to read.
const EXPLANATION_COLUMNS_MIN: usize = 24;

/// What precedes a command at the end of a message, with the begin of the command.
const COMMAND_MARK: &str = ": sallyport ";

impl StyledLine {
    /// Folds the line to `width` columns, at spaces if possible. Continued lines are indented by
    /// `indent` columns.
    ///
    /// No text is lost except the spaces at a fold. At least two columns are used after the indent,
    /// which the widest letters need.
    pub fn fold_to_width(&self, width: usize, indent: usize) -> Vec<Self> {
        self.fold_words(width, indent, LongWord::Broken)
    }

    /// Folds a message to `width` columns. Continued lines are indented by two columns more than the
    /// first one, so that none can be taken for a message of its own. Those of a name with its
    /// explanation begin below the explanation, if it has enough room.
    ///
    /// A command of a shell at the end, as in `to allow it: sallyport policy …`, moves to lines of
    /// its own that can be copied as they are.
    pub fn fold_message(&self, width: usize) -> Vec<Self> {
        self.fold_sentences(width, LongWord::Broken)
    }

    /// Folds a message as [`fold_message`](Self::fold_message) does, but leaves a word that is longer
    /// than a line, such as the address of a page, to the terminal, which copies it whole.
    pub fn fold_note(&self, width: usize) -> Vec<Self> {
        self.fold_sentences(width, LongWord::Whole)
    }

    fn fold_sentences(&self, width: usize, long_word: LongWord) -> Vec<Self> {
        let text = self.text();
        if self.width() <= width {
            return vec![self.clone()];
        }
        if let Some(pair) = Explanation::find(&text)
            && !pair.fits(width)
        {
            return self.fold_pair(&pair, width, long_word);
        }
        let indent = hanging_columns(&text, width);
        let command = text.rsplit_once(COMMAND_MARK).map(|(_, command)| command);
        match command.filter(|command| !command.contains('`')) {
            None => self.fold_words(width, indent, long_word),
            Some(command) => {
                let command = format!("{}{command}", COMMAND_MARK.trim_start_matches([':', ' ']));
                let head = self.split_at(text.len() - command.len()).0.trim_end();
                let mut lines = head.fold_words(width, indent, long_word);
                let indent = leading_spaces(&text) + MESSAGE_INDENT;
                lines.extend(command_lines(&command, width, indent));
                lines
            }
        }
    }

    /// Folds a name with its explanation where the explanation has too little room beside it: it
    /// begins below the name.
    fn fold_pair(&self, pair: &Explanation, width: usize, long_word: LongWord) -> Vec<Self> {
        let (name, rest) = self.split_at(pair.name_end);
        let mut lines = name.fold_words(width, pair.leading + MESSAGE_INDENT, long_word);
        let indent = pair.leading + MESSAGE_INDENT;
        let mut below = Self::plain(" ".repeat(indent));
        below.spans.extend(rest.split_at(pair.start - pair.name_end).1.spans);
        lines.extend(below.fold_words(width, indent, long_word));
        lines
    }

    fn fold_words(&self, width: usize, indent: usize, long_word: LongWord) -> Vec<Self> {
        if self.width() <= width {
            return vec![self.clone()];
        }
        wrap::fold_line(self, width.max(indent + 2), indent, long_word)
    }

    /// Splits the line after so many bytes.
    fn split_at(&self, bytes: usize) -> (Self, Self) {
        let (mut head, mut tail, mut left) = (Self::default(), Self::default(), bytes);
        for StyledSpan { text, style } in &self.spans {
            let (before, after) = text.split_at(left.min(text.len()));
            left -= before.len();
            head.push(before, *style);
            tail.push(after, *style);
        }
        (head, tail)
    }
}

/// A name with an explanation, which two spaces or more separate.
struct Explanation {
    /// The spaces before the name.
    leading: usize,
    /// The bytes up to the end of the name, and up to the explanation.
    name_end: usize,
    start: usize,
    /// The column of the explanation.
    column: usize,
}

impl Explanation {
    fn find(text: &str) -> Option<Self> {
        let leading = leading_spaces(text);
        let name_end = leading + text[leading..].find("  ")?;
        let spaces = leading_spaces(&text[name_end..]);
        let column = text_columns(&text[..name_end]) + spaces;
        let start = name_end + spaces;
        (start < text.len()).then_some(Self { leading, name_end, start, column })
    }

    /// Whether the explanation has enough room beside the name.
    fn fits(&self, width: usize) -> bool {
        self.column + EXPLANATION_COLUMNS_MIN <= width
    }
}

fn leading_spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// The columns before the continued lines of a message.
fn hanging_columns(text: &str, width: usize) -> usize {
    let pair = Explanation::find(text).filter(|pair| pair.fits(width));
    pair.map_or_else(|| leading_spaces(text) + MESSAGE_INDENT, |pair| pair.column)
}

/// Lays out a command as a shell reads it: continued lines follow a backslash. An argument that is
/// wider than a line is left to the terminal, which copies it whole.
fn command_lines(command: &str, width: usize, indent: usize) -> Vec<StyledLine> {
    let mut lines = vec![" ".repeat(indent)];
    for word in shell_words(command) {
        let line = lines.last_mut().expect("there is a first line");
        let is_new = line.ends_with(' ');
        if !is_new && text_columns(line) + text_columns(word) + 3 > width {
            line.push_str(" \\");
            lines.push(format!("{}{word}", " ".repeat(indent + MESSAGE_INDENT)));
        } else {
            line.push_str(if is_new { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.into_iter().map(StyledLine::plain).collect()
}

/// Splits a command at the spaces outside of quotes.
fn shell_words(command: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let is_space = move |c: char| {
        match quote {
            Some(open) if open == c => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            _ => {}
        }
        c == ' ' && quote.is_none()
    };
    command.split(is_space)
}

#[cfg(test)]
mod tests {
    use anstyle::{AnsiColor, Style};

    use super::*;
    use crate::style::ColourMode;

    #[track_caller]
    fn check(text: &str, width: usize, indent: usize, want: &[&str]) {
        let folded = StyledLine::plain(text).fold_to_width(width, indent);
        assert_eq!(folded.iter().map(StyledLine::text).collect::<Vec<_>>(), want, "{text:?}");
        assert!(folded.iter().all(|line| line.width() <= width.max(indent + 2)));
    }

    #[test]
    fn lines_are_folded_at_spaces_and_long_words_anywhere() {
        check("", 10, 0, &[""]);
        check("short", 10, 2, &["short"]);
        check("two words here", 9, 0, &["two words", "here"]);
        check("two words here", 9, 2, &["two words", "  here"]);
        check("aaaaaaaaaaaa", 5, 0, &["aaaaa", "aaaaa", "aa"]);
        check("aaaaaaaaaaaa", 5, 2, &["aaaaa", "  aaa", "  aaa", "  a"]);
        check("漢字漢字", 5, 0, &["漢字", "漢字"]);
        check("漢字", 0, 0, &["漢", "字"]);
        check("ends here ", 9, 0, &["ends here"]);
        check("  key: abc defg.", 14, 4, &["  key: abc", "    defg."]);
        check("a /long/path/that", 8, 2, &["a /long/", "  path/", "  that"]);
        check("abcdefgh /long/path/that", 8, 2, &["abcdefgh", "  /long/", "  path/", "  that"]);
    }

    #[test]
    fn addresses_and_commands_were_broken_in_the_middle_of_a_word() {
        let address = "GET https://geocoding-api.open-meteo.com/v1/search";
        check(address, 30, 2, &["GET https://geocoding-api.", "  open-meteo.com/v1/search"]);
        check("run `a bc d` now", 11, 0, &["run", "`a bc d`", "now"]);
        check("run `a bc d` now", 7, 0, &["run `a", "bc d`", "now"]);
        check("one ` two three", 9, 0, &["one ` two", "three"]);
    }

    #[track_caller]
    fn check_message(text: &str, width: usize, want: &[&str]) {
        let folded = StyledLine::plain(text).fold_message(width);
        assert_eq!(folded.iter().map(StyledLine::text).collect::<Vec<_>>(), want, "{text:?}");
    }

    #[test]
    fn messages_are_folded_and_their_commands_can_be_copied() {
        let hint =
            "hint: to allow it: sallyport policy grant weather --net 'GET https://a.example/b'";
        check_message(hint, 90, &[hint]);
        check_message(
            hint,
            40,
            &[
                "hint: to allow it:",
                "  sallyport policy grant weather --net \\",
                "    'GET https://a.example/b'",
            ],
        );
        check_message(
            "Left out: sallyport x. See `sallyport y`.",
            30,
            &["Left out: sallyport x. See", "  `sallyport y`."],
        );
        let address = "http://127.0.0.1:8079/ui/?token=0123456789abcdef";
        let note = StyledLine::plain(format!("at {address} now")).fold_note(20);
        let note: Vec<String> = note.iter().map(StyledLine::text).collect();
        assert_eq!(note, ["at", &format!("  {address}"), "  now"]);
        check_message("error: one two three", 16, &["error: one two", "  three"]);
        check_message(
            "  name  one two three four five six",
            32,
            &["  name  one two three four five", "        six"],
        );
        check_message(
            "  name  one two three four",
            20,
            &["  name", "    one two three", "    four"],
        );
        check_message("  a: one two three", 14, &["  a: one two", "    three"]);
        let long = format!("Then: sallyport x {}", "y".repeat(30));
        let word = format!("    {}", "y".repeat(30));
        check_message(&long, 20, &["Then:", "  sallyport x \\", &word]);
    }

    #[test]
    fn the_style_of_a_message_ends_with_its_words() {
        let red = AnsiColor::Red.on_default();
        let mut line = StyledLine::styled("hint:", red);
        line.push(" do: sallyport one two", Style::new());
        let folded = line.fold_message(16);
        assert_eq!(folded[0].spans[0], StyledSpan::new("hint:", red));
        assert_eq!(folded[0].text(), "hint: do:");
        assert_eq!(folded[1].text(), "  sallyport \\");
    }

    #[test]
    fn styles_survive_a_fold_and_are_left_out_when_nobody_sees_them() {
        let red = AnsiColor::Red.on_default();
        let mut line = StyledLine::plain("one ");
        line.push("two three", red);
        let folded = line.fold_to_width(7, 0);
        assert_eq!(
            folded[0].spans,
            [StyledSpan::new("one ", Style::new()), StyledSpan::new("two", red)]
        );
        assert_eq!(folded[1].to_terminal_text(ColourMode::On), format!("{red}three{red:#}"));
        assert_eq!(folded[1].to_terminal_text(ColourMode::Off), "three");
        assert_eq!(line.to_string(), "one two three");
    }
}
