//! The part of a card about a grant that a running call lacks.

use anstyle::Style;
use sallyport_contract::{ApprovalRequest, GrantQuestion, fix::FOLDER_PLACEHOLDER, text};
use serde_json::Value;

use super::keys::ApprovalOptions;
use crate::style::StyledLine;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The choice that a card shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ShownGrant {
    /// The author's reasons.
    why: Vec<String>,
    /// The entries, one line each.
    entries: Vec<String>,
    notes: Vec<String>,
    /// The change to the policy that "always" makes, if it can be written.
    pub(super) change: Option<String>,
    /// Its number, from 1, and the number of choices.
    position: (usize, usize),
    /// Whether the user names the folder, and has done so.
    folder: Option<bool>,
}

impl ShownGrant {
    /// The choice at an index. `None` if the request is not about a grant.
    pub(super) fn new(
        request: &ApprovalRequest,
        index: usize,
        folder: Option<String>,
    ) -> Option<Self> {
        let GrantQuestion { why, choices, .. } = request.grant_question()?;
        let choice = choices.get(index)?;
        let needs_folder = choice.needs_folder();
        let filled = |text: String| match folder.as_deref().filter(|_| needs_folder) {
            Some(folder) => fill_folder(&text, folder),
            None => text,
        };
        Some(Self {
            why: why.clone(),
            entries: choice.lines().map(filled).collect(),
            notes: choice.notes.clone(),
            change: choice.change.clone().map(filled),
            position: (index + 1, choices.len()),
            folder: needs_folder.then_some(folder.is_some()),
        })
    }

    /// The rows of the card, each with its name.
    pub(super) fn rows(&self) -> Vec<(&'static str, Vec<StyledLine>)> {
        let lines = |texts: &[String], style| {
            texts.iter().map(|text| StyledLine::styled(text::escape_line(text), style)).collect()
        };
        let mut rows = Vec::new();
        if !self.why.is_empty() {
            rows.push(("why", lines(&self.why, Style::new())));
        }
        let mut grants: Vec<StyledLine> = lines(&self.entries, BOLD);
        if let (number, count @ 2..) = self.position {
            let words = format!("grant {number} of {count}, the narrowest first");
            grants.push(StyledLine::styled(words, DIM));
        }
        if self.folder == Some(false) {
            let words = format!("{FOLDER_PLACEHOLDER} is the folder that you name");
            grants.push(StyledLine::plain(words));
        }
        rows.push(("grants", grants));
        if !self.notes.is_empty() {
            rows.push(("note", lines(&self.notes, Style::new())));
        }
        rows
    }

    /// The answers that the card offers.
    pub(super) fn options(&self, options: ApprovalOptions) -> ApprovalOptions {
        ApprovalOptions {
            always: self.change.is_some(),
            wider: self.position.1 > 1,
            folder: self.folder.is_some(),
            is_incomplete: self.folder == Some(false),
            ..options
        }
    }
}

/// Puts a folder in the place that the grant leaves to the user.
fn fill_folder(text: &str, folder: &str) -> String {
    let placeholder = Value::from(FOLDER_PLACEHOLDER).to_string();
    text.replace(&placeholder, &Value::from(folder).to_string())
}
