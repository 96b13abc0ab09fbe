//! Rewrites a schema with the keywords that every provider accepts.
//!
//! The result has no references, no unions at the top and no keyword that some provider refuses.
//! The constraints that it cannot express are added to descriptions, for the model to read.

use std::cell::Cell;

use sallyport_lexical::contains_word;
use serde_json::{Map, Value, json};

use super::{
    acceptance::{has_type_name, is_anchored_pattern, is_known_format, is_plain_choice},
    names::PropertyNameMap,
    schema_variants::{RootSchema, SchemaVariant, unite_variants},
};

/// Deepest level that is described. Deeper schemas become `{}`.
const LEVELS_MAX: usize = 16;

/// Most parts of a schema that are described. A recursion could unfold into any number.
const NODES_MAX: usize = 2_000;

/// Longest note about one keyword, in characters.
const NOTE_CHARS_MAX: usize = 200;

/// Longest list of the forms that the arguments can have, in characters.
const VARIANTS_CHARS_MAX: usize = 1_500;

/// Keywords that are copied unchanged.
const COPIED_KEYWORDS: &str = "\
    default maxItems maxLength maxProperties maximum minItems minLength minProperties minimum \
    type";

/// Keywords that some provider refuses. They become notes.
const NOTED_KEYWORDS: &str = "\
    contains exclusiveMaximum exclusiveMinimum multipleOf not patternProperties propertyNames \
    uniqueItems";

/// The plain parameters of a tool.
#[derive(Debug)]
pub(super) struct PlainParameters {
    pub(super) parameters: Value,
    /// The forms of the arguments, which the parameters cannot express.
    pub(super) note: Option<String>,
}

/// Returns the plain parameters of a tool.
///
/// # Errors
///
/// Returns a human-readable message if no object can satisfy the schema.
pub(super) fn plain_parameters(
    schema: &Value,
    names: &PropertyNameMap,
) -> Result<PlainParameters, String> {
    let telling =
        SchemaRewrite { root_schema: RootSchema { root: schema }, names, nodes: Cell::new(0) };
    let mut forms = telling.root_schema.expand_schema(schema, &[]);
    forms.retain(|form| can_be_object(&form.fields));
    forms.dedup_by(|a, b| a.fields == b.fields);
    if forms.is_empty() {
        return Err("no object can be what its parameters ask for".to_owned());
    }
    let note = (forms.len() > 1).then(|| telling.describe_variants(&forms));
    let mut form = unite_variants(&forms);
    form.fields.insert("type".to_owned(), json!("object"));
    form.fields.remove("enum");
    Ok(PlainParameters { parameters: telling.rewrite_variant(form, 0), note })
}

fn can_be_object(fields: &Map<String, Value>) -> bool {
    let can_be = fields.get("type").is_none_or(|types| has_type_name(types, "object"));
    let choices = fields.get("enum").and_then(Value::as_array);
    can_be && choices.is_none_or(|choices| choices.iter().any(Value::is_object))
}

/// The state of rewriting one schema.
struct SchemaRewrite<'s> {
    root_schema: RootSchema<'s>,
    names: &'s PropertyNameMap,
    nodes: Cell<usize>,
}

impl<'s> SchemaRewrite<'s> {
    /// Rewrites a nested schema; `None` if no value fits it.
    fn rewrite_schema(&self, schema: &Value, followed: &[&'s str], level: usize) -> Option<Value> {
        self.nodes.set(self.nodes.get() + 1);
        if level > LEVELS_MAX || self.nodes.get() > NODES_MAX {
            return Some(json!({}));
        }
        let mut forms = self.root_schema.expand_schema(schema, followed);
        let description = schema.get("description").cloned();
        if forms.len() > 1 {
            let is_own =
                |form: &SchemaVariant<'_>| form.fields.get("description") == description.as_ref();
            for form in forms.iter_mut().filter(|form| is_own(form)) {
                form.fields.remove("description");
            }
        }
        let mut rewritten: Vec<Value> = Vec::new();
        for form in forms {
            let form = self.rewrite_variant(form, level);
            if !rewritten.contains(&form) {
                rewritten.push(form);
            }
        }
        combine_schemas(rewritten, description)
    }

    /// Rewrites one form.
    fn rewrite_variant(&self, form: SchemaVariant<'s>, level: usize) -> Value {
        let SchemaVariant { fields, expanded_references: followed } = form;
        let mut notes = Vec::new();
        let mut rewritten = Map::new();
        for (keyword, value) in &fields {
            let (is_kept, is_noted) = match keyword.as_str() {
                "format" => (is_known_format(value), true),
                "pattern" => (is_anchored_pattern(value), true),
                // A boolean value belongs to an old dialect and means little on its own.
                other => (
                    contains_word(COPIED_KEYWORDS, other),
                    contains_word(NOTED_KEYWORDS, other) && !value.is_boolean(),
                ),
            };
            if is_kept {
                rewritten.insert(keyword.clone(), value.clone());
            } else if is_noted {
                notes.push(keyword_note(keyword, value));
            }
        }
        add_choices(&fields, &mut rewritten, &mut notes);
        self.rewrite_items(&fields, &followed, level, &mut rewritten);
        self.rewrite_properties(&fields, &followed, level, &mut rewritten);
        let words = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        let notes = notes.join("; ");
        let words = match (words, notes.as_str()) {
            (words, "") => words.to_owned(),
            ("", notes) => notes.to_owned(),
            (words, notes) => format!("{words} ({notes})"),
        };
        if !words.is_empty() {
            rewritten.insert("description".to_owned(), json!(words));
        }
        Value::Object(rewritten)
    }

    fn rewrite_items(
        &self,
        fields: &Map<String, Value>,
        followed: &[&'s str],
        level: usize,
        rewritten: &mut Map<String, Value>,
    ) {
        let several =
            ["prefixItems", "items"].iter().filter_map(|key| fields.get(*key)?.as_array());
        let mut items: Vec<Value> = several.flatten().cloned().collect();
        items.extend(fields.get("items").filter(|items| items.is_object()).cloned());
        let is_list = fields.get("type").is_some_and(|types| has_type_name(types, "array"));
        if !is_list && items.is_empty() {
            return;
        }
        let items = match items.as_slice() {
            [] => json!({}),
            [only] => only.clone(),
            several => json!({ "anyOf": several }),
        };
        let items = self.rewrite_schema(&items, followed, level + 1);
        rewritten.insert("items".to_owned(), items.unwrap_or_else(|| json!({})));
    }

    fn rewrite_properties(
        &self,
        fields: &Map<String, Value>,
        followed: &[&'s str],
        level: usize,
        rewritten: &mut Map<String, Value>,
    ) {
        let is_object = fields.get("type").is_some_and(|types| has_type_name(types, "object"));
        let given = fields.get("properties").and_then(Value::as_object);
        if !is_object && given.is_none() {
            return;
        }
        let mut properties = Map::new();
        for (name, schema) in given.into_iter().flatten() {
            if let Some(schema) = self.rewrite_schema(schema, followed, level + 1) {
                properties.insert(self.names.provider_name(name).to_owned(), schema);
            }
        }
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required_names: Vec<&str> = Vec::new();
        for name in required.filter_map(Value::as_str).map(|name| self.names.provider_name(name)) {
            properties.entry(name).or_insert_with(|| json!({}));
            if !required_names.contains(&name) {
                required_names.push(name);
            }
        }
        if !required_names.is_empty() {
            rewritten.insert("required".to_owned(), json!(required_names));
        }
        rewritten.insert("properties".to_owned(), Value::Object(properties));
        match fields.get("additionalProperties") {
            Some(closed @ Value::Bool(_)) => {
                rewritten.insert("additionalProperties".to_owned(), closed.clone());
            }
            Some(schema @ Value::Object(_)) => {
                let schema =
                    self.rewrite_schema(schema, followed, level + 1).unwrap_or(json!(false));
                rewritten.insert("additionalProperties".to_owned(), schema);
            }
            _ => {}
        }
    }

    /// Lists the forms of a tool's arguments, each by its distinguishing properties.
    fn describe_variants(&self, forms: &[SchemaVariant<'_>]) -> String {
        let mut text = "The arguments have one of these forms: ".to_owned();
        for (n, form) in forms.iter().enumerate() {
            let form = self.describe_variant(&form.fields);
            if text.len() + form.len() > VARIANTS_CHARS_MAX {
                text.push('…');
                break;
            }
            text.push_str(if n == 0 { "" } else { " or " });
            text.push_str(&form);
        }
        text
    }

    fn describe_variant(&self, fields: &Map<String, Value>) -> String {
        let required = fields.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        let parts = properties.map(|(name, schema)| {
            let seen = json!(self.names.provider_name(name));
            let only = match schema.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
                Some([only]) => Some(only),
                _ => schema.get("const"),
            };
            match only {
                Some(only) => format!("{seen}: {only}"),
                None if is_required(name) => seen.to_string(),
                None => format!("{seen} (optional)"),
            }
        });
        format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
    }
}

/// Returns a schema that accepts any of several forms; `None` if there are none.
fn combine_schemas(mut forms: Vec<Value>, description: Option<Value>) -> Option<Value> {
    let mut rewritten = match forms.len() {
        0 => return None,
        1 => forms.remove(0),
        _ if forms.iter().any(|form| form.as_object().is_some_and(Map::is_empty)) => json!({}),
        _ => merge_enums(&forms).unwrap_or_else(|| json!({ "anyOf": forms })),
    };
    if let (Some(rewritten), Some(description)) = (rewritten.as_object_mut(), description) {
        rewritten.entry("description").or_insert(description);
    }
    Some(rewritten)
}

/// Merges forms that are each an enumeration, such as the variants of an enum.
fn merge_enums(forms: &[Value]) -> Option<Value> {
    let (mut choices, mut words): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    let types = forms.first()?.get("type")?;
    for form in forms {
        let fields = form.as_object()?;
        let is_choice = fields.keys().all(|key| matches!(&**key, "type" | "enum" | "description"));
        let own_choices = fields.get("enum").and_then(Value::as_array)?;
        if !is_choice || fields.get("type") != Some(types) {
            return None;
        }
        if let Some(description) = fields.get("description").and_then(Value::as_str) {
            let own_choices: Vec<String> = own_choices.iter().map(Value::to_string).collect();
            words.push(format!("{}: {description}", own_choices.join(", ")));
        }
        choices.extend(own_choices.iter().cloned());
    }
    let mut rewritten = json!({ "type": types, "enum": choices });
    if !words.is_empty() {
        rewritten["description"] = json!(words.join("; "));
    }
    Some(rewritten)
}

/// Some providers accept only numbers and texts as choices. All others become a note.
fn add_choices(
    fields: &Map<String, Value>,
    rewritten: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) {
    let Some(all) = fields.get("enum").and_then(Value::as_array) else { return };
    if !all.iter().all(is_plain_choice) {
        notes.push(format!("one of {}", shorten_value(&json!(all))));
        return;
    }
    if !rewritten.contains_key("type") {
        let kind = if all.iter().all(Value::is_number) { "number" } else { "string" };
        if kind == "number" || all.iter().all(Value::is_string) {
            rewritten.insert("type".to_owned(), json!(kind));
        }
    }
    rewritten.insert("enum".to_owned(), json!(all));
}

fn keyword_note(keyword: &str, value: &Value) -> String {
    format!("{keyword}: {}", shorten_value(value))
}

fn shorten_value(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(NOTE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
