//! How a conversation of ours fits a provider that keeps more, or keeps it in another form.
//!
//! A message goes back in a provider's own form only to the model that wrote it. Arguments are text
//! on our side and an object on that of some providers. Names and ids that one model wrote may hold
//! what another provider refuses, and with it the whole conversation.

use std::borrow::Cow;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use crate::chat::AssistantMessage;

/// What stands in the place of an input without a word, where an empty one is refused.
pub(crate) const NO_WORDS: &str = "(no words)";

/// Under which name arguments travel that are no JSON object, where only an object can. The model
/// sees what it wrote.
const NOT_AN_OBJECT: &str = "INVALID_JSON";

/// Longest name of a function that every provider takes.
const NAME_CHARS_MAX: usize = 64;

/// Returns the provider's own form of a message, if it came from `origin`. Whether it still tells
/// of the same calls is the adapter's to see.
pub(crate) fn own_form<'a>(said: &'a AssistantMessage, origin: &str) -> Option<&'a Value> {
    said.opaque.as_ref().filter(|opaque| opaque.origin == origin).map(|opaque| &opaque.body)
}

/// Returns arguments as the object that some protocols carry.
pub(crate) fn arguments_object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ if arguments.trim().is_empty() => json!({}),
        _ => json!({ NOT_AN_OBJECT: arguments }),
    }
}

/// Returns the arguments that a provider sent as a value, as text. Some servers send text.
pub(crate) fn arguments_text(arguments: Option<&Value>) -> String {
    match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns a call's id in letters, digits, `_` and `-`. Different ids stay different.
pub(crate) fn safe_id(id: &str) -> Cow<'_, str> {
    match id.is_empty() || !id.chars().all(is_safe) {
        true => Cow::Owned(format!("id_{}", HEXLOWER.encode(id.as_bytes()))),
        false => Cow::Borrowed(id),
    }
}

/// Returns a function's name as every provider takes it. A name that no tool can have is one that a
/// model made up; what is left of it is enough to tell the model so.
pub(crate) fn safe_name(name: &str) -> Cow<'_, str> {
    let is_short = name.len() <= NAME_CHARS_MAX;
    if is_short && !name.is_empty() && name.chars().all(is_safe) {
        return Cow::Borrowed(name);
    }
    let safe = |char| if is_safe(char) { char } else { '_' };
    let kept: String = name.chars().take(NAME_CHARS_MAX).map(safe).collect();
    Cow::Owned(if kept.is_empty() { "_".to_owned() } else { kept })
}

fn is_safe(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Opaque;

    #[test]
    fn arguments_are_an_object_and_text() {
        let rows = [
            (r#"{"k":1}"#, json!({ "k": 1 })),
            ("", json!({})),
            (" \n", json!({})),
            (r#"{"k":"#, json!({ "INVALID_JSON": r#"{"k":"# })),
            ("[1]", json!({ "INVALID_JSON": "[1]" })),
        ];
        for (text, want) in rows {
            assert_eq!(arguments_object(text), want);
        }
        let rows = [
            (json!({ "k": 1 }), r#"{"k":1}"#),
            (json!(null), "{}"),
            (json!(""), "{}"),
            (json!("{\"k\":"), "{\"k\":"),
            (json!([1]), "[1]"),
        ];
        for (value, want) in rows {
            assert_eq!(arguments_text(Some(&value)), want);
        }
        assert_eq!(arguments_text(None), "{}");
    }

    #[test]
    fn only_the_model_that_wrote_it_gets_its_own_form_back() {
        let opaque = Opaque { origin: "gemini/a".to_owned(), body: json!(1) };
        let said = AssistantMessage { opaque: Some(opaque), ..AssistantMessage::default() };
        assert_eq!(own_form(&said, "gemini/a"), Some(&json!(1)));
        assert_eq!(own_form(&said, "gemini/b"), None);
        assert_eq!(own_form(&AssistantMessage::default(), "gemini/a"), None);
    }

    #[test]
    fn names_and_ids_hold_what_everyone_takes() {
        let long = "é".repeat(100);
        let rows = [
            ("git_log-2", "git_log-2"),
            ("functions.read file", "functions_read_file"),
            ("", "_"),
            (&long, &"_".repeat(64)),
        ];
        for (name, want) in rows {
            assert_eq!(safe_name(name), want);
        }
        let rows =
            [("toolu_1-a", "toolu_1-a"), ("x.1", "id_782e31"), ("x:1", "id_783a31"), ("", "id_")];
        for (id, want) in rows {
            assert_eq!(safe_id(id), want);
        }
    }
}
