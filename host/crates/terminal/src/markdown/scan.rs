//! Where a text that is still arriving can be cut: each part is final once it is complete.
//!
//! Every line is looked at exactly once, when it is complete, and the decision rests on what came
//! before it alone. So the same text is always cut at the same places, however it arrived.
//! Items of a list and lines of a block of code are parts of their own: a long list or a long
//! listing does not wait for its end.

use super::syntax::{Fence, Marker, html_end, indent, interrupts_item, is_blank};

/// Longest paragraph that is kept open, in bytes: several screens. What follows is a new one.
const PARAGRAPH_BYTES_MAX: usize = 4 << 10;

/// Longest of all other parts, in bytes: they have to be laid out anew with each piece that
/// arrives.
const PART_BYTES_MAX: usize = 64 << 10;

/// A part of a text that will not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) body: Body,
    /// It stands apart from what comes before.
    pub(super) gap: bool,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Whole blocks, and the number of the item if they are one of an ordered list.
    Blocks { source: String, number: Option<u64> },
    /// The words behind the fence of a block of code, which begins here.
    Label(String),
    /// One line of code.
    Code(String),
}

#[derive(Clone, Debug, Default)]
enum State {
    /// Between blocks; a block of code may just have ended.
    #[default]
    Between,
    /// In blocks that the next blank line ends.
    Blocks,
    /// In raw HTML that ends with a line that holds this.
    Html(&'static str),
    /// In an item of a list.
    Item(Marker),
    /// In a block of code.
    Code(Fence),
}

/// Cuts complete lines into parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Scanner {
    state: State,
    /// The lines of the part that is open.
    open: String,
    /// The open part stands apart from what comes before.
    gap: bool,
    /// The number of the open item, counted from the first of its list.
    number: Option<u64>,
    /// A blank line, or the end of a block of code, came before the next line.
    apart: bool,
    done: Vec<Part>,
}

impl Scanner {
    /// Takes one complete line, without its end.
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

    /// Ends the part that is open.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            let body = Body::Blocks { source: std::mem::take(&mut self.open), number: self.number };
            self.done.push(Part { body, gap: self.gap });
        }
        self.number = None;
        self.state = State::Between;
    }

    /// Returns the parts that became final since the last time.
    pub(super) fn take(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.done)
    }

    /// Returns the longest line that is taken whole, in bytes.
    pub(super) fn line_bytes_max(&self) -> usize {
        match self.state {
            State::Code(_) => PART_BYTES_MAX,
            _ => PARAGRAPH_BYTES_MAX,
        }
    }

    /// Returns how much is open, in bytes.
    pub(super) fn open_bytes(&self) -> usize {
        self.open.len()
    }

    /// Returns the block of code that is open.
    pub(super) fn fence(&self) -> Option<&Fence> {
        match &self.state {
            State::Code(fence) => Some(fence),
            _ => None,
        }
    }

    /// Returns whether a block of code is open inside of an item or a quotation.
    pub(super) fn is_in_inner_code(&self) -> bool {
        let is_mark = |c: char| " \t>-+*.)".contains(c) || c.is_ascii_digit();
        let is_fence = |line: &&str| Fence::open(line.trim_start_matches(is_mark)).is_some();
        self.open.lines().filter(is_fence).count() % 2 == 1
    }

    /// Returns whether all that is open is what looks like the head of a table, which only its next
    /// line makes one.
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
            // The rest of a paragraph that is not indented.
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

    /// Adds a line to the part. A carriage return ends lines for the parser, but did not end this
    /// one.
    fn append(&mut self, line: &str) {
        self.open.push_str(&line.replace('\r', " "));
        self.open.push('\n');
    }
}
