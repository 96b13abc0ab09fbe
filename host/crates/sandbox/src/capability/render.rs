//! `render`: drawings of a UI where the host has a screen. A drawing needs a seat at a session and
//! counts against the output limit.

use std::sync::Arc;

use sallyport_contract::services::{self, UiSession};
use sallyport_policy::ByteSize;

use super::HostCall;
use crate::bindings::v0_1::sallyport::plugin::render::{Host, Style};

/// Longest status in bytes: one line of a wide screen in multi-byte characters. The rest is cut.
const STATUS_BYTES_MAX: usize = 1024;

/// The cost of each drawing in addition to its text, in bytes, so that empty drawings are not free.
const DRAWING_BYTES: u64 = 16;

impl Host for HostCall<'_> {
    fn print(&mut self, text: String, style: Style) -> wasmtime::Result<()> {
        if let Some(ui_session) = self.find_drawing_seat(text.len()) {
            let text = self.run_context.authorizer().redactor().redact_text(&text).into_owned();
            ui_session.print_text(&text, style_from_guest(style));
        }
        Ok(())
    }

    fn status(&mut self, text: Option<String>) -> wasmtime::Result<()> {
        let text = text.map(|text| self.redact_and_cut(&text, STATUS_BYTES_MAX));
        if let Some(ui_session) = self.find_drawing_seat(text.as_ref().map_or(0, String::len)) {
            ui_session.set_status(text.as_deref());
        }
        Ok(())
    }
}

impl HostCall<'_> {
    /// The run's seat at the session, if the run may draw this many more bytes. After the first
    /// drawing that exceeds the limit, nothing more is drawn.
    fn find_drawing_seat(&mut self, bytes: usize) -> Option<Arc<dyn UiSession>> {
        let ui_session = self.allow_or_record(self.check_seat("draw", |_| true))?;
        let bytes_max = self.run_context.current_grant().limits().output_bytes;
        if self.counters.add("drawn bytes", DRAWING_BYTES + bytes as u64) > bytes_max {
            self.reach_limit(format!("{} drawn in one run (limits.output)", ByteSize(bytes_max)));
            return None;
        }
        Some(ui_session)
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
