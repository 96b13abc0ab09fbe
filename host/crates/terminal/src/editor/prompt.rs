//! The prompt in front of the typed line.

use std::borrow::Cow;

use reedline::{
    Color, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, PromptViMode,
};
use sallyport_contract::text;

/// Most characters of a name in a prompt. Longer names would leave too little room for the line.
const NAME_CHARS_MAX: usize = 32;

/// The kind of input that is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPrompt {
    /// A message for a model, or a slash command. It is stored in the history and has completions.
    Message {
        /// The model's name.
        model: String,
    },
    /// Any other input: the reason for a denial, arguments, a file. It is not stored in the
    /// history.
    Other {
        /// Name of the input.
        name: String,
    },
}

impl InputPrompt {
    fn display_name(&self) -> String {
        match self {
            Self::Message { model: name } | Self::Other { name } => {
                text::escape_excerpt(name, NAME_CHARS_MAX)
            }
        }
    }
}

impl reedline::Prompt for InputPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        self.display_name().into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, mode: PromptEditMode) -> Cow<'_, str> {
        match mode {
            PromptEditMode::Vi(PromptViMode::Normal | PromptViMode::Visual) => ": ".into(),
            _ => "> ".into(),
        }
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "  ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let nothing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "no match for ",
        };
        format!(" (search: {nothing}{}) ", text::escape_line(&search.term)).into()
    }

    fn get_prompt_color(&self) -> Color {
        Color::DarkGray
    }

    fn get_indicator_color(&self) -> Color {
        Color::Cyan
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::DarkGray
    }
}
