//! Checks the values that a user has filled in against the fields of the question.

use sallyport_contract::{FormField, FormQuestion};
use sallyport_sandbox::schema::CompiledSchema;
use serde_json::{Map, Value};

/// Checks the values of a whole form. A field that has a default may be left out.
///
/// # Errors
///
/// What does not fit, one sentence each.
pub fn check_form_values(
    form: &FormQuestion,
    values: &Map<String, Value>,
) -> Result<(), Vec<String>> {
    let mut schema = form.json_schema();
    schema["additionalProperties"] = false.into();
    let schema = CompiledSchema::new(&schema).map_err(|problem| vec![problem])?;
    schema.check_value(&Value::Object(form.with_defaults(values.clone())))
}

/// Checks the value of one field.
///
/// # Errors
///
/// What does not fit, one sentence each.
pub fn check_field_value(field: &FormField, value: &Value) -> Result<(), Vec<String>> {
    let (message, page) = (String::new(), None);
    let form = FormQuestion { message, page, fields: vec![field.clone()] };
    check_form_values(&form, &Map::from_iter([(field.name.clone(), value.clone())]))
}

#[cfg(test)]
mod tests {
    use sallyport_contract::{FieldKind, FieldOption, TextFormat};
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_that_fit_their_field_pass() {
        let options = || {
            ["r", "g"].map(|value| FieldOption { value: value.to_owned(), title: None }).to_vec()
        };
        let text = |format, min_chars, max_chars| FieldKind::Text { min_chars, max_chars, format };
        let whole = || FieldKind::Number {
            is_whole: true,
            minimum: Some(1.into()),
            maximum: Some(9.into()),
        };
        let several =
            || FieldKind::Choices { options: options(), min_count: Some(1), max_count: Some(1) };
        let rows = [
            (text(None, Some(2), Some(3)), json!("ab"), true),
            (text(None, Some(2), Some(3)), json!("a"), false),
            (text(None, Some(2), Some(3)), json!("abcd"), false),
            (text(None, None, None), json!(1), false),
            (text(None, None, None), json!(null), false),
            (text(Some(TextFormat::Email), None, None), json!("a@example.org"), true),
            (text(Some(TextFormat::Email), None, None), json!("a"), false),
            (text(Some(TextFormat::Uri), None, None), json!("https://example.org/"), true),
            (text(Some(TextFormat::Uri), None, None), json!("example"), false),
            (text(Some(TextFormat::Date), None, None), json!("2026-01-31"), true),
            (text(Some(TextFormat::Date), None, None), json!("2026-02-31"), false),
            (text(Some(TextFormat::DateTime), None, None), json!("2026-01-31T12:00:00Z"), true),
            (text(Some(TextFormat::DateTime), None, None), json!("noon"), false),
            (whole(), json!(9), true),
            (whole(), json!(10), false),
            (whole(), json!(1.5), false),
            (FieldKind::YesNo, json!(true), true),
            (FieldKind::YesNo, json!("true"), false),
            (FieldKind::Choice { options: options() }, json!("r"), true),
            (FieldKind::Choice { options: options() }, json!("b"), false),
            (several(), json!(["g"]), true),
            (several(), json!([]), false),
            (several(), json!(["r", "g"]), false),
            (several(), json!(["b"]), false),
        ];
        for (kind, value, fits) in rows {
            let name = "f".to_owned();
            let (title, description, default) = (None, None, None);
            let field = FormField { name, title, description, required: true, default, kind };
            assert_eq!(check_field_value(&field, &value).is_ok(), fits, "{field:?} {value}");
        }
    }
}
