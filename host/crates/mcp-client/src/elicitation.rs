//! A question of a server in the protocol's types, as the host asks it.
//!
//! A question that cannot be shown whole and understood is not asked: too long, with too many fields,
//! with a page whose address hides where it leads.

use rmcp::model::{
    ElicitRequestParams, ElicitationSchema, EnumSchema, IntegerSchema, MultiSelectEnumSchema,
    NumberSchema, PrimitiveSchemaDefinition, SingleSelectEnumSchema, StringFormat, StringSchema,
};
use sallyport_contract::{FieldKind, FieldOption, FormField, FormQuestion, TextFormat};
use serde_json::{Number, Value};
use url::Url;

/// Longest message of a question, in characters. More does not fit on a screen.
const MESSAGE_CHARS_MAX: usize = 2000;

/// Most fields of a form.
const FIELDS_MAX: usize = 16;

/// Most values of a field to choose from.
const OPTIONS_MAX: usize = 64;

/// Longest name, title, description, value or default of a field, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// Longest address of a page, in bytes.
const ADDRESS_BYTES_MAX: usize = 2000;

/// Why a question is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnaskableQuestion {
    #[error("it is too long")]
    TooLong,
    #[error("it has more than {FIELDS_MAX} fields")]
    TooManyFields,
    #[error("a field offers more than {OPTIONS_MAX} values, none, or one of them twice")]
    BadOptions,
    #[error("a default does not have the type of its field")]
    BadDefault,
    #[error("the address of its page is not a plain http or https address")]
    BadAddress,
    #[error("this kind of question is not known")]
    Unknown,
}

/// Reads a question.
///
/// # Errors
///
/// It is not asked.
pub(crate) fn read_question(
    request: &ElicitRequestParams,
) -> Result<FormQuestion, UnaskableQuestion> {
    let (message, page, fields) = match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            (message, None, read_fields(requested_schema)?)
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            (message, Some(read_address(url)?), Vec::new())
        }
        _ => return Err(UnaskableQuestion::Unknown),
    };
    check_length(message, MESSAGE_CHARS_MAX)?;
    Ok(FormQuestion { message: message.clone(), page, fields })
}

/// An address as a browser would open it, so that the host that is shown is the one that is opened.
/// A name in front of the host looks like a host.
fn read_address(address: &str) -> Result<String, UnaskableQuestion> {
    let url = Url::parse(address).map_err(|_| UnaskableQuestion::BadAddress)?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none();
    match is_plain && url.as_str().len() <= ADDRESS_BYTES_MAX {
        true => Ok(url.into()),
        false => Err(UnaskableQuestion::BadAddress),
    }
}

fn read_fields(schema: &ElicitationSchema) -> Result<Vec<FormField>, UnaskableQuestion> {
    if schema.properties.len() > FIELDS_MAX {
        return Err(UnaskableQuestion::TooManyFields);
    }
    let sorted = || schema.properties.keys().cloned().collect();
    let order: Vec<String> = schema.property_order.clone().unwrap_or_else(sorted);
    let required = schema.required.as_deref().unwrap_or_default();
    let named = order.iter().filter_map(|name| Some((name, schema.properties.get(name)?)));
    named.map(|(name, definition)| read_field(name, definition, required)).collect()
}

fn read_field(
    name: &str,
    definition: &PrimitiveSchemaDefinition,
    required: &[String],
) -> Result<FormField, UnaskableQuestion> {
    let FieldParts { title, description, kind, default } = match definition {
        PrimitiveSchemaDefinition::Enum(schema) => enum_parts(schema),
        PrimitiveSchemaDefinition::String(schema) => text_parts(schema),
        PrimitiveSchemaDefinition::Number(schema) => number_parts(schema),
        PrimitiveSchemaDefinition::Integer(schema) => integer_parts(schema),
        PrimitiveSchemaDefinition::Boolean(schema) => FieldParts {
            title: text_of(&schema.title),
            description: text_of(&schema.description),
            kind: FieldKind::YesNo,
            default: schema.default.map(Value::from),
        },
        _ => return Err(UnaskableQuestion::Unknown),
    };
    let required = required.iter().any(|one| one == name);
    let name = name.to_owned();
    let field = FormField { name, title, description, required, default, kind };
    check_field(&field)?;
    Ok(field)
}

/// What a schema declares about a field.
struct FieldParts {
    title: Option<String>,
    description: Option<String>,
    kind: FieldKind,
    default: Option<Value>,
}

type Text = Option<std::borrow::Cow<'static, str>>;

fn text_of(text: &Text) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}

fn text_parts(schema: &StringSchema) -> FieldParts {
    let format = schema.format.as_ref().and_then(|format| {
        Some(match format {
            StringFormat::Email => TextFormat::Email,
            StringFormat::Uri => TextFormat::Uri,
            StringFormat::Date => TextFormat::Date,
            StringFormat::DateTime => TextFormat::DateTime,
            _ => return None,
        })
    });
    let (min_chars, max_chars) = (schema.min_length, schema.max_length);
    FieldParts {
        title: text_of(&schema.title),
        description: text_of(&schema.description),
        kind: FieldKind::Text { min_chars, max_chars, format },
        default: schema.default.clone().map(Value::from),
    }
}

fn number_parts(schema: &NumberSchema) -> FieldParts {
    let number = |limit: Option<f64>| limit.and_then(Number::from_f64);
    let (minimum, maximum) = (number(schema.minimum), number(schema.maximum));
    FieldParts {
        title: text_of(&schema.title),
        description: text_of(&schema.description),
        kind: FieldKind::Number { is_whole: false, minimum, maximum },
        default: schema.default.map(Value::from),
    }
}

fn integer_parts(schema: &IntegerSchema) -> FieldParts {
    let (minimum, maximum) = (schema.minimum.map(Number::from), schema.maximum.map(Number::from));
    FieldParts {
        title: text_of(&schema.title),
        description: text_of(&schema.description),
        kind: FieldKind::Number { is_whole: true, minimum, maximum },
        default: schema.default.map(Value::from),
    }
}

fn enum_parts(schema: &EnumSchema) -> FieldParts {
    match schema {
        EnumSchema::Single(SingleSelectEnumSchema::Untitled(one)) => {
            let kind = FieldKind::Choice { options: untitled(&one.enum_) };
            choice_parts(&one.title, &one.description, kind, one.default.clone().map(Value::from))
        }
        EnumSchema::Single(SingleSelectEnumSchema::Titled(one)) => {
            let pairs = one.one_of.iter().map(|option| (&option.const_, &option.title));
            let kind = FieldKind::Choice { options: titled(pairs) };
            choice_parts(&one.title, &one.description, kind, one.default.clone().map(Value::from))
        }
        EnumSchema::Multi(MultiSelectEnumSchema::Untitled(any)) => {
            let options = untitled(&any.items.enum_);
            let (min_count, max_count) = (any.min_items, any.max_items);
            let kind = FieldKind::Choices { options, min_count, max_count };
            choice_parts(&any.title, &any.description, kind, any.default.clone().map(Value::from))
        }
        EnumSchema::Multi(MultiSelectEnumSchema::Titled(any)) => {
            let pairs = any.items.any_of.iter().map(|option| (&option.const_, &option.title));
            let (min_count, max_count) = (any.min_items, any.max_items);
            let kind = FieldKind::Choices { options: titled(pairs), min_count, max_count };
            choice_parts(&any.title, &any.description, kind, any.default.clone().map(Value::from))
        }
        EnumSchema::Legacy(one) => {
            let names = one.enum_names.as_deref().unwrap_or_default();
            let mut options = untitled(&one.enum_);
            options
                .iter_mut()
                .zip(names)
                .for_each(|(option, name)| option.title = Some(name.clone()));
            let kind = FieldKind::Choice { options };
            choice_parts(&one.title, &one.description, kind, one.default.clone().map(Value::from))
        }
        // Its field offers nothing, so the question is not asked.
        _ => choice_parts(&None, &None, FieldKind::Choice { options: Vec::new() }, None),
    }
}

fn choice_parts(
    title: &Text,
    description: &Text,
    kind: FieldKind,
    default: Option<Value>,
) -> FieldParts {
    FieldParts { title: text_of(title), description: text_of(description), kind, default }
}

fn untitled(values: &[String]) -> Vec<FieldOption> {
    values.iter().map(|value| FieldOption { value: value.clone(), title: None }).collect()
}

fn titled<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Vec<FieldOption> {
    let option = |(value, title): (&String, &String)| FieldOption {
        value: value.clone(),
        title: Some(title.clone()),
    };
    pairs.map(option).collect()
}

fn check_field(field: &FormField) -> Result<(), UnaskableQuestion> {
    let texts = [Some(&field.name), field.title.as_ref(), field.description.as_ref()];
    let of_options =
        field.options().iter().flat_map(|option| [Some(&option.value), option.title.as_ref()]);
    texts
        .into_iter()
        .chain(of_options)
        .flatten()
        .try_for_each(|text| check_length(text, TEXT_CHARS_MAX))?;
    check_options(field)?;
    field.default.as_ref().map_or(Ok(()), |default| check_default(field, default))
}

fn check_default(field: &FormField, default: &Value) -> Result<(), UnaskableQuestion> {
    let is_offered = |value: &Value| field.options().iter().any(|option| *value == *option.value);
    let fits = match &field.kind {
        FieldKind::Text { .. } => default.is_string(),
        FieldKind::Number { is_whole, .. } => {
            default.is_i64() || (!is_whole && default.is_number())
        }
        FieldKind::YesNo => default.is_boolean(),
        FieldKind::Choice { .. } => is_offered(default),
        FieldKind::Choices { .. } => {
            default.as_array().is_some_and(|values| values.iter().all(is_offered))
        }
    };
    if !fits {
        return Err(UnaskableQuestion::BadDefault);
    }
    check_length(default.as_str().unwrap_or_default(), TEXT_CHARS_MAX)
}

fn check_options(field: &FormField) -> Result<(), UnaskableQuestion> {
    let options = match &field.kind {
        FieldKind::Choice { options } | FieldKind::Choices { options, .. } => options,
        FieldKind::Text { .. } | FieldKind::Number { .. } | FieldKind::YesNo => return Ok(()),
    };
    let is_twice = |(index, option): (usize, &FieldOption)| {
        options[..index].iter().any(|other| other.value == option.value)
    };
    let is_usable =
        (1..=OPTIONS_MAX).contains(&options.len()) && !options.iter().enumerate().any(is_twice);
    is_usable.then_some(()).ok_or(UnaskableQuestion::BadOptions)
}

fn check_length(text: &str, chars_max: usize) -> Result<(), UnaskableQuestion> {
    match text.chars().nth(chars_max) {
        Some(_) => Err(UnaskableQuestion::TooLong),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads a question with these properties.
    fn form(properties: Value) -> Result<FormQuestion, UnaskableQuestion> {
        let schema = json!({ "type": "object", "properties": properties, "required": ["a"] });
        let params = json!({ "message": "Which?", "requestedSchema": schema });
        read_question(&serde_json::from_value(params).unwrap())
    }

    #[test]
    fn every_kind_of_field_is_read() {
        let rows = [
            json!({ "type": "string", "minLength": 1, "maxLength": 9, "format": "email" }),
            json!({ "type": "string", "title": "T", "description": "D", "default": "x" }),
            json!({ "type": "number", "minimum": 0.5, "default": 1.5 }),
            json!({ "type": "integer", "minimum": 1, "maximum": 9, "default": 3 }),
            json!({ "type": "boolean", "default": true }),
        ];
        for property in rows {
            let read = form(json!({ "a": property })).unwrap();
            assert!(read.fields[0].required);
            assert_eq!(read.json_schema()["properties"]["a"], property);
        }
        let choices = [
            json!({ "type": "string", "enum": ["x", "y"], "default": "y" }),
            json!({ "type": "string", "oneOf": [
                { "const": "x", "title": "X" }, { "const": "y", "title": "Y" }
            ], "default": "y" }),
            json!({ "type": "string", "enum": ["x", "y"], "enumNames": ["X", "Y"], "default": "y" }),
            json!({ "type": "array", "items": { "type": "string", "enum": ["x", "y"] },
                "default": ["y"] }),
            json!({ "type": "array", "minItems": 1, "items": { "anyOf": [
                { "const": "x", "title": "X" }, { "const": "y", "title": "Y" }
            ] } }),
        ];
        for property in choices {
            let read = form(json!({ "a": property })).unwrap();
            let values: Vec<&str> =
                read.fields[0].options().iter().map(|option| option.value.as_str()).collect();
            assert_eq!(values, ["x", "y"], "{property}");
        }
    }

    #[test]
    fn the_order_of_the_fields_is_the_servers() {
        let text = r#"{"message":"m","requestedSchema":{"type":"object","properties":
            {"z":{"type":"string"},"a":{"type":"string"}}}}"#;
        let read = read_question(&serde_json::from_str(text).unwrap()).unwrap();
        let names: Vec<&str> = read.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
    }

    #[test]
    fn what_cannot_be_shown_is_not_asked() {
        use UnaskableQuestion::{BadDefault, BadOptions, TooLong, TooManyFields};
        let fields = |count: usize| {
            let field = |number| (format!("f{number}"), json!({ "type": "string" }));
            Value::Object((0..count).map(field).collect())
        };
        let long = "x".repeat(TEXT_CHARS_MAX + 1);
        let many: Vec<String> = (0..=OPTIONS_MAX).map(|number| number.to_string()).collect();
        let one = |property: Value| json!({ "a": property });
        let rows = [
            (fields(FIELDS_MAX), None),
            (fields(FIELDS_MAX + 1), Some(TooManyFields)),
            (one(json!({ "type": "string", "title": long })), Some(TooLong)),
            (one(json!({ "type": "string", "default": long })), Some(TooLong)),
            (one(json!({ "type": "string", "enum": [long] })), Some(TooLong)),
            (one(json!({ "type": "string", "enum": many })), Some(BadOptions)),
            (one(json!({ "type": "string", "enum": [] })), Some(BadOptions)),
            (one(json!({ "type": "string", "enum": ["x", "x"] })), Some(BadOptions)),
            (one(json!({ "type": "string", "enum": ["x"], "default": "y" })), Some(BadDefault)),
        ];
        for (properties, problem) in rows {
            assert_eq!(form(properties.clone()).err(), problem, "{properties}");
        }
        let params = json!({ "message": "m".repeat(MESSAGE_CHARS_MAX + 1),
            "requestedSchema": { "type": "object", "properties": {} } });
        let read = read_question(&serde_json::from_value(params).unwrap());
        assert_eq!(read, Err(TooLong));
    }

    #[test]
    fn a_page_shows_the_host_that_it_leads_to() {
        let rows = [
            ("https://example.org/a?b=c", Some("https://example.org/a?b=c")),
            ("HTTPS://EXAMPLE.org", Some("https://example.org/")),
            ("https://ex\u{430}mple.org/", Some("https://xn--exmple-4nf.org/")),
            ("https://bank.example@evil.example/", None),
            ("https://a:b@example.org/", None),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("data:text/html,x", None),
            ("example.org", None),
            ("", None),
        ];
        for (address, want) in rows {
            let params = json!({
                "mode": "url", "message": "m", "url": address, "elicitationId": "1"
            });
            let read = read_question(&serde_json::from_value(params).unwrap());
            let page = read.ok().and_then(|question| question.page);
            assert_eq!(page.as_deref(), want, "{address}");
        }
    }
}
