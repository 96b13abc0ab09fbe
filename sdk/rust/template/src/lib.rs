//! Counts the words, lines and characters of a text.
use sallyport_sdk::prelude::*;

/// A text to count.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountText {
    /// The text.
    text: String,
}

/// The size of a text.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct TextSize {
    /// Words, separated by white space.
    words: usize,
    /// Lines. The last one may lack its line break.
    lines: usize,
    /// Unicode characters, line breaks among them.
    characters: usize,
}

/// Counts the words, lines and characters of a text.
#[tool(read_only, idempotent, open_world = false)]
fn count(args: CountText) -> Result<Output<TextSize>, ToolError> {
    let text = args.text;
    if text.is_empty() {
        return Err(ToolError::InvalidArguments("the text is empty".to_owned()));
    }
    let size = TextSize {
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
        characters: text.chars().count(),
    };
    let speech = format!("The text has {} words.", size.words);
    Ok(Output::new(size).speech(speech))
}

sallyport_sdk::export_plugin!(tools = [count]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_counted() {
        let output = count(CountText { text: "one two\nthree".to_owned() }).unwrap();
        assert_eq!(output.data, TextSize { words: 3, lines: 2, characters: 13 });
    }

    #[test]
    fn an_empty_text_is_refused() {
        let error = count(CountText { text: String::new() }).unwrap_err();
        assert_eq!(error.kind(), "invalid-arguments");
    }
}
