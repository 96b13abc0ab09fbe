//! JSON as a tree that keeps numbers as they were written.
//!
//! The user has to see exactly what the plugin receives. A parser that turns a long number into a
//! floating-point value would show a different number.

use sallyport_contract::text;
use serde_json::Value;

/// A JSON value.
#[derive(Debug, PartialEq)]
pub(super) enum JsonNode {
    /// A number, `true`, `false` or `null`, as it was written.
    Literal(String),
    /// A string, without quotation marks and escapes.
    Text(String),
    /// A list.
    List(Vec<JsonNode>),
    /// An object, in the order in which it was written.
    Map(Vec<(String, JsonNode)>),
}

impl JsonNode {
    /// Reads a JSON text. Returns `None` if it is not JSON or is nested too deeply.
    pub(super) fn parse_json(json: &str) -> Option<Self> {
        // This checks the grammar and limits the depth, so the reader below can neither fail nor
        // recurse without end.
        serde_json::from_str::<Value>(json).ok()?;
        JsonReader { rest: json }.read_value()
    }

    /// The value on one line.
    pub(super) fn to_compact(&self) -> String {
        match self {
            Self::Literal(word) => word.clone(),
            Self::Text(text) => quote_json_string(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::to_compact).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entry = |(key, value): &(String, Self)| {
                    format!("{}: {}", quote_json_string(key), value.to_compact())
                };
                let entries: Vec<_> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

/// The text as a JSON string, with hidden characters spelt out.
pub(super) fn quote_json_string(string: &str) -> String {
    text::escape_json(&Value::from(string).to_string())
}

/// Reads a text that is known to be valid JSON.
struct JsonReader<'a> {
    rest: &'a str,
}

impl<'a> JsonReader<'a> {
    fn read_value(&mut self) -> Option<JsonNode> {
        self.skip_blanks();
        match self.rest.chars().next()? {
            '{' => self.read_list('}', Self::read_entry).map(JsonNode::Map),
            '[' => self.read_list(']', Self::read_value).map(JsonNode::List),
            '"' => self.read_string().map(JsonNode::Text),
            _ => Some(JsonNode::Literal(self.read_word().to_owned())),
        }
    }

    fn read_entry(&mut self) -> Option<(String, JsonNode)> {
        self.skip_blanks();
        let key = self.read_string()?;
        self.skip_blanks();
        self.rest = self.rest.strip_prefix(':')?;
        Some((key, self.read_value()?))
    }

    fn read_list<T>(&mut self, end: char, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        self.rest = &self.rest[1..];
        loop {
            self.skip_blanks();
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                return Some(items);
            }
            self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
            items.push(item(self)?);
        }
    }

    fn read_string(&mut self) -> Option<String> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let (string, rest) = self.rest.split_at(end?.0 + 1);
        self.rest = rest;
        serde_json::from_str(string).ok()
    }

    fn read_word(&mut self) -> &'a str {
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | ']' | '}');
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }
}
