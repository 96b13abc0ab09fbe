//! Layout of an outgoing request: its query, its headers, its body.
//!
//! A brief view shows the beginning and the end of long parts, their length, and a digest of the
//! whole. It is marked as cut, so that the user does not approve the omitted part unseen.

use anstyle::Style;
use sallyport_contract::{BodyEncoding, BodyPreview, RequestPreview, text};

use super::argument::{DetailLevel, has_hidden_characters};
use crate::style::StyledLine;

/// Most characters of a query, a header or a line of a body in a brief view.
const BRIEF_CHARS_MAX: usize = 400;

/// Characters shown before the cut. The end gets as many: hidden text is mostly placed there.
const HEAD_CHARS: usize = 200;

/// Most headers in a brief view.
const HEADERS_MAX: usize = 12;

/// Most lines of a body in a brief view, and how many of them are before the cut.
const BODY_LINES_MAX: usize = 14;
const BODY_LINES_HEAD: usize = 8;

/// Characters of a digest that are shown. They suffice to compare two views by eye.
const DIGEST_CHARS: usize = 16;

/// Hexadecimal digits per line of a body that is not text.
const HEX_DIGITS: usize = 64;

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// A part of a request with its name.
pub(super) type LabeledLines = (&'static str, Vec<StyledLine>);

/// A request, laid out.
pub(super) struct RequestLayout {
    pub(super) rows: Vec<LabeledLines>,
    /// Whether part of it was omitted.
    pub(super) is_cut: bool,
}

/// Lays out a request. Its method and address belong in the title above it.
pub(super) fn layout_request(request: &RequestPreview, detail_level: DetailLevel) -> RequestLayout {
    let mut formatter = RequestFormatter { detail_level, is_cut: false };
    let mut rows = Vec::new();
    if !request.query.is_empty() {
        rows.push(("query", vec![StyledLine::plain(formatter.cut_text(&request.query))]));
    }
    if !request.headers.is_empty() {
        rows.push(("headers", formatter.header_lines(&request.headers)));
    }
    if let Some(body) = &request.body {
        rows.push(("body", formatter.body_lines(body)));
    }
    let mut notes = Vec::new();
    if formatter.is_cut {
        notes.push(StyledLine::plain(format!(
            "BLAKE3 of everything that would be sent: {}",
            short_digest(&request.digest)
        )));
    }
    let scope_note =
        "\"this session\" and \"always\" apply to any query, headers and body at this address";
    notes.push(StyledLine::styled(scope_note, DIM));
    rows.push(("", notes));
    RequestLayout { rows, is_cut: formatter.is_cut }
}

/// Whether any text of a request contains hidden characters.
pub(super) fn has_deceptive_text(request: &RequestPreview) -> bool {
    let hides = |untrusted: &str| text::escape_line(untrusted) != untrusted;
    let body = request.body.as_ref().is_some_and(|body| has_hidden_characters(&body.content));
    body || hides(&request.query) || request.headers.iter().any(|(_, value)| hides(value))
}

/// Cuts the middle out of a long text for a brief view. Hidden characters are spelt out.
pub(super) fn shorten_text(untrusted: &str) -> String {
    RequestFormatter { detail_level: DetailLevel::Brief, is_cut: false }.cut_text(untrusted)
}

/// Whether a text is too long for a brief view.
pub(super) fn is_long(untrusted: &str) -> bool {
    untrusted.chars().count() > BRIEF_CHARS_MAX
}

struct RequestFormatter {
    detail_level: DetailLevel,
    is_cut: bool,
}

impl RequestFormatter {
    fn cut_text(&mut self, untrusted: &str) -> String {
        if self.detail_level == DetailLevel::Full || !is_long(untrusted) {
            return text::escape_line(untrusted);
        }
        self.is_cut = true;
        let count = untrusted.chars().count();
        let tail = BRIEF_CHARS_MAX - HEAD_CHARS;
        let head: String = untrusted.chars().take(HEAD_CHARS).collect();
        let end: String = untrusted.chars().skip(count - tail).collect();
        let (head, end) = (text::escape_line(&head), text::escape_line(&end));
        format!(
            "{head} … ({} of {count} characters are not shown) … {end}",
            count - BRIEF_CHARS_MAX
        )
    }

    fn header_lines(&mut self, headers: &[(String, String)]) -> Vec<StyledLine> {
        let shown = match self.detail_level {
            DetailLevel::Brief => HEADERS_MAX.min(headers.len()),
            DetailLevel::Full => headers.len(),
        };
        let line = |(name, value): &(String, String)| {
            StyledLine::plain(format!("{}: {}", text::escape_line(name), self.cut_text(value)))
        };
        let mut lines: Vec<StyledLine> = headers[..shown].iter().map(line).collect();
        if let more @ 1.. = headers.len() - shown {
            self.is_cut = true;
            lines.push(StyledLine::styled(format!("… and {more} more headers"), BOLD));
        }
        lines
    }

    fn body_lines(&mut self, body: &BodyPreview) -> Vec<StyledLine> {
        let kind =
            body.media_type.as_deref().map(shorten_text).unwrap_or_else(|| "no type".to_owned());
        let form = match body.encoding {
            BodyEncoding::Text => "",
            BodyEncoding::Hex => ", not text, in hexadecimal",
        };
        let (bytes, digest) = (body.length_bytes, short_digest(&body.digest));
        let head = format!("{kind}, {bytes} bytes{form}, blake3 {digest}");
        let mut lines: Vec<StyledLine> =
            body_lines(body).map(|piece| self.body_line(piece)).collect();
        if self.detail_level == DetailLevel::Brief && lines.len() > BODY_LINES_MAX {
            self.is_cut = true;
            let end = lines.len() - (BODY_LINES_MAX - BODY_LINES_HEAD);
            let mark = format!("… {} lines are not shown …", end - BODY_LINES_HEAD);
            lines.splice(BODY_LINES_HEAD..end, [StyledLine::styled(mark, BOLD)]);
        }
        [vec![StyledLine::plain(head)], lines].concat()
    }

    /// A line of a body. The bar in front prevents it from imitating a line of the card.
    fn body_line(&mut self, piece: &str) -> StyledLine {
        let mut line = StyledLine::styled("│ ", DIM);
        line.push(&self.cut_text(piece), Style::new());
        line
    }
}

/// The lines of a body, without any prefix.
fn body_lines(body: &BodyPreview) -> Box<dyn Iterator<Item = &str> + '_> {
    match body.encoding {
        BodyEncoding::Text => Box::new(body.content.split('\n')),
        // The digits are ASCII, so every piece is text.
        BodyEncoding::Hex => Box::new(
            body.content
                .as_bytes()
                .chunks(HEX_DIGITS)
                .filter_map(|piece| str::from_utf8(piece).ok()),
        ),
    }
}

fn short_digest(digest: &str) -> String {
    digest.chars().take(DIGEST_CHARS).collect()
}
