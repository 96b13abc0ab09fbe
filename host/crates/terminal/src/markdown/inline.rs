//! The contents of a paragraph: styled text, links with their addresses, line breaks.

use anstyle::Style;
use pulldown_cmark::{CowStr, Event, LinkType, Tag, TagEnd};
use sallyport_contract::text;

use super::theme;
use crate::{style::StyledSpan, wrap::InlinePiece};

/// The paragraph that is being parsed.
#[derive(Default)]
pub(super) struct InlineContent {
    pieces: Vec<InlinePiece>,
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

impl InlineContent {
    /// Processes one event. Events of blocks have no effect.
    pub(super) fn process_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(end) => self.end_tag(end),
            Event::Text(text) => self.push_prose(&text),
            Event::Code(code) => self.push_styled(theme::CODE, &code),
            Event::InlineMath(math) => self.push_text(&format!("${math}$")),
            Event::DisplayMath(math) => self.push_text(&format!("$${math}$$")),
            Event::InlineHtml(html) => self.push_inline_html(&html),
            Event::Html(html) => self.push_html_lines(&html),
            Event::FootnoteReference(name) => self.push_text(&format!("[^{name}]")),
            Event::SoftBreak => self.push_text(" "),
            Event::HardBreak => self.pieces.push(InlinePiece::Break),
            Event::TaskListMarker(true) => self.push_text("[x] "),
            Event::TaskListMarker(false) => self.push_text("[ ] "),
            Event::Rule => {}
        }
    }

    /// Whether nothing was parsed since the last [`InlineContent::take_pieces`].
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the content and resets everything.
    pub(super) fn take_pieces(&mut self) -> Vec<InlinePiece> {
        self.styles.clear();
        self.links.clear();
        std::mem::take(&mut self.pieces)
    }

    /// Returns the content and resets everything but the style of the row.
    pub(super) fn take_cell(&mut self) -> Vec<InlinePiece> {
        self.styles.truncate(1);
        self.links.clear();
        std::mem::take(&mut self.pieces)
    }

    /// Adds text in a style on top of the current one.
    pub(super) fn push_styled(&mut self, style: Style, text: &str) {
        self.push_style(style);
        self.push_text(text);
        self.styles.pop();
    }

    /// Pushes a style on top of the current one, for the text that follows.
    pub(super) fn push_style(&mut self, style: Style) {
        self.styles.push(theme::overlay_style(self.current_style(), style));
    }

    /// Adds text in the current style. Line ends become spaces.
    pub(super) fn push_text(&mut self, text: &str) {
        self.push_escaped(text, text::escape_line);
    }

    /// Adds prose of the answer. Invisible characters that its language needs are kept.
    fn push_prose(&mut self, text: &str) {
        self.push_escaped(text, text::escape_prose);
    }

    fn push_escaped(&mut self, text: &str, escape: fn(&str) -> String) {
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        let text = escape(&text.replace(['\n', '\t'], " "));
        self.pieces.push(InlinePiece::Text(StyledSpan::new(text, self.current_style())));
    }

    fn current_style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.push_style(Style::new().italic()),
            Tag::Strong => self.push_style(Style::new().bold()),
            Tag::Strikethrough => self.push_style(Style::new().strikethrough()),
            Tag::Link { link_type, dest_url, title, .. } => {
                self.open_link(link_type, dest_url, title)
            }
            Tag::Image { link_type, dest_url, title, .. } => {
                self.open_link(link_type, dest_url, title)
            }
            _ => {}
        }
    }

    fn end_tag(&mut self, end: TagEnd) {
        match end {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.close_link(),
            _ => {}
        }
    }

    fn open_link(&mut self, kind: LinkType, address: CowStr<'_>, title: CowStr<'_>) {
        let address = match kind {
            LinkType::Email => String::new(),
            _ => address.into_string(),
        };
        self.links.push(OpenLink { address, title: title.into_string(), text: String::new() });
    }

    fn close_link(&mut self) {
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
        self.push_text(if link.text.is_empty() { "(" } else { " (" });
        self.push_styled(Style::new().underline(), &note.join(" "));
        self.push_text(")");
    }

    /// Treats a tag as text, except for the line break that models use in table cells.
    fn push_inline_html(&mut self, html: &str) {
        if matches!(html, "<br>" | "<br/>" | "<br />") {
            self.pieces.push(InlinePiece::Break);
        } else {
            self.push_text(html);
        }
    }

    fn push_html_lines(&mut self, html: &str) {
        for line in html.lines() {
            self.push_text(line);
            self.pieces.push(InlinePiece::Break);
        }
    }
}
