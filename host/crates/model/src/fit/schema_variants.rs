//! Expands a schema into the forms that a value can have, without references and unions.
//!
//! `{"type": "object", "oneOf": [A, B]}` has two forms: an object that is A, and one that is B. The
//! forms can then be listed or united into one. They may be looser than the schema: the gate
//! validates against the schema itself.

use sallyport_lexical::contains_word;
use serde_json::{Map, Value, json};

use super::acceptance::has_type_name;

/// Most forms that are kept apart; more are united.
const VARIANTS_MAX: usize = 64;

/// Keywords that this module resolves.
const RESOLVED_KEYWORDS: &str = "\
    $defs $dynamicRef $ref allOf anyOf definitions else if oneOf then";

/// One form.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SchemaVariant<'s> {
    pub(super) fields: Map<String, Value>,
    /// The references that were followed to reach the form. A reference that occurs again within it
    /// is a recursion.
    pub(super) expanded_references: Vec<&'s str>,
}

/// Resolves references within a root schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootSchema<'s> {
    pub(super) root: &'s Value,
}

impl<'s> RootSchema<'s> {
    /// Returns the forms of a value; empty if no value fits. `followed` lists the references that
    /// led to the schema.
    pub(super) fn expand_schema(
        self,
        schema: &Value,
        followed: &[&'s str],
    ) -> Vec<SchemaVariant<'s>> {
        let Some(fields) = schema.as_object() else {
            let fits = schema != &Value::Bool(false);
            return if fits { vec![SchemaVariant::default()] } else { Vec::new() };
        };
        let mut forms = vec![SchemaVariant {
            fields: own_keywords(fields),
            expanded_references: followed.to_vec(),
        }];
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(target) = fields.get(keyword).and_then(Value::as_str) {
                forms = combine_variants(forms, self.expand_reference(target, followed));
            }
        }
        for member in keyword_items(fields, "allOf") {
            forms = combine_variants(forms, self.expand_schema(member, followed));
        }
        for keyword in ["anyOf", "oneOf"] {
            if fields.contains_key(keyword) {
                let either = keyword_items(fields, keyword)
                    .flat_map(|one| self.expand_schema(one, followed));
                forms = combine_variants(forms, either.collect());
            }
        }
        if fields.contains_key("if") {
            let branch = |keyword| fields.get(keyword).unwrap_or(&Value::Bool(true));
            let either = ["then", "else"].map(branch);
            let either = either.into_iter().flat_map(|one| self.expand_schema(one, followed));
            forms = combine_variants(forms, either.collect());
        }
        forms
    }

    fn expand_reference(self, target: &str, followed: &[&'s str]) -> Vec<SchemaVariant<'s>> {
        let Some((place, schema)) = resolve_reference(self.root, target) else {
            return vec![SchemaVariant::default()];
        };
        if !followed.contains(&place) {
            return self.expand_schema(schema, &[followed, &[place]].concat());
        }
        // A recursive reference keeps only its type; expanding it would never end.
        let types = schema.get("type").map(|types| ("type".to_owned(), types.clone()));
        vec![SchemaVariant {
            fields: types.into_iter().collect(),
            expanded_references: followed.to_vec(),
        }]
    }
}

/// Returns the target of a reference within a schema, and a name for it that lives as long as the
/// schema.
fn resolve_reference<'s>(root: &'s Value, target: &str) -> Option<(&'s str, &'s Value)> {
    if target == "#" {
        return Some(("#", root));
    }
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let mut parts = target.strip_prefix("#/")?.split('/').map(unescaped);
    parts.try_fold(("#", root), |(_, node), part| match node {
        Value::Object(fields) => {
            let (key, value) = fields.get_key_value(&part)?;
            Some((key.as_str(), value))
        }
        Value::Array(items) => Some(("#", items.get(part.parse::<usize>().ok()?)?)),
        _ => None,
    })
}

fn keyword_items<'a>(
    fields: &'a Map<String, Value>,
    keyword: &str,
) -> impl Iterator<Item = &'a Value> {
    fields.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

fn own_keywords(fields: &Map<String, Value>) -> Map<String, Value> {
    let own_fields = fields.iter().filter(|(key, _)| !contains_word(RESOLVED_KEYWORDS, key));
    let mut own_fields: Map<String, Value> =
        own_fields.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(only) = own_fields.remove("const") {
        own_fields.insert("enum".to_owned(), json!([only]));
    }
    own_fields
}

/// Returns the combinations of one form of each list.
fn combine_variants<'s>(
    one: Vec<SchemaVariant<'s>>,
    other: Vec<SchemaVariant<'s>>,
) -> Vec<SchemaVariant<'s>> {
    let (one, other) = match one.len() * other.len() > VARIANTS_MAX {
        true => (vec![unite_variants(&one)], vec![unite_variants(&other)]),
        false => (one, other),
    };
    one.iter().flat_map(|a| other.iter().filter_map(|b| intersect_variants(a, b))).collect()
}

/// Returns the form that satisfies both; `None` if no value can.
fn intersect_variants<'s>(
    one: &SchemaVariant<'s>,
    other: &SchemaVariant<'s>,
) -> Option<SchemaVariant<'s>> {
    let mut fields = one.fields.clone();
    for (keyword, value) in &other.fields {
        let Some(known) = fields.get_mut(keyword) else {
            fields.insert(keyword.clone(), value.clone());
            continue;
        };
        match keyword.as_str() {
            _ if known == value => {}
            "type" => *known = common_type(known, value)?,
            "enum" => *known = common_choices(known, value)?,
            "required" => *known = union_names(known, value),
            "properties" => *known = merge_properties(known, value),
            _ => {}
        }
    }
    if is_closed_to(one, other) || is_closed_to(other, one) {
        fields.remove("additionalProperties");
    }
    retain_typed_choices(&mut fields)?;
    let mut followed = one.expanded_references.clone();
    followed.extend(&other.expanded_references);
    Some(SchemaVariant { fields, expanded_references: followed })
}

/// Returns true if one form is closed and does not know the properties of the other.
fn is_closed_to(one: &SchemaVariant<'_>, other: &SchemaVariant<'_>) -> bool {
    let is_closed =
        |form: &SchemaVariant<'_>| form.fields.get("additionalProperties") == Some(&json!(false));
    is_closed(one) && !is_closed(other) && other.fields.contains_key("properties")
}

fn common_type(one: &Value, other: &Value) -> Option<Value> {
    let all = |types: &Value| -> Vec<Value> {
        types.as_array().cloned().unwrap_or_else(|| vec![types.clone()])
    };
    let narrower = |a: &Value| match a.as_str() {
        _ if all(other).contains(a) => Some(a.clone()),
        Some("number") if has_type_name(other, "integer") => Some(json!("integer")),
        Some("integer") if has_type_name(other, "number") => Some(json!("integer")),
        _ => None,
    };
    let mut common: Vec<Value> = all(one).iter().filter_map(narrower).collect();
    match common.len() {
        0 => None,
        1 => common.pop(),
        _ => Some(Value::Array(common)),
    }
}

fn common_choices(one: &Value, other: &Value) -> Option<Value> {
    let other = other.as_array()?;
    let common = one.as_array()?.iter().filter(|value| other.contains(value));
    let common: Vec<Value> = common.cloned().collect();
    (!common.is_empty()).then_some(Value::Array(common))
}

/// Drops choices that do not have the form's type; `None` if no choice is left.
fn retain_typed_choices(fields: &mut Map<String, Value>) -> Option<()> {
    let Some(types) = fields.get("type").cloned() else { return Some(()) };
    let Some(Value::Array(choices)) = fields.get_mut("enum") else { return Some(()) };
    choices.retain(|value| has_type(value, &types));
    (!choices.is_empty()).then_some(())
}

/// Returns true if a value has one of these types.
pub(super) fn has_type(value: &Value, types: &Value) -> bool {
    let named = |names: &[&str]| names.iter().any(|name| has_type_name(types, name));
    match value {
        Value::Null => named(&["null"]),
        Value::Bool(_) => named(&["boolean"]),
        Value::Number(_) => named(&["number", "integer"]),
        Value::String(_) => named(&["string"]),
        Value::Array(_) => named(&["array"]),
        Value::Object(_) => named(&["object"]),
    }
}

fn union_names(one: &Value, other: &Value) -> Value {
    let mut names = one.as_array().cloned().unwrap_or_default();
    for name in other.as_array().into_iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Value::Array(names)
}

fn merge_properties(one: &Value, other: &Value) -> Value {
    let mut properties = one.as_object().cloned().unwrap_or_default();
    for (name, schema) in other.as_object().into_iter().flatten() {
        match properties.get_mut(name) {
            Some(known) if known == schema => {}
            Some(known) => *known = json!({ "allOf": [known.take(), schema] }),
            None => drop(properties.insert(name.clone(), schema.clone())),
        }
    }
    Value::Object(properties)
}

/// Unites forms into one that keeps only the keywords that all of them share.
///
/// The properties of all forms are merged. A property that only some forms describe is described
/// that way for all of them.
pub(super) fn unite_variants<'s>(forms: &[SchemaVariant<'s>]) -> SchemaVariant<'s> {
    let Some((first, rest)) = forms.split_first() else { return SchemaVariant::default() };
    let same = |(key, value): &(&String, &Value)| {
        rest.iter().all(|form| form.fields.get(*key) == Some(value))
    };
    let kept = first.fields.iter().filter(same);
    let mut fields: Map<String, Value> =
        kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    // The properties are useful to the model even if one form has none.
    if forms.iter().any(|form| form.fields.contains_key("properties")) {
        fields.insert("properties".to_owned(), unite_properties(forms));
        fields.insert("required".to_owned(), required_by_all(forms));
    }
    let followed = forms.iter().flat_map(|form| &form.expanded_references).copied().collect();
    SchemaVariant { fields, expanded_references: followed }
}

fn unite_properties(forms: &[SchemaVariant<'_>]) -> Value {
    let mut united: Map<String, Value> = Map::new();
    let properties = forms.iter().filter_map(|form| form.fields.get("properties")?.as_object());
    for (name, schema) in properties.flatten() {
        match united.get_mut(name) {
            None => drop(united.insert(name.clone(), json!([schema]))),
            Some(Value::Array(several)) if !several.contains(schema) => {
                several.push(schema.clone())
            }
            Some(_) => {}
        }
    }
    for several in united.values_mut() {
        *several = match several.as_array().map(Vec::as_slice) {
            Some([only]) => only.clone(),
            _ => json!({ "anyOf": several.take() }),
        };
    }
    Value::Object(united)
}

fn required_by_all(forms: &[SchemaVariant<'_>]) -> Value {
    let required = |form: &SchemaVariant<'_>| {
        form.fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut all = forms.iter().map(required);
    let mut names = all.next().unwrap_or_default();
    all.for_each(|other| names.retain(|name| other.contains(name)));
    Value::Array(names)
}
