//! Text that a plugin submits to a session as input.

use sallyport_contract::Redactor;

use super::call_counters::HostCallCounters;
use crate::run_context::RunContext;

/// Longest input in bytes. It fits a pasted page; the model receives it again at every turn.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Counts an input.
///
/// # Errors
///
/// The run has reached its limit of inputs. The plugin may read the message.
pub(super) fn count_input(
    counters: &mut HostCallCounters,
    run_context: &RunContext,
) -> Result<(), String> {
    if counters.inputs.try_count() {
        return Ok(());
    }
    let limit = counters.inputs.limit_text("inputs to the session");
    run_context.effect_log.record_limit(limit.clone());
    Err(format!("the limit of {limit} is reached"))
}

/// Makes sure that an input has no files. The files that a user attaches have their own limits, and
/// the files of a plugin do not count against them yet.
///
/// # Errors
///
/// The input has files. The plugin may read the message.
pub(super) fn check_no_files(files: usize) -> Result<(), String> {
    match files {
        0 => Ok(()),
        _ => Err("files cannot be handed to the session yet, only text".to_owned()),
    }
}

/// Returns the text without secrets.
///
/// # Errors
///
/// The text is blank or too long. The plugin may read the message.
pub(super) fn check_and_redact(text: &str, redactor: &Redactor) -> Result<String, String> {
    let bytes = text.len();
    if text.trim().is_empty() {
        Err("the input is empty".to_owned())
    } else if bytes > INPUT_BYTES_MAX {
        Err(format!("the input has {bytes} bytes, at most {INPUT_BYTES_MAX} are taken"))
    } else {
        Ok(redactor.redact_text(text).into_owned())
    }
}
