//! The whole text of a question to the user, for carriers that show plain text.
//!
//! It shows everything that a yes covers. Foreign text is escaped and marked, so it cannot imitate a
//! line of the question.

use serde_json::Value;

use sallyport_contract::{
    ApprovalRequest, ApprovalSubject, BodyEncoding, FormQuestion, GrantQuestion, RequestPreview,
    RequestedCall, fix::FOLDER_PLACEHOLDER, text,
};

/// Longest question, in bytes. Nobody reads a longer one, and a yes to a part is not a yes to all.
pub const QUESTION_BYTES_MAX: usize = 64 << 10;

/// Digits of a digest that are shown.
const DIGEST_CHARS: usize = 12;

/// Returns the text of a question. `None` if it is too long to be shown whole.
pub fn question_text(request: &ApprovalRequest) -> Option<String> {
    let text = question_lines(request).join("\n");
    (text.len() <= QUESTION_BYTES_MAX).then_some(text)
}

/// Returns the same question with a folder in the place that a grant leaves to the user.
#[must_use]
pub fn question_with_folder(mut request: ApprovalRequest, folder: &str) -> ApprovalRequest {
    let placeholder = Value::from(FOLDER_PLACEHOLDER).to_string();
    let folder = Value::from(folder).to_string();
    let fill = |text: &mut String| *text = text.replace(&placeholder, &folder);
    request.rule.as_mut().into_iter().for_each(fill);
    if let ApprovalSubject::Grant(question) = &mut request.subject {
        for choice in &mut question.choices {
            choice.grants.iter_mut().for_each(|grant| fill(&mut grant.entry));
            choice.change.as_mut().into_iter().for_each(fill);
        }
    }
    request
}

/// Everything that the user needs to decide.
fn question_lines(request: &ApprovalRequest) -> Vec<String> {
    let call = &request.call;
    let title = match &request.subject {
        ApprovalSubject::Call => format!("Allow {} to run?", call.tool),
        ApprovalSubject::Access { what } => {
            format!("Allow {} this: {}?", call.tool.plugin, text::escape_line(what))
        }
        ApprovalSubject::Grant(question) => {
            format!("Grant what is missing? {}", text::escape_line(&question.what))
        }
        ApprovalSubject::Form(_) => form_title(call),
    };
    let digest: String = request.plugin_digest.chars().take(DIGEST_CHARS).collect();
    let version = text::escape_line(&request.plugin_version);
    let plugin = format!("{} {version}, digest {digest}", call.tool.plugin);
    let mut lines = vec![title, String::new(), format!("plugin: {plugin}")];
    if request.subject != ApprovalSubject::Call {
        lines.push(format!("tool: {}", call.tool));
    }
    lines.extend(request.request.iter().flat_map(|shown| request_lines(shown)));
    lines.extend(request.form_question().into_iter().flat_map(|form| marked_lines(&form.message)));
    lines.extend(
        question_parts(request)
            .iter()
            .map(|(name, part)| format!("{name}: {}", text::escape_line(part))),
    );
    lines.extend(argument_lines(&call.arguments));
    lines.extend(request.capabilities.iter().map(|one| format!("can: {}", text::escape_line(one))));
    lines.push(format!("asked because: {}", text::escape_line(&request.reason)));
    if let Some(rule) = &request.rule {
        lines.push("\"always\" adds to your policy:".to_owned());
        lines.extend(marked_lines(rule));
    }
    lines
}

/// The first line of the question of a server. It names who reads the answer.
pub fn form_title(call: &RequestedCall) -> String {
    format!("The MCP server of {} asks you. It reads what you answer.", call.tool.plugin)
}

/// The parts that the user decides about, each after its name, if the question is about a grant or
/// asked by a server.
pub fn question_parts(request: &ApprovalRequest) -> Vec<(&'static str, String)> {
    let of_grant = request.grant_question().map(GrantQuestion::labeled_parts);
    of_grant
        .or_else(|| request.form_question().map(FormQuestion::labeled_parts))
        .unwrap_or_default()
}

/// One line for each argument.
fn argument_lines(arguments: &str) -> Vec<String> {
    let line = |name: &str, value: &str| format!("argument: {name}{}", text::escape_line(value));
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => map
            .iter()
            .map(|(name, value)| {
                line(&format!("{} = ", text::escape_line(name)), &value.to_string())
            })
            .collect(),
        _ => vec![line("", arguments)],
    }
}

/// The whole outgoing request.
fn request_lines(request: &RequestPreview) -> Vec<String> {
    let mut lines = vec![format!("request: {}", text::escape_line(&request.summary_line()))];
    if !request.query.is_empty() {
        lines.push(format!("query: {}", text::escape_line(&request.query)));
    }
    let header = |(name, value): &(String, String)| {
        format!("header: {}: {}", text::escape_line(name), text::escape_line(value))
    };
    lines.extend(request.headers.iter().map(header));
    if let Some(body) = &request.body {
        let kind = match body.encoding {
            BodyEncoding::Text => "",
            BodyEncoding::Hex => ", in hexadecimal",
        };
        lines.push(format!("body, {} bytes{kind}:", body.length_bytes));
        lines.extend(marked_lines(&body.content));
    }
    lines
}

/// Text of several lines. The bar in front of each prevents it from imitating a line of the form.
fn marked_lines(untrusted: &str) -> impl Iterator<Item = String> {
    untrusted.split('\n').map(|line| format!("| {}", text::escape_line(line)))
}
