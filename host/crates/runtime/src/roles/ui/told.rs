//! What happens in a session, in the words of a UI.

use sallyport_contract::ApprovalRequest;
use sallyport_model::Delta;
use sallyport_sandbox::roles::{
    Activity, Author, Format, ToolCallRequest, ToolCallResult, UiEvent, UiMessage,
};
use sallyport_session::{Event, State, TurnEnd};

use crate::roles::whose;

/// Returns what a UI is told of something that happens in its session.
pub(crate) fn events(event: &Event) -> Vec<UiEvent> {
    match event {
        Event::State(State::Ready) => {
            vec![UiEvent::StateChanged(Activity::Ready), UiEvent::ReadyForInput]
        }
        Event::State(state) => vec![UiEvent::StateChanged(activity(*state))],
        Event::InputAccepted { text, origin, .. } => {
            let origin = origin.as_ref().map(whose);
            vec![said(Author::User, Format::Text, text, origin)]
        }
        Event::Delta(Delta::Text(text)) => vec![UiEvent::Delta(text.clone())],
        Event::MessageComplete { text, .. } if text.is_empty() => Vec::new(),
        Event::MessageComplete { text, .. } => {
            vec![said(Author::Assistant, Format::Markdown, text, None)]
        }
        Event::ApprovalNeeded { confirmation_id, request, .. } => {
            vec![UiEvent::ToolCallRequested(question(*confirmation_id, request))]
        }
        Event::ApprovalClosed { confirmation_id } => {
            vec![UiEvent::ConfirmationClosed(*confirmation_id)]
        }
        Event::CallFinished { tool, report, .. } => {
            vec![UiEvent::ToolCallFinished(ToolCallResult {
                tool: tool.to_string(),
                outcome: report.outcome.word().to_owned(),
                data: report.outcome.to_model().to_string(),
            })]
        }
        Event::TurnEnded { reason, .. } => ending(reason).into_iter().collect(),
        Event::Noticed { notice } => {
            let origin = Some(notice.plugin.to_string());
            vec![said(Author::Notice, Format::Text, &notice.text, origin)]
        }
        Event::Notice(notice) => vec![beside(&notice.to_string())],
        Event::Delta(_)
        | Event::CallRequested { .. }
        | Event::ArgumentsEdited { .. }
        | Event::Progress { .. }
        | Event::Undone { .. }
        | Event::ModelChanged { .. }
        | Event::Summarized { .. }
        | Event::Pinned { .. } => Vec::new(),
    }
}

fn activity(state: State) -> Activity {
    match state {
        State::Ready => Activity::Ready,
        State::Thinking => Activity::Thinking,
        State::Executing => Activity::Executing,
        State::WaitingForApproval => Activity::WaitingForApproval,
    }
}

pub(super) fn said(
    author: Author,
    format: Format,
    content: &str,
    origin: Option<String>,
) -> UiEvent {
    UiEvent::NewMessage(UiMessage { author, content: content.to_owned(), format, origin })
}

fn beside(text: &str) -> UiEvent {
    said(Author::Notice, Format::Text, text, None)
}

/// How a turn ended, where its messages do not say it.
fn ending(end: &TurnEnd) -> Option<UiEvent> {
    match end {
        TurnEnd::Answered { .. } => None,
        TurnEnd::Spoken { text } => Some(said(Author::Assistant, Format::Text, text, None)),
        TurnEnd::BudgetReached { what } => Some(beside(&format!("stopped: {what}"))),
        TurnEnd::ModelFailed(error) => Some(beside(&error.to_string())),
        TurnEnd::Cancelled => Some(beside("cancelled")),
        TurnEnd::InputRefused(error) => Some(beside(&error.to_string())),
    }
}

/// The arguments of a call that was admitted as JSON text; a text that is none is told as one.
fn question(confirmation_id: u64, request: &ApprovalRequest) -> ToolCallRequest {
    let text = request.call.arguments.trim();
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let arguments = match text {
        "" => "{}".to_owned(),
        text if is_json => text.to_owned(),
        text => serde_json::Value::from(text).to_string(),
    };
    ToolCallRequest {
        confirmation_id,
        tool: request.call.tool.to_string(),
        arguments,
        security_warning: Some(warning(request)),
    }
}

/// Why somebody is asked, and what the plugin could do.
fn warning(request: &ApprovalRequest) -> String {
    let query = request.query.as_deref().unwrap_or_default();
    let act = match &request.subject {
        sallyport_contract::Subject::Call => String::new(),
        sallyport_contract::Subject::Access { what } => format!("It wants to {what}{query}. "),
    };
    let powers = match &request.powers[..] {
        [] => String::new(),
        powers => format!(" {} can: {}.", request.call.tool.plugin, powers.join("; ")),
    };
    format!("{act}Asked because of: {}.{powers}", request.reason)
}
