//! From a request to the lines of its card.

use anstyle::{AnsiColor, Style};
use sallyport_contract::{ApprovalRequest, RequestPreview, Subject, text};

use super::{
    argument::{self, Extent},
    keys::Offers,
    request,
};
use crate::style::Line;

/// Characters of the digest that are shown; enough to compare two versions by eye.
const DIGEST_CHARS: usize = 12;

/// Most powers that are listed before `More` is asked for.
const POWERS_MAX: usize = 8;

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

    /// Whether a part of a request was left out of [`lines`](Self::lines): no yes counts before
    /// [`pages`](Self::pages) were all seen.
    pub fn has_to_be_read(&self) -> bool {
        is_cut(&self.request)
    }

    /// What is asked about, in one line to stand above the keys: whatever else there was to be read,
    /// it is in view when the answer is given.
    pub fn reminder(&self, width: usize) -> Option<Line> {
        let line = subject_line(&self.request, columns(width))?;
        Some(Line::styled(line, TITLE))
    }

    /// The keys that answer it.
    pub fn keys(&self, width: usize) -> Vec<Line> {
        self.offers().lines(columns(width))
    }

    fn layout(&self, width: usize, extent: Extent) -> Vec<Line> {
        let width = columns(width);
        let mut rows = Rows { lines: self.title(extent).fold(width, 2), width };
        rows.line("plugin", Line::plain(self.plugin()));
        if self.request.subject != Subject::Call {
            rows.line("tool", Line::plain(self.request.call.tool.to_string()));
        }
        for (name, lines) in
            self.request.request.iter().flat_map(|r| request::shown(r, extent).rows)
        {
            rows.add(name, lines);
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

    fn title(&self, extent: Extent) -> Line {
        let tool = &self.request.call.tool;
        let of = self.position.map(|Position { index, count }| format!(" {index} of {count}"));
        let mut line = Line::styled(format!("approval{}: ", of.unwrap_or_default()), TITLE);
        let words = match &self.request.subject {
            Subject::Call => format!("{tool} asks to run"),
            Subject::Access { what } => match extent {
                Extent::Brief => format!("{} wants {}", tool.plugin, request::brief(what)),
                Extent::Whole => format!("{} wants {}", tool.plugin, text::one_line(what)),
            },
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
            || self.request.request.as_deref().is_some_and(request::is_deceptive)
            || hides(&self.request.plugin_version)
            || argument::is_deceptive(&self.request.call.arguments)
    }
}

/// Whether a question about a request cannot be shown whole at a look.
pub fn is_cut(request: &ApprovalRequest) -> bool {
    let is_long = match &request.subject {
        Subject::Call => false,
        Subject::Access { what } => request::is_long(what),
    };
    let shown = request.request.as_deref();
    is_long || shown.is_some_and(|shown| request::shown(shown, Extent::Brief).is_cut)
}

/// What a question about a request is about, in at most `columns` characters; nothing for a call.
pub fn subject_line(request: &ApprovalRequest, columns: usize) -> Option<String> {
    match &request.subject {
        Subject::Call => None,
        Subject::Access { what } => {
            let words = format!("{} wants {}", request.call.tool.plugin, text::one_line(what));
            let fits = words.chars().count() <= columns;
            let cut: String = words.chars().take(columns.saturating_sub(1)).collect();
            Some(if fits { words } else { format!("{cut}…") })
        }
    }
}

/// The parts of a request, each line with its name in front: for where there are no cards. Whole, or
/// as much of it as fits a look.
pub fn request_lines(request: &RequestPreview, is_whole: bool) -> Vec<String> {
    let extent = if is_whole { Extent::Whole } else { Extent::Brief };
    let named = |(name, lines): request::Row| {
        let line = move |(index, line): (usize, Line)| {
            let name = if index == 0 { name } else { "" };
            format!("{name:NAME_COLUMNS$} {}", line.text())
        };
        lines.into_iter().enumerate().map(line).collect::<Vec<_>>()
    };
    request::shown(request, extent).rows.into_iter().flat_map(named).collect()
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
