//! Questions at the terminal. Ctrl-D or `s` skips a question, and so does Enter unless the question
//! says what it means; Ctrl-C ends the program.

use std::io;

use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    interrupt,
    output::CliOutput,
};

/// What the user typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedAnswer {
    /// Words, without the spaces around them.
    Words(String),
    /// Only Enter.
    Blank,
    /// Ctrl-D or `s`.
    Skip,
}

impl TypedAnswer {
    /// The words. `None` if there are none.
    pub(super) fn words(self) -> Option<String> {
        match self {
            Self::Words(words) => Some(words),
            Self::Blank | Self::Skip => None,
        }
    }
}

/// Reads a line.
///
/// # Errors
///
/// The question could not be shown, or standard input cannot be read.
pub(super) async fn ask_line(prompt: &str, out: &CliOutput) -> Result<TypedAnswer, CommandFailure> {
    out.print_note_piece(prompt);
    if !out.is_stderr_intact() {
        return Err(CommandFailure::new(ExitStatus::NobodyToAsk, "the question cannot be shown"));
    }
    let line = tokio::task::spawn_blocking(read_line).await.map_err(io::Error::other)??;
    let Some(line) = line else {
        // The terminal shows no line break for Ctrl-D.
        out.print_note("");
        return Ok(TypedAnswer::Skip);
    };
    Ok(parse_line(&line))
}

fn parse_line(line: &str) -> TypedAnswer {
    match line.trim() {
        "" => TypedAnswer::Blank,
        "s" | "S" => TypedAnswer::Skip,
        words => TypedAnswer::Words(words.to_owned()),
    }
}

/// Asks for a confirmation. Only an explicit yes counts.
pub(super) async fn confirm(question: &str, out: &CliOutput) -> Result<bool, CommandFailure> {
    out.discard_typed_input();
    let answer = ask_line(&format!("{question} [y]es / [n]o: "), out).await?;
    Ok(answer.words().is_some_and(|answer| is_yes(&answer)))
}

/// Whether an answer is a yes.
pub(super) fn is_yes(answer: &str) -> bool {
    ["y", "yes"].iter().any(|yes| answer.eq_ignore_ascii_case(yes))
}

/// Runs the steps of a setup until the user interrupts, also while a server or a compiler is waited
/// for.
pub(super) async fn until_interrupt<T>(
    steps: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    tokio::select! {
        biased;
        () = interrupt::wait_for_interrupt() => Err(interrupted_failure()),
        result = steps => result,
    }
}

/// The failure after Ctrl-C.
pub(super) fn interrupted_failure() -> CommandFailure {
    CommandFailure::new(ExitStatus::Interrupted, "interrupted")
}

/// Reads a line of standard input. `None` at its end.
fn read_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    let bytes = io::stdin().read_line(&mut line)?;
    Ok((bytes > 0).then_some(line))
}

/// Returns the entry that an answer names, by its number in the list from 1 or by its name.
pub(super) fn find_named<'n>(answer: &str, names: &[&'n str]) -> Option<&'n str> {
    let by_number = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    by_number
        .and_then(|index| names.get(index))
        .or_else(|| names.iter().find(|name| name.eq_ignore_ascii_case(answer)))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_named_by_its_number_or_its_name() {
        let names = ["openai", "ollama"];
        for (answer, want) in [
            ("1", Some("openai")),
            ("2", Some("ollama")),
            ("Ollama", Some("ollama")),
            ("0", None),
            ("3", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("olla", None),
        ] {
            assert_eq!(find_named(answer, &names), want, "{answer}");
        }
    }

    /// `s` was a model's name for one question and a mistake for another.
    #[test]
    fn every_question_is_skipped_alike() {
        for (line, want) in [
            ("s\n", TypedAnswer::Skip),
            (" S \n", TypedAnswer::Skip),
            ("\n", TypedAnswer::Blank),
            (" so \n", TypedAnswer::Words("so".to_owned())),
        ] {
            assert_eq!(parse_line(line), want, "{line:?}");
        }
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for (answer, want) in
            [("y", true), ("YES", true), ("n", false), ("", false), ("yess", false)]
        {
            assert_eq!(is_yes(answer), want, "{answer}");
        }
    }
}
