//! Converts parts of a conversation for providers with other rules.
//!
//! A message is sent back in a provider's own form only to the model that wrote it. Arguments are
//! text here and an object in some protocols. Names and ids that one model wrote may contain
//! characters for which another provider refuses the whole conversation.

use std::{
    borrow::Cow,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
};

use data_encoding::HEXLOWER;
use sallyport_contract::json;
use serde_json::{Value, json};

use crate::chat::{AssistantMessage, ModelCallRequest};

/// The text of an empty input, for providers that refuse an empty one.
pub(crate) const EMPTY_INPUT_TEXT: &str = "(no words)";

/// The key under which arguments are sent that are not a JSON object. The model sees its own text.
const INVALID_ARGUMENTS_KEY: &str = "INVALID_JSON";

/// Longest arguments of one call, in bytes. The gate accepts no longer ones.
pub(crate) const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// Most levels of nested JSON that is sent as such. Services that decode JSON into messages of
/// their own fail at about 100 levels, including those of the surrounding request.
pub(crate) const LEVELS_MAX: usize = 64;

/// Longest part of broken arguments that the model sees again, in characters: enough to find the
/// mistake.
const BROKEN_CHARS_MAX: usize = 4_000;

/// Longest function name that every provider accepts.
const NAME_CHARS_MAX: usize = 64;

/// Longest call id that every provider accepts.
const ID_CHARS_MAX: usize = 40;

/// Returns the provider's own form of a message, if it came from `origin`. The adapter checks
/// whether it still contains the same calls.
pub(crate) fn provider_form<'a>(message: &'a AssistantMessage, origin: &str) -> Option<&'a Value> {
    message.opaque.as_ref().filter(|opaque| opaque.origin == origin).map(|opaque| &opaque.body)
}

/// Returns arguments as the object that some protocols carry. The arguments of a request have been
/// repaired before and are an object already.
pub(crate) fn arguments_object(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(object @ Value::Object(_)) => object,
        _ if arguments.trim().is_empty() => json!({}),
        _ => wrap_arguments(arguments),
    }
}

/// Returns repaired arguments; `None` if every server accepts them unchanged. Servers differ in
/// what they accept, so arguments that the gate refuses are not sent back either.
pub(crate) fn repair_arguments(arguments: &str) -> Option<String> {
    match json::parse_json(arguments, ARGUMENTS_BYTES_MAX) {
        Ok(object @ Value::Object(_)) if is_shallow(&object, LEVELS_MAX) => None,
        _ if arguments.trim().is_empty() => Some("{}".to_owned()),
        _ => Some(wrap_arguments(arguments).to_string()),
    }
}

/// Returns true if the calls in a provider's own form are the given calls, before repairs.
pub(crate) fn are_same_calls(
    mut provider_calls: impl Iterator<Item = ModelCallRequest>,
    calls: &[ModelCallRequest],
) -> bool {
    let is_same = |call: &ModelCallRequest| {
        provider_calls.next().is_some_and(|own| is_same_call(&own.name, &own.arguments, call))
    };
    calls.iter().all(is_same) && provider_calls.next().is_none()
}

fn is_same_call(name: &str, arguments: &str, call: &ModelCallRequest) -> bool {
    let repaired = repair_arguments(arguments);
    let provider_arguments = repaired.as_deref().unwrap_or(arguments);
    safe_name(name) == call.name
        && (provider_arguments == call.arguments
            || arguments_object(provider_arguments) == arguments_object(&call.arguments))
}

fn wrap_arguments(arguments: &str) -> Value {
    match arguments.char_indices().nth(BROKEN_CHARS_MAX) {
        None => json!({ INVALID_ARGUMENTS_KEY: arguments }),
        Some((end, _)) => {
            let rest = arguments.len() - end;
            json!({ INVALID_ARGUMENTS_KEY: format!("{}… ({rest} more bytes)", &arguments[..end]) })
        }
    }
}

/// Returns true for a value of at most `levels_max` levels.
pub(crate) fn is_shallow(value: &Value, levels_max: usize) -> bool {
    let Some(levels_max) = levels_max.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, levels_max)),
        Value::Object(fields) => fields.values().all(|field| is_shallow(field, levels_max)),
        _ => true,
    }
}

/// Returns a provider's arguments as text. Some servers send a value, some send text.
pub(crate) fn arguments_text(arguments: Option<&Value>) -> String {
    match arguments {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(text)) if text.trim().is_empty() => "{}".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns a call's id in a form that every provider accepts. Different ids stay different, unless
/// hashes collide or an id has this form already.
pub(crate) fn safe_id(id: &str) -> Cow<'_, str> {
    if is_safe_id(id) {
        return Cow::Borrowed(id);
    }
    let written = format!("id_{}", HEXLOWER.encode(id.as_bytes()));
    Cow::Owned(match written.len() <= ID_CHARS_MAX {
        true => written,
        // The hash is the same in every process, so that the provider's cache stays valid.
        false => format!(
            "id_{:016x}_{}",
            BuildHasherDefault::<DefaultHasher>::default().hash_one(id),
            id.len()
        ),
    })
}

/// Returns true for an id of letters, digits, `_` and `-` that is not too long.
pub(crate) fn is_safe_id(id: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&id.len()) && id.chars().all(is_safe_char)
}

/// Returns a function's name in a form that every provider accepts. Only a name that a model made
/// up needs a change, and the rest of it is enough for an error message.
pub(crate) fn safe_name(name: &str) -> Cow<'_, str> {
    let is_first = |char: char| char.is_ascii_alphabetic() || char == '_';
    if name.len() <= NAME_CHARS_MAX && name.starts_with(is_first) && name.chars().all(is_safe_char)
    {
        return Cow::Borrowed(name);
    }
    let safe = |char| if is_safe_char(char) { char } else { '_' };
    let mut kept: String = name.chars().take(NAME_CHARS_MAX).map(safe).collect();
    if !kept.starts_with(is_first) {
        kept.insert(0, '_');
        kept.truncate(NAME_CHARS_MAX);
    }
    Cow::Owned(kept)
}

fn is_safe_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::OpaqueMessage;

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
    fn what_a_server_would_not_read_back_is_wrapped() {
        let deep = format!("{}{}", "{\"a\":".repeat(80), "1".to_owned() + &"}".repeat(80));
        let broken = [
            r#"{"k":"#,
            "[1]",
            "\"text\"",
            "7",
            "null",
            "NaN",
            r#"{"k":NaN}"#,
            r#"{"k":1,"k":2}"#,
            r#"{"k":"\ud83d"}"#,
            r#"{"k":1e999}"#,
            "{} {}",
            "{'k':1}",
            "{\"k\":\"a\nb\"}",
            &deep,
        ];
        for arguments in broken {
            let repaired = repair_arguments(arguments).unwrap();
            let repaired: Value = serde_json::from_str(&repaired).unwrap();
            assert_eq!(repaired, json!({ "INVALID_JSON": arguments }));
        }
        for (arguments, want) in [("", Some("{}")), (" \n", Some("{}")), ("{}", None)] {
            assert_eq!(repair_arguments(arguments).as_deref(), want, "{arguments}");
        }
        assert_eq!(repair_arguments(r#" {"k": 1.0, "é": "\ud83d\ude00"} "#), None);
        for long in ["x".repeat(10 << 20), format!("{{\"k\":\"{}\"}}", "é".repeat(1 << 20))] {
            let repaired = repair_arguments(&long).unwrap();
            assert!(
                repaired.len() < 20_000 && repaired.contains("more bytes"),
                "{}",
                repaired.len()
            );
        }
    }

    #[test]
    fn only_the_model_that_wrote_it_gets_its_own_form_back() {
        let opaque = OpaqueMessage { origin: "gemini/a".to_owned(), body: json!(1) };
        let message = AssistantMessage { opaque: Some(opaque), ..AssistantMessage::default() };
        assert_eq!(provider_form(&message, "gemini/a"), Some(&json!(1)));
        assert_eq!(provider_form(&message, "gemini/b"), None);
        assert_eq!(provider_form(&AssistantMessage::default(), "gemini/a"), None);
    }

    #[test]
    fn names_and_ids_hold_what_everyone_takes() {
        let (long, digits) = ("é".repeat(100), "7".repeat(64));
        let rows = [
            ("git_log-2", "git_log-2"),
            ("functions.read file", "functions_read_file"),
            ("", "_"),
            ("7zip", "_7zip"),
            ("-x", "_-x"),
            (&long, &"_".repeat(64)),
            (&digits, &format!("_{}", "7".repeat(63))),
        ];
        for (name, want) in rows {
            assert_eq!(safe_name(name), want);
        }
        let rows =
            [("toolu_1-a", "toolu_1-a"), ("x.1", "id_782e31"), ("x:1", "id_783a31"), ("", "id_")];
        for (id, want) in rows {
            assert_eq!(safe_id(id), want);
        }
        let long = |end: &str| format!("functions.read_file.{}:{end}", "x".repeat(200));
        assert!(is_safe_id(&safe_id(&long("0"))), "{}", safe_id(&long("0")));
        assert_ne!(safe_id(&long("0")), safe_id(&long("1")));
    }
}
