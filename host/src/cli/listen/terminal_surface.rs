//! The terminal as a UI plugin draws on it: lines, and one status line below them.

use std::sync::{Mutex, PoisonError};

use sallyport_contract::{services::TextStyle, text};
use sallyport_runtime::roles::ui::UiSurface;

use crate::cli::output::CliOutput;

/// Most characters of a status, so that it fits on one line.
const STATUS_CHARS_MAX: usize = 72;

/// The terminal, or a redirected output.
#[derive(Debug)]
pub(super) struct TerminalSurface {
    out: CliOutput,
    status: Mutex<Option<String>>,
}

impl TerminalSurface {
    pub(super) fn new(out: CliOutput) -> Self {
        Self { out, status: Mutex::default() }
    }

    /// Prints while the status line is hidden.
    pub(super) fn with_output<T>(&self, print: impl FnOnce(&CliOutput) -> T) -> T {
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if status.is_some() {
            self.out.set_status(None);
        }
        let result = print(&self.out);
        if status.is_some() {
            self.out.set_status(status.as_deref());
        }
        result
    }
}

impl UiSurface for TerminalSurface {
    fn print(&self, text: &str, style: TextStyle) {
        self.with_output(|out| out.print_drawn(text, style));
    }

    /// Sets the status line. In a file, each change would be another line, so only a terminal has
    /// one.
    fn set_status(&self, text: Option<&str>) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.out.stderr_is_terminal || (status.is_none() && text.is_none()) {
            return;
        }
        *status = text.map(|text| text::escape_excerpt(text, STATUS_CHARS_MAX));
        self.out.set_status(status.as_deref());
    }
}
