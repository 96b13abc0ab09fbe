//! A user interface that prints a session as plain lines and reads answers from the keyboard.
//!
//! A line answers the question on the screen; without one it is input. Of several questions, the
//! oldest is on the screen.

mod words;

use std::collections::VecDeque;

use sallyport_sdk::ui::{
    self, Activity, Author, CallRequest, CommandError, Event, Message, Style, Ui,
};

use words::{ANSWERS, Answer};

/// The line that cancels the current turn.
const CANCEL: &str = "/cancel";

/// Maximum number of waiting questions. Further ones are not shown, so they cannot be approved.
const QUESTIONS_MAX: usize = 64;

/// Maximum length of the unfinished answer in the status line, in characters.
const DRAFT_CHARS_MAX: usize = 60;

/// The state of the interface.
#[derive(Debug, Default)]
struct Lines {
    /// The waiting questions. The first one is on the screen.
    questions: VecDeque<CallRequest>,
    /// The end of the unfinished answer.
    draft: String,
}

impl Ui for Lines {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::NewMessage(message) => self.show(&message),
            Event::Delta(text) => self.extend_draft(&text),
            Event::ToolCallRequested(request) => self.ask(request),
            Event::ConfirmationClosed(id) => self.close(&id),
            Event::ToolCallFinished(result) => {
                let style = if result.is_completed() { Style::Faint } else { Style::Failure };
                ui::print(&words::result(&result), style);
            }
            Event::ReadyForInput => ui::status(None),
            Event::StateChanged(activity) => status(activity),
            Event::Line(line) => self.take(line.trim()),
            Event::Other(_) => {}
        }
    }
}

impl Lines {
    /// Prints a message. The user's own input is already on the screen.
    fn show(&mut self, message: &Message) {
        match (message.author, &message.origin) {
            (Author::User, None) => {}
            (Author::User, Some(origin)) => {
                ui::print(
                    &words::foreign(&format!("{origin}: {}", message.content)),
                    Style::Strong,
                );
            }
            (Author::Assistant, _) => {
                self.draft.clear();
                ui::status(None);
                ui::print(&message.content, Style::Plain);
            }
            (Author::Notice, _) => {
                ui::print(&words::foreign(&format!("* {}", message.content)), Style::Strong);
            }
        }
    }

    fn extend_draft(&mut self, text: &str) {
        self.draft.push_str(text);
        let line = self.draft.lines().next_back().unwrap_or_default();
        let skipped = line.chars().count().saturating_sub(DRAFT_CHARS_MAX);
        let end: String = line.chars().skip(skipped).collect();
        ui::status(Some(&end).filter(|end| !end.is_empty()).map(String::as_str));
        // Only the last line is shown, so nothing before it is kept.
        self.draft = if text.ends_with('\n') { String::new() } else { end };
    }

    fn ask(&mut self, request: CallRequest) {
        if self.questions.len() == QUESTIONS_MAX {
            return;
        }
        self.questions.push_back(request);
        if self.questions.len() == 1 {
            self.show_question();
        }
    }

    fn show_question(&self) {
        let Some(request) = self.questions.front() else { return };
        if let Some(warning) = &request.security_warning {
            ui::print(warning, Style::Warning);
        }
        ui::print(&words::question(request), Style::Strong);
    }

    fn close(&mut self, confirmation_id: &str) {
        let was_shown = self.is_shown(confirmation_id);
        self.questions.retain(|request| request.confirmation_id != confirmation_id);
        if was_shown {
            self.show_question();
        }
    }

    fn is_shown(&self, confirmation_id: &str) -> bool {
        self.questions.front().is_some_and(|first| first.confirmation_id == confirmation_id)
    }

    fn take(&mut self, line: &str) {
        let question = self.questions.front().map(|request| request.confirmation_id.clone());
        match question {
            _ if line.is_empty() => {}
            _ if line == CANCEL => tell(ui::cancel()),
            Some(id) => self.answer(&id, line),
            None => tell(ui::submit_input(line)),
        }
    }

    fn answer(&mut self, confirmation_id: &str, line: &str) {
        let approved = match words::answer(line) {
            Some(Answer::Yes) => true,
            Some(Answer::No) => false,
            None => return ui::print(&format!("Please answer {ANSWERS}."), Style::Warning),
        };
        tell(ui::confirm(confirmation_id, approved));
        self.close(confirmation_id);
    }
}

fn status(activity: Activity) {
    ui::status(match activity {
        Activity::Ready | Activity::WaitingForApproval => None,
        Activity::Thinking => Some("thinking"),
        Activity::Executing => Some("working"),
    });
}

/// Prints the error of a failed command.
fn tell(outcome: Result<(), CommandError>) {
    if let Err(error) = outcome {
        ui::print(&error.to_string(), Style::Failure);
    }
}

sallyport_sdk::export_plugin!(ui = Lines);

#[cfg(test)]
mod tests;
