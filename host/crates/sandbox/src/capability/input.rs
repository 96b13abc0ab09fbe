//! Text that a plugin submits to a session as input.

use super::{HostCall, HostCallError, HostCallLimit};

/// Longest input in bytes. It fits a pasted page; the model receives it again at every turn.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Inputs of one run to a session. A signal or event rarely leads to more than one input, and a
/// flood of them would lock the user out of their own session.
const INPUTS: HostCallLimit = HostCallLimit { calls_max: 16, unit: "inputs to the session" };

impl HostCall<'_> {
    pub(super) fn count_input(&mut self) -> Result<(), HostCallError> {
        self.count_call(&INPUTS)
    }

    /// Returns the text of an input without secrets. An input has no files: those that a user
    /// attaches have their own limits, and the files of a plugin do not count against them yet.
    ///
    /// # Errors
    ///
    /// The input has files, or the text is blank or too long. The plugin may read the message.
    pub(super) fn check_input(&self, text: &str, files: usize) -> Result<String, String> {
        let bytes = text.len();
        if files > 0 {
            Err("files cannot be handed to the session yet, only text".to_owned())
        } else if text.trim().is_empty() {
            Err("the input is empty".to_owned())
        } else if bytes > INPUT_BYTES_MAX {
            Err(format!("the input has {bytes} bytes, at most {INPUT_BYTES_MAX} are taken"))
        } else {
            Ok(self.run_context.authorizer().redactor().redact_text(text).into_owned())
        }
    }
}
