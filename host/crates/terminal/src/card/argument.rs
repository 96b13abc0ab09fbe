//! Layout of a call's arguments.

use anstyle::Style;
use sallyport_contract::text;

use super::json::{JsonNode, quote_json_string};
use crate::{
    columns::text_columns,
    style::{StyledLine, StyledSpan},
};

/// Most characters of one string before the user asks for `More`.
const STRING_CHARS_MAX: usize = 200;

/// Characters shown before the cut. This part is the longer one: most strings differ at their
/// beginning.
const HEAD_CHARS: usize = 140;

/// Most lines of one argument before the user asks for `More`.
const ARGUMENT_LINES_MAX: usize = 10;

/// Lines that all arguments share before the user asks for `More`, so that the card fits most
/// screens.
const LINES_SHARED: usize = 24;

/// Lines that each argument gets in any case: its beginning, and the number of lines cut.
const LINES_MIN: usize = 2;

/// Most arguments before the user asks for `More`. Each takes at least one line.
const ARGUMENTS_MAX: usize = 16;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailLevel {
    /// What fits on a screen. The rest is counted.
    Brief,
    /// Everything.
    Full,
}

/// Returns the arguments in the form in which they are shown or edited: indented, with hidden
/// characters spelt out.
///
/// Text that is not JSON is returned with its hidden characters spelt out.
pub fn format_editable(arguments: &str) -> String {
    match JsonNode::parse_json(arguments) {
        Some(node) => format_nested(&node, DetailLevel::Full, ValueFormat::Json).join("\n"),
        None => text::escape_multiline(arguments),
    }
}

/// Returns all of a JSON text, such as the arguments or the result of a call. Each field of an
/// object starts on a new line. Hidden characters are spelt out.
pub fn full_value_lines(json: &str, width: usize) -> Vec<StyledLine> {
    let is_empty = match JsonNode::parse_json(json) {
        Some(JsonNode::Map(entries)) => entries.is_empty(),
        Some(_) => false,
        None => json.trim().is_empty(),
    };
    if is_empty {
        return vec![StyledLine::styled("nothing", DIM)];
    }
    argument_lines(json, width, DetailLevel::Full)
}

/// Whether a text of several lines contains characters that a terminal would interpret or a reader
/// would not see. The line breaks of Windows are not among them, because a warning about every text
/// with them would soon be ignored.
pub(super) fn has_hidden_characters(text: &str) -> bool {
    let text = text.replace("\r\n", "\n");
    text::escape_multiline(&text) != text
}

/// Whether the arguments contain characters that a terminal would interpret or a reader would not
/// see.
pub(super) fn has_deceptive_text(arguments: &str) -> bool {
    fn has_hidden_text(node: &JsonNode) -> bool {
        match node {
            JsonNode::Literal(_) => false,
            JsonNode::Text(text) => has_hidden_characters(text),
            JsonNode::List(items) => items.iter().any(has_hidden_text),
            JsonNode::Map(entries) => entries
                .iter()
                .any(|(key, value)| has_hidden_characters(key) || has_hidden_text(value)),
        }
    }
    match JsonNode::parse_json(arguments) {
        Some(node) => has_hidden_text(&node),
        None => has_hidden_characters(arguments),
    }
}

/// The arguments of a call. Each starts on a new line.
pub(super) fn argument_lines(
    arguments: &str,
    width: usize,
    detail_level: DetailLevel,
) -> Vec<StyledLine> {
    let entries = match JsonNode::parse_json(arguments) {
        None if arguments.trim().is_empty() => Vec::new(),
        Some(JsonNode::Map(entries)) => entries,
        Some(other) => {
            return cut_middle_lines(
                value_lines(&other, width, detail_level),
                argument_lines_max(&[], detail_level),
            );
        }
        None => {
            return cut_middle_lines(
                text_block_lines(arguments, detail_level),
                argument_lines_max(&[], detail_level),
            );
        }
    };
    if entries.is_empty() {
        return vec![StyledLine::styled("no arguments", DIM)];
    }
    let shown = match detail_level {
        DetailLevel::Brief => ARGUMENTS_MAX.min(entries.len()),
        DetailLevel::Full => entries.len(),
    };
    let entry =
        |(key, node): &(String, JsonNode)| single_argument_lines(key, node, width, detail_level);
    let arguments: Vec<_> = entries[..shown].iter().map(entry).collect();
    let counts: Vec<_> = arguments.iter().map(|(_, below)| below.len()).collect();
    let lines_max = argument_lines_max(&counts, detail_level);
    let mut lines = Vec::new();
    for (head, below) in arguments {
        lines.push(head);
        lines.append(&mut cut_middle_lines(below, lines_max));
    }
    if let more @ 1.. = entries.len() - shown {
        lines.push(StyledLine::styled(format!("… and {more} more arguments"), BOLD));
    }
    lines
}

/// One argument: its name, followed by its value if that fits on the line. Otherwise the value is
/// in the lines below.
fn single_argument_lines(
    key: &str,
    node: &JsonNode,
    width: usize,
    detail_level: DetailLevel,
) -> (StyledLine, Vec<StyledLine>) {
    let quoted = quote_json_string(key);
    let plain = &quoted[1..quoted.len() - 1];
    let name = match detail_level {
        DetailLevel::Brief => cut_middle_chars(plain),
        DetailLevel::Full => plain.to_owned(),
    };
    let mut head = StyledLine::styled(format!("{name}:"), BOLD);
    let mut below = value_lines(node, width.saturating_sub(2), detail_level);
    let fits = |line: &StyledLine| head.width() + 1 + line.width() <= width;
    if below.len() == 1 && below.first().is_some_and(fits) {
        head.push(" ", Style::new());
        head.spans.append(&mut below[0].spans);
        return (head, Vec::new());
    }
    for line in &mut below {
        line.spans.insert(0, StyledSpan::new("  ", Style::new()));
    }
    (head, below)
}

/// Most lines per argument, chosen so that short arguments leave room for long ones.
fn argument_lines_max(counts: &[usize], detail_level: DetailLevel) -> usize {
    let fit =
        |max: &usize| counts.iter().map(|count| count.min(max)).sum::<usize>() <= LINES_SHARED;
    match detail_level {
        DetailLevel::Brief => (LINES_MIN..=ARGUMENT_LINES_MAX).rev().find(fit).unwrap_or(LINES_MIN),
        DetailLevel::Full => usize::MAX,
    }
}

fn value_lines(node: &JsonNode, width: usize, detail_level: DetailLevel) -> Vec<StyledLine> {
    if let JsonNode::Text(text) = node
        && text.contains('\n')
    {
        return text_block_lines(text, detail_level);
    }
    let compact = node.to_compact();
    if text_columns(&compact) <= width {
        return vec![StyledLine::plain(compact)];
    }
    let lines =
        format_nested(node, detail_level, ValueFormat::Display).into_iter().map(StyledLine::plain);
    lines.flat_map(|line| line.fold_to_width(width, line_indent(&line) + 2)).collect()
}

/// Indentation of a line, so that its continuation can be indented further. It has an upper limit.
fn line_indent(line: &StyledLine) -> usize {
    const INDENT_MAX: usize = 20;
    line.text().bytes().take_while(|b| *b == b' ').count().min(INDENT_MAX)
}

/// Text of several lines. The bar in front of each prevents it from imitating a line of the card.
fn text_block_lines(text: &str, detail_level: DetailLevel) -> Vec<StyledLine> {
    text.lines()
        .map(|line| {
            let shown = match detail_level {
                DetailLevel::Brief => cut_middle_chars(&text::escape_line(line)),
                DetailLevel::Full => text::escape_line(line),
            };
            let mut line = StyledLine::styled("│ ", DIM);
            line.push(&shown, Style::new());
            line
        })
        .collect()
}

/// Replaces lines in the middle with a line that counts them.
fn cut_middle_lines(mut lines: Vec<StyledLine>, lines_max: usize) -> Vec<StyledLine> {
    if lines.len() <= lines_max {
        return lines;
    }
    let head = ((lines_max - 1) * 3 / 4).max(1);
    let end = lines.len() - (lines_max - 1 - head);
    let mark = StyledLine::styled(format!("  … {} more lines …", end - head), BOLD);
    lines.splice(head..end, [mark]);
    lines
}

/// Replaces characters in the middle with their number.
fn cut_middle_chars(shown: &str) -> String {
    let count = shown.chars().count();
    if count <= STRING_CHARS_MAX {
        return shown.to_owned();
    }
    let tail = STRING_CHARS_MAX - HEAD_CHARS;
    let head: String = shown.chars().take(HEAD_CHARS).collect();
    let end: String = shown.chars().skip(count - tail).collect();
    format!("{head} … ({} more characters) … {end}", count - STRING_CHARS_MAX)
}

/// The purpose of a formatted value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueFormat {
    /// Display: small lists and objects are on one line, and long strings may be cut.
    Display,
    /// Editing: it stays JSON.
    Json,
}

/// Formats a value over several indented lines.
fn format_nested(node: &JsonNode, detail_level: DetailLevel, form: ValueFormat) -> Vec<String> {
    let (open, close, items): (_, _, Vec<Vec<String>>) = match node {
        JsonNode::Literal(word) => return vec![word.clone()],
        JsonNode::Text(text) if detail_level == DetailLevel::Brief => {
            return vec![cut_middle_chars(&quote_json_string(text))];
        }
        JsonNode::Text(text) => return vec![quote_json_string(text)],
        JsonNode::List(items) => (
            "[",
            "]",
            items.iter().map(|item| format_nested_item(item, detail_level, form)).collect(),
        ),
        JsonNode::Map(entries) => {
            ("{", "}", entries.iter().map(|e| format_entry(e, detail_level, form)).collect())
        }
    };
    if items.is_empty() {
        return vec![format!("{open}{close}")];
    }
    let mut lines = vec![open.to_owned()];
    let last = items.len() - 1;
    for (at, mut item) in items.into_iter().enumerate() {
        if let Some(end) = item.last_mut().filter(|_| at < last) {
            end.push(',');
        }
        lines.extend(item.into_iter().map(|line| format!("  {line}")));
    }
    lines.push(close.to_owned());
    lines
}

fn format_nested_item(
    node: &JsonNode,
    detail_level: DetailLevel,
    form: ValueFormat,
) -> Vec<String> {
    /// Widest list or object that is shown on one line within another, in columns.
    const COMPACT_COLUMNS_MAX: usize = 48;
    let compact = (form == ValueFormat::Display).then(|| node.to_compact());
    match compact {
        Some(compact) if text_columns(&compact) <= COMPACT_COLUMNS_MAX => vec![compact],
        _ => format_nested(node, detail_level, form),
    }
}

fn format_entry(
    (key, node): &(String, JsonNode),
    detail_level: DetailLevel,
    form: ValueFormat,
) -> Vec<String> {
    let mut lines = format_nested_item(node, detail_level, form);
    let name = match detail_level {
        DetailLevel::Brief => cut_middle_chars(&quote_json_string(key)),
        DetailLevel::Full => quote_json_string(key),
    };
    if let Some(first) = lines.first_mut() {
        *first = format!("{name}: {first}");
    }
    lines
}
