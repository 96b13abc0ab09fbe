//! A question of a plugin's server to the user: a form to fill in, or a page to open.
//!
//! Everything in it is the server's claim. The gate asks, a front end reads the values, and they are
//! checked against the fields before the server gets them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

/// A question of a server. Its texts are untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FormQuestion {
    /// The server's words.
    pub message: String,
    /// The address of the page that the user is asked to open. Such a question has no fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// What the user fills in, in the server's order. Without fields, a yes is the whole answer.
    #[serde(default)]
    pub fields: Vec<FormField>,
}

/// One value of a form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FormField {
    /// Unique in the form.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to fill in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the form cannot do without it.
    pub required: bool,
    /// The value of a field that the user leaves out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The values that fit.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// The values that fit a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FieldKind {
    /// A text.
    Text {
        /// Fewest characters.
        min_chars: Option<u32>,
        /// Most characters.
        max_chars: Option<u32>,
        /// The form of the text.
        format: Option<TextFormat>,
    },
    /// A number.
    Number {
        /// Whether it has no fraction.
        is_whole: bool,
        /// The least one.
        minimum: Option<Number>,
        /// The greatest one.
        maximum: Option<Number>,
    },
    /// Yes or no.
    YesNo,
    /// One of several values.
    Choice {
        /// The values, each once.
        options: Vec<FieldOption>,
    },
    /// Any of several values.
    Choices {
        /// The values, each once.
        options: Vec<FieldOption>,
        /// Fewest of them.
        min_count: Option<u64>,
        /// Most of them.
        max_count: Option<u64>,
    },
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    /// An e-mail address.
    Email,
    /// An address.
    Uri,
    /// A date, such as `2026-01-31`.
    Date,
    /// A time, such as `2026-01-31T12:00:00Z`.
    DateTime,
}

/// A value that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct FieldOption {
    /// The value.
    pub value: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The values that a user has filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormAnswer {
    /// The values, by the name of the field. A field that is left out gets its default.
    #[serde(default)]
    pub values: Map<String, Value>,
}

/// Why what the user typed is no value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypedValueError {
    /// A field that cannot be left out.
    Required,
    /// Something other than a number.
    NotANumber,
    /// Something other than a number without a fraction.
    NotAWholeNumber,
    /// Something other than yes or no.
    NotYesOrNo,
    /// Something other than an offered value.
    NotOffered,
}

impl std::fmt::Display for TypedValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Required => "this value is required",
            Self::NotANumber => "this is not a number",
            Self::NotAWholeNumber => "this is not a whole number",
            Self::NotYesOrNo => "answer yes or no",
            Self::NotOffered => "choose from the list, by name or by number",
        })
    }
}

impl FormQuestion {
    /// Whether a yes has to bring values.
    pub fn needs_values(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The JSON Schema of the values. It is an object with a property for each field.
    pub fn json_schema(&self) -> Value {
        let properties = self.fields.iter().map(|field| (field.name.clone(), field.json_schema()));
        let required = self.fields.iter().filter(|field| field.required);
        let required: Vec<&str> = required.map(|field| field.name.as_str()).collect();
        let properties: Map<String, Value> = properties.collect();
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// The values with the default of each field that is left out.
    pub fn with_defaults(&self, mut values: Map<String, Value>) -> Map<String, Value> {
        for field in &self.fields {
            if let Some(default) =
                field.default.as_ref().filter(|_| !values.contains_key(&field.name))
            {
                values.insert(field.name.clone(), default.clone());
            }
        }
        values
    }

    /// The parts that the user decides about, each after its name, except the server's words, which
    /// may have several lines.
    pub fn labeled_parts(&self) -> Vec<(&'static str, String)> {
        let page = self.page.iter().map(|page| ("page", page.clone()));
        page.chain(self.fields.iter().map(|field| ("field", field.summary()))).collect()
    }
}

impl FormField {
    /// The field with its kind and everything that the server says about it, on one line.
    pub fn summary(&self) -> String {
        let mut line = format!("{} ({})", self.name, self.kind.words());
        if self.required {
            line.push_str(", required");
        }
        for text in [&self.title, &self.description].into_iter().flatten() {
            line.push_str(&format!(": {text}"));
        }
        if let Some(default) = &self.default {
            line.push_str(&format!("; otherwise {default}"));
        }
        line
    }

    /// The values that can be chosen.
    pub fn options(&self) -> &[FieldOption] {
        match &self.kind {
            FieldKind::Choice { options } | FieldKind::Choices { options, .. } => options,
            FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::YesNo => &[],
        }
    }

    /// The value that a user has typed. `None` if the field is left out, with an empty line.
    ///
    /// # Errors
    ///
    /// What was typed is no value of this kind. Lengths and limits are not checked here.
    pub fn read_typed(&self, typed: &str) -> Result<Option<Value>, TypedValueError> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match self.required && self.default.is_none() {
                true => Err(TypedValueError::Required),
                false => Ok(None),
            };
        }
        match &self.kind {
            FieldKind::Text { .. } => Ok(typed.into()),
            FieldKind::Number { is_whole, .. } => typed_number(typed, *is_whole),
            FieldKind::YesNo => typed_yes_or_no(typed).map(Value::from),
            FieldKind::Choice { options } => typed_option(typed, options).map(Value::from),
            FieldKind::Choices { options, .. } => typed
                .split(',')
                .map(|one| typed_option(one.trim(), options).map(Value::from))
                .collect::<Result<Value, _>>(),
        }
        .map(Some)
    }

    fn json_schema(&self) -> Value {
        let mut schema = self.kind.json_schema();
        let texts = [("title", &self.title), ("description", &self.description)];
        for (key, text) in texts {
            if let Some(text) = text {
                schema.insert(key.to_owned(), text.as_str().into());
            }
        }
        if let Some(default) = &self.default {
            schema.insert("default".to_owned(), default.clone());
        }
        Value::Object(schema)
    }
}

impl FieldKind {
    fn words(&self) -> String {
        let listed = |options: &[FieldOption]| {
            let words = options.iter().enumerate().map(|(index, option)| match &option.title {
                Some(title) => format!("{}: {} ({title})", index + 1, option.value),
                None => format!("{}: {}", index + 1, option.value),
            });
            words.collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Text { format: None, .. } => "text".to_owned(),
            Self::Text { format: Some(format), .. } => format.words().to_owned(),
            Self::Number { is_whole: true, .. } => "whole number".to_owned(),
            Self::Number { .. } => "number".to_owned(),
            Self::YesNo => "yes or no".to_owned(),
            Self::Choice { options } => format!("one of {}", listed(options)),
            Self::Choices { options, .. } => format!("any of {}", listed(options)),
        }
    }

    fn json_schema(&self) -> Map<String, Value> {
        let one_of = |options: &[FieldOption]| -> Vec<Value> {
            options
                .iter()
                .map(|FieldOption { value, title }| {
                    json!({ "const": value, "title": title.as_ref().unwrap_or(value) })
                })
                .collect()
        };
        let schema = match self {
            Self::Text { min_chars, max_chars, format } => json!({
                "type": "string", "minLength": min_chars, "maxLength": max_chars,
                "format": format.map(TextFormat::as_str),
            }),
            Self::Number { is_whole, minimum, maximum } => json!({
                "type": if *is_whole { "integer" } else { "number" },
                "minimum": minimum, "maximum": maximum,
            }),
            Self::YesNo => json!({ "type": "boolean" }),
            Self::Choice { options } => json!({ "type": "string", "oneOf": one_of(options) }),
            Self::Choices { options, min_count, max_count } => json!({
                "type": "array", "items": { "anyOf": one_of(options) },
                "minItems": min_count, "maxItems": max_count,
            }),
        };
        let Value::Object(mut schema) = schema else { return Map::new() };
        schema.retain(|_, value| !value.is_null());
        schema
    }
}

impl TextFormat {
    /// The name of the format in JSON Schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Uri => "uri",
            Self::Date => "date",
            Self::DateTime => "date-time",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Email => "e-mail address",
            Self::Uri => "address, such as https://example.org/",
            Self::Date => "date, such as 2026-01-31",
            Self::DateTime => "time, such as 2026-01-31T12:00:00Z",
        }
    }
}

fn typed_number(typed: &str, is_whole: bool) -> Result<Value, TypedValueError> {
    if let Ok(whole) = typed.parse::<i64>() {
        return Ok(whole.into());
    }
    if is_whole {
        return Err(TypedValueError::NotAWholeNumber);
    }
    let number = typed.parse().ok().and_then(Number::from_f64);
    number.map(Value::Number).ok_or(TypedValueError::NotANumber)
}

fn typed_yes_or_no(typed: &str) -> Result<bool, TypedValueError> {
    match typed.to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" => Ok(true),
        "n" | "no" | "false" => Ok(false),
        _ => Err(TypedValueError::NotYesOrNo),
    }
}

/// A value, its title or its number, in this order, because a value may look like a number.
fn typed_option(typed: &str, options: &[FieldOption]) -> Result<String, TypedValueError> {
    let by_value = options.iter().find(|option| option.value == typed);
    let by_title = || options.iter().find(|option| option.title.as_deref() == Some(typed));
    let by_number = || options.get(typed.parse::<usize>().ok()?.checked_sub(1)?);
    let found = by_value.or_else(by_title).or_else(by_number);
    found.map(|option| option.value.clone()).ok_or(TypedValueError::NotOffered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(kind: FieldKind, required: bool, default: Option<Value>) -> FormField {
        let (title, description) = (None, Some("Where".to_owned()));
        FormField { name: "f".to_owned(), title, description, required, default, kind }
    }

    fn colours() -> Vec<FieldOption> {
        let option = |value: &str, title: Option<&str>| FieldOption {
            value: value.to_owned(),
            title: title.map(str::to_owned),
        };
        vec![option("r", Some("Red")), option("1", None), option("b", None)]
    }

    fn text() -> FieldKind {
        FieldKind::Text { min_chars: None, max_chars: None, format: None }
    }

    #[test]
    fn what_is_typed_becomes_a_value_of_its_kind() {
        use TypedValueError::{NotANumber, NotAWholeNumber, NotOffered, NotYesOrNo, Required};
        let number = |is_whole| FieldKind::Number { is_whole, minimum: None, maximum: None };
        let choice = || FieldKind::Choice { options: colours() };
        let choices =
            || FieldKind::Choices { options: colours(), min_count: None, max_count: None };
        let rows = [
            (text(), " Graz \n", Ok(Some(json!("Graz")))),
            (text(), "12", Ok(Some(json!("12")))),
            (text(), "  ", Err(Required)),
            (number(true), "12", Ok(Some(json!(12)))),
            (number(true), "1.5", Err(NotAWholeNumber)),
            (number(false), "1.5", Ok(Some(json!(1.5)))),
            (number(false), "-3", Ok(Some(json!(-3)))),
            (number(false), "NaN", Err(NotANumber)),
            (number(false), "one", Err(NotANumber)),
            (FieldKind::YesNo, "Yes", Ok(Some(json!(true)))),
            (FieldKind::YesNo, "n", Ok(Some(json!(false)))),
            (FieldKind::YesNo, "maybe", Err(NotYesOrNo)),
            (choice(), "r", Ok(Some(json!("r")))),
            (choice(), "Red", Ok(Some(json!("r")))),
            (choice(), "1", Ok(Some(json!("1")))),
            (choice(), "3", Ok(Some(json!("b")))),
            (choice(), "0", Err(NotOffered)),
            (choice(), "4", Err(NotOffered)),
            (choices(), "Red, 3", Ok(Some(json!(["r", "b"])))),
            (choices(), "Red,,3", Err(NotOffered)),
        ];
        for (kind, typed, want) in rows {
            assert_eq!(field(kind.clone(), true, None).read_typed(typed), want, "{kind:?} {typed}");
        }
        assert_eq!(field(text(), false, None).read_typed(""), Ok(None));
        assert_eq!(field(text(), true, Some(json!("x"))).read_typed(""), Ok(None));
    }

    #[test]
    fn a_question_and_its_answer_survive_their_json() {
        let kind = FieldKind::Number { is_whole: true, minimum: Some(1.into()), maximum: None };
        let fields = vec![
            field(kind, true, Some(json!(3))),
            FormField { name: "g".to_owned(), ..field(FieldKind::YesNo, false, None) },
        ];
        let question = FormQuestion { message: "Which?".to_owned(), page: None, fields };
        let text = serde_json::to_string(&question).unwrap();
        assert_eq!(serde_json::from_str::<FormQuestion>(&text).unwrap(), question);
        let schema = question.json_schema();
        assert_eq!(schema["required"], json!(["f"]));
        let integer = json!({
            "type": "integer", "minimum": 1, "description": "Where", "default": 3
        });
        assert_eq!(schema["properties"]["f"], integer);
        let filled = question.with_defaults(Map::new());
        assert_eq!(Value::Object(filled), json!({ "f": 3 }));
        assert_eq!(question.fields[0].summary(), "f (whole number), required: Where; otherwise 3");
    }
}
