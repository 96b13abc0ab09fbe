//! The last calls of a session with their arguments and results, for `/last`.

use std::collections::VecDeque;

use anstyle::Style;
use sallyport_contract::{CallReport, ContentPart, Outcome, ResourceData, text};
use sallyport_terminal::{card, style::StyledLine};

use super::{pictures, view};
use crate::cli::{
    call_display,
    call_lines::{self, ShownCall},
    call_trace,
};

/// Most calls that are kept. Their results are in the session as well, and an export has them all.
const CALLS_MAX: usize = 20;

/// Most lines of one call that are shown: more than a terminal's scrollback usually has room for.
const LINES_MAX: usize = 1000;

const BOLD: Style = Style::new().bold();

/// A finished call.
#[derive(Debug)]
pub(super) struct FinishedCall {
    pub(super) call: ShownCall,
    pub(super) report: CallReport,
}

/// The last calls, the newest one first.
#[derive(Debug, Default)]
pub(super) struct FinishedCalls(VecDeque<FinishedCall>);

impl FinishedCalls {
    pub(super) fn add(&mut self, call: FinishedCall) {
        self.0.push_front(call);
        self.0.truncate(CALLS_MAX);
    }

    /// Shows a call with everything that is known about it. The newest one has number 1.
    pub(super) fn detail_lines(&self, number: usize, width: usize) -> Vec<StyledLine> {
        match number.checked_sub(1).and_then(|index| self.0.get(index)) {
            Some(call) => bounded_lines(call_lines_at_width(call, width)),
            None if self.0.is_empty() => {
                view::note_lines("No call has finished since this session was opened.")
            }
            None => vec![
                view::error_line(&format!("there is no call {number}")),
                view::hint_line(&format!("the last calls are 1 to {}", self.0.len())),
            ],
        }
    }
}

fn call_lines_at_width(call: &FinishedCall, width: usize) -> Vec<StyledLine> {
    let mut lines = vec![view::call_line(&call.call.text, &call.report)];
    lines.push(StyledLine::styled("arguments", BOLD));
    lines.extend(card::full_value_lines(&call.call.arguments, width));
    lines.push(StyledLine::styled("result", BOLD));
    lines.extend(outcome_lines(&call.report.outcome, width));
    if !call.report.effects.is_empty() {
        lines.push(StyledLine::styled("effects", BOLD));
        let effects = call.report.effects.iter().map(call_trace::effect_line);
        lines.extend(effects.map(|effect| StyledLine::plain(text::escape_line(&effect))));
    }
    lines.iter().flat_map(|line| line.fold_to_width(width, 2)).collect()
}

fn outcome_lines(outcome: &Outcome, width: usize) -> Vec<StyledLine> {
    let Outcome::Completed(output) = outcome else {
        let reason = call_display::failure_reason(outcome).unwrap_or_default();
        let detail = call_display::failure_detail(outcome).unwrap_or_default();
        let texts = [reason.as_str(), detail].map(text::escape_multiline);
        return texts.iter().flat_map(|text| text.lines()).map(StyledLine::plain).collect();
    };
    let data = card::full_value_lines(&output.data.to_string(), width);
    data.into_iter().chain(output.content.iter().flat_map(part_lines)).collect()
}

fn part_lines(part: &ContentPart) -> Vec<StyledLine> {
    let size = |data: &[u8]| call_lines::format_size(data.len() as u64);
    match part {
        ContentPart::Text { text } => {
            text::escape_multiline(text).lines().map(StyledLine::plain).collect()
        }
        ContentPart::Image { media_type, data } => {
            view::note_lines(&pictures::picture_name(media_type, data))
        }
        ContentPart::Audio { media_type, data } => {
            view::note_lines(&format!("{media_type}, {}", size(data)))
        }
        ContentPart::Resource { uri, .. } => view::note_lines(uri),
        ContentPart::Embedded(resource) => {
            let mut lines = view::note_lines(&resource.uri);
            match &resource.data {
                ResourceData::Text(text) => {
                    lines.extend(text::escape_multiline(text).lines().map(StyledLine::plain));
                }
                ResourceData::Binary(data) => lines.extend(view::note_lines(&size(data))),
            }
            lines
        }
    }
}

fn bounded_lines(mut lines: Vec<StyledLine>) -> Vec<StyledLine> {
    let hidden = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if hidden > 0 {
        lines.extend(view::note_lines(&format!(
            "… {hidden} more lines. /save FILE.json writes the whole session."
        )));
    }
    lines
}
