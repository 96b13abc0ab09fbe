//! JSON Schemas of types. A value fits the schema if and only if it can be converted, except for
//! the digits of wide integers and the alphabet of Base64, which the conversion checks.

use serde_json::{Map, Value, json};

use super::{
    ERR, INFINITY, NAN, NEGATIVE_INFINITY, OK, PAYLOAD, SAFE_INTEGER_MAX, SOME, TAG,
    docs::{NamedTypes, TypeDocs},
    value_type::{IntegerType, NamedType, ResultType, ValueType, VariantCase},
};

/// The schema of an object with these members, as the parameters of a function are.
pub(crate) fn object_schema(members: &[NamedType], named: &NamedTypes) -> Value {
    members_schema(members, named, None)
}

/// The schema of a type.
pub(crate) fn type_schema(ty: &ValueType, named: &NamedTypes) -> Value {
    let docs = named.docs(ty);
    let schema = match ty {
        ValueType::Bool => json!({ "type": "boolean" }),
        ValueType::Integer(integer) => integer_schema(*integer),
        ValueType::Float32 => float_schema(json!({
            "type": "number", "minimum": f64::from(f32::MIN), "maximum": f64::from(f32::MAX)
        })),
        ValueType::Float64 => float_schema(json!({ "type": "number" })),
        ValueType::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        ValueType::String => json!({ "type": "string" }),
        ValueType::List(element) if element.is_byte() => {
            json!({ "type": "string", "contentEncoding": "base64", "description": "Bytes in Base64." })
        }
        ValueType::List(element) => {
            json!({ "type": "array", "items": type_schema(element, named) })
        }
        ValueType::FixedList(element, length) => json!({
            "type": "array", "items": type_schema(element, named),
            "minItems": length, "maxItems": length
        }),
        ValueType::Map(key, element) => map_schema(key, element, named),
        ValueType::Record(fields) => members_schema(fields, named, docs),
        ValueType::Tuple(types) => tuple_schema(types, named),
        ValueType::Variant(cases) => variant_schema(cases, named, docs),
        ValueType::Enum(names) => json!({ "type": "string", "enum": names }),
        ValueType::Flags(names) => json!({
            "type": "array", "items": { "type": "string", "enum": names }, "uniqueItems": true
        }),
        ValueType::Option(inner) => option_schema(inner, named),
        ValueType::Result(result) => result_schema(result, named),
    };
    describe(schema, ty, docs)
}

/// Adds what the author wrote about a type. Names of enums and flags have no schema of their own,
/// so their documentation follows.
fn describe(mut schema: Value, ty: &ValueType, docs: Option<&TypeDocs>) -> Value {
    let Some(docs) = docs else { return schema };
    let names: &[String] = match ty {
        ValueType::Enum(names) | ValueType::Flags(names) => names,
        _ => &[],
    };
    let items = names.iter().filter_map(|name| Some(format!("{name}: {}", docs.item(name)?)));
    let text: Vec<String> = docs.text.clone().into_iter().chain(items).collect();
    if !text.is_empty() {
        schema["description"] = text.join("\n").into();
    }
    schema
}

fn describe_item(mut schema: Value, docs: Option<&TypeDocs>, name: &str) -> Value {
    if let Some(text) = docs.and_then(|docs| docs.item(name)) {
        schema["description"] = text.into();
    }
    schema
}

fn integer_schema(integer: IntegerType) -> Value {
    let number = match integer {
        IntegerType::S64 => json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
        IntegerType::U64 => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        narrow => {
            let (least, greatest) = narrow.range();
            return json!({ "type": "integer", "minimum": least as i64, "maximum": greatest as i64 });
        }
    };
    let text = format!("Its decimal digits, for an integer beyond ±{SAFE_INTEGER_MAX}.");
    let digits = json!({ "type": "string", "minLength": 1, "maxLength": 20, "description": text });
    json!({ "anyOf": [number, digits] })
}

fn float_schema(number: Value) -> Value {
    json!({ "anyOf": [number, { "type": "string", "enum": [NAN, INFINITY, NEGATIVE_INFINITY] }] })
}

fn members_schema(members: &[NamedType], named: &NamedTypes, docs: Option<&TypeDocs>) -> Value {
    let property = |member: &NamedType| {
        let schema = describe_item(type_schema(&member.ty, named), docs, &member.name);
        (member.name.clone(), schema)
    };
    let properties: Map<String, Value> = members.iter().map(property).collect();
    let required: Vec<&str> = members
        .iter()
        .filter(|member| !member.ty.is_option())
        .map(|member| &*member.name)
        .collect();
    json!({
        "type": "object", "properties": properties, "required": required,
        "additionalProperties": false
    })
}

fn tuple_schema(types: &[ValueType], named: &NamedTypes) -> Value {
    let items: Vec<Value> = types.iter().map(|ty| type_schema(ty, named)).collect();
    let length = types.len();
    json!({
        "type": "array", "prefixItems": items, "items": false,
        "minItems": length, "maxItems": length
    })
}

fn map_schema(key: &ValueType, element: &ValueType, named: &NamedTypes) -> Value {
    if *key == ValueType::String {
        return json!({ "type": "object", "additionalProperties": type_schema(element, named) });
    }
    let pair = tuple_schema(&[key.clone(), element.clone()], named);
    json!({ "type": "array", "items": pair })
}

fn variant_schema(cases: &[VariantCase], named: &NamedTypes, docs: Option<&TypeDocs>) -> Value {
    let case = |case: &VariantCase| {
        let mut properties = Map::new();
        properties.insert(TAG.to_owned(), json!({ "type": "string", "const": case.name }));
        let mut required = vec![TAG];
        if let Some(payload) = &case.payload {
            properties.insert(PAYLOAD.to_owned(), type_schema(payload, named));
            required.extend((!payload.is_option()).then_some(PAYLOAD));
        }
        let schema = json!({
            "type": "object", "properties": properties, "required": required,
            "additionalProperties": false
        });
        describe_item(schema, docs, &case.name)
    };
    json!({ "anyOf": cases.iter().map(case).collect::<Vec<_>>() })
}

fn option_schema(inner: &ValueType, named: &NamedTypes) -> Value {
    let value = type_schema(inner, named);
    let value = if inner.is_option() { only_key(SOME, value) } else { value };
    json!({ "anyOf": [value, { "type": "null" }] })
}

fn result_schema(result: &ResultType, named: &NamedTypes) -> Value {
    let side = |key: &str, payload: Option<&ValueType>| {
        only_key(key, payload.map_or(json!({ "type": "null" }), |ty| type_schema(ty, named)))
    };
    json!({ "anyOf": [side(OK, result.ok.as_deref()), side(ERR, result.err.as_deref())] })
}

fn only_key(key: &str, value: Value) -> Value {
    json!({
        "type": "object", "properties": { key: value }, "required": [key],
        "additionalProperties": false
    })
}
