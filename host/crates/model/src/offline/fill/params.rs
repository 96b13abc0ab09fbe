//! What a tool wants to know, read from its JSON Schema.
//!
//! Schemas come from many hands: with references, with unions, with the type names of other
//! languages. Each parameter is reduced to one [`Sort`], which says where in a sentence its value
//! may be found.

use serde_json::Value;

use super::duration::Unit;
use crate::offline::profile::{split_name, stems};
use crate::offline::stem::{is_stem_of, stem};

/// How often a reference is followed before it is taken for a circle.
const REFERENCES_MAX: usize = 8;

/// How many parameters of one object are filled.
const PARAMS_MAX: usize = 64;

/// How many values of a choice are compared.
const CHOICES_MAX: usize = 256;

/// Where the value of a parameter may be found. In the order in which they are filled: what can be
/// seen at once goes first, so that the rest of the sentence remains for what cannot.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::offline) enum Sort<'a> {
    /// Always this value.
    Fixed(&'a Value),
    /// An address.
    Url,
    /// A path of a file or folder.
    Path,
    /// A mail address.
    Email,
    /// One of these.
    Choice(Vec<&'a Value>),
    /// Yes or no.
    Boolean,
    /// A length of time, as a number of this unit.
    Duration(Unit),
    /// A length of time, in words.
    Span,
    /// A moment, or several, in words.
    Moment,
    /// A number.
    Number,
    /// A city, a country, a time zone.
    Place,
    /// Something to be written or said.
    Content,
    /// A name that the person gives to something.
    Label,
    /// What to look for, or any other text.
    Text,
    /// Several of these.
    List(&'a Value),
    /// Parameters within a parameter.
    Object(&'a Value),
}

/// One parameter.
#[derive(Debug, Clone)]
pub(in crate::offline) struct Param<'a> {
    /// Its name in the schema.
    pub(super) name: &'a str,
    /// The stems of its name.
    pub(super) words: Vec<String>,
    /// What its author says about it.
    pub(super) about: &'a str,
    /// Its schema, references followed.
    pub(super) schema: &'a Value,
    /// Where its value may be found.
    pub(in crate::offline) sort: Sort<'a>,
    /// Whether a call without it is refused.
    pub(in crate::offline) required: bool,
}

impl Sort<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Fixed(_) => 0,
            Self::Url | Self::Path | Self::Email => 1,
            Self::Choice(_) => 2,
            Self::Boolean => 3,
            Self::Duration(_) | Self::Span | Self::Moment => 4,
            Self::Number => 5,
            Self::Place => 6,
            Self::Content => 7,
            Self::Label => 8,
            Self::Text => 9,
            Self::List(_) => 10,
            Self::Object(_) => 11,
        }
    }
}

/// Returns the parameters of an object schema, in the order in which they are to be filled.
pub(in crate::offline) fn of<'a>(schema: &'a Value, root: &'a Value) -> Vec<Param<'a>> {
    let required: Vec<&str> =
        list(schema, "required").iter().filter_map(Value::as_str).take(PARAMS_MAX).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten().take(PARAMS_MAX);
    let mut params: Vec<Param<'a>> =
        properties.map(|(name, schema)| Param::new(name, schema, root, &required)).collect();
    let place = |name: &str| required.iter().position(|r| *r == name).unwrap_or(required.len());
    params.sort_by_key(|param| (param.sort.rank(), place(param.name)));
    params
}

impl<'a> Param<'a> {
    fn new(name: &'a str, schema: &'a Value, root: &'a Value, required: &[&str]) -> Self {
        let about = schema.get("description").and_then(Value::as_str);
        let schema = resolved(schema, root);
        let about = about.or_else(|| schema.get("description")?.as_str()).unwrap_or("");
        let words: Vec<String> = split_name(name).split(' ').map(str::to_lowercase).collect();
        let words: Vec<String> =
            words.iter().filter(|w| !w.is_empty()).map(|word| stem(word)).collect();
        let sort = sort_of(&words, about, schema);
        Self { name, words, about, schema, sort, required: required.contains(&name) }
    }

    /// A parameter that stands for one item of a list.
    pub(super) fn item(&self, schema: &'a Value, root: &'a Value) -> Self {
        let schema = resolved(schema, root);
        let sort = sort_of(&self.words, self.about, schema);
        Self { schema, sort, ..self.clone() }
    }

    /// Returns its name in words.
    pub(in crate::offline) fn shown_name(&self) -> String {
        split_name(self.name).to_lowercase()
    }

    /// True for a parameter whose name has one of these words.
    pub(super) fn is_called(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.words.iter().any(|word| is_stem_of(word, name)))
    }
}

/// Follows references and picks the first member of a union that can be something.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..REFERENCES_MAX {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|at| root.pointer(at.strip_prefix('#')?));
        let member = || {
            let unions = ["anyOf", "oneOf", "allOf"].iter().flat_map(|key| list(schema, key));
            let mut members = unions.filter(|member| member.get("type") != Some(&"null".into()));
            members.next().filter(|_| constants(schema).is_empty())
        };
        match target.or_else(member) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

fn sort_of<'a>(words: &[String], about: &str, schema: &'a Value) -> Sort<'a> {
    if let Some(value) = schema.get("const") {
        return Sort::Fixed(value);
    }
    let mut choices: Vec<&Value> = list(schema, "enum").iter().take(CHOICES_MAX).collect();
    choices.extend(constants(schema));
    choices.retain(|choice| !choice.is_null());
    if !choices.is_empty() {
        return Sort::Choice(choices);
    }
    match type_of(schema).as_str() {
        "boolean" | "bool" => Sort::Boolean,
        "integer" | "int" | "long" | "number" | "float" | "double" => number_sort(words, about),
        "array" | "list" | "tuple" | "arraylist" | "set" => {
            Sort::List(schema.get("items").unwrap_or(&Value::Null))
        }
        "object" | "dict" | "hashmap" | "map" => Sort::Object(schema),
        _ if schema.get("properties").is_some() => Sort::Object(schema),
        _ => text_sort(words, about, schema),
    }
}

/// Returns the name of the type, in lower case; of several the first that can be something.
fn type_of(schema: &Value) -> String {
    let names = match schema.get("type") {
        Some(Value::Array(names)) => names.as_slice(),
        Some(name) => std::slice::from_ref(name),
        None => &[],
    };
    let name = names.iter().filter_map(Value::as_str).find(|name| *name != "null");
    name.unwrap_or("").to_lowercase()
}

/// Returns the values of a union of constants, which is how some write a choice.
fn constants(schema: &Value) -> Vec<&Value> {
    let members = ["oneOf", "anyOf"].iter().flat_map(|key| list(schema, key));
    let constants: Option<Vec<&Value>> =
        members.take(CHOICES_MAX).map(|member| member.get("const")).collect();
    constants.unwrap_or_default()
}

fn number_sort<'a>(words: &[String], about: &str) -> Sort<'a> {
    // A single letter is a variable of a formula, not a unit.
    let unit_in = |words: &[String]| {
        words.iter().filter(|word| word.len() > 1).find_map(|word| Unit::called(word))
    };
    let is_time = ["duration", "delay", "timeout", "interval", "wait"];
    let is_time = is_time.iter().any(|name| words.iter().any(|word| is_stem_of(word, name)));
    match unit_in(words).or_else(|| unit_in(&stems(about))) {
        Some(unit) => Sort::Duration(unit),
        None if is_time => Sort::Duration(Unit::Second),
        None => Sort::Number,
    }
}

fn text_sort<'a>(words: &[String], about: &str, schema: &Value) -> Sort<'a> {
    let called =
        |names: &[&str]| names.iter().any(|name| words.iter().any(|word| is_stem_of(word, name)));
    let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
    if matches!(format, "uri" | "url" | "iri") || called(&["url", "uri", "website", "link"]) {
        return Sort::Url;
    }
    if format == "email" || called(&["email", "recipient"]) {
        return Sort::Email;
    }
    let rows: [(&[&str], Sort<'a>); 7] = [
        (&["query", "search", "keyword", "q", "term"], Sort::Text),
        (&["path", "file", "filename", "folder", "directory", "dir"], Sort::Path),
        (PLACES, Sort::Place),
        (&["content", "text", "body", "message", "note"], Sort::Content),
        (&["label", "title"], Sort::Label),
        (&["duration"], Sort::Span),
        (&["when", "moment", "due"], Sort::Moment),
    ];
    let by_name = rows.into_iter().find(|(names, _)| called(names)).map(|(_, sort)| sort);
    by_name.unwrap_or_else(|| told_sort(about))
}

/// Names of parameters that take a place. Which preposition leads to it depends on the name.
const PLACES: &[&str] = &[
    "location",
    "city",
    "place",
    "country",
    "region",
    "town",
    "timezone",
    "zone",
    "destination",
    "origin",
    "departure",
    "arrival",
    "address",
    "where",
];

/// When the name says nothing, the description may.
fn told_sort<'a>(about: &str) -> Sort<'a> {
    let words = stems(about);
    let speaks_of =
        |names: &[&str]| names.iter().any(|name| words.iter().any(|word| is_stem_of(word, name)));
    if speaks_of(&["url", "uri"]) {
        Sort::Url
    } else if speaks_of(&["path"]) {
        Sort::Path
    } else if speaks_of(&["city", "iana"]) {
        Sort::Place
    } else {
        Sort::Text
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(name: &str, schema: Value, want: Sort<'_>) {
        let root = json!({
            "properties": { name: schema },
            "$defs": { "Color": { "enum": ["red"] }, "Loop": { "$ref": "#/$defs/Loop" } },
        });
        assert_eq!(of(&root, &root)[0].sort, want, "{root}");
    }

    #[test]
    fn a_schema_says_where_to_look() {
        let red = json!("red");
        let text = || json!({ "type": "string" });
        check("url", text(), Sort::Url);
        check("target", json!({ "type": "string", "format": "uri" }), Sort::Url);
        check("target", json!({ "type": "string", "description": "The URL to open." }), Sort::Url);
        check("file_path", text(), Sort::Path);
        check("to", json!({ "type": "string", "format": "email" }), Sort::Email);
        check("when", text(), Sort::Moment);
        check("timezone", json!({ "type": ["null", "string"] }), Sort::Place);
        check("durationMs", json!({ "type": "integer" }), Sort::Duration(Unit::Millisecond));
        check(
            "duration",
            json!({ "type": "number", "description": "In minutes" }),
            Sort::Duration(Unit::Minute),
        );
        check("duration", json!({ "type": "number" }), Sort::Duration(Unit::Second));
        check("x", json!({ "type": "float" }), Sort::Number);
        check("x", json!({ "type": "String" }), Sort::Text);
        check("x", json!({}), Sort::Text);
        check("x", json!({ "enum": ["red", null] }), Sort::Choice(vec![&red]));
        check("x", json!({ "$ref": "#/$defs/Color" }), Sort::Choice(vec![&red]));
        check(
            "x",
            json!({ "oneOf": [{ "const": "red", "description": "d" }] }),
            Sort::Choice(vec![&red]),
        );
        check(
            "x",
            json!({ "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Color" }] }),
            Sort::Choice(vec![&red]),
        );
        check("x", json!({ "const": "red" }), Sort::Fixed(&red));
        check("x", json!({ "$ref": "#/$defs/Loop" }), Sort::Text);
        check("x", json!({ "$ref": "#/nowhere" }), Sort::Text);
        check("x", json!(true), Sort::Text);
    }

    #[test]
    fn what_can_be_seen_is_filled_first() {
        let schema = json!({
            "properties": {
                "a": { "type": "string" }, "b": { "type": "integer" },
                "c": { "type": "boolean" }, "d": { "type": "integer" },
            },
            "required": ["d", "a"],
        });
        let names: Vec<&str> = of(&schema, &schema).iter().map(|param| param.name).collect();
        assert_eq!(names, ["c", "d", "b", "a"]);
    }
}
