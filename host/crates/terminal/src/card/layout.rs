//! Lays out a request as the lines of its card.

use anstyle::{AnsiColor, Style};
use sallyport_contract::{ApprovalRequest, ApprovalSubject, RequestPreview, text};

use super::{
    argument::{self, DetailLevel},
    file_change::FileChange,
    form::{form_rows, form_title},
    grant::ShownGrant,
    keys::ApprovalOptions,
    request,
};
use crate::{style::StyledLine, wrap};

/// Characters of the digest that are shown. They suffice to compare two versions by eye.
const DIGEST_CHARS: usize = 12;

/// Most powers listed before the user asks for `More`.
const CAPABILITIES_MAX: usize = 8;

/// Width of the column of names.
const NAME_COLUMNS: usize = 10;

/// Narrowest card, in columns. A narrower terminal wraps its lines.
const COLUMNS_MIN: usize = 30;

/// Widest card, in columns. Longer lines are hard to read.
const COLUMNS_MAX: usize = 110;

/// Precedes each line of the rule. It is narrow, so that a digest fits 80 columns.
const RULE_INDENT: &str = "    ";

/// Fewest rows of a page, regardless of the window's height.
const PAGE_ROWS_MIN: usize = 5;

const TITLE: Style = AnsiColor::Yellow.on_default().bold();
const WARNING: Style = AnsiColor::Red.on_default().bold();
const DIM: Style = Style::new().dimmed();

/// Position of a question among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionPosition {
    /// Its number, from 1.
    pub index: usize,
    /// The number of questions.
    pub count: usize,
}

/// The card for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalCard {
    request: ApprovalRequest,
    position: Option<QuestionPosition>,
    file_change: Option<FileChange>,
    /// The tool and what the call is about, for the line above the keys.
    call_text: Option<String>,
    /// The grant that the card asks about, if it does.
    grant: Option<ShownGrant>,
}

impl ApprovalCard {
    /// Creates the card for a request. The position is shown only if there are several questions.
    pub fn new(request: ApprovalRequest, position: Option<QuestionPosition>) -> Self {
        let position = position.filter(|position| position.count > 1);
        let grant = ShownGrant::new(&request, 0, None);
        Self { request, position, file_change: None, call_text: None, grant }
    }

    /// Shows this choice of a question about a grant, with the folder that the user has named.
    pub fn with_grant_choice(self, choice: usize, folder: Option<String>) -> Self {
        let grant = ShownGrant::new(&self.request, choice, folder);
        Self { grant, ..self }
    }

    /// Adds the change that the call would make to a file.
    pub fn with_file_change(self, file_change: Option<FileChange>) -> Self {
        Self { file_change, ..self }
    }

    /// Adds the tool and what the call is about, such as `files.write /notes/a.md`.
    pub fn with_call_text(self, call_text: String) -> Self {
        Self { call_text: Some(text::escape_line(&call_text)), ..self }
    }

    /// Returns the answers that it offers.
    pub fn options(&self) -> ApprovalOptions {
        let options = ApprovalOptions::from_request(&self.request);
        self.grant.as_ref().map_or(options, |grant| grant.options(options))
    }

    /// Returns the first view of the card, without its keys.
    pub fn summary_lines(&self, width: usize) -> Vec<StyledLine> {
        self.layout_lines(width, DetailLevel::Brief)
    }

    /// Returns the first view in parts of at most `height` rows, or 6 if that is larger. If there are
    /// several, the last line of each is its number.
    pub fn summary_parts(&self, width: usize, height: usize) -> Vec<Vec<StyledLine>> {
        let lines = self.summary_lines(width);
        match count_rows(&lines, width) <= height {
            true => vec![lines],
            false => numbered_pages("part", &lines, width, height),
        }
    }

    /// Returns the whole card in pages of at most `height` rows, or 6 if that is larger. The last
    /// line of each page is its number.
    pub fn pages(&self, width: usize, height: usize) -> Vec<Vec<StyledLine>> {
        numbered_pages("page", &self.layout_lines(width, DetailLevel::Full), width, height)
    }

    /// Whether [`summary_lines`](Self::summary_lines) omits part of a request. If so, an approval
    /// counts only after all [`pages`](Self::pages) were seen.
    pub fn needs_full_view(&self) -> bool {
        is_summary_cut(&self.request)
    }

    /// Returns the subject of the question on one line, to show above the keys, so that it stays in
    /// view while the user answers. A call whose title is in view needs none.
    pub fn reminder_line(&self, width: usize, is_title_visible: bool) -> Option<StyledLine> {
        let columns = card_columns(width);
        let line = match subject_line(&self.request, columns) {
            None if is_title_visible => return None,
            None => cut_line(&self.call_reminder(), columns),
            Some(line) => line,
        };
        Some(StyledLine::styled(line, TITLE))
    }

    /// Returns the lines that list its keys.
    pub fn key_lines(&self, width: usize) -> Vec<StyledLine> {
        self.options().key_lines(card_columns(width))
    }

    /// The title of a call with what it is about.
    fn call_reminder(&self) -> String {
        let title = || self.title_text(DetailLevel::Brief);
        self.call_text.as_ref().map_or_else(title, |call| format!("{call} asks to run"))
    }

    fn layout_lines(&self, width: usize, detail_level: DetailLevel) -> Vec<StyledLine> {
        let width = card_columns(width);
        let mut rows =
            CardRows { lines: self.title_line(detail_level).fold_to_width(width, 2), width };
        rows.push_line("plugin", StyledLine::plain(self.plugin_text()));
        if self.request.subject != ApprovalSubject::Call {
            rows.push_line("tool", StyledLine::plain(self.request.call.tool.to_string()));
        }
        if let Some(form) = self.request.form_question() {
            form_rows(form).into_iter().for_each(|(name, lines)| rows.push_lines(name, lines));
        }
        if let Some(grant) = &self.grant {
            grant.rows().into_iter().for_each(|(name, lines)| rows.push_lines(name, lines));
        }
        for (name, lines) in
            self.request.request.iter().flat_map(|r| request::layout_request(r, detail_level).rows)
        {
            rows.push_lines(name, lines);
        }
        let inner = width - NAME_COLUMNS - 2;
        rows.push_lines(
            "with",
            argument::argument_lines(&self.request.call.arguments, inner, detail_level),
        );
        if let Some(file_change) = &self.file_change {
            rows.push_lines("changes", file_change.diff_lines(detail_level));
        }
        if self.has_deceptive_text() {
            let warning = "characters that are hidden or control a terminal are spelt out here: \
                           look twice";
            rows.push_line("warning", StyledLine::styled(warning, WARNING));
        }
        rows.push_lines("can", self.capability_lines(detail_level));
        rows.push_line("because", StyledLine::plain(text::escape_line(&self.request.reason)));
        if let Some(rule) = self.always_text() {
            rows.push_line("always", StyledLine::plain("writes into your policy:"));
            // These lines are not folded, because they are exactly what would be written. The
            // terminal wraps them.
            let line =
                |line| StyledLine::plain(format!("{RULE_INDENT}{}", text::escape_json(line)));
            rows.lines.extend(rule.lines().map(line));
        }
        rows.lines
    }

    /// What "always" would write.
    fn always_text(&self) -> Option<&str> {
        match &self.grant {
            Some(grant) => grant.change.as_deref(),
            None => self.request.rule.as_deref(),
        }
    }

    fn title_line(&self, detail_level: DetailLevel) -> StyledLine {
        let position_text =
            self.position.map(|QuestionPosition { index, count }| format!(" {index} of {count}"));
        let kind = match &self.request.subject {
            ApprovalSubject::Grant(_) => "missing grant",
            ApprovalSubject::Form(_) => "question",
            ApprovalSubject::Call | ApprovalSubject::Access { .. } => "approval",
        };
        let mut line =
            StyledLine::styled(format!("{kind}{}: ", position_text.unwrap_or_default()), TITLE);
        line.push(&self.title_text(detail_level), Style::new().bold());
        line
    }

    fn title_text(&self, detail_level: DetailLevel) -> String {
        let tool = &self.request.call.tool;
        match (&self.request.subject, detail_level) {
            (ApprovalSubject::Call, _) => format!("{tool} asks to run"),
            (ApprovalSubject::Access { what }, DetailLevel::Brief) => {
                format!("{} wants {}", tool.plugin, request::shorten_text(what))
            }
            (ApprovalSubject::Access { what }, DetailLevel::Full) => {
                format!("{} wants {}", tool.plugin, text::escape_line(what))
            }
            (ApprovalSubject::Grant(question), DetailLevel::Brief) => {
                request::shorten_text(&question.what)
            }
            (ApprovalSubject::Grant(question), DetailLevel::Full) => {
                text::escape_line(&question.what)
            }
            (ApprovalSubject::Form(_), _) => form_title(tool),
        }
    }

    fn plugin_text(&self) -> String {
        let request = &self.request;
        let digest: String = request.plugin_digest.chars().take(DIGEST_CHARS).collect();
        let version = text::escape_line(&request.plugin_version);
        format!("{} {version}, digest {}", request.call.tool.plugin, text::escape_line(&digest))
    }

    fn capability_lines(&self, detail_level: DetailLevel) -> Vec<StyledLine> {
        let capabilities = &self.request.capabilities;
        if capabilities.is_empty() {
            return vec![StyledLine::styled("nothing outside its sandbox", DIM)];
        }
        let shown = match detail_level {
            DetailLevel::Brief => CAPABILITIES_MAX.min(capabilities.len()),
            DetailLevel::Full => capabilities.len(),
        };
        let line = |capability: &String| StyledLine::plain(text::escape_line(capability));
        let mut lines: Vec<_> = capabilities[..shown].iter().map(line).collect();
        if let more @ 1.. = capabilities.len() - shown {
            lines.push(StyledLine::styled(format!("… and {more} more"), Style::new().bold()));
        }
        lines
    }

    /// Whether any foreign text of the card contains characters that a reader could not see.
    fn has_deceptive_text(&self) -> bool {
        let hides = |untrusted: &str| text::escape_line(untrusted) != untrusted;
        let what = match &self.request.subject {
            ApprovalSubject::Call => "",
            ApprovalSubject::Access { what } => what,
            ApprovalSubject::Grant(question) => &question.what,
            // Its lines are escaped already, and may be several.
            ApprovalSubject::Form(_) => "",
        };
        hides(what)
            || self.request.request.as_deref().is_some_and(request::has_deceptive_text)
            || hides(&self.request.plugin_version)
            || argument::has_deceptive_text(&self.request.call.arguments)
            || self.file_change.as_ref().is_some_and(FileChange::has_deceptive_text)
    }
}

/// Splits lines into pages of at most `height` rows, the last of which names the page.
fn numbered_pages(
    name: &str,
    lines: &[StyledLine],
    width: usize,
    height: usize,
) -> Vec<Vec<StyledLine>> {
    let rows_max = height.saturating_sub(1).max(PAGE_ROWS_MIN);
    let (mut pages, mut rows) = (vec![Vec::new()], 0);
    for line in lines {
        let line_rows = count_rows(std::slice::from_ref(line), width);
        if rows > 0 && rows + line_rows > rows_max {
            pages.push(Vec::new());
            rows = 0;
        }
        rows += line_rows;
        pages.last_mut().into_iter().for_each(|page| page.push(line.clone()));
    }
    let count = pages.len();
    for (index, page) in pages.iter_mut().enumerate() {
        page.push(StyledLine::styled(format!("{name} {} of {count}", index + 1), DIM));
    }
    pages
}

/// Rows that lines take on a terminal.
pub(crate) fn count_rows(lines: &[StyledLine], width: usize) -> usize {
    lines.iter().map(|line| wrap::split_into_rows(line, width).len()).sum()
}

/// Whether the first view of a question omits part of the request.
pub fn is_summary_cut(request: &ApprovalRequest) -> bool {
    let is_long = match &request.subject {
        ApprovalSubject::Call | ApprovalSubject::Form(_) => false,
        ApprovalSubject::Access { what } => request::is_long(what),
        ApprovalSubject::Grant(question) => request::is_long(&question.what),
    };
    let shown = request.request.as_deref();
    is_long || shown.is_some_and(|shown| request::layout_request(shown, DetailLevel::Brief).is_cut)
}

/// Returns the subject of a question about a request, in at most `columns` characters. Returns
/// `None` for a call.
pub fn subject_line(request: &ApprovalRequest, columns: usize) -> Option<String> {
    match &request.subject {
        ApprovalSubject::Call => None,
        ApprovalSubject::Access { what } => {
            let words = format!("{} wants {}", request.call.tool.plugin, text::escape_line(what));
            Some(cut_line(&words, columns))
        }
        ApprovalSubject::Grant(question) => {
            Some(cut_line(&text::escape_line(&question.what), columns))
        }
        ApprovalSubject::Form(_) => Some(cut_line(&form_title(&request.call.tool), columns)),
    }
}

/// Cuts a text to at most `columns` characters.
fn cut_line(words: &str, columns: usize) -> String {
    let cut: String = words.chars().take(columns.saturating_sub(1)).collect();
    if words.chars().count() <= columns { words.to_owned() } else { format!("{cut}…") }
}

/// Returns the parts of a request for output without cards, each with its name in front.
///
/// Without `is_whole` long parts are cut.
pub fn request_lines(request: &RequestPreview, is_whole: bool) -> Vec<String> {
    let detail_level = if is_whole { DetailLevel::Full } else { DetailLevel::Brief };
    let named = |(name, lines): request::LabeledLines| {
        let line = move |(index, line): (usize, StyledLine)| {
            let name = if index == 0 { name } else { "" };
            format!("{name:NAME_COLUMNS$} {}", line.text())
        };
        lines.into_iter().enumerate().map(line).collect::<Vec<_>>()
    };
    request::layout_request(request, detail_level).rows.into_iter().flat_map(named).collect()
}

fn card_columns(width: usize) -> usize {
    width.clamp(COLUMNS_MIN, COLUMNS_MAX)
}

/// Rows of a card: lines with a name in front.
struct CardRows {
    lines: Vec<StyledLine>,
    width: usize,
}

impl CardRows {
    fn push_line(&mut self, name: &str, line: StyledLine) {
        self.push_lines(name, vec![line]);
    }

    fn push_lines(&mut self, name: &str, lines: Vec<StyledLine>) {
        for (index, line) in lines.into_iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let mut row = StyledLine::styled(format!("  {name:NAME_COLUMNS$}"), DIM);
            line.spans.iter().for_each(|span| row.push(&span.text, span.style));
            self.lines.append(&mut row.fold_to_width(self.width, NAME_COLUMNS + 4));
        }
    }
}
