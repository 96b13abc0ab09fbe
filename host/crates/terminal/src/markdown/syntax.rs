//! Block syntax of Markdown at the outermost level: what the beginning of a line can mean.
//!
//! This only detects where a block certainly ends. The parser determines the meaning of blocks.

/// Columns of indentation at which a line is code instead of the start of another block.
const CODE_INDENT_COLUMNS: usize = 4;

/// Longest number of an ordered list, in digits. A longer one is text.
const NUMBER_DIGITS_MAX: usize = 9;

/// Start and end of raw HTML blocks that blank lines do not end.
const HTML: [(&str, &str); 8] = [
    ("<!--", "-->"),
    ("<?", "?>"),
    ("<![cdata[", "]]>"),
    ("<!", ">"),
    ("<pre", "</pre>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
    ("<textarea", "</textarea>"),
];

/// Whether a line is blank.
pub(super) fn is_blank_line(line: &str) -> bool {
    line.trim().is_empty()
}

/// Returns the number of columns before the first character that is not white space.
pub(super) fn indent_columns(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += CODE_INDENT_COLUMNS - columns % CODE_INDENT_COLUMNS,
            _ => break,
        }
    }
    columns
}

/// Returns the line without its indentation, or `None` if it is indented too far to begin a block.
fn strip_block_indent(line: &str) -> Option<&str> {
    (indent_columns(line) < CODE_INDENT_COLUMNS).then(|| line.trim_start())
}

/// The line that opens a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeFence {
    mark: char,
    length: usize,
    indent: usize,
    /// The info string, usually a language.
    pub(super) label: String,
}

impl CodeFence {
    /// Parses a line as the start of a code block.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let text = strip_block_indent(line)?;
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = text.chars().take_while(|c| *c == mark).count();
        let label = text[length..].trim();
        let is_code_in_text = mark == '`' && label.contains('`');
        (length >= 3 && !is_code_in_text).then(|| Self {
            mark,
            length,
            indent: indent_columns(line),
            label: label.to_owned(),
        })
    }

    /// Whether a line ends the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        strip_block_indent(line).map(str::trim_end).is_some_and(|text| {
            text.chars().all(|c| c == self.mark) && text.chars().count() >= self.length
        })
    }

    /// Whether an incomplete line may turn out to end the block.
    pub(super) fn may_be_closed_by(&self, line: &str) -> bool {
        strip_block_indent(line).is_some_and(|text| text.trim_end().chars().all(|c| c == self.mark))
    }

    /// Removes at most the fence's own indentation from a line of the block.
    pub(super) fn strip_indent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take_while(|b| *b == b' ').count();
        &line[spaces.min(self.indent)..]
    }
}

/// The marker of a list item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListMarker {
    /// The character that all items of a list share: the bullet, or the one after the number.
    pub(super) kind: char,
    /// The number, in an ordered list.
    pub(super) number: Option<u64>,
    /// Column at which the item's text begins. Lines indented this far belong to the item.
    pub(super) content: usize,
    /// Whether the rest of the line is blank.
    is_empty: bool,
}

impl ListMarker {
    /// Parses the beginning of a line as a list item.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let text = strip_block_indent(line)?;
        if is_thematic_break(text) {
            return None;
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number = match digits {
            0 => None,
            1..=NUMBER_DIGITS_MAX => Some(text[..digits].parse().ok()?),
            _ => return None,
        };
        let kind = text[digits..].chars().next()?;
        let fits = if number.is_some() { ".)" } else { "-+*" };
        let rest = text[digits..].strip_prefix(kind).filter(|_| fits.contains(kind))?;
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            return None;
        }
        let is_empty = is_blank_line(rest);
        let gap = if is_empty { 1 } else { indent_columns(rest) };
        // With five spaces or more the item begins with code, one space after its marker.
        let gap = if gap > CODE_INDENT_COLUMNS { 1 } else { gap };
        Some(Self { kind, number, content: indent_columns(line) + digits + 1 + gap, is_empty })
    }

    /// Whether the line ends a paragraph directly above it.
    pub(super) fn can_interrupt_text(self) -> bool {
        !self.is_empty && self.number.is_none_or(|number| number == 1)
    }
}

/// Whether a line with less indentation than an item's text ends the item, even if a paragraph
/// could continue.
pub(super) fn interrupts_item(line: &str) -> bool {
    let Some(text) = strip_block_indent(line) else { return false };
    let hashes = text.bytes().take_while(|b| *b == b'#').count();
    let is_heading = (1..=6).contains(&hashes) && text[hashes..].starts_with([' ', '\t']);
    is_heading
        || text.starts_with('>')
        || is_thematic_break(text)
        || CodeFence::parse(line).is_some()
        || ListMarker::parse(line).is_some_and(ListMarker::can_interrupt_text)
}

/// Whether a line is a thematic break.
fn is_thematic_break(text: &str) -> bool {
    let marks: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    marks.len() >= 3
        && matches!(marks[0], '-' | '*' | '_')
        && marks.iter().all(|mark| *mark == marks[0])
}

/// Returns the end of the raw HTML block that a line begins.
///
/// Returns `None` if a blank line would end the block or if the line itself ends it.
pub(super) fn html_end_marker(line: &str) -> Option<&'static str> {
    let text = strip_block_indent(line)?.to_ascii_lowercase();
    let (start, end) = HTML.into_iter().find(|(start, _)| text.starts_with(start))?;
    (!text[start.len()..].contains(end)).then_some(end)
}
