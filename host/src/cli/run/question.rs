//! The question of a run: words of the command line, standard input, and files.
//!
//! Standard input is part of the question unless it is a terminal: `run explain < log` asks about
//! the log. It is read to its end: half a text can mean something else. A slow input is reported to
//! the user.

use std::{
    io::{self, IsTerminal, Read},
    sync::mpsc,
    thread,
    time::Duration,
};

use sallyport_model::UserInputMessage;
use sallyport_runtime::config::HostSettings;

use super::RunArgs;
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    file_attachments,
    output::CliOutput,
};

/// Longest text from standard input, in bytes. Reading stops beyond it.
const STDIN_BYTES_MAX: u64 = 1024 * 1024;

/// Time without the end of standard input before the user is notified. Slower programs are common,
/// so this is a note and not an error.
const NOTE_DELAY: Duration = Duration::from_secs(3);

/// Returns the question.
///
/// # Errors
///
/// There is no question, or a part of it cannot be read.
pub(super) fn read_question(
    args: &RunArgs,
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<UserInputMessage, CommandFailure> {
    let attachments = file_attachments::read_flag_files(
        &args.files,
        &file_attachments::search_folders(settings),
    )?;
    let words = args.prompt.join(" ");
    let stdin_text = if io::stdin().is_terminal() { String::new() } else { read_stdin(out)? };
    let text = join_prompt(words, &stdin_text);
    if text.trim().is_empty() && attachments.is_empty() && io::stdin().is_terminal() {
        let failure = CommandFailure::new(ExitStatus::Usage, "there is no question");
        return Err(failure.with_hint("write it after `run`, or pipe it in"));
    }
    Ok(UserInputMessage { text, attachments, ..UserInputMessage::default() })
}

/// Joins both parts. The words come first: they are the instruction for the rest.
fn join_prompt(words: String, stdin_text: &str) -> String {
    match (words.trim().is_empty(), stdin_text.trim().is_empty()) {
        (true, _) => stdin_text.to_owned(),
        (false, true) => words,
        (false, false) => {
            let fence = code_fence(stdin_text);
            format!("{words}\n\n{fence}text\n{}\n{fence}", stdin_text.trim_end_matches('\n'))
        }
    }
}

/// A fence longer than any run of backticks in the text, so that nothing in it ends the block.
fn code_fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

fn read_stdin(out: &CliOutput) -> Result<String, CommandFailure> {
    let (sender, bytes) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().take(STDIN_BYTES_MAX + 1).read_to_end(&mut bytes);
        // The receiver is gone when the program ends.
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = bytes.recv_timeout(NOTE_DELAY).or_else(|_| {
        out.print_note(
            "Waiting for standard input to end. Add `< /dev/null` if there is nothing to read.",
        );
        bytes.recv()
    });
    let bytes = read.map_err(io::Error::other).flatten().map_err(|error| {
        CommandFailure::new(ExitStatus::Usage, format!("cannot read standard input: {error}"))
    })?;
    decode_stdin(bytes)
}

fn decode_stdin(bytes: Vec<u8>) -> Result<String, CommandFailure> {
    if bytes.len() as u64 > STDIN_BYTES_MAX {
        let message = format!("standard input is larger than {STDIN_BYTES_MAX} bytes");
        let hint = "send the part that matters, or let a tool read the file";
        return Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint));
    }
    String::from_utf8(bytes).map_err(|_| {
        let failure = CommandFailure::new(ExitStatus::Usage, "standard input is no UTF-8 text");
        failure.with_hint("attach other files with --attach")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_first_and_nothing_in_the_text_ends_its_block() {
        let rows = [
            ("explain", "", "explain"),
            ("", "a log\n", "a log\n"),
            ("explain", " \n", "explain"),
            ("explain", "a log\n", "explain\n\n```text\na log\n```"),
            ("explain", "a\n```\nb", "explain\n\n````text\na\n```\nb\n````"),
        ];
        for (words, stdin_text, want) in rows {
            assert_eq!(join_prompt(words.to_owned(), stdin_text), want);
        }
    }

    #[test]
    fn what_is_no_text_or_too_long_is_refused_and_not_cut() {
        assert_eq!(decode_stdin("ü".into()).unwrap(), "ü");
        assert!(decode_stdin(vec![0xff]).unwrap_err().hint.unwrap().contains("--attach"));
        let long = vec![b'x'; STDIN_BYTES_MAX as usize + 1];
        assert!(decode_stdin(long).unwrap_err().message.contains("larger than 1048576 bytes"));
    }
}
