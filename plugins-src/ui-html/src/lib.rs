//! A user interface that shows a session as a web page, with buttons to approve and deny.
//!
//! The page polls for news and sends the user's actions. It is self-contained and loads nothing
//! else. Content is inserted as text, never as markup.
//!
//! Suggested reading order: `log`, `question`, `facts`, `serve`, `page`.

mod facts;
mod log;
mod page;
mod question;
mod serve;
mod visible;

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
            Event::Other(other) => self.facts.take(other),
            Event::ReadyForInput => {}
        }
    }
}

/// Submits a line from the host's terminal, like input from the page.
fn submit(line: &str) {
    if let Err(error) = ui::submit_input(line) {
        warn(format!("a line was not taken: {error}"));
    }
}

sallyport_sdk::export_plugin!(ui = Log, http = serve::answer);

#[cfg(test)]
mod tests;
