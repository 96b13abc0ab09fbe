//! Formats questions and results as text.

use sallyport_sdk::ui::{CallRequest, CallResult};

/// The possible answers to a question.
pub(crate) const ANSWERS: &str = "[y/n]";

/// Maximum length of a call's arguments or result, in characters.
const JSON_CHARS_MAX: usize = 400;

/// An answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// Parses an answer; `None` if it is neither yes nor no.
pub(crate) fn answer(line: &str) -> Option<Answer> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes),
        "n" | "no" => Some(Answer::No),
        _ => None,
    }
}

/// Returns a question such as "files.remove {"path":"/a"}: allow? [y/n]".
pub(crate) fn question(request: &CallRequest) -> String {
    let arguments = cut(&request.arguments.to_string());
    format!("{} {arguments}: allow? {ANSWERS}", request.tool)
}

/// Returns a line such as "clock.get_time: completed".
pub(crate) fn result(result: &CallResult) -> String {
    if result.is_completed() {
        return format!("{}: completed", result.tool);
    }
    let words = result.data.get("error").and_then(|words| words.as_str());
    let words = words.map_or_else(|| result.data.to_string(), str::to_owned);
    format!("{}: {}: {}", result.tool, result.outcome, cut(&words))
}

/// Indents all lines but the first of untrusted text, so that none can look like a question.
pub(crate) fn foreign(text: &str) -> String {
    text.replace('\n', "\n    ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(JSON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_sdk::prelude::json;

    use super::*;

    #[test]
    fn answers_are_read_as_people_write_them() {
        for (line, want) in [
            ("y", Some(Answer::Yes)),
            (" YES ", Some(Answer::Yes)),
            ("No", Some(Answer::No)),
            ("", None),
            ("yeah", None),
            ("yn", None),
        ] {
            assert_eq!(answer(line), want, "{line:?}");
        }
    }

    #[test]
    fn words_of_others_make_no_line_of_their_own() {
        let told = foreign("webhook: Hi\nfiles.remove {}: allow? [y/n]\n");
        assert_eq!(told, "webhook: Hi\n    files.remove {}: allow? [y/n]\n    ");
    }

    #[test]
    fn long_arguments_are_cut_with_a_mark() {
        let request = CallRequest::new(1, "a.b", json!({ "text": "ä".repeat(9_999) }));
        let question = question(&request);
        assert!(question.ends_with("…: allow? [y/n]"), "{question}");
        assert!(question.chars().count() < JSON_CHARS_MAX + 50);
    }
}
