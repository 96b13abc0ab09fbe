//! `render`: drawings of a UI where the host has a screen. A drawing needs a seat at a session and
//! counts against the output limit.

use std::sync::Arc;

use sallyport_contract::services::{self, UiSession};
use sallyport_policy::{ByteSize, Capability};

use crate::{
    bindings::v0_1::sallyport::plugin::render::{Host, Style},
    guest::Guest,
};

/// Longest status in bytes: one line of a wide screen in multi-byte characters. The rest is cut.
const STATUS_BYTES_MAX: usize = 1024;

/// The cost of each drawing in addition to its text, in bytes, so that empty drawings are not free.
const DRAWING_BYTES: u64 = 16;

impl Host for Guest {
    fn print(&mut self, text: String, style: Style) -> wasmtime::Result<()> {
        if let Some(ui_session) = self.require_drawing_seat(text.len()) {
            ui_session.print_text(
                &self.run_context.authorizer().redactor().redact_text(&text),
                style_from_guest(style),
            );
        }
        Ok(())
    }

    fn status(&mut self, text: Option<String>) -> wasmtime::Result<()> {
        // Redacted before it is cut, so that no part of a secret is left.
        let redactor = self.run_context.authorizer().redactor();
        let text = text.map(|text| truncate_status(&redactor.redact_text(&text)).to_owned());
        if let Some(ui_session) = self.require_drawing_seat(text.as_ref().map_or(0, String::len)) {
            ui_session.set_status(text.as_deref());
        }
        Ok(())
    }
}

fn truncate_status(text: &str) -> &str {
    &text[..text.floor_char_boundary(STATUS_BYTES_MAX)]
}

impl Guest {
    /// The run's seat at the session, if the run may draw this many more bytes. After the first
    /// drawing that exceeds the limit, nothing more is drawn.
    fn require_drawing_seat(&mut self, bytes: usize) -> Option<Arc<dyn UiSession>> {
        let (grant, what) = (self.run_context.current_grant(), "draw");
        let Some(ui_session) = &self.run_context.role_links.ui_session else {
            self.run_context.record_missing_role(what);
            return None;
        };
        if grant.ui().is_none() {
            self.run_context.effect_log.record_refusal(grant.deny_capability(Capability::Ui, what));
            return None;
        }
        let bytes_max = grant.limits().output_bytes;
        self.counters.drawn_bytes += DRAWING_BYTES + bytes as u64;
        if self.counters.drawn_bytes > bytes_max {
            let limit = format!("{} drawn in one run (limits.output)", ByteSize(bytes_max));
            self.run_context.effect_log.record_limit(limit);
            return None;
        }
        Some(Arc::clone(ui_session))
    }
}

fn style_from_guest(style: Style) -> services::TextStyle {
    match style {
        Style::Plain | Style::Other(_) => services::TextStyle::Plain,
        Style::Strong => services::TextStyle::Strong,
        Style::Faint => services::TextStyle::Faint,
        Style::Warning => services::TextStyle::Warning,
        Style::Failure => services::TextStyle::Failure,
    }
}
