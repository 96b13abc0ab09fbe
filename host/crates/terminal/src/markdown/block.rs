//! Renders complete blocks as lines: nested paragraphs, lists, quotations, code and tables.

use std::{borrow::Cow, ops::Range};

use anstyle::Style;
use pulldown_cmark::{
    BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};
use sallyport_contract::text;

use super::{
    inline::Inline,
    table::Table,
    theme,
    wrap::{columns, wrap},
};
use crate::style::{Line, Span};

/// Precedes the info string of a fence, to mark that it is not part of the code.
const LABEL_MARK: &str = "── ";

/// Precedes each line of code.
const CODE_INDENT: &str = "  ";

/// Widest rule, in columns. A wider one adds nothing.
const RULE_COLUMNS_MAX: usize = 40;

/// Rounds in which link definitions are turned into text. Each round finds the definitions that the
/// previous ones exposed. If any remain after the last round, their links show their addresses.
const DEFINITION_ROUNDS_MAX: usize = 4;

/// Returns blocks as lines of at most `width` columns, except for code.
///
/// `number` is the number of the first item if the blocks begin with an ordered list.
pub(super) fn lines(source: &str, number: Option<u64>, width: usize) -> Vec<Line> {
    let source = without_definitions(source);
    let mut writer = Writer {
        source: &source,
        width,
        number,
        lines: Vec::new(),
        frames: vec![Frame::default()],
        inline: Inline::default(),
        code: None,
        table: None,
        cell_end: 0,
    };
    for (event, range) in parser(&source).into_offset_iter() {
        writer.event(event, &range);
    }
    writer.flush();
    writer.lines
}

/// Returns the info string of a fence as lines of its own, or none if it is blank.
pub(super) fn label(words: &str, width: usize) -> Vec<Line> {
    if words.trim().is_empty() {
        return Vec::new();
    }
    let mut inline = Inline::default();
    inline.styled(theme::FAINT, &format!("{LABEL_MARK}{words}"));
    wrap(&inline.take(), width)
}

/// Returns a line of code, indented and highlighted.
pub(super) fn code_line(code: &str) -> Line {
    if code.trim().is_empty() {
        return Line::default();
    }
    let mut line = Line::plain(CODE_INDENT);
    line.push(&text::escape_line(&spaced(code)), theme::CODE);
    line
}

/// Expands tabs to the next multiple of four columns.
fn spaced(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for (index, part) in code.split('\t').enumerate() {
        if index > 0 {
            out.push_str(&" ".repeat(4 - columns(&out) % 4));
        }
        out.push_str(part);
    }
    out
}

fn parser(source: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
        | Options::ENABLE_MATH;
    Parser::new_ext(source, options)
}

/// Escapes link definitions so that they are shown as text, because the parser would omit them.
fn without_definitions(source: &str) -> Cow<'_, str> {
    let mut source = Cow::Borrowed(source);
    for _ in 0..DEFINITION_ROUNDS_MAX {
        let parser = parser(&source);
        let definitions = parser.reference_definitions().iter();
        let mut starts: Vec<_> = definitions.map(|(_, found)| found.span.start).collect();
        if starts.is_empty() {
            break;
        }
        starts.sort_unstable();
        let mut text = source.into_owned();
        for start in starts.into_iter().rev() {
            text.insert(start, '\\');
        }
        source = Cow::Owned(text);
    }
    source
}

/// The kind of a block, as far as the space between neighbours depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    List,
    Heading,
    /// Code, a table, a quotation or a rule. A blank line always separates it from its neighbours.
    Apart,
}

/// A block that contains blocks: the prefixes of its lines, and the kind of its last block.
#[derive(Default)]
struct Frame {
    /// Prefix of the first line, which takes it.
    head: Option<Span>,
    /// Prefix of all other lines.
    rest: Option<Span>,
    /// Columns of the marks of this block and of all enclosing ones.
    indent: usize,
    last: Option<Kind>,
    /// Number of the next item in an ordered list.
    number: Option<u64>,
}

struct Writer<'a> {
    source: &'a str,
    width: usize,
    number: Option<u64>,
    lines: Vec<Line>,
    frames: Vec<Frame>,
    inline: Inline,
    code: Option<String>,
    table: Option<Table>,
    /// Byte offset at which the last cell of a table ended.
    cell_end: usize,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) if is_block(tag.to_end()) => self.start(tag, range.start),
            Event::End(end) if is_block(end) => self.end(end, range.end),
            Event::Rule => self.rule(range.start),
            Event::Text(code) if self.code.is_some() => {
                self.code.get_or_insert_default().push_str(&code);
            }
            event => {
                if self.inline.is_empty() && self.table.is_none() {
                    self.begin(Kind::Text, range.start);
                }
                self.inline.event(event);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, start: usize) {
        if self.table.is_none() {
            self.flush();
        }
        match tag {
            Tag::Heading { level, .. } => self.heading(level, start),
            Tag::BlockQuote(kind) => self.quote(kind, start),
            Tag::CodeBlock(kind) => self.begin_code(&kind, start),
            Tag::List(first) => self.list(first, start),
            Tag::Item => self.item(start),
            Tag::Table(alignments) => {
                self.begin(Kind::Apart, start);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => {
                self.table_row();
                self.inline.push_style(theme::TITLE);
            }
            Tag::TableRow => self.table_row(),
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd, place: usize) {
        match end {
            TagEnd::TableCell => self.table_cell(place),
            TagEnd::TableHead | TagEnd::TableRow => self.end_row(place),
            TagEnd::Table => self.end_table(),
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::List(_) => self.leave(),
            _ => self.flush(),
        }
    }

    /// Begins a block. A blank line precedes it if the source has one or if either neighbour
    /// requires it.
    fn begin(&mut self, kind: Kind, start: usize) {
        let frame = self.frames.last_mut().expect("the root is never left");
        let Some(last) = frame.last.replace(kind) else { return };
        let apart = matches!(kind, Kind::Heading | Kind::Apart) || last == Kind::Apart;
        if apart || blank_before(self.source, start) {
            self.write(&Line::default());
        }
    }

    /// Writes the current paragraph.
    fn flush(&mut self) {
        let pieces = self.inline.take();
        for line in wrap(&pieces, self.room()) {
            self.write(&line);
        }
    }

    /// Writes a line with its prefixes.
    fn write(&mut self, content: &Line) {
        let mut line = Line::default();
        for frame in &mut self.frames {
            if let Some(span) = frame.head.take().or_else(|| frame.rest.clone()) {
                line.push(&span.text, span.style);
            }
        }
        content.spans.iter().for_each(|span| line.push(&span.text, span.style));
        self.lines.push(trimmed(line));
    }

    fn room(&self) -> usize {
        self.width - self.indent()
    }

    fn indent(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.indent)
    }

    /// Enters a block that contains blocks.
    ///
    /// Its marks are omitted if they would take half of the line, so that deeply nested text stays
    /// readable.
    fn enter(&mut self, head: Span, rest: Span) {
        let indent = self.indent() + columns(&head.text);
        self.frames.push(if indent <= self.width / 2 {
            Frame { head: Some(head), rest: Some(rest), indent, ..Frame::default() }
        } else {
            Frame { indent: self.indent(), ..Frame::default() }
        });
    }

    /// Leaves the innermost block that contains blocks. An empty one still shows its mark.
    fn leave(&mut self) {
        self.flush();
        if self.frames.last().is_some_and(|frame| frame.head.is_some()) {
            self.write(&Line::default());
        }
        if self.frames.len() > 1 {
            self.frames.pop();
        }
    }

    fn heading(&mut self, level: HeadingLevel, start: usize) {
        self.begin(Kind::Heading, start);
        self.inline.push_style(theme::HEADING);
        self.inline.text(&format!("{} ", "#".repeat(level as usize)));
    }

    fn quote(&mut self, kind: Option<BlockQuoteKind>, start: usize) {
        self.begin(Kind::Apart, start);
        let bar = Span::new("│ ", theme::FAINT);
        self.enter(bar.clone(), bar);
        let name = match kind {
            None => return,
            Some(BlockQuoteKind::Note) => "Note",
            Some(BlockQuoteKind::Tip) => "Tip",
            Some(BlockQuoteKind::Important) => "Important",
            Some(BlockQuoteKind::Warning) => "Warning",
            Some(BlockQuoteKind::Caution) => "Caution",
        };
        self.begin(Kind::Text, start);
        self.write(&Line::styled(name, theme::TITLE));
    }

    fn list(&mut self, first: Option<u64>, start: usize) {
        self.begin(Kind::List, start);
        let number = self.number.take().or(first);
        self.frames.push(Frame { indent: self.indent(), number, ..Frame::default() });
    }

    fn item(&mut self, start: usize) {
        self.begin(Kind::List, start);
        let frame = self.frames.last_mut().expect("the root is never left");
        let head = match &mut frame.number {
            Some(number) => {
                let head = format!("{number}. ");
                *number = number.saturating_add(1);
                head
            }
            None => "• ".to_owned(),
        };
        let rest = " ".repeat(columns(&head));
        self.enter(Span::new(head, theme::FAINT), Span::new(rest, Style::new()));
    }

    fn rule(&mut self, start: usize) {
        self.flush();
        self.begin(Kind::Apart, start);
        let rule = "─".repeat(self.room().min(RULE_COLUMNS_MAX));
        self.write(&Line::styled(rule, theme::FAINT));
    }

    fn begin_code(&mut self, kind: &CodeBlockKind<'_>, start: usize) {
        self.begin(Kind::Apart, start);
        if let CodeBlockKind::Fenced(words) = kind {
            label(words, self.room()).iter().for_each(|line| self.write(line));
        }
        self.code = Some(String::new());
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        code.lines().for_each(|line| self.write(&code_line(line)));
    }

    fn table_row(&mut self) {
        self.inline.take();
        if let Some(table) = &mut self.table {
            table.begin_row();
        }
    }

    fn table_cell(&mut self, end: usize) {
        let cell = self.inline.take_cell();
        self.cell_end = end;
        if let Some(table) = &mut self.table {
            table.push(cell);
        }
    }

    /// Appends cells beyond the last column of the head unchanged. The parser drops them.
    fn end_row(&mut self, end: usize) {
        let surplus = self.source.get(self.cell_end..end).unwrap_or_default();
        let surplus = surplus.trim_matches(|c: char| c == '|' || c.is_whitespace());
        if surplus.is_empty() {
            return;
        }
        self.inline.text(&format!(" | {surplus}"));
        let more = self.inline.take_cell();
        if let Some(table) = &mut self.table {
            table.extend_last(more);
        }
    }

    fn end_table(&mut self) {
        self.inline.take();
        let Some(table) = self.table.take() else { return };
        table.lines(self.room()).iter().for_each(|line| self.write(line));
    }
}

/// Whether a tag is a block, as opposed to a part of a paragraph.
fn is_block(end: TagEnd) -> bool {
    !matches!(
        end,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

/// Whether the line above the one at byte offset `start` is blank.
fn blank_before(source: &str, start: usize) -> bool {
    let above = source[..start].rfind('\n').map(|end| &source[..end]);
    let line = above.map(|above| above.rsplit('\n').next().unwrap_or(above));
    line.is_some_and(|line| line.chars().all(|c| c.is_whitespace() || c == '>'))
}

/// Removes the spaces at the end of a line.
fn trimmed(mut line: Line) -> Line {
    while let Some(last) = line.spans.last_mut() {
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            break;
        }
        line.spans.pop();
    }
    line
}
