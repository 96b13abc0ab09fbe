//! What a run of a program reads and prints: its arguments, and what is kept of its standard output,
//! which is the result, and of its standard error, which tells of a failure. `capability` makes WASI
//! streams of it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use sallyport_contract::{CallFailure, FailureKind, ToolOutput, json};
use sallyport_policy::ByteSize;

use crate::mutex::lock_mutex;

/// Bytes of standard error that are kept for the failure. The end is kept, where programs report
/// the cause. The log has all of it, up to its own limit.
const STDERR_BYTES_MAX: usize = 8 * 1024;

/// The streams of one run. Clones are the same streams.
#[derive(Clone)]
pub(crate) struct ProgramStreams {
    pub(crate) arguments: Bytes,
    pub(crate) captured_stdout: OutputCapture,
    pub(crate) captured_stderr: OutputCapture,
}

impl ProgramStreams {
    /// Creates the streams of a run with these arguments.
    pub(crate) fn new(arguments: &str, output_bytes_max: u64) -> Self {
        let output_bytes_max = usize::try_from(output_bytes_max).unwrap_or(usize::MAX);
        Self {
            arguments: Bytes::copy_from_slice(arguments.as_bytes()),
            captured_stdout: OutputCapture::new(CapturePart::Start, output_bytes_max),
            captured_stderr: OutputCapture::new(CapturePart::End, STDERR_BYTES_MAX),
        }
    }

    /// Whether the output shows why the program was stopped: standard output was cut, or standard
    /// error has text.
    pub(crate) fn has_explanation(&self) -> bool {
        lock_mutex(&self.captured_stdout.0).is_cut
            || !lock_mutex(&self.captured_stderr.0).bytes.is_empty()
    }

    /// The result of a run, or the failure. `succeeded` is the program's own exit status.
    pub(crate) fn tool_output(&self, succeeded: bool) -> Result<ToolOutput, CallFailure> {
        let (captured_stdout, captured_stderr) =
            (lock_mutex(&self.captured_stdout.0), lock_mutex(&self.captured_stderr.0));
        if captured_stdout.is_cut {
            let size = ByteSize(captured_stdout.bytes_max as u64);
            let message = format!("the program printed more than {size} (limits.output)");
            return Err(CallFailure::new(FailureKind::LimitReached, message));
        }
        if !succeeded {
            let words = String::from_utf8_lossy(&captured_stderr.bytes);
            let message = match words.trim() {
                "" => "the program failed without a message".to_owned(),
                words => words.to_owned(),
            };
            return Err(CallFailure::new(FailureKind::Failed, message));
        }
        let bad = |error: String| {
            let message = format!("the program did not print a result as JSON: {error}");
            CallFailure::new(FailureKind::BadOutput, message)
        };
        let text =
            str::from_utf8(&captured_stdout.bytes).map_err(|error| bad(error.to_string()))?;
        let data = json::parse_json(text, usize::MAX).map_err(|error| bad(error.to_string()))?;
        Ok(ToolOutput { data, ..ToolOutput::default() })
    }
}

/// Captured bytes, up to a limit. Clones are the same bytes.
#[derive(Clone)]
pub(crate) struct OutputCapture(Arc<Mutex<CapturedOutput>>);

struct CapturedOutput {
    kept_part: CapturePart,
    bytes: Vec<u8>,
    bytes_max: usize,
    is_cut: bool,
}

/// The part that is kept of output that is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CapturePart {
    Start,
    End,
}

impl OutputCapture {
    fn new(kept_part: CapturePart, bytes_max: usize) -> Self {
        let captured = CapturedOutput { kept_part, bytes: Vec::new(), bytes_max, is_cut: false };
        Self(Arc::new(Mutex::new(captured)))
    }

    /// Appends bytes. Returns whether more are accepted.
    pub(crate) fn append_bytes(&self, bytes: &[u8]) -> bool {
        lock_mutex(&self.0).append_bytes(bytes)
    }
}

impl CapturedOutput {
    /// Appends bytes. Returns whether more are accepted.
    fn append_bytes(&mut self, bytes: &[u8]) -> bool {
        match self.kept_part {
            CapturePart::Start => {
                let room = self.bytes_max - self.bytes.len();
                self.is_cut |= bytes.len() > room;
                self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
                !self.is_cut
            }
            CapturePart::End => {
                self.bytes.extend_from_slice(bytes);
                let beyond = self.bytes.len().saturating_sub(self.bytes_max);
                self.bytes.drain(..beyond);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_json_and_a_failure_its_words() {
        let long = format!("\"{}\"", "x".repeat(100));
        for (captured_stdout, captured_stderr, succeeded, want) in [
            ("{\"n\": 1}\n", "", true, Ok("{\"n\":1}")),
            ("[1, 2]", "a warning", true, Ok("[1,2]")),
            ("", "", true, Err("did not print a result as JSON")),
            ("done", "", true, Err("did not print a result as JSON")),
            ("{\"n\": NaN}", "", true, Err("did not print a result as JSON")),
            (long.as_str(), "", true, Err("printed more than")),
            ("{}", " no such project\n", false, Err("no such project")),
            ("{}", "", false, Err("without a message")),
        ] {
            let program = ProgramStreams::new("{}", 64);
            program.captured_stdout.append_bytes(captured_stdout.as_bytes());
            program.captured_stderr.append_bytes(captured_stderr.as_bytes());
            let got = program.tool_output(succeeded);
            match (&got, want) {
                (Ok(output), Ok(want)) => assert_eq!(output.data.to_string(), want),
                (Err(failure), Err(want)) => assert!(failure.message.contains(want), "{failure:?}"),
                _ => panic!("{captured_stdout:?} {succeeded}: {got:?}"),
            }
        }
    }

    #[test]
    fn of_many_complaints_the_last_are_kept() {
        let program = ProgramStreams::new("{}", 64);
        for number in 0..10_000 {
            assert!(program.captured_stderr.append_bytes(format!("line {number}\n").as_bytes()));
        }
        let failure = program.tool_output(false).unwrap_err();
        assert!(failure.message.ends_with("line 9999") && failure.message.len() <= 8 * 1024);
    }

    #[test]
    fn of_too_much_output_only_the_beginning_is_kept() {
        let program = ProgramStreams::new("{}", 64);
        assert!(program.captured_stdout.append_bytes(&[b'1'; 64]));
        assert!(!program.captured_stdout.append_bytes(b"1"));
        assert_eq!(lock_mutex(&program.captured_stdout.0).bytes.len(), 64);
    }
}
