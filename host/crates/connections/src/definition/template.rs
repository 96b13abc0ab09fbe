//! Texts with `{placeholders}` for arguments.

use serde_json::Value;

/// A text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Text(String),
    Argument(String),
}

/// A brace that stands alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LoneBrace;

impl TextTemplate {
    /// Splits a text at its placeholders. `{{` and `}}` are braces.
    pub(super) fn parse(text: &str) -> Result<Self, LoneBrace> {
        let (mut parts, mut rest, mut plain) = (Vec::new(), text, String::new());
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                plain.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let inside = rest.strip_prefix('{').and_then(|open| open.split_once('}'));
            let (name, after) = inside.ok_or(LoneBrace)?;
            parts.push(TemplatePart::Text(std::mem::take(&mut plain)));
            parts.push(TemplatePart::Argument(name.trim().to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        parts.push(TemplatePart::Text(plain));
        parts.retain(|part| *part != TemplatePart::Text(String::new()));
        Ok(Self { parts })
    }

    pub(super) fn parts(&self) -> &[TemplatePart] {
        &self.parts
    }

    /// The names of its arguments.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Argument(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    /// The value: that of the argument if the template is one placeholder, else a text. `None` if
    /// an argument is missing.
    pub(super) fn fill_value(&self, arguments: &Value) -> Option<Value> {
        match self.parts.as_slice() {
            [TemplatePart::Argument(name)] => argument(arguments, name).cloned(),
            _ => self.fill_text(arguments, &|text| text.to_owned()).map(Value::String),
        }
    }

    /// The text, with each argument encoded. `None` if an argument is missing.
    pub(super) fn fill_text(
        &self,
        arguments: &Value,
        encode: &dyn Fn(&str) -> String,
    ) -> Option<String> {
        let piece = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => Some(text.clone()),
            TemplatePart::Argument(name) => Some(encode(&value_text(argument(arguments, name)?))),
        };
        self.parts.iter().map(piece).collect()
    }
}

/// The argument of this name; null counts as missing.
pub(super) fn argument<'v>(arguments: &'v Value, name: &str) -> Option<&'v Value> {
    let found = name.split('.').try_fold(arguments, |value, key| value.get(key));
    found.filter(|value| !value.is_null())
}

/// A value as text: a list as its entries with commas.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
