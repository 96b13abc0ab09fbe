//! Messages at the beginning and the end of a session.

use std::sync::Arc;

use sallyport_contract::text;
use sallyport_policy::PluginRole;
use sallyport_runtime::config::provider::PLUGIN_PREFIX;
use sallyport_session::history::{self, PastCall, PastTurn, TurnStep};
use sallyport_terminal::{editor::CompletionNames, style::StyledLine};

use super::{
    activity_tracker::ActivityTracker, call_details::FinishedCalls, chat_session::ChatSession,
    interactive::InteractiveChat, view::note_lines,
};
use crate::cli::{
    call_display,
    call_lines::{COMPLETED_MARK, INCOMPLETE_MARK},
    output::format_count,
    setup,
};

/// Number of turns shown from a resumed session. They suffice to recall the topic.
const TURNS_SHOWN: usize = 2;

/// Most characters shown of an input or an answer.
const EXCERPT_CHARS_MAX: usize = 400;

impl InteractiveChat<'_> {
    pub(super) async fn show_welcome(&mut self) {
        self.keyboard.set_completion_names(self.completion_vocabulary());
        let tools = format_count(self.roles.registry().tools().len(), "tool");
        let name = self.model.name();
        self.view.print_lines(&note_lines(&format!(
            "{name} · {tools} · /help for help, Ctrl-D to leave"
        )));
        if let Some(guide) = &self.session_config.guide {
            self.view
                .print_lines(&note_lines(&format!("guide: {} · /guide shows it", guide.plugin)));
        }
        if let Ok(snapshot) = self.chat_session.session.handle.snapshot().await {
            self.view.print_lines(&recent_turn_lines(&history::past_turns(&snapshot.records)));
        }
    }

    /// Switches to another session and returns the previous one.
    pub(super) fn replace_session(&mut self, chat_session: ChatSession) -> ChatSession {
        self.activity_tracker = ActivityTracker::default();
        self.last_turn = None;
        self.finished_calls = FinishedCalls::default();
        self.view.print_lines(&note_lines("New session."));
        self.model = Arc::clone(&chat_session.model);
        std::mem::replace(&mut self.chat_session, chat_session)
    }

    /// Explains how to resume the session if it can be resumed.
    pub(super) async fn farewell_text(&self) -> Option<String> {
        let session_id = &self.chat_session.session.session_id;
        let stored = setup::find_stored_session(self.settings, session_id).await?;
        (stored.used.turns > 0).then(|| format!("Resume with: {}", self.resume_command()))
    }

    /// Lists the models that have a name: those of the configuration, and provider plugins.
    pub(super) fn model_names(&self) -> Vec<String> {
        let configured = self.settings.models.entries.keys().cloned();
        let plugins = self.roles.plugins_with_role(PluginRole::Provider).into_iter();
        configured.chain(plugins.map(|entry| format!("{PLUGIN_PREFIX}{}", entry.name()))).collect()
    }

    fn completion_vocabulary(&self) -> CompletionNames {
        let registry = self.roles.registry();
        let tools = registry.tools().iter();
        CompletionNames {
            tools: tools.map(|tool| (tool.id.to_string(), tool.description.clone())).collect(),
            plugins: registry.entries().map(|entry| entry.name().to_string()).collect(),
            models: self.model_names(),
        }
    }
}

/// The last turns of a resumed session.
fn recent_turn_lines(turns: &[PastTurn]) -> Vec<StyledLine> {
    let first = turns.len().saturating_sub(TURNS_SHOWN);
    let earlier = match first {
        0 => Vec::new(),
        1 => note_lines("… 1 earlier turn"),
        count => note_lines(&format!("… {count} earlier turns")),
    };
    earlier.into_iter().chain(turns[first..].iter().flat_map(past_turn_lines)).collect()
}

fn past_turn_lines(turn: &PastTurn) -> Vec<StyledLine> {
    let mut lines =
        note_lines(&format!("> {}", text::escape_excerpt(&turn.input.text, EXCERPT_CHARS_MAX)));
    for step in &turn.steps {
        let words = match step {
            TurnStep::AssistantText { text } | TurnStep::Note { text } => {
                text::escape_excerpt(text, EXCERPT_CHARS_MAX)
            }
            TurnStep::ToolCall(call) => past_call_text(call),
        };
        lines.extend(note_lines(&words));
    }
    lines
}

fn past_call_text(call: &PastCall) -> String {
    let text = call_display::call_text(&call.tool, &call.arguments);
    match call.outcome.as_deref() {
        Some("completed") => format!("{COMPLETED_MARK} {text}"),
        ending => format!("{INCOMPLETE_MARK} {text} · {}", ending.unwrap_or("interrupted")),
    }
}
