//! Renders complete blocks as lines: nested paragraphs, lists, quotations, code and tables.

use std::{borrow::Cow, ops::Range};

use anstyle::Style;
use pulldown_cmark::{
    BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};
use sallyport_contract::text;

use super::{inline::InlineContent, table::MarkdownTable, theme};
use crate::{
    columns::text_columns,
    style::{StyledLine, StyledSpan},
    wrap::wrap_pieces,
};

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
pub(super) fn render_blocks(source: &str, number: Option<u64>, width: usize) -> Vec<StyledLine> {
    let source = escape_definitions(source);
    let mut writer = BlockWriter {
        source: &source,
        width,
        number,
        lines: Vec::new(),
        frames: vec![BlockFrame::default()],
        inline: InlineContent::default(),
        code: None,
        table: None,
        cell_end: 0,
    };
    for (event, range) in create_parser(&source).into_offset_iter() {
        writer.process_event(event, &range);
    }
    writer.flush_paragraph();
    writer.lines
}

/// Returns the info string of a fence as lines of its own, or none if it is blank.
pub(super) fn label_lines(words: &str, width: usize) -> Vec<StyledLine> {
    if words.trim().is_empty() {
        return Vec::new();
    }
    let mut inline = InlineContent::default();
    inline.push_styled(theme::FAINT, &format!("{LABEL_MARK}{words}"));
    wrap_pieces(&inline.take_pieces(), width)
}

/// Returns a line of code, indented and highlighted.
pub(super) fn code_line(code: &str) -> StyledLine {
    if code.trim().is_empty() {
        return StyledLine::default();
    }
    let mut line = StyledLine::plain(CODE_INDENT);
    line.push(&text::escape_line(&expand_tabs(code)), theme::CODE);
    line
}

/// Expands tabs to the next multiple of four columns.
fn expand_tabs(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for (index, part) in code.split('\t').enumerate() {
        if index > 0 {
            out.push_str(&" ".repeat(4 - text_columns(&out) % 4));
        }
        out.push_str(part);
    }
    out
}

fn create_parser(source: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM
        | Options::ENABLE_MATH;
    Parser::new_ext(source, options)
}

/// Escapes link definitions so that they are shown as text, because the parser would omit them.
fn escape_definitions(source: &str) -> Cow<'_, str> {
    let mut source = Cow::Borrowed(source);
    for _ in 0..DEFINITION_ROUNDS_MAX {
        let parser = create_parser(&source);
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
enum BlockKind {
    Text,
    List,
    Heading,
    /// Code, a table, a quotation or a rule. A blank line always separates it from its neighbours.
    Separate,
}

/// A block that contains blocks: the prefixes of its lines, and the kind of its last block.
#[derive(Default)]
struct BlockFrame {
    /// Prefix of the first line, which takes it.
    first_prefix: Option<StyledSpan>,
    /// Prefix of all other lines.
    rest_prefix: Option<StyledSpan>,
    /// Columns of the marks of this block and of all enclosing ones.
    indent: usize,
    last_kind: Option<BlockKind>,
    /// Number of the next item in an ordered list.
    number: Option<u64>,
}

struct BlockWriter<'a> {
    source: &'a str,
    width: usize,
    number: Option<u64>,
    lines: Vec<StyledLine>,
    frames: Vec<BlockFrame>,
    inline: InlineContent,
    code: Option<String>,
    table: Option<MarkdownTable>,
    /// Byte offset at which the last cell of a table ended.
    cell_end: usize,
}

impl BlockWriter<'_> {
    fn process_event(&mut self, event: Event<'_>, range: &Range<usize>) {
        match event {
            Event::Start(tag) if is_block_tag(tag.to_end()) => self.start_block(tag, range.start),
            Event::End(end) if is_block_tag(end) => self.end_block(end, range.end),
            Event::Rule => self.write_rule(range.start),
            Event::Text(code) if self.code.is_some() => {
                self.code.get_or_insert_default().push_str(&code);
            }
            event => {
                if self.inline.is_empty() && self.table.is_none() {
                    self.begin_block(BlockKind::Text, range.start);
                }
                self.inline.process_event(event);
            }
        }
    }

    fn start_block(&mut self, tag: Tag<'_>, start: usize) {
        if self.table.is_none() {
            self.flush_paragraph();
        }
        match tag {
            Tag::Heading { level, .. } => self.begin_heading(level, start),
            Tag::BlockQuote(kind) => self.begin_quote(kind, start),
            Tag::CodeBlock(kind) => self.begin_code_block(&kind, start),
            Tag::List(first) => self.begin_list(first, start),
            Tag::Item => self.begin_item(start),
            Tag::Table(alignments) => {
                self.begin_block(BlockKind::Separate, start);
                self.table = Some(MarkdownTable::new(alignments));
            }
            Tag::TableHead => {
                self.begin_table_row();
                self.inline.push_style(theme::TITLE);
            }
            Tag::TableRow => self.begin_table_row(),
            _ => {}
        }
    }

    fn end_block(&mut self, end: TagEnd, place: usize) {
        match end {
            TagEnd::TableCell => self.push_table_cell(place),
            TagEnd::TableHead | TagEnd::TableRow => self.end_table_row(place),
            TagEnd::Table => self.end_table(),
            TagEnd::CodeBlock => self.end_code_block(),
            TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::List(_) => self.leave_block(),
            _ => self.flush_paragraph(),
        }
    }

    /// Begins a block. A blank line precedes it if the source has one or if either neighbour
    /// requires it.
    fn begin_block(&mut self, kind: BlockKind, start: usize) {
        let frame = self.frames.last_mut().expect("the root is never left");
        let Some(last) = frame.last_kind.replace(kind) else { return };
        let apart =
            matches!(kind, BlockKind::Heading | BlockKind::Separate) || last == BlockKind::Separate;
        if apart || has_blank_line_before(self.source, start) {
            self.write_line(&StyledLine::default());
        }
    }

    /// Writes the current paragraph.
    fn flush_paragraph(&mut self) {
        let pieces = self.inline.take_pieces();
        for line in wrap_pieces(&pieces, self.available_columns()) {
            self.write_line(&line);
        }
    }

    /// Writes a line with its prefixes.
    fn write_line(&mut self, content: &StyledLine) {
        let mut line = StyledLine::default();
        for frame in &mut self.frames {
            if let Some(span) = frame.first_prefix.take().or_else(|| frame.rest_prefix.clone()) {
                line.push(&span.text, span.style);
            }
        }
        content.spans.iter().for_each(|span| line.push(&span.text, span.style));
        self.lines.push(line.trim_end());
    }

    fn available_columns(&self) -> usize {
        self.width - self.current_indent()
    }

    fn current_indent(&self) -> usize {
        self.frames.last().map_or(0, |frame| frame.indent)
    }

    /// Enters a block that contains blocks.
    ///
    /// Its marks are omitted if they would take half of the line, so that deeply nested text stays
    /// readable.
    fn enter_block(&mut self, head: StyledSpan, rest: StyledSpan) {
        let indent = self.current_indent() + text_columns(&head.text);
        self.frames.push(if indent <= self.width / 2 {
            BlockFrame {
                first_prefix: Some(head),
                rest_prefix: Some(rest),
                indent,
                ..BlockFrame::default()
            }
        } else {
            BlockFrame { indent: self.current_indent(), ..BlockFrame::default() }
        });
    }

    /// Leaves the innermost block that contains blocks. An empty one still shows its mark.
    fn leave_block(&mut self) {
        self.flush_paragraph();
        if self.frames.last().is_some_and(|frame| frame.first_prefix.is_some()) {
            self.write_line(&StyledLine::default());
        }
        if self.frames.len() > 1 {
            self.frames.pop();
        }
    }

    fn begin_heading(&mut self, level: HeadingLevel, start: usize) {
        self.begin_block(BlockKind::Heading, start);
        self.inline.push_style(theme::HEADING);
        self.inline.push_text(&format!("{} ", "#".repeat(level as usize)));
    }

    fn begin_quote(&mut self, kind: Option<BlockQuoteKind>, start: usize) {
        self.begin_block(BlockKind::Separate, start);
        let bar = StyledSpan::new("│ ", theme::FAINT);
        self.enter_block(bar.clone(), bar);
        let name = match kind {
            None => return,
            Some(BlockQuoteKind::Note) => "Note",
            Some(BlockQuoteKind::Tip) => "Tip",
            Some(BlockQuoteKind::Important) => "Important",
            Some(BlockQuoteKind::Warning) => "Warning",
            Some(BlockQuoteKind::Caution) => "Caution",
        };
        self.begin_block(BlockKind::Text, start);
        self.write_line(&StyledLine::styled(name, theme::TITLE));
    }

    fn begin_list(&mut self, first: Option<u64>, start: usize) {
        self.begin_block(BlockKind::List, start);
        let number = self.number.take().or(first);
        self.frames.push(BlockFrame {
            indent: self.current_indent(),
            number,
            ..BlockFrame::default()
        });
    }

    fn begin_item(&mut self, start: usize) {
        self.begin_block(BlockKind::List, start);
        let frame = self.frames.last_mut().expect("the root is never left");
        let head = match &mut frame.number {
            Some(number) => {
                let head = format!("{number}. ");
                *number = number.saturating_add(1);
                head
            }
            None => "• ".to_owned(),
        };
        let rest = " ".repeat(text_columns(&head));
        self.enter_block(StyledSpan::new(head, theme::FAINT), StyledSpan::new(rest, Style::new()));
    }

    fn write_rule(&mut self, start: usize) {
        self.flush_paragraph();
        self.begin_block(BlockKind::Separate, start);
        let rule = "─".repeat(self.available_columns().min(RULE_COLUMNS_MAX));
        self.write_line(&StyledLine::styled(rule, theme::FAINT));
    }

    fn begin_code_block(&mut self, kind: &CodeBlockKind<'_>, start: usize) {
        self.begin_block(BlockKind::Separate, start);
        if let CodeBlockKind::Fenced(words) = kind {
            label_lines(words, self.available_columns())
                .iter()
                .for_each(|line| self.write_line(line));
        }
        self.code = Some(String::new());
    }

    fn end_code_block(&mut self) {
        let code = self.code.take().unwrap_or_default();
        code.lines().for_each(|line| self.write_line(&code_line(line)));
    }

    fn begin_table_row(&mut self) {
        self.inline.take_pieces();
        if let Some(table) = &mut self.table {
            table.begin_row();
        }
    }

    fn push_table_cell(&mut self, end: usize) {
        let cell = self.inline.take_cell();
        self.cell_end = end;
        if let Some(table) = &mut self.table {
            table.push_cell(cell);
        }
    }

    /// Appends cells beyond the last column of the head unchanged. The parser drops them.
    fn end_table_row(&mut self, end: usize) {
        let surplus = self.source.get(self.cell_end..end).unwrap_or_default();
        let surplus = surplus.trim_matches(|c: char| c == '|' || c.is_whitespace());
        if surplus.is_empty() {
            return;
        }
        self.inline.push_text(&format!(" | {surplus}"));
        let more = self.inline.take_cell();
        if let Some(table) = &mut self.table {
            table.extend_last_cell(more);
        }
    }

    fn end_table(&mut self) {
        self.inline.take_pieces();
        let Some(table) = self.table.take() else { return };
        table.layout_lines(self.available_columns()).iter().for_each(|line| self.write_line(line));
    }
}

/// Whether a tag is a block, as opposed to a part of a paragraph.
fn is_block_tag(end: TagEnd) -> bool {
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
fn has_blank_line_before(source: &str, start: usize) -> bool {
    let above = source[..start].rfind('\n').map(|end| &source[..end]);
    let line = above.map(|above| above.rsplit('\n').next().unwrap_or(above));
    line.is_some_and(|line| line.chars().all(|c| c.is_whitespace() || c == '>'))
}
