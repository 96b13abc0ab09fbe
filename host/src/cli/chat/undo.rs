//! `/undo files`: shows what would be put back, asks, and puts it back.
//!
//! Each use goes back by one call. A call of which nothing can be put back is passed over, and the
//! reason is shown.

use sallyport_contract::text;
use sallyport_runtime::undo::{PathRestoration, RestoreAction, UndoHistory, UndoStep};
use sallyport_terminal::{
    card::FileChange,
    editor::{InitialInput, InputPrompt, LineInput},
    style::StyledLine,
};

use super::{
    inputs::KeyboardInput,
    interactive::{InteractiveChat, NextAction},
    view::{self, note_lines},
};
use crate::cli::output::format_count;

/// Most paths of one call that are shown. The rest is counted.
const PATHS_SHOWN_MAX: usize = 20;

/// Most calls whose changes cannot be undone that are shown. The rest is passed over in silence,
/// because only the newest are of interest.
const PASSED_OVER_MAX: usize = 3;

/// What is put back if the user agrees.
#[derive(Debug)]
pub(super) struct ProposedUndo {
    history: UndoHistory,
    step: UndoStep,
    paths: Vec<PathRestoration>,
}

/// A step of which nothing can be put back, with the reason for each path.
type PassedOver = (UndoStep, Vec<PathRestoration>);

impl InteractiveChat<'_> {
    /// Shows what the last call with changes would be undone to, and asks.
    pub(super) async fn propose_undo(&mut self) {
        let Some(history) = self.chat_session.undo_history.clone() else {
            return self.show_lines(&note_lines("This session keeps no copies of files."));
        };
        // Files are read and compared, which may take a moment.
        let found = tokio::task::spawn_blocking(move || find_undo(history)).await;
        let Ok((passed_over, proposed)) = found else { return };
        for (step, paths) in &passed_over {
            self.show_folded(&passed_lines(step, paths));
        }
        let Some(proposed) = proposed else {
            return self.show_lines(&note_lines("There is no change of a file to undo."));
        };
        self.show_folded(&proposal_lines(&proposed));
        self.proposed_undo = Some(proposed);
        let keyboard_input = self.keyboard_input.clone();
        let prompt = InputPrompt::Other { name: "put back? [y]es / [n]o".to_owned() };
        let reply = move |input| drop(keyboard_input.send(KeyboardInput::Undo(input)));
        let nothing = InitialInput::Text(String::new());
        self.line_ticket = Some(self.keyboard.read_line(prompt, nothing, reply));
    }

    /// Puts the files back if the answer is yes. Every other answer is a no.
    pub(super) async fn handle_undo_answer(&mut self, input: LineInput) {
        self.line_ticket = None;
        let Some(proposed) = self.proposed_undo.take() else { return };
        match input {
            LineInput::Line(line) if is_yes(&line) => self.undo(proposed).await,
            LineInput::End => self.next_action = Some(NextAction::Leave),
            _ => self.show_lines(&note_lines("Nothing was changed.")),
        }
    }

    fn show_folded(&self, lines: &[StyledLine]) {
        let width = self.view.columns();
        let folded: Vec<_> = lines.iter().flat_map(|line| line.fold_to_width(width, 2)).collect();
        self.show_lines(&folded);
    }

    async fn undo(&self, proposed: ProposedUndo) {
        let registry = self.roles.registry();
        let ProposedUndo { history, step, paths } = proposed;
        let count = paths.iter().filter(|path| path.action.is_ok()).count();
        // Work that has begun is done to its end, even if the program is asked to end.
        let restored = tokio::task::spawn_blocking(move || {
            registry.sandbox().restore_paths(&history, &step, &paths)
        });
        let Ok(failed) = restored.await else { return };
        let failures = failed.iter().map(|(path, error)| {
            view::error_line(&format!("cannot put back {}: {error}", text::escape_line(path)))
        });
        self.show_lines(&failures.collect::<Vec<_>>());
        let done = count - failed.len();
        self.show_lines(&note_lines(&format!("Put back: {}.", format_count(done, "path"))));
    }
}

/// The newest step of which something can be put back, and those that were passed over.
fn find_undo(history: UndoHistory) -> (Vec<PassedOver>, Option<ProposedUndo>) {
    let mut passed_over = Vec::new();
    for step in history.steps() {
        let paths = history.plan(&step);
        if paths.iter().any(|path| path.action.is_ok()) {
            return (passed_over, Some(ProposedUndo { history, step, paths }));
        }
        if !paths.is_empty() && passed_over.len() < PASSED_OVER_MAX {
            passed_over.push((step, paths));
        }
    }
    (passed_over, None)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

fn passed_lines(step: &UndoStep, paths: &[PathRestoration]) -> Vec<StyledLine> {
    let head = format!("{} cannot be undone:", text::escape_line(&step.tool));
    let mut lines = note_lines(&head);
    lines.extend(list_lines(paths));
    lines
}

fn proposal_lines(proposed: &ProposedUndo) -> Vec<StyledLine> {
    let ProposedUndo { step, paths, .. } = proposed;
    let mut lines = note_lines(&format!("Undo {}:", text::escape_line(&step.tool)));
    lines.extend(list_lines(paths));
    if step.is_partial {
        lines.extend(note_lines("The call changed more paths, of which nothing was kept."));
    }
    if step.is_cut_off() {
        let unknown = "The call did not end, so changes made after it are undone too.";
        lines.push(view::warning_line(unknown));
    }
    lines
}

fn list_lines(paths: &[PathRestoration]) -> Vec<StyledLine> {
    let mut lines: Vec<_> = paths.iter().take(PATHS_SHOWN_MAX).flat_map(path_lines).collect();
    let more = paths.len().saturating_sub(PATHS_SHOWN_MAX);
    if more > 0 {
        lines.extend(note_lines(&format!("… and {} more", format_count(more, "path"))));
    }
    lines
}

fn path_lines(path: &PathRestoration) -> Vec<StyledLine> {
    let host = text::escape_line(&path.host.to_string_lossy());
    let what = match &path.action {
        Ok(RestoreAction::Write { .. }) => format!("~ {host}: as before the call"),
        Ok(RestoreAction::Create(kept)) => format!("+ {host}: created again, {} bytes", kept.len()),
        Ok(RestoreAction::Remove) => format!("- {host}: removed (the call created it)"),
        Ok(RestoreAction::CreateFolder) => format!("+ {host}/: created again"),
        Ok(RestoreAction::RemoveFolder) => {
            format!("- {host}/: removed if empty (the call created it)")
        }
        Err(_) => format!("! {host}: stays as it is"),
    };
    let mut lines = vec![StyledLine::plain(what)];
    match &path.action {
        Ok(RestoreAction::Write { current, kept }) => {
            lines.extend(difference_lines(current.as_deref(), kept));
        }
        Err(reason) => lines.extend(note_lines(&format!("  {reason}"))),
        Ok(_) => {}
    }
    lines
}

/// The difference of two texts, or the sizes of what is not text.
fn difference_lines(current: Option<&[u8]>, kept: &[u8]) -> Vec<StyledLine> {
    let as_text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    match (current.and_then(as_text), as_text(kept)) {
        (Some(old), Some(new)) => FileChange { old, new }.brief_diff_lines(),
        _ => {
            let now = current.map_or("many".to_owned(), |current| current.len().to_string());
            note_lines(&format!("{now} bytes now, {} bytes before", kept.len()))
        }
    }
}
