//! Functions and types in the form of WIT, for a function that nothing is written about.

use super::{
    docs::NamedTypes,
    value_type::{NamedType, ResultType, ValueType, VariantCase},
};

/// Longest signature in bytes. A longer one is cut; the schema has all of it.
const SIGNATURE_BYTES_MAX: usize = 1000;

/// A function as WIT writes it: `area: func(shape: shape) -> result<f64, string>`.
pub(crate) fn format_signature(
    name: &str,
    parameters: &[NamedType],
    result: Option<&ValueType>,
    named: &NamedTypes,
) -> String {
    let mut text = format!("{name}: func({})", format_members(parameters, named));
    if let Some(result) = result {
        text.push_str(&format!(" -> {}", format_type(result, named)));
    }
    if text.len() > SIGNATURE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(SIGNATURE_BYTES_MAX));
        text.push('…');
    }
    text
}

/// A type by its name, or spelled out if it has none.
fn format_type(ty: &ValueType, named: &NamedTypes) -> String {
    if let Some(docs) = named.docs(ty) {
        return docs.name.clone();
    }
    match ty {
        ValueType::Bool => "bool".to_owned(),
        ValueType::Integer(integer) => integer.as_str().to_owned(),
        ValueType::Float32 => "f32".to_owned(),
        ValueType::Float64 => "f64".to_owned(),
        ValueType::Char => "char".to_owned(),
        ValueType::String => "string".to_owned(),
        ValueType::List(element) => format!("list<{}>", format_type(element, named)),
        ValueType::FixedList(element, length) => {
            format!("list<{}, {length}>", format_type(element, named))
        }
        ValueType::Map(key, element) => {
            format!("map<{}, {}>", format_type(key, named), format_type(element, named))
        }
        ValueType::Record(fields) => format!("record {{ {} }}", format_members(fields, named)),
        ValueType::Tuple(types) => format!("tuple<{}>", format_types(types, named)),
        ValueType::Variant(cases) => {
            let cases: Vec<String> = cases.iter().map(|case| format_case(case, named)).collect();
            format!("variant {{ {} }}", cases.join(", "))
        }
        ValueType::Enum(names) => format!("enum {{ {} }}", names.join(", ")),
        ValueType::Flags(names) => format!("flags {{ {} }}", names.join(", ")),
        ValueType::Option(inner) => format!("option<{}>", format_type(inner, named)),
        ValueType::Result(result) => format_result(result, named),
    }
}

fn format_types(types: &[ValueType], named: &NamedTypes) -> String {
    types.iter().map(|ty| format_type(ty, named)).collect::<Vec<_>>().join(", ")
}

fn format_members(members: &[NamedType], named: &NamedTypes) -> String {
    let member =
        |member: &NamedType| format!("{}: {}", member.name, format_type(&member.ty, named));
    members.iter().map(member).collect::<Vec<_>>().join(", ")
}

fn format_case(case: &VariantCase, named: &NamedTypes) -> String {
    match &case.payload {
        Some(payload) => format!("{}({})", case.name, format_type(payload, named)),
        None => case.name.clone(),
    }
}

fn format_result(result: &ResultType, named: &NamedTypes) -> String {
    let side = |ty: &ValueType| format_type(ty, named);
    match (result.ok.as_deref().map(side), result.err.as_deref().map(side)) {
        (None, None) => "result".to_owned(),
        (Some(ok), None) => format!("result<{ok}>"),
        (ok, Some(err)) => format!("result<{}, {err}>", ok.unwrap_or_else(|| "_".to_owned())),
    }
}
