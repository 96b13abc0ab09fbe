//! The form of an MCP server's question, filled in field by field below its card.

use sallyport_contract::{ApprovalAnswer, FormAnswer, FormField, text};
use sallyport_terminal::editor::LineInput;
use serde_json::{Map, Value};

use super::{inputs::KeyboardInput, interactive::InteractiveChat, view};
use crate::cli::consent::typed_value;

/// Longest name of a field in front of the line that is typed, in characters.
const NAME_CHARS_MAX: usize = 30;

/// The fields of a form that are filled in.
#[derive(Debug, Default)]
pub(super) struct FilledFields {
    /// How many have been read.
    count: usize,
    values: Map<String, Value>,
}

impl InteractiveChat<'_> {
    /// Begins to read the fields of a question, with the first one.
    pub(super) fn start_form(&mut self, id: u64) {
        if let Some(question) = self.questions.take_input(id) {
            question.filled = FilledFields::default();
            self.read_next_field(id, String::new());
        }
    }

    fn read_next_field(&mut self, id: u64, typed: String) {
        let Some(field) = self.next_field(id) else { return };
        self.show_lines(&view::note_lines(&text::escape_line(&field.summary())));
        let name = text::escape_excerpt(&field.name, NAME_CHARS_MAX);
        self.read_question_input(&name, typed, move |input| KeyboardInput::Field(id, input));
    }

    fn next_field(&self, id: u64) -> Option<FormField> {
        let question = self.questions.shown_question(id)?;
        let fields = &question.request.form_question()?.fields;
        fields.get(question.filled.count).cloned()
    }

    /// Takes the value of a field. One that does not fit is typed anew; leaving the line shows the
    /// card again.
    pub(super) async fn handle_field(&mut self, id: u64, input: LineInput) {
        let Some(field) = self.next_field(id) else { return };
        let Some(question) = self.questions.take_input(id) else { return };
        let line = match input {
            LineInput::Line(line) => line,
            LineInput::Withdrawn(_) => return,
            LineInput::Interrupted | LineInput::End | LineInput::CallDetails => {
                return self.show_question();
            }
        };
        match typed_value(&field, &line) {
            Ok(value) => {
                question.filled.count += 1;
                question.filled.values.extend(value.map(|value| (field.name, value)));
                self.continue_form(id).await;
            }
            Err(problem) => {
                self.show_lines(&[view::error_line(&text::escape_line(&problem))]);
                self.read_next_field(id, line);
            }
        }
    }

    async fn continue_form(&mut self, id: u64) {
        if self.next_field(id).is_some() {
            return self.read_next_field(id, String::new());
        }
        if let Some(question) = self.questions.take_input(id) {
            let values = std::mem::take(&mut question.filled.values);
            self.send_answer(id, ApprovalAnswer::Form(FormAnswer { values })).await;
        }
    }
}
