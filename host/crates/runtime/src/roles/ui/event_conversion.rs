//! Converts the events of a session into the events of a UI.

use sallyport_contract::{ApprovalRequest, ApprovalSubject, BodyEncoding, RequestPreview, text};
use sallyport_model::ReplyDelta;
use sallyport_sandbox::roles::{
    UiActivity, UiEvent, UiMessage, UiMessageAuthor, UiTextFormat, UiToolCallRequest,
    UiToolCallResult,
};
use sallyport_session::{SessionActivity, SessionEvent, TurnEnd};
use serde_json::{Value, json};

use crate::roles::origin_text;

/// Characters of a component's digest that are shown; enough to compare two versions by eye.
const DIGEST_CHARS: usize = 12;

/// Size limit of an access's description in bytes: the most that a page shows of one text.
const ACCESS_BYTES_MAX: usize = 60 * 1024;

/// Returns the UI events for an event of the session.
pub fn convert_event(event: &SessionEvent) -> Vec<UiEvent> {
    match event {
        SessionEvent::State { state: SessionActivity::Ready } => {
            vec![UiEvent::StateChanged(UiActivity::Ready), UiEvent::ReadyForInput]
        }
        SessionEvent::State { state } => vec![UiEvent::StateChanged(convert_activity(*state))],
        SessionEvent::InputAccepted { text, origin, .. } => {
            let origin = origin.as_ref().map(origin_text);
            vec![new_message_event(UiMessageAuthor::User, UiTextFormat::Text, text, origin)]
        }
        SessionEvent::Delta(ReplyDelta::Text { text }) => vec![UiEvent::Delta(text.clone())],
        SessionEvent::MessageComplete { text, .. } if text.is_empty() => Vec::new(),
        SessionEvent::MessageComplete { text, .. } => {
            vec![new_message_event(UiMessageAuthor::Assistant, UiTextFormat::Markdown, text, None)]
        }
        SessionEvent::ApprovalNeeded { confirmation_id, request, .. } => {
            vec![UiEvent::ToolCallRequested(tool_call_request(*confirmation_id, request))]
        }
        SessionEvent::ApprovalClosed { confirmation_id } => {
            vec![UiEvent::ConfirmationClosed(*confirmation_id)]
        }
        SessionEvent::CallFinished { call_id, tool, report, .. } => {
            vec![UiEvent::ToolCallFinished(UiToolCallResult {
                call_id: call_id.clone(),
                tool: tool.to_string(),
                outcome: report.outcome.as_str().to_owned(),
                data: report.outcome.to_model_value().to_string(),
            })]
        }
        SessionEvent::TurnEnded { reason, .. } => turn_end_event(reason).into_iter().collect(),
        SessionEvent::Noticed { notice } => {
            let origin = Some(notice.plugin.to_string());
            vec![new_message_event(
                UiMessageAuthor::Notice,
                UiTextFormat::Text,
                &notice.text,
                origin,
            )]
        }
        SessionEvent::Notice(notice) => vec![notice_event(&notice.to_string())],
        SessionEvent::Delta(_)
        | SessionEvent::CallRequested { .. }
        | SessionEvent::ArgumentsEdited { .. }
        | SessionEvent::Progress { .. }
        | SessionEvent::ResultKept { .. }
        | SessionEvent::Undone { .. }
        | SessionEvent::ModelChanged { .. }
        | SessionEvent::Summarized { .. }
        | SessionEvent::Pinned { .. } => Vec::new(),
    }
}

fn convert_activity(state: SessionActivity) -> UiActivity {
    match state {
        SessionActivity::Ready => UiActivity::Ready,
        SessionActivity::Thinking => UiActivity::Thinking,
        SessionActivity::Executing => UiActivity::Executing,
        SessionActivity::WaitingForApproval => UiActivity::WaitingForApproval,
    }
}

pub(super) fn new_message_event(
    author: UiMessageAuthor,
    format: UiTextFormat,
    content: &str,
    origin: Option<String>,
) -> UiEvent {
    UiEvent::NewMessage(UiMessage { author, content: content.to_owned(), format, origin })
}

fn notice_event(text: &str) -> UiEvent {
    new_message_event(UiMessageAuthor::Notice, UiTextFormat::Text, text, None)
}

/// The message for the end of a turn, where the turn's own messages do not show it.
fn turn_end_event(end: &TurnEnd) -> Option<UiEvent> {
    match end {
        TurnEnd::Answered { .. } => None,
        TurnEnd::Spoken { text } => {
            Some(new_message_event(UiMessageAuthor::Assistant, UiTextFormat::Text, text, None))
        }
        TurnEnd::BudgetReached { limit: what } => Some(notice_event(&format!("stopped: {what}"))),
        TurnEnd::ModelFailed(error) => Some(notice_event(&error.to_string())),
        TurnEnd::Cancelled => Some(notice_event("cancelled")),
        TurnEnd::InputRefused(error) => Some(notice_event(&error.to_string())),
    }
}

/// The question about a call. Arguments that are not JSON are converted into a JSON string.
fn tool_call_request(confirmation_id: u64, request: &ApprovalRequest) -> UiToolCallRequest {
    let text = request.call.arguments.trim();
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let arguments = match text {
        "" => "{}".to_owned(),
        text if is_json => text.to_owned(),
        text => Value::from(text).to_string(),
    };
    UiToolCallRequest {
        confirmation_id,
        call_id: request.call.context.call_id.clone(),
        tool: request.call.tool.to_string(),
        arguments,
        security_warning: Some(security_warning(request)),
        extra: Some(question_parts(request).to_string()),
    }
}

/// The parts of the question, for a UI that lays them out in its own way. Absent parts are left
/// out.
fn question_parts(request: &ApprovalRequest) -> Value {
    let mut parts = json!({
        "plugin": request.call.tool.plugin,
        "version": request.plugin_version,
        "digest": request.plugin_digest,
        "reason": request.reason,
        "permissions": request.capabilities,
    });
    let access = Some(access_description(request)).filter(|text| !text.is_empty());
    let optional = [
        ("access", access.map(Value::from)),
        ("always", request.rule.as_deref().map(Value::from)),
        ("request", request.request.as_deref().map(|preview| json!(preview))),
    ];
    for (name, part) in optional {
        if let Some(part) = part {
            parts[name] = part;
        }
    }
    parts
}

/// Describes the access with all data that would leave, the reason for the question, and the
/// plugin's powers.
fn security_warning(request: &ApprovalRequest) -> String {
    let access_text = access_description(request);
    let powers = match &request.capabilities[..] {
        [] => String::new(),
        powers => format!(" {} can: {}.", request.call.tool.plugin, powers.join("; ")),
    };
    let digest: String = request.plugin_digest.chars().take(DIGEST_CHARS).collect();
    let plugin = format!(
        " {} is version {}, digest {digest}.",
        request.call.tool.plugin, request.plugin_version
    );
    format!("{access_text}Asked because of: {}.{powers}{plugin}", request.reason)
}

/// Describes the access of a running call, each part on lines of its own; empty for a call.
fn access_description(request: &ApprovalRequest) -> String {
    let ApprovalSubject::Access { what } = &request.subject else { return String::new() };
    match request.request.as_deref() {
        Some(preview) => format!("It wants to {what}.{}\n", request_parts_text(preview)),
        None => format!("It wants to {what}. "),
    }
}

/// Lists all parts of a request that would leave, each after its name. Invisible characters are
/// escaped.
fn request_parts_text(request: &RequestPreview) -> String {
    let mut parts = String::new();
    if !request.query.is_empty() {
        parts += &format!("\nquery: {}", text::escape_line(&request.query));
    }
    for (name, value) in &request.headers {
        parts += &format!("\nheader {}: {}", text::escape_line(name), text::escape_line(value));
    }
    if let Some(body) = &request.body {
        let kind = body.media_type.as_deref().map_or("no type".to_owned(), text::escape_line);
        let encoding_note = match body.encoding {
            BodyEncoding::Text => "",
            BodyEncoding::Hex => ", not text, in hexadecimal",
        };
        let bytes = body.length_bytes;
        parts += &format!("\nbody: {kind}, {bytes} bytes{encoding_note}, blake3 {}", body.digest);
        // The bar marks each line, so that no line looks like another part.
        let lines = body.content.split('\n').map(|line| format!("\n│ {}", text::escape_line(line)));
        parts.extend(lines);
    }
    parts + "\nA yes that lasts holds for any query, headers and body of this address."
}

/// Whether a question fits into one event of a UI. The user cannot answer a longer one there, and
/// an event has no place for a grant or a form.
pub fn fits_in_event(request: &ApprovalRequest) -> bool {
    request.grant_question().is_none()
        && request.form_question().is_none()
        && access_description(request).len() <= ACCESS_BYTES_MAX
}
