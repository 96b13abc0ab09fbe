//! From a request to the lines of its card.

use anstyle::{AnsiColor, Style};
use sallyport_contract::{ApprovalRequest, Subject, text};

use super::{
    argument::{self, Extent},
    keys::Offers,
};
use crate::style::Line;

/// Characters of the digest that are shown; enough to compare two versions by eye.
const DIGEST_CHARS: usize = 12;

/// Most powers that are listed before `More` is asked for.
const POWERS_MAX: usize = 8;

/// Most characters of an address's query before `More` is asked for.
const QUERY_CHARS_MAX: usize = 400;

/// Width of the column of names.
const NAME_COLUMNS: usize = 10;

/// Narrowest card; in a narrower window the terminal folds it.
const COLUMNS_MIN: usize = 30;

/// Widest card; the eye loses longer lines.
const COLUMNS_MAX: usize = 110;

/// Fewest lines of a page, however low the window is.
const PAGE_LINES_MIN: usize = 5;

const TITLE: Style = AnsiColor::Yellow.on_default().bold();
const WARNING: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Which of several questions it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Its number, from 1.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

/// The card for one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    request: ApprovalRequest,
    position: Option<Position>,
}

impl Card {
    /// The card for a request. A position is shown where there are several.
    pub fn new(request: ApprovalRequest, position: Option<Position>) -> Self {
        Self { request, position: position.filter(|position| position.count > 1) }
    }

    /// The answers that it offers.
    pub fn offers(&self) -> Offers {
        Offers::of(&self.request)
    }

    /// The card as it is shown first, without its keys.
    pub fn lines(&self, width: usize) -> Vec<Line> {
        self.layout(width, Extent::Brief)
    }

    /// Everything, in pages of at most `height` lines, each saying which one it is.
    pub fn pages(&self, width: usize, height: usize) -> Vec<Vec<Line>> {
        let lines = self.layout(width, Extent::Whole);
        // One line of a page says which it is.
        let pages: Vec<_> = lines.chunks(height.saturating_sub(1).max(PAGE_LINES_MIN)).collect();
        let count = pages.len();
        let numbered = |(index, lines): (usize, &[Line])| {
            let mut page = lines.to_vec();
            page.push(Line::styled(format!("page {} of {count}", index + 1), DIM));
            page
        };
        pages.into_iter().enumerate().map(numbered).collect()
    }

    /// The keys that answer it.
    pub fn keys(&self, width: usize) -> Vec<Line> {
        self.offers().lines(columns(width))
    }

    fn layout(&self, width: usize, extent: Extent) -> Vec<Line> {
        let width = columns(width);
        let mut rows = Rows { lines: self.title().fold(width, 2), width };
        rows.line("plugin", Line::plain(self.plugin()));
        if self.request.subject != Subject::Call {
            rows.line("tool", Line::plain(self.request.call.tool.to_string()));
        }
        if let Some(query) = &self.request.query {
            rows.add("query", query_lines(query, extent));
        }
        let inner = width - NAME_COLUMNS - 2;
        rows.add("with", argument::lines(&self.request.call.arguments, inner, extent));
        if self.is_deceptive() {
            let warning = "characters that are hidden or control a terminal are spelt out here: \
                           look twice";
            rows.line("warning", Line::styled(warning, WARNING));
        }
        rows.add("can", self.powers(extent));
        rows.line("because", Line::plain(text::one_line(&self.request.reason)));
        if let Some(rule) = &self.request.rule {
            let rule: Vec<_> = rule.lines().map(|line| Line::plain(text::one_line(line))).collect();
            rows.line("always", Line::plain("writes into your policy:"));
            rows.add("", rule);
        }
        rows.lines
    }

    fn title(&self) -> Line {
        let tool = &self.request.call.tool;
        let of = self.position.map(|Position { index, count }| format!(" {index} of {count}"));
        let mut line = Line::styled(format!("approval{}: ", of.unwrap_or_default()), TITLE);
        let words = match &self.request.subject {
            Subject::Call => format!("{tool} asks to run"),
            Subject::Access { what } => format!("{} wants {}", tool.plugin, text::one_line(what)),
        };
        line.push(&words, Style::new().bold());
        line
    }

    fn plugin(&self) -> String {
        let request = &self.request;
        let digest: String = request.plugin_digest.chars().take(DIGEST_CHARS).collect();
        let version = text::one_line(&request.plugin_version);
        format!("{} {version}, digest {}", request.call.tool.plugin, text::one_line(&digest))
    }

    fn powers(&self, extent: Extent) -> Vec<Line> {
        let powers = &self.request.powers;
        if powers.is_empty() {
            return vec![Line::styled("change nothing and reach nothing outside", DIM)];
        }
        let shown = match extent {
            Extent::Brief => POWERS_MAX.min(powers.len()),
            Extent::Whole => powers.len(),
        };
        let line = |power: &String| Line::plain(text::one_line(power));
        let mut lines: Vec<_> = powers[..shown].iter().map(line).collect();
        if let more @ 1.. = powers.len() - shown {
            lines.push(Line::styled(format!("… and {more} more"), Style::new().bold()));
        }
        lines
    }

    /// Whether any foreign text of the card holds what a reader could not see.
    fn is_deceptive(&self) -> bool {
        let hides = |foreign: &str| text::one_line(foreign) != foreign;
        let what = match &self.request.subject {
            Subject::Call => "",
            Subject::Access { what } => what,
        };
        hides(what)
            || self.request.query.as_deref().is_some_and(hides)
            || hides(&self.request.plugin_version)
            || argument::is_deceptive(&self.request.call.arguments)
    }
}

/// The query of an address, and that an answer which lasts does not look at it.
fn query_lines(query: &str, extent: Extent) -> Vec<Line> {
    let chars_max = match extent {
        Extent::Brief => QUERY_CHARS_MAX,
        Extent::Whole => usize::MAX,
    };
    let mut lines = vec![Line::plain(text::excerpt(query, chars_max))];
    if let more @ 1.. = query.chars().count().saturating_sub(chars_max) {
        lines.push(Line::styled(format!("({more} more characters)"), Style::new().bold()));
    }
    lines.push(Line::styled("a yes that lasts holds for any query of this address", DIM));
    lines
}

fn columns(width: usize) -> usize {
    width.clamp(COLUMNS_MIN, COLUMNS_MAX)
}

/// Lines with a name in front.
struct Rows {
    lines: Vec<Line>,
    width: usize,
}

impl Rows {
    fn line(&mut self, name: &str, line: Line) {
        self.add(name, vec![line]);
    }

    fn add(&mut self, name: &str, lines: Vec<Line>) {
        for (index, line) in lines.into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let mut row = Line::styled(format!("  {name:NAME_COLUMNS$}"), DIM);
            line.spans.iter().for_each(|span| row.push(&span.text, span.style));
            self.lines.append(&mut row.fold(self.width, NAME_COLUMNS + 4));
        }
    }
}
