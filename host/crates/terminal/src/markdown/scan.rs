//! Splits a text that is still arriving into parts that are final once they are complete.
//!
//! Every line is scanned exactly once, when it is complete. The decision depends only on earlier
//! text, so the same text is always split at the same places. Each list item and each line of a
//! code block is a separate part, so that a long list or listing does not wait for its end.

use super::syntax::{Fence, Marker, html_end, indent, interrupts_item, is_blank};

/// Longest paragraph that stays open, in bytes: several screens. The rest starts a new one.
const PARAGRAPH_BYTES_MAX: usize = 4 << 10;

/// Longest open part of any other kind, in bytes. Each piece of text lays all of it out again.
const PART_BYTES_MAX: usize = 64 << 10;

/// A part of a text that is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) body: Body,
    /// Whether a blank line separates it from the text above.
    pub(super) gap: bool,
}

/// The contents of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Whole blocks. `number` is set if they are an item of an ordered list.
    Blocks { source: String, number: Option<u64> },
    /// The info string of a fence. The code block begins here.
    Label(String),
    /// One line of code.
    Code(String),
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Between blocks. A code block may just have ended.
    #[default]
    Between,
    /// In blocks that the next blank line ends.
    Blocks,
    /// In raw HTML that a line containing this text ends.
    Html(&'static str),
    /// In a list item.
    Item(Marker),
    /// In a code block.
    Code(Fence),
}

/// Splits complete lines into parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    state: State,
    /// The lines of the open part.
    open: String,
    /// Whether a blank line separates the open part from the text above.
    gap: bool,
    /// The number of the open item, counted from the first item of its list.
    number: Option<u64>,
    /// Whether a blank line or the end of a code block precedes the next line.
    apart: bool,
    done: Vec<Part>,
}

impl Scanner {
    /// Scans a complete line, passed without its line end.
    pub(super) fn line(&mut self, line: &str) {
        match &self.state {
            State::Code(fence) => self.code(&fence.clone(), line),
            State::Html(end) => self.html(end, line),
            State::Item(_) if is_blank(line) => self.blank_in_item(),
            _ if is_blank(line) => self.blank(),
            State::Item(item) => self.in_item(*item, line),
            State::Blocks => self.in_blocks(line),
            State::Between => self.begin(line),
        }
        if self.open.len() > self.bytes_max() {
            self.close();
        }
    }

    /// Ends the open part.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            let body = Body::Blocks { source: std::mem::take(&mut self.open), number: self.number };
            self.done.push(Part { body, gap: self.gap });
        }
        self.number = None;
        self.state = State::Between;
    }

    /// Returns the parts that became final since the last call.
    pub(super) fn take(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.done)
    }

    /// Returns the longest line that is not split, in bytes.
    pub(super) fn line_bytes_max(&self) -> usize {
        match self.state {
            State::Code(_) => PART_BYTES_MAX,
            _ => PARAGRAPH_BYTES_MAX,
        }
    }

    /// Returns the size of the open part, in bytes.
    pub(super) fn open_bytes(&self) -> usize {
        self.open.len()
    }

    /// Returns the fence of the open code block.
    pub(super) fn fence(&self) -> Option<&Fence> {
        match &self.state {
            State::Code(fence) => Some(fence),
            _ => None,
        }
    }

    /// Whether a code block is open inside an item or a quotation.
    pub(super) fn is_in_inner_code(&self) -> bool {
        let is_mark = |c: char| " \t>-+*.)".contains(c) || c.is_ascii_digit();
        let is_fence = |line: &&str| Fence::open(line.trim_start_matches(is_mark)).is_some();
        self.open.lines().filter(is_fence).count() % 2 == 1
    }

    /// Whether the open part is a single line that the next line may turn into the head of a table.
    pub(super) fn is_at_table_head(&self) -> bool {
        self.open.starts_with('|') && self.open.lines().count() == 1
    }

    fn bytes_max(&self) -> usize {
        let is_paragraph =
            matches!(self.state, State::Blocks) && !self.open.starts_with(['|', '>']);
        if is_paragraph { PARAGRAPH_BYTES_MAX } else { PART_BYTES_MAX }
    }

    fn blank(&mut self) {
        self.close();
        self.apart = true;
    }

    fn blank_in_item(&mut self) {
        self.open.push('\n');
        self.apart = true;
    }

    fn code(&mut self, fence: &Fence, line: &str) {
        if fence.is_closed_by(line) {
            self.state = State::Between;
            self.apart = true;
        } else {
            let body = Body::Code(fence.content(line).to_owned());
            self.done.push(Part { body, gap: false });
        }
    }

    fn html(&mut self, end: &str, line: &str) {
        self.append(line);
        if line.to_ascii_lowercase().contains(end) {
            self.close();
        }
    }

    fn in_blocks(&mut self, line: &str) {
        let is_item = Marker::read(line).is_some_and(Marker::interrupts_text);
        if is_item || Fence::open(line).is_some() {
            self.close();
            self.begin(line);
        } else {
            self.append(line);
        }
    }

    fn in_item(&mut self, item: Marker, line: &str) {
        if indent(line) >= item.content {
            self.apart = false;
            return self.append(line);
        }
        if let Some(next) = Marker::read(line).filter(|next| next.kind == item.kind) {
            let number = self.number.map(|number| number.saturating_add(1));
            self.close();
            self.begin_item(next, number, line);
        } else if self.apart || interrupts_item(line) || Marker::read(line).is_some() {
            self.close();
            self.begin(line);
        } else {
            // A paragraph continues without indentation.
            self.append(line);
        }
    }

    fn begin(&mut self, line: &str) {
        if let Some(fence) = Fence::open(line) {
            self.apart = false;
            self.done.push(Part { body: Body::Label(fence.label.clone()), gap: true });
            self.state = State::Code(fence);
        } else if let Some(marker) = Marker::read(line) {
            self.begin_item(marker, marker.number, line);
        } else {
            self.open(line);
            self.state = html_end(line).map_or(State::Blocks, State::Html);
        }
    }

    fn begin_item(&mut self, marker: Marker, number: Option<u64>, line: &str) {
        self.open(line);
        self.number = number;
        self.state = State::Item(marker);
    }

    fn open(&mut self, line: &str) {
        self.gap = std::mem::take(&mut self.apart);
        self.append(line);
    }

    /// Adds a line to the part. Carriage returns become spaces because the parser would treat them
    /// as line ends.
    fn append(&mut self, line: &str) {
        self.open.push_str(&line.replace('\r', " "));
        self.open.push('\n');
    }
}
