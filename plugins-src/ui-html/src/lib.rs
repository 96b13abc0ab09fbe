//! Shows a session as a page in a browser, with buttons to approve and deny.
//!
//! The page asks for what is new, and says what the person did. All it needs is in it: it loads
//! nothing, and whatever is shown gets there as text, never as markup.
//!
//! Suggested reading order: `log`, `serve`, `page`.

mod log;
mod page;
mod serve;

use sallyport_sdk::{
    log::warn,
    ui::{self, Event, Ui},
};

use log::Log;

impl Ui for Log {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::NewMessage(message) => self.message(&message),
            Event::Delta(text) => self.extend_draft(&text),
            Event::ToolCallRequested(request) => self.open(request),
            Event::ConfirmationClosed(id) => self.close(&id),
            Event::ToolCallFinished(result) => self.call(&result),
            Event::StateChanged(activity) => self.set_activity(activity),
            Event::Line(line) => submit(&line),
            Event::ReadyForInput | Event::Other(_) => {}
        }
    }
}

/// A line that was typed where the host was started is input like one that was typed on the page.
fn submit(line: &str) {
    if let Err(error) = ui::submit_input(line) {
        warn(format!("a line was not taken: {error}"));
    }
}

sallyport_sdk::export_plugin!(ui = Log, http = serve::answer);

#[cfg(test)]
mod tests;
