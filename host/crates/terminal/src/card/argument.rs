//! Layout of a call's arguments.

use anstyle::Style;
use sallyport_contract::text;
use unicode_width::UnicodeWidthStr;

use super::json::{Node, quoted};
use crate::style::{Line, Span};

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
pub(super) enum Extent {
    /// What fits on a screen. The rest is counted.
    Brief,
    /// Everything.
    Whole,
}

/// Returns the arguments in the form in which they are shown or edited: indented, with hidden
/// characters spelt out.
///
/// Text that is not JSON is returned with its hidden characters spelt out.
pub fn editable(arguments: &str) -> String {
    match Node::read(arguments) {
        Some(node) => nested(&node, Extent::Whole, Form::Json).join("\n"),
        None => text::escape_multiline(arguments),
    }
}

/// Whether the arguments contain characters that a terminal would interpret or a reader would not
/// see.
pub(super) fn is_deceptive(arguments: &str) -> bool {
    fn any(node: &Node) -> bool {
        let hides = |text: &str| text::escape_multiline(text) != text;
        match node {
            Node::Word(_) => false,
            Node::Text(text) => hides(text),
            Node::List(items) => items.iter().any(any),
            Node::Map(entries) => entries.iter().any(|(key, value)| hides(key) || any(value)),
        }
    }
    match Node::read(arguments) {
        Some(node) => any(&node),
        None => text::escape_multiline(arguments) != arguments,
    }
}

/// The arguments of a call. Each starts on a new line.
pub(super) fn lines(arguments: &str, width: usize, extent: Extent) -> Vec<Line> {
    let entries = match Node::read(arguments) {
        None if arguments.trim().is_empty() => Vec::new(),
        Some(Node::Map(entries)) => entries,
        Some(other) => return cut(value(&other, width, extent), lines_max(&[], extent)),
        None => return cut(block(arguments, extent), lines_max(&[], extent)),
    };
    if entries.is_empty() {
        return vec![Line::styled("no arguments", DIM)];
    }
    let shown = match extent {
        Extent::Brief => ARGUMENTS_MAX.min(entries.len()),
        Extent::Whole => entries.len(),
    };
    let entry = |(key, node): &(String, Node)| argument(key, node, width, extent);
    let arguments: Vec<_> = entries[..shown].iter().map(entry).collect();
    let counts: Vec<_> = arguments.iter().map(|(_, below)| below.len()).collect();
    let lines_max = lines_max(&counts, extent);
    let mut lines = Vec::new();
    for (head, below) in arguments {
        lines.push(head);
        lines.append(&mut cut(below, lines_max));
    }
    if let more @ 1.. = entries.len() - shown {
        lines.push(Line::styled(format!("… and {more} more arguments"), BOLD));
    }
    lines
}

/// One argument: its name, followed by its value if that fits on the line. Otherwise the value is
/// in the lines below.
fn argument(key: &str, node: &Node, width: usize, extent: Extent) -> (Line, Vec<Line>) {
    let quoted = quoted(key);
    let plain = &quoted[1..quoted.len() - 1];
    let name = match extent {
        Extent::Brief => middle_cut(plain),
        Extent::Whole => plain.to_owned(),
    };
    let mut head = Line::styled(format!("{name}:"), BOLD);
    let mut below = value(node, width.saturating_sub(2), extent);
    let fits = |line: &Line| head.width() + 1 + line.width() <= width;
    if below.len() == 1 && below.first().is_some_and(fits) {
        head.push(" ", Style::new());
        head.spans.append(&mut below[0].spans);
        return (head, Vec::new());
    }
    for line in &mut below {
        line.spans.insert(0, Span::new("  ", Style::new()));
    }
    (head, below)
}

/// Most lines per argument, chosen so that short arguments leave room for long ones.
fn lines_max(counts: &[usize], extent: Extent) -> usize {
    let fit =
        |max: &usize| counts.iter().map(|count| count.min(max)).sum::<usize>() <= LINES_SHARED;
    match extent {
        Extent::Brief => (LINES_MIN..=ARGUMENT_LINES_MAX).rev().find(fit).unwrap_or(LINES_MIN),
        Extent::Whole => usize::MAX,
    }
}

fn value(node: &Node, width: usize, extent: Extent) -> Vec<Line> {
    if let Node::Text(text) = node
        && text.contains('\n')
    {
        return block(text, extent);
    }
    let compact = node.compact();
    if compact.width() <= width {
        return vec![Line::plain(compact)];
    }
    let lines = nested(node, extent, Form::Shown).into_iter().map(Line::plain);
    lines.flat_map(|line| line.fold(width, indent_of(&line) + 2)).collect()
}

/// Indentation of a line, so that its continuation can be indented further. It has an upper limit.
fn indent_of(line: &Line) -> usize {
    const INDENT_MAX: usize = 20;
    line.text().bytes().take_while(|b| *b == b' ').count().min(INDENT_MAX)
}

/// Text of several lines. The bar in front of each prevents it from imitating a line of the card.
fn block(text: &str, extent: Extent) -> Vec<Line> {
    text.lines()
        .map(|line| {
            let shown = match extent {
                Extent::Brief => middle_cut(&text::escape_line(line)),
                Extent::Whole => text::escape_line(line),
            };
            let mut line = Line::styled("│ ", DIM);
            line.push(&shown, Style::new());
            line
        })
        .collect()
}

/// Replaces lines in the middle with a line that counts them.
fn cut(mut lines: Vec<Line>, lines_max: usize) -> Vec<Line> {
    if lines.len() <= lines_max {
        return lines;
    }
    let head = ((lines_max - 1) * 3 / 4).max(1);
    let end = lines.len() - (lines_max - 1 - head);
    let mark = Line::styled(format!("  … {} more lines …", end - head), BOLD);
    lines.splice(head..end, [mark]);
    lines
}

/// Replaces characters in the middle with their number.
fn middle_cut(shown: &str) -> String {
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
enum Form {
    /// Display: small lists and objects are on one line, and long strings may be cut.
    Shown,
    /// Editing: it stays JSON.
    Json,
}

/// Formats a value over several indented lines.
fn nested(node: &Node, extent: Extent, form: Form) -> Vec<String> {
    let (open, close, items): (_, _, Vec<Vec<String>>) = match node {
        Node::Word(word) => return vec![word.clone()],
        Node::Text(text) if extent == Extent::Brief => return vec![middle_cut(&quoted(text))],
        Node::Text(text) => return vec![quoted(text)],
        Node::List(items) => {
            ("[", "]", items.iter().map(|item| nested_item(item, extent, form)).collect())
        }
        Node::Map(entries) => ("{", "}", entries.iter().map(|e| entry(e, extent, form)).collect()),
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

fn nested_item(node: &Node, extent: Extent, form: Form) -> Vec<String> {
    /// Widest list or object that is shown on one line within another, in columns.
    const COMPACT_COLUMNS_MAX: usize = 48;
    let compact = (form == Form::Shown).then(|| node.compact());
    match compact {
        Some(compact) if compact.width() <= COMPACT_COLUMNS_MAX => vec![compact],
        _ => nested(node, extent, form),
    }
}

fn entry((key, node): &(String, Node), extent: Extent, form: Form) -> Vec<String> {
    let mut lines = nested_item(node, extent, form);
    let name = match extent {
        Extent::Brief => middle_cut(&quoted(key)),
        Extent::Whole => quoted(key),
    };
    if let Some(first) = lines.first_mut() {
        *first = format!("{name}: {first}");
    }
    lines
}
