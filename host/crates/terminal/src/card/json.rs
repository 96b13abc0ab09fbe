//! JSON as a tree that keeps numbers as they were written.
//!
//! The user has to see exactly what the plugin receives. A parser that turns a long number into a
//! floating-point value would show a different number.

use sallyport_contract::text;
use serde_json::Value;

/// A JSON value.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    /// A number, `true`, `false` or `null`, as it was written.
    Word(String),
    /// A string, without quotation marks and escapes.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, in the order in which it was written.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// Reads a JSON text. Returns `None` if it is not JSON or is nested too deeply.
    pub(super) fn read(json: &str) -> Option<Self> {
        // This checks the grammar and limits the depth, so the reader below can neither fail nor
        // recurse without end.
        serde_json::from_str::<Value>(json).ok()?;
        Reader { rest: json }.value()
    }

    /// The value on one line.
    pub(super) fn compact(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::Text(text) => quoted(text),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(Self::compact).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entry =
                    |(key, value): &(String, Self)| format!("{}: {}", quoted(key), value.compact());
                let entries: Vec<_> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

/// The text as a JSON string, with hidden characters spelt out.
pub(super) fn quoted(string: &str) -> String {
    text::escape_json(&Value::from(string).to_string())
}

/// Reads a text that is known to be valid JSON.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Option<Node> {
        self.blank();
        match self.rest.chars().next()? {
            '{' => self.list('}', Self::entry).map(Node::Map),
            '[' => self.list(']', Self::value).map(Node::List),
            '"' => self.string().map(Node::Text),
            _ => Some(Node::Word(self.word().to_owned())),
        }
    }

    fn entry(&mut self) -> Option<(String, Node)> {
        self.blank();
        let key = self.string()?;
        self.blank();
        self.rest = self.rest.strip_prefix(':')?;
        Some((key, self.value()?))
    }

    fn list<T>(&mut self, end: char, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        self.rest = &self.rest[1..];
        loop {
            self.blank();
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                return Some(items);
            }
            self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
            items.push(item(self)?);
        }
    }

    fn string(&mut self) -> Option<String> {
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

    fn word(&mut self) -> &'a str {
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | ']' | '}');
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }
}
