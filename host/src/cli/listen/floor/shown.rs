//! Output of a session that no plugin shows, and output for the user only.

use sallyport_contract::{Outcome, text};
use sallyport_model::ReplyDelta;
use sallyport_runtime::roles::origin_text;
use sallyport_session::SessionEvent;

use super::Floor;
use crate::cli::show;

/// Most characters of an input shown with its origin.
const INPUT_CHARS_MAX: usize = 120;

impl Floor<'_> {
    /// Shows the policy that would allow a denied call, to the user only and never to a plugin.
    pub(super) fn show_fix(&self, outcome: &Outcome) {
        if let Outcome::Denied(denial) = outcome {
            let file = self.settings.policy.user_file();
            self.screen.with(|out| show::fix(denial, file, out));
        }
    }

    /// Shows an event if no plugin does.
    pub(super) fn show(&mut self, event: &SessionEvent) {
        let is_written = matches!(&self.turn, Some(Some(origin)) if self.is_heard(origin));
        match event {
            SessionEvent::InputAccepted { text, origin: Some(origin), .. } if !is_written => {
                let (from, text) =
                    (origin_text(origin), text::escape_excerpt(text, INPUT_CHARS_MAX));
                self.screen.with(|out| out.note(&format!("> {from}: {text}")));
            }
            SessionEvent::Delta(ReplyDelta::Text(piece)) if !is_written => {
                let is_shown = self.screen.with(|out| {
                    if out.stdout_is_terminal {
                        out.piece(piece);
                    }
                    out.stdout_is_terminal
                });
                self.is_streamed |= is_shown;
            }
            SessionEvent::MessageComplete { .. } if self.is_streamed => {
                self.screen.with(|out| out.line(""));
            }
            SessionEvent::CallFinished { tool, report, .. } => {
                self.screen.with(|out| out.note(&format!("· {tool} {}", show::ending(report))));
            }
            SessionEvent::Noticed { notice } => {
                self.screen.with(|out| out.notice(notice));
            }
            SessionEvent::Notice(notice) => self.screen.with(|out| out.warn(&notice.to_string())),
            _ => {}
        }
    }
}
