//! Text that a plugin hands to a session in place of a person.

use sallyport_contract::Redactor;

use super::uses::Uses;
use crate::case::Case;

/// Longest input. A person pastes a page, and a model is asked with it again at every turn.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Counts an input.
///
/// # Errors
///
/// There were as many in this run as may be; in words that a plugin may read.
pub(super) fn count(uses: &mut Uses, case: &Case) -> Result<(), String> {
    if uses.inputs.take() {
        return Ok(());
    }
    let limit = uses.inputs.limit("inputs to the session");
    case.ledger.limit_reached(limit.clone());
    Err(format!("the limit of {limit} is reached"))
}

/// Makes sure that no files come with an input: what a person attaches has its own limits, and nothing
/// counts the files of a plugin against them yet.
///
/// # Errors
///
/// There are some; in words that a plugin may read.
pub(super) fn without_files(files: usize) -> Result<(), String> {
    match files {
        0 => Ok(()),
        _ => Err("files cannot be handed to the session yet, only text".to_owned()),
    }
}

/// Returns the text without secrets.
///
/// # Errors
///
/// There is nothing in it, or too much; in words that a plugin may read.
pub(super) fn checked(text: &str, redactor: &Redactor) -> Result<String, String> {
    let bytes = text.len();
    if text.trim().is_empty() {
        Err("the input is empty".to_owned())
    } else if bytes > INPUT_BYTES_MAX {
        Err(format!("the input has {bytes} bytes, at most {INPUT_BYTES_MAX} are taken"))
    } else {
        Ok(redactor.text(text).into_owned())
    }
}
