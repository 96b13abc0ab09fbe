//! The form of an MCP server's question, filled in at the terminal of a command.

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, FormAnswer, FormField, text};
use sallyport_runtime::gate::form_values::check_field_value;
use serde_json::{Map, Value};

use super::read_line;
use crate::cli::output::CliOutput;

/// How often a value that does not fit may be typed anew.
const TRIES_MAX: u32 = 5;

/// Reads the values after a yes to the question of a server. Any other answer stays as it is, except
/// that such a question offers no lasting yes.
pub(super) async fn fill_in(
    request: &ApprovalRequest,
    answer: ApprovalAnswer,
    out: CliOutput,
) -> ApprovalAnswer {
    let Some(form) = request.form_question().cloned() else { return answer };
    match answer {
        ApprovalAnswer::Once if form.needs_values() => {
            let reading = tokio::task::spawn_blocking(move || read_fields(&form.fields, &out));
            let values = reading.await.ok().flatten();
            values.map_or(ApprovalAnswer::No { reason: None }, |values| {
                ApprovalAnswer::Form(FormAnswer { values })
            })
        }
        ApprovalAnswer::Session | ApprovalAnswer::Always => ApprovalAnswer::No { reason: None },
        other => other,
    }
}

/// `None` if the input ends, or if a value does not fit however often it is typed.
fn read_fields(fields: &[FormField], out: &CliOutput) -> Option<Map<String, Value>> {
    let mut values = Map::new();
    for field in fields {
        if let Some(value) = read_field(field, out)? {
            values.insert(field.name.clone(), value);
        }
    }
    Some(values)
}

/// The outer `None` as above; the inner one for a field that is left out.
fn read_field(field: &FormField, out: &CliOutput) -> Option<Option<Value>> {
    out.print_block(&text::escape_line(&field.summary()));
    for _ in 0..TRIES_MAX {
        out.print_note_piece(&format!("{}: ", text::escape_line(&field.name)));
        let line = read_line().filter(|line| !line.is_empty())?;
        match typed_value(field, &line) {
            Ok(value) => return Some(value),
            Err(problem) => out.print_warning(&problem),
        }
    }
    None
}

/// The value that a line stands for, checked.
///
/// # Errors
///
/// The line does not fit. The text has the reason.
pub(in crate::cli) fn typed_value(field: &FormField, line: &str) -> Result<Option<Value>, String> {
    let value = field.read_typed(line).map_err(|error| error.to_string())?;
    if let Some(value) = &value {
        check_field_value(field, value).map_err(|problems| problems.join("; "))?;
    }
    Ok(value)
}
