//! The operator's hook: a program that takes a question to a phone, a chat or another service.
//!
//! It receives the question as JSON on standard input. It may print an answer, bound to the hash of
//! the question; one that prints nothing has only passed the question on, and the answer comes by
//! `sallyport approval answer`. It ends with the question.

use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use rustix::process::{Pid, Signal, kill_process_group};
use sallyport_contract::ApprovalAnswer;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::sealed_question::{AnswerDetails, AnswerWord, QuestionSeal, SealedQuestion};
use crate::question_text::question_text;

/// The name of the hook among the carriers of answers.
pub(crate) const HOOK_CARRIER: &str = "the hook";

/// Longest output of a hook, in bytes: one answer with a reason.
const OUTPUT_BYTES_MAX: u64 = 16 << 10;

/// A program that is started for each question, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalHook {
    program: String,
    arguments: Vec<String>,
}

/// Why a hook has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    #[error("the question is too long to be shown whole")]
    TooLong,
    #[error("{program} cannot be used: {source}")]
    Program { program: String, source: io::Error },
    #[error("{program} printed something other than an answer")]
    NotAnAnswer { program: String },
    #[error("{program} answered another question")]
    OtherQuestion { program: String },
}

/// What a hook prints.
#[derive(Debug, Deserialize)]
struct HookAnswer {
    hash: String,
    answer: String,
    folder: Option<String>,
    reason: Option<String>,
    values: Option<Map<String, Value>>,
}

impl ApprovalHook {
    /// Takes the program and its arguments from a list. `None` if it is empty.
    pub fn from_command(command: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut words = command.into_iter();
        Some(Self { program: words.next()?, arguments: words.collect() })
    }

    /// Starts the hook and waits for its answer. `None` if it gives none. Dropping the future ends
    /// the hook and everything that it has started.
    pub(crate) async fn ask(
        &self,
        question: &SealedQuestion,
        seal: &QuestionSeal,
    ) -> Result<Option<ApprovalAnswer>, HookError> {
        let text = question_text(&question.request).ok_or(HookError::TooLong)?;
        let input = json!({
            "id": seal.id,
            "hash": seal.hash,
            "expires_ms": question.expires_ms,
            "title": text.lines().next().unwrap_or_default(),
            "text": text,
            "answers": question.offered_words(),
            "needs_folder": question.request.needs_folder(),
            "form": question.request.form_question(),
        });
        let output = self.run(format!("{input}\n")).await;
        let output = output.map_err(|source| self.program_error(source))?;
        self.read_answer(&output, question, seal)
    }

    /// Runs the hook to its end, and returns its output.
    async fn run(&self, input: String) -> io::Result<String> {
        let (mut hook, stdin, stdout) = RunningHook::start(self)?;
        let (sender, output) = oneshot::channel();
        // Both threads end with the hook, because its ends of the pipes close.
        thread::Builder::new().spawn(move || {
            let mut stdin = stdin;
            // A hook that does not read its input may still answer.
            let _ = stdin.write_all(input.as_bytes());
        })?;
        thread::Builder::new().spawn(move || sender.send(read_output(stdout)))?;
        let output = output.await.unwrap_or_else(|_| Ok(String::new()))?;
        hook.end();
        Ok(output)
    }

    fn read_answer(
        &self,
        output: &str,
        question: &SealedQuestion,
        seal: &QuestionSeal,
    ) -> Result<Option<ApprovalAnswer>, HookError> {
        if output.trim().is_empty() {
            return Ok(None);
        }
        let program = || self.program.clone();
        let not_an_answer = || HookError::NotAnAnswer { program: program() };
        let read: HookAnswer = serde_json::from_str(output).map_err(|_| not_an_answer())?;
        let HookAnswer { hash, answer, folder, reason, values } = read;
        if hash != seal.hash {
            return Err(HookError::OtherQuestion { program: program() });
        }
        let (folder, reason) = (folder.as_deref(), reason.as_deref());
        let details = AnswerDetails { folder, reason, values: values.as_ref() };
        let answer =
            AnswerWord::from_word(&answer).and_then(|word| question.answer_for_word(word, details));
        answer.ok_or_else(not_an_answer).map(Some)
    }

    fn program_error(&self, source: io::Error) -> HookError {
        HookError::Program { program: self.program.clone(), source }
    }
}

fn read_output(stdout: ChildStdout) -> io::Result<String> {
    let mut output = String::new();
    stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut output)?;
    Ok(output)
}

/// A hook that runs. It is ended with everything in its process group.
struct RunningHook {
    child: Child,
    has_ended: bool,
}

impl RunningHook {
    #[expect(clippy::disallowed_methods, reason = "the operator has named the program")]
    fn start(hook: &ApprovalHook) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let mut child = Command::new(&hook.program)
            .args(&hook.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
        Ok((Self { child, has_ended: false }, stdin, stdout))
    }

    /// Ends the hook, which has closed its output, and everything that it has started.
    fn end(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // The child is not waited for yet, so the number is still its own.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for RunningHook {
    fn drop(&mut self) {
        self.end();
    }
}
