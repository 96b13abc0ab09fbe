//! Splits a text that is still arriving into parts that are final once they are complete.
//!
//! Every line is scanned exactly once, when it is complete. The decision depends only on earlier
//! text, so the same text is always split at the same places. Each list item and each line of a
//! code block is a separate part, so that a long list or listing does not wait for its end.

use super::syntax::{
    CodeFence, ListMarker, html_end_marker, indent_columns, interrupts_item, is_blank_line,
};

/// Longest paragraph that stays open, in bytes: several screens. The rest starts a new one.
const PARAGRAPH_BYTES_MAX: usize = 4 << 10;

/// Longest open part of any other kind, in bytes. Each piece of text lays all of it out again.
const PART_BYTES_MAX: usize = 64 << 10;

/// A part of a text that is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MarkdownPart {
    pub(super) body: MarkdownPartBody,
    /// Whether a blank line separates it from the text above.
    pub(super) gap: bool,
}

/// The contents of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkdownPartBody {
    /// Whole blocks. `number` is set if they are an item of an ordered list.
    Blocks { source: String, number: Option<u64> },
    /// The info string of a fence. The code block begins here.
    Label(String),
    /// One line of code.
    Code(String),
}

#[derive(Clone, Debug, Default)]
enum MarkdownScanState {
    /// Between blocks. A code block may just have ended.
    #[default]
    Between,
    /// In blocks that the next blank line ends.
    Blocks,
    /// In raw HTML that a line containing this text ends.
    Html(&'static str),
    /// In a list item.
    Item(ListMarker),
    /// In a code block.
    Code(CodeFence),
}

/// Splits complete lines into parts.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkdownScanner {
    state: MarkdownScanState,
    /// The lines of the open part.
    open_text: String,
    /// Whether a blank line separates the open part from the text above.
    gap: bool,
    /// The number of the open item, counted from the first item of its list.
    number: Option<u64>,
    /// Whether a blank line or the end of a code block precedes the next line.
    after_gap: bool,
    finished_parts: Vec<MarkdownPart>,
}

impl MarkdownScanner {
    /// Scans a complete line, passed without its line end.
    pub(super) fn scan_line(&mut self, line: &str) {
        match &self.state {
            MarkdownScanState::Code(fence) => self.scan_code(&fence.clone(), line),
            MarkdownScanState::Html(end) => self.scan_html(end, line),
            MarkdownScanState::Item(_) if is_blank_line(line) => self.scan_blank_in_item(),
            _ if is_blank_line(line) => self.scan_blank(),
            MarkdownScanState::Item(item) => self.scan_in_item(*item, line),
            MarkdownScanState::Blocks => self.scan_in_blocks(line),
            MarkdownScanState::Between => self.begin_block(line),
        }
        if self.open_text.len() > self.part_bytes_max() {
            self.close_part();
        }
    }

    /// Ends the open part.
    pub(super) fn close_part(&mut self) {
        if !self.open_text.is_empty() {
            let body = MarkdownPartBody::Blocks {
                source: std::mem::take(&mut self.open_text),
                number: self.number,
            };
            self.finished_parts.push(MarkdownPart { body, gap: self.gap });
        }
        self.number = None;
        self.state = MarkdownScanState::Between;
    }

    /// Returns the parts that became final since the last call.
    pub(super) fn take_parts(&mut self) -> Vec<MarkdownPart> {
        std::mem::take(&mut self.finished_parts)
    }

    /// Returns the longest line that is not split, in bytes.
    pub(super) fn line_bytes_max(&self) -> usize {
        match self.state {
            MarkdownScanState::Code(_) => PART_BYTES_MAX,
            _ => PARAGRAPH_BYTES_MAX,
        }
    }

    /// Returns the size of the open part, in bytes.
    pub(super) fn open_bytes(&self) -> usize {
        self.open_text.len()
    }

    /// Returns the fence of the open code block.
    pub(super) fn current_fence(&self) -> Option<&CodeFence> {
        match &self.state {
            MarkdownScanState::Code(fence) => Some(fence),
            _ => None,
        }
    }

    /// Whether a code block is open inside an item or a quotation.
    pub(super) fn is_in_inner_code(&self) -> bool {
        let is_mark = |c: char| " \t>-+*.)".contains(c) || c.is_ascii_digit();
        let is_fence = |line: &&str| CodeFence::parse(line.trim_start_matches(is_mark)).is_some();
        self.open_text.lines().filter(is_fence).count() % 2 == 1
    }

    /// Whether the open part is a single line that the next line may turn into the head of a table.
    pub(super) fn is_at_table_head(&self) -> bool {
        self.open_text.starts_with('|') && self.open_text.lines().count() == 1
    }

    fn part_bytes_max(&self) -> usize {
        let is_paragraph = matches!(self.state, MarkdownScanState::Blocks)
            && !self.open_text.starts_with(['|', '>']);
        if is_paragraph { PARAGRAPH_BYTES_MAX } else { PART_BYTES_MAX }
    }

    fn scan_blank(&mut self) {
        self.close_part();
        self.after_gap = true;
    }

    fn scan_blank_in_item(&mut self) {
        self.open_text.push('\n');
        self.after_gap = true;
    }

    fn scan_code(&mut self, fence: &CodeFence, line: &str) {
        if fence.is_closed_by(line) {
            self.state = MarkdownScanState::Between;
            self.after_gap = true;
        } else {
            let body = MarkdownPartBody::Code(fence.strip_indent(line).to_owned());
            self.finished_parts.push(MarkdownPart { body, gap: false });
        }
    }

    fn scan_html(&mut self, end: &str, line: &str) {
        self.append_line(line);
        if line.to_ascii_lowercase().contains(end) {
            self.close_part();
        }
    }

    fn scan_in_blocks(&mut self, line: &str) {
        let is_item = ListMarker::parse(line).is_some_and(ListMarker::can_interrupt_text);
        if is_item || CodeFence::parse(line).is_some() {
            self.close_part();
            self.begin_block(line);
        } else {
            self.append_line(line);
        }
    }

    fn scan_in_item(&mut self, item: ListMarker, line: &str) {
        if indent_columns(line) >= item.content {
            self.after_gap = false;
            return self.append_line(line);
        }
        if let Some(next) = ListMarker::parse(line).filter(|next| next.kind == item.kind) {
            let number = self.number.map(|number| number.saturating_add(1));
            self.close_part();
            self.begin_item(next, number, line);
        } else if self.after_gap || interrupts_item(line) || ListMarker::parse(line).is_some() {
            self.close_part();
            self.begin_block(line);
        } else {
            // A paragraph continues without indentation.
            self.append_line(line);
        }
    }

    fn begin_block(&mut self, line: &str) {
        if let Some(fence) = CodeFence::parse(line) {
            self.after_gap = false;
            self.finished_parts.push(MarkdownPart {
                body: MarkdownPartBody::Label(fence.label.clone()),
                gap: true,
            });
            self.state = MarkdownScanState::Code(fence);
        } else if let Some(marker) = ListMarker::parse(line) {
            self.begin_item(marker, marker.number, line);
        } else {
            self.open_part(line);
            self.state =
                html_end_marker(line).map_or(MarkdownScanState::Blocks, MarkdownScanState::Html);
        }
    }

    fn begin_item(&mut self, marker: ListMarker, number: Option<u64>, line: &str) {
        self.open_part(line);
        self.number = number;
        self.state = MarkdownScanState::Item(marker);
    }

    fn open_part(&mut self, line: &str) {
        self.gap = std::mem::take(&mut self.after_gap);
        self.append_line(line);
    }

    /// Adds a line to the part. Carriage returns become spaces because the parser would treat them
    /// as line ends.
    fn append_line(&mut self, line: &str) {
        self.open_text.push_str(&line.replace('\r', " "));
        self.open_text.push('\n');
    }
}
