//! Output of a session that no plugin shows, and output for the user only.

use sallyport_contract::{Outcome, text};
use sallyport_model::ReplyDelta;
use sallyport_runtime::roles::origin_text;
use sallyport_session::SessionEvent;

use super::AttendedSession;
use crate::cli::call_display;

/// Most characters of an input shown with its origin.
const INPUT_CHARS_MAX: usize = 120;

impl AttendedSession<'_> {
    /// Shows the policy that would allow a denied call, to the user only and never to a plugin.
    pub(super) fn show_fix(&self, outcome: &Outcome) {
        if let Outcome::Denied(denial) = outcome {
            self.surface.with_output(|out| call_display::print_denial_fix(denial, out));
        }
    }

    /// Shows an event if no plugin does.
    pub(super) fn show_event(&mut self, event: &SessionEvent) {
        self.open_calls.apply_event(event);
        let is_written =
            matches!(&self.current_turn, Some(Some(origin)) if self.is_answered_on_stdin(origin));
        match event {
            SessionEvent::InputAccepted { text, origin: Some(origin), .. } if !is_written => {
                let (from, text) =
                    (origin_text(origin), text::escape_excerpt(text, INPUT_CHARS_MAX));
                self.surface.with_output(|out| out.print_note(&format!("> {from}: {text}")));
            }
            SessionEvent::Delta(ReplyDelta::Text { text: piece }) if !is_written => {
                let is_shown = self.surface.with_output(|out| {
                    if out.stdout_is_terminal {
                        out.print_piece(piece);
                    }
                    out.stdout_is_terminal
                });
                self.is_streamed |= is_shown;
            }
            SessionEvent::MessageComplete { .. } if self.is_streamed => {
                self.surface.with_output(|out| out.print_line(""));
            }
            SessionEvent::CallFinished { call_id, tool, report } => {
                let line = self.open_calls.take_line(call_id, tool, report);
                self.surface.with_output(|out| out.print_note(&line));
            }
            SessionEvent::Noticed { notice } => {
                self.surface.with_output(|out| out.print_notice(notice));
            }
            SessionEvent::Notice(notice) => {
                self.surface.with_output(|out| out.print_warning(&notice.to_string()))
            }
            _ => {}
        }
    }
}
