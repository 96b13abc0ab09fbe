//! The contents of a paragraph: styled text, links with their addresses, line breaks.

use anstyle::Style;
use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};
use sallyport_contract::text;

use super::{theme, wrap::Piece};
use crate::style::Span;

/// The paragraph that is being parsed.
#[derive(Default)]
pub(super) struct Inline {
    pieces: Vec<Piece>,
    styles: Vec<Style>,
    links: Vec<OpenLink>,
}

/// A link or an image whose text is being parsed.
struct OpenLink {
    address: String,
    title: String,
    /// The text so far. If it equals the address, the address is not shown again.
    text: String,
}

impl Inline {
    /// Processes one event. Events of blocks have no effect.
    pub(super) fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text) => self.prose(&text),
            Event::Code(code) => self.styled(theme::CODE, &code),
            Event::InlineMath(math) => self.text(&format!("${math}$")),
            Event::DisplayMath(math) => self.text(&format!("$${math}$$")),
            Event::InlineHtml(html) => self.inline_html(&html),
            Event::Html(html) => self.lines(&html),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.pieces.push(Piece::Break),
            Event::TaskListMarker(true) => self.text("[x] "),
            Event::TaskListMarker(false) => self.text("[ ] "),
            Event::Rule => {}
        }
    }

    /// Whether nothing was parsed since the last [`Inline::take`].
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the content and resets everything.
    pub(super) fn take(&mut self) -> Vec<Piece> {
        self.styles.clear();
        self.links.clear();
        std::mem::take(&mut self.pieces)
    }

    /// Returns the content and resets everything but the style of the row.
    pub(super) fn take_cell(&mut self) -> Vec<Piece> {
        self.styles.truncate(1);
        self.links.clear();
        std::mem::take(&mut self.pieces)
    }

    /// Adds text in a style on top of the current one.
    pub(super) fn styled(&mut self, style: Style, text: &str) {
        self.push_style(style);
        self.text(text);
        self.styles.pop();
    }

    /// Pushes a style on top of the current one, for the text that follows.
    pub(super) fn push_style(&mut self, style: Style) {
        self.styles.push(theme::over(self.style(), style));
    }

    /// Adds text in the current style. Line ends become spaces.
    pub(super) fn text(&mut self, text: &str) {
        self.escaped(text, text::escape_line);
    }

    /// Adds prose of the answer. Invisible characters that its language needs are kept.
    fn prose(&mut self, text: &str) {
        self.escaped(text, text::escape_prose);
    }

    fn escaped(&mut self, text: &str, escape: fn(&str) -> String) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        let text = escape(&text.replace(['\n', '\t'], " "));
        self.pieces.push(Piece::Text(Span::new(text, self.style())));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.push_style(Style::new().italic()),
            Tag::Strong => self.push_style(Style::new().bold()),
            Tag::Strikethrough => self.push_style(Style::new().strikethrough()),
            Tag::Link { link_type, dest_url, title, .. } => self.open(link_type, dest_url, title),
            Tag::Image { link_type, dest_url, title, .. } => self.open(link_type, dest_url, title),
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.close(),
            _ => {}
        }
    }

    fn open(&mut self, kind: LinkType, address: CowStr<'_>, title: CowStr<'_>) {
        let address = match kind {
            LinkType::Email => String::new(),
            _ => address.into_string(),
        };
        self.links.push(OpenLink { address, title: title.into_string(), text: String::new() });
    }

    fn close(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let mut note = Vec::new();
        if !link.address.is_empty() && link.address != link.text {
            note.push(link.address);
        }
        if !link.title.is_empty() {
            note.push(format!("\"{}\"", link.title));
        }
        if note.is_empty() {
            return;
        }
        self.text(if link.text.is_empty() { "(" } else { " (" });
        self.styled(Style::new().underline(), &note.join(" "));
        self.text(")");
    }

    /// Treats a tag as text, except for the line break that models use in table cells.
    fn inline_html(&mut self, html: &str) {
        if matches!(html, "<br>" | "<br/>" | "<br />") {
            self.pieces.push(Piece::Break);
        } else {
            self.text(html);
        }
    }

    fn lines(&mut self, html: &str) {
        for line in html.lines() {
            self.text(line);
            self.pieces.push(Piece::Break);
        }
    }
}
