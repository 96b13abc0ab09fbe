//! An open question, with everything that the user sees before the answer.

use sallyport_sdk::{prelude::*, ui::CallRequest};

use crate::visible::visible;

/// Maximum length of each text of a question, in bytes. A longer one is cut, and such a question
/// can only be denied.
pub(crate) const TEXT_BYTES_MAX: usize = 64 * 1024;

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Question {
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) call_id: String,
    tool: String,
    arguments: String,
    warning: Option<String>,
    #[serde(flatten)]
    parts: Option<Parts>,
    /// Whether a part is too long to be shown. Such a question can only be denied here.
    pub(crate) is_cut: bool,
}

/// The parts of the warning, as the host gives them since it has them.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
struct Parts {
    plugin: String,
    version: String,
    digest: String,
    permissions: Vec<String>,
    /// The rule that would make the answer permanent. Absent if a rule of the policy asks.
    always: Option<String>,
    #[serde(skip_serializing)]
    reason: String,
    /// What a running call is about to do.
    #[serde(default, skip_serializing)]
    access: String,
}

impl Question {
    pub(crate) fn new(request: CallRequest) -> Self {
        let extra = request.extra.and_then(|extra| Parts::deserialize(extra).ok());
        let mut is_cut = false;
        let mut shown = |text: &str| {
            let text = visible(text);
            is_cut |= text.len() > TEXT_BYTES_MAX;
            cut(&text, TEXT_BYTES_MAX)
        };
        let parts = extra.map(|parts| parts.map_texts(&mut shown));
        let warning = match &parts {
            Some(parts) => Some(format!("{}Asked because of: {}.", parts.access, parts.reason)),
            None => request.security_warning.as_deref().map(&mut shown),
        };
        let arguments = shown(&format!("{:#}", request.arguments));
        let tool = shown(&request.tool);
        let (id, call_id) = (request.confirmation_id, request.call_id);
        Self { id, call_id, tool, arguments, warning, parts, is_cut }
    }
}

impl Parts {
    fn map_texts(self, map: &mut impl FnMut(&str) -> String) -> Self {
        Self {
            plugin: map(&self.plugin),
            version: map(&self.version),
            digest: map(&self.digest),
            permissions: self.permissions.iter().map(|text| map(text)).collect(),
            always: self.always.as_deref().map(&mut *map),
            reason: map(&self.reason),
            access: map(&self.access),
        }
    }
}

/// Cuts a text to a length in bytes, and states how much is missing.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let shown = &text[..text.floor_char_boundary(bytes_max)];
    format!("{shown}… ({} more bytes are not shown)", text.len() - shown.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(arguments: Value) -> CallRequest {
        CallRequest::new(1, "files.remove", arguments)
    }

    #[test]
    fn what_a_person_agrees_to_is_seen_as_it_is() {
        let arguments = json!({ "path": "/tmp/\u{202e}txt.exe\u{200b}\u{e0041} é 漢" });
        let mut request = request(arguments);
        request.security_warning = Some("It can\nremove \u{2066}files.".to_owned());
        let question = json!(Question::new(request));
        let seen = "{\n  \"path\": \"/tmp/\\u{202e}txt.exe\\u{200b}\\u{e0041} é 漢\"\n}";
        assert_eq!(question["arguments"], seen);
        assert_eq!(question["warning"], "It can\nremove \\u{2066}files.");
        assert_eq!(question.get("digest"), None, "an older host does not say it");
    }

    #[test]
    fn a_question_shows_version_digest_and_what_always_would_write() {
        let parts = |always: Option<&str>| CallRequest {
            security_warning: Some("all in one line".to_owned()),
            extra: Some(json!({
                "plugin": "files", "version": "0.1.0\u{202e}", "digest": "abc", "later": 1,
                "permissions": ["write \u{200b}/notes"], "reason": "no rule",
                "access": "It wants to GET https://a.\n", "always": always,
            })),
            ..request(json!({}))
        };
        let question = json!(Question::new(parts(Some("[[rule]]\n"))));
        for (name, value) in [
            ("plugin", json!("files")),
            ("version", json!("0.1.0\\u{202e}")),
            ("digest", json!("abc")),
            ("permissions", json!(["write \\u{200b}/notes"])),
            ("warning", json!("It wants to GET https://a.\nAsked because of: no rule.")),
            ("always", json!("[[rule]]\n")),
        ] {
            assert_eq!(question[name], value, "{name}");
        }
        assert_eq!(json!(Question::new(parts(None)))["always"], Value::Null);
    }

    #[test]
    fn what_is_not_shown_whole_can_only_be_denied() {
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        let hidden = "\u{202e}".repeat(TEXT_BYTES_MAX / 3);
        let warned = |text: &str| CallRequest {
            security_warning: Some(text.to_owned()),
            ..request(Value::Null)
        };
        let explained = |name: &str, text: &str| {
            let mut extra = json!({ "plugin": "a", "version": "1", "digest": "d", "reason": "r",
                "permissions": [] });
            extra[name] = json!(text);
            CallRequest { extra: Some(extra), ..request(Value::Null) }
        };
        for (request, is_cut) in [
            (request(json!("short")), false),
            (request(json!(long)), true),
            (warned(&hidden), true),
            (explained("access", "short"), false),
            (explained("access", &long), true),
            (explained("reason", &long), true),
            (explained("always", &hidden), true),
        ] {
            let question = Question::new(request);
            assert_eq!(question.is_cut, is_cut);
            let told = json!(question).to_string();
            assert_eq!(told.contains("bytes are not shown)"), is_cut);
        }
    }
}
