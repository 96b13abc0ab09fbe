//! `sallyport approval …`: questions of other programs of the same user, and answers to them.

use std::time::Duration;

use clap::{
    Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use sallyport_contract::{ApprovalAnswer, Consent, LOCAL_USER, text};
use sallyport_runtime::{
    clock::now_ms,
    config::ConfigFlags,
    gate::{
        form_values::check_form_values,
        question_answer::{self, QuestionAnswerError},
        sealed_question::{AnswerDetails, AnswerWord, SealedQuestion},
    },
    question_text::question_text,
};
use sallyport_store::{HostStore, StoredAnswer, StoredQuestion};
use sallyport_terminal::{card::subject_line, listing::ListRow};
use serde_json::{Map, Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    consent::TerminalConsent,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

/// Most characters of a question in a list.
const SUBJECT_CHARS_MAX: usize = 80;

/// Fewest digits of a hash that name a question: too many to guess.
const HASH_CHARS_MIN: usize = 16;

/// Longest wait for the program that asked to receive an answer.
const RECEIPT_TIME_MAX: Duration = Duration::from_secs(5);

/// How often the receipt is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The name of this command among those who answer.
const CARRIER: &str = "sallyport approval answer";

// Commands for open questions.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ApprovalCommand {
    /// List the questions that wait for an answer, the oldest first
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show a question with everything that a yes covers, and its hash
    Show {
        /// The question; the start of its ID is enough
        id: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Answer a question; without an answer, show it and ask
    Answer {
        /// The question; the start of its ID is enough
        id: String,
        /// The answer
        #[arg(value_parser = answer_word_parser())]
        answer: Option<AnswerWord>,
        /// The hash that `approval show` printed; a yes applies to that question only
        #[arg(long, value_name = "HEX", requires = "answer")]
        hash: Option<String>,
        /// The folder for a grant that needs one
        #[arg(long, value_name = "FOLDER")]
        folder: Option<String>,
        /// The reason of a no, for the model
        #[arg(long, value_name = "TEXT", requires = "answer")]
        reason: Option<String>,
        /// The values for the question of an MCP server: a JSON object with the fields that `approval
        /// show` printed
        #[arg(long, value_name = "JSON", requires = "answer")]
        values: Option<String>,
    },
}

/// The answers on the command line, with what each does.
fn answer_word_parser() -> impl TypedValueParser<Value = AnswerWord> {
    let words = AnswerWord::ALL.map(|word| {
        PossibleValue::new(word.as_str()).help(match word {
            AnswerWord::Once => "Allow this one",
            AnswerWord::Session => "Allow the same question until the session ends",
            AnswerWord::Always => "Allow it, and add what is shown to the policy",
            AnswerWord::No => "Refuse this one",
        })
    });
    PossibleValuesParser::new(words)
        .try_map(|word| AnswerWord::from_word(&word).ok_or("it is no answer"))
}

pub(super) async fn run_approval_command(
    flags: &ConfigFlags,
    command: &ApprovalCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let store = setup::open_store(&setup::read_settings(flags)?)?;
    match command {
        ApprovalCommand::List { output } => print_open_questions(&store, output.output, out).await,
        ApprovalCommand::Show { id, output } => {
            show_question(&find_question(&store, id).await?, output.output, out)
        }
        ApprovalCommand::Answer { id, answer, hash, folder, reason, values } => {
            let stored = find_question(&store, id).await?;
            let question = open_seal(&stored)?;
            let values = values.as_deref().map(read_values).transpose()?;
            let (folder, reason) = (folder.as_deref(), reason.as_deref());
            let answer = match answer {
                Some(word) => {
                    check_hash(*word, hash.as_deref(), &stored)?;
                    let details = AnswerDetails { folder, reason, values: values.as_ref() };
                    given_answer(&question, *word, details)?
                }
                None => asked_answer(&question, folder, out).await?,
            };
            enter_answer(&store, &stored, &answer, out).await
        }
    }
}

async fn print_open_questions(
    store: &HostStore,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let open = store.questions.open_questions(LOCAL_USER, now_ms()).await?;
    match format {
        OutputFormat::Json => {
            let open: Result<Vec<Value>, CommandFailure> =
                open.iter().map(|stored| Ok(question_json(stored, &open_seal(stored)?))).collect();
            out.print_json(&json!({ "questions": open? }));
        }
        OutputFormat::Text => {
            let rows: Vec<ListRow> = open.iter().map(question_row).collect();
            out.print_list(&rows);
            if open.is_empty() {
                out.print_note("No question waits for an answer.");
            }
        }
    }
    Ok(ExitStatus::Done)
}

/// A row of the list: `1f0c22ab9d`, `asks to run mail.send`, `expires in 9m`.
fn question_row(stored: &StoredQuestion) -> ListRow {
    let about = match open_seal(stored) {
        Ok(question) => {
            let tool = question.request.call.tool.to_string();
            subject_line(&question.request, SUBJECT_CHARS_MAX)
                .map_or(tool.clone(), |subject| format!("{tool}: {}", subject.trim()))
        }
        Err(failure) => failure.message,
    };
    let left = Duration::from_millis(stored.expires_ms.saturating_sub(now_ms()));
    let minutes = left.as_secs().div_ceil(60);
    ListRow::new([stored.id.clone(), about, format!("expires in {minutes}m")])
}

fn show_question(
    stored: &StoredQuestion,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let question = open_seal(stored)?;
    if format == OutputFormat::Json {
        out.print_json(&question_json(stored, &question));
        return Ok(ExitStatus::Done);
    }
    out.print_line(&whole_text(&question)?);
    out.print_line(&format!("hash: {}", stored.hash));
    let words = question.offered_words().join("|");
    let command = format!("sallyport approval answer {} {words} --hash {}", stored.id, stored.hash);
    let values = if question.request.needs_folder() || !question.request.needs_input() {
        ""
    } else {
        " --values JSON"
    };
    out.print_hint(&format!("answer with: {command}{values}"));
    Ok(ExitStatus::Done)
}

fn question_json(stored: &StoredQuestion, question: &SealedQuestion) -> Value {
    json!({
        "id": stored.id,
        "hash": stored.hash,
        "asked_ms": stored.asked_ms,
        "expires_ms": stored.expires_ms,
        "answers": question.offered_words(),
        "question": question.request,
    })
}

fn whole_text(question: &SealedQuestion) -> Result<String, CommandFailure> {
    question_text(&question.request).ok_or_else(|| {
        let message = "the question is too long to be shown whole";
        let failure = CommandFailure::new(ExitStatus::Failed, message);
        failure.with_hint("answer it where it was asked")
    })
}

/// Finds an open question by the start of its id.
async fn find_question(store: &HostStore, id: &str) -> Result<StoredQuestion, CommandFailure> {
    let shown = text::escape_excerpt(id, 40);
    let open = store.questions.open_questions(LOCAL_USER, now_ms()).await?;
    let mut matching = open.into_iter().filter(|question| question.id.starts_with(id));
    match (matching.next(), matching.next()) {
        (Some(question), None) if !id.is_empty() => Ok(question),
        (Some(_), _) => {
            let message = format!("{shown:?} is the start of several questions' IDs");
            Err(CommandFailure::new(ExitStatus::Failed, message).with_hint("give more of it"))
        }
        (None, _) => Err(match store.questions.find_answer(id).await? {
            Some(before) => answered_before(&before),
            None => {
                let message = format!("no question {shown} waits for an answer");
                let failure = CommandFailure::new(ExitStatus::Failed, message);
                failure
                    .with_hint("it may have expired; `sallyport approval list` shows the open ones")
            }
        }),
    }
}

fn open_seal(stored: &StoredQuestion) -> Result<SealedQuestion, CommandFailure> {
    SealedQuestion::open(&stored.text, &stored.hash).map_err(|error| {
        let failure = CommandFailure::new(ExitStatus::Failed, error.to_string());
        failure.with_hint("answer it where it was asked")
    })
}

/// A yes names the question that its giver has seen. A no harms nobody.
fn check_hash(
    word: AnswerWord,
    hash: Option<&str>,
    stored: &StoredQuestion,
) -> Result<(), CommandFailure> {
    let show = format!("read it first: sallyport approval show {}", stored.id);
    match hash {
        None if word == AnswerWord::No => Ok(()),
        None => {
            let message = "a yes needs the hash of the question, --hash HEX";
            Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(&show))
        }
        Some(hash) if hash.len() >= HASH_CHARS_MIN && stored.hash.starts_with(hash) => Ok(()),
        Some(_) => {
            let message = "the hash is not the one of this question; nothing was answered";
            Err(CommandFailure::new(ExitStatus::Failed, message).with_hint(&show))
        }
    }
}

fn given_answer(
    question: &SealedQuestion,
    word: AnswerWord,
    details: AnswerDetails<'_>,
) -> Result<ApprovalAnswer, CommandFailure> {
    question.answer_for_word(word, details).ok_or_else(|| {
        let offered = question.offered_words().join(", ");
        let problems = question
            .request
            .form_question()
            .zip(details.values)
            .and_then(|(form, values)| check_form_values(form, values).err());
        let message = match (problems, question.request.needs_folder()) {
            (Some(problems), _) => format!("the values do not fit: {}", problems.join("; ")),
            (None, true) if details.folder.is_none() => {
                "the grant needs a folder, --folder FOLDER".to_owned()
            }
            (None, _) if question.request.needs_input() => {
                "the question needs values for its fields, --values JSON".to_owned()
            }
            (None, _) => {
                format!("the question offers {offered}, and a folder only for a grant of one")
            }
        };
        CommandFailure::new(ExitStatus::Usage, text::escape_line(&message))
    })
}

fn read_values(json: &str) -> Result<Map<String, Value>, CommandFailure> {
    serde_json::from_str(json).map_err(|error| {
        let message = format!("--values is not a JSON object: {error}");
        CommandFailure::new(ExitStatus::Usage, message)
    })
}

/// Asks at the terminal, as the program that asked would.
async fn asked_answer(
    question: &SealedQuestion,
    folder: Option<&str>,
    out: &CliOutput,
) -> Result<ApprovalAnswer, CommandFailure> {
    let nobody = |hint: &str| {
        let failure = CommandFailure::new(ExitStatus::NobodyToAsk, "no user can be asked here");
        Err(failure.with_hint(hint))
    };
    if question.request.needs_folder() || folder.is_some() {
        return nobody("give the answer and the folder: answer ID once --folder FOLDER --hash HEX");
    }
    match (TerminalConsent { out: *out }).ask_user(question.request.clone()).await {
        ApprovalAnswer::Nobody => nobody("give the answer: answer ID once --hash HEX"),
        answer => Ok(answer),
    }
}

async fn enter_answer(
    store: &HostStore,
    stored: &StoredQuestion,
    answer: &ApprovalAnswer,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    question_answer::enter_answer(&*store.questions, stored, answer, CARRIER).await.map_err(
        |error| match error {
            QuestionAnswerError::AnsweredBefore(before) => answered_before(&before),
            QuestionAnswerError::Store(error) => error.into(),
            error => CommandFailure::new(ExitStatus::Failed, error.to_string()),
        },
    )?;
    if !wait_for_receipt(store, &stored.id).await? {
        let message = "the program that asked did not take the answer; it may have ended";
        return Err(CommandFailure::new(ExitStatus::Failed, message));
    }
    let how = if answer.is_yes() { "Allowed" } else { "Refused" };
    out.print_line(&format!("{how}: {}", answer_words(answer)));
    Ok(ExitStatus::Done)
}

/// Waits until the program that asked has the answer. Returns whether it does.
async fn wait_for_receipt(store: &HostStore, id: &str) -> Result<bool, CommandFailure> {
    let begin = std::time::Instant::now();
    while !store.questions.is_received(id).await? {
        if begin.elapsed() > RECEIPT_TIME_MAX {
            return Ok(false);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(true)
}

fn answered_before(before: &StoredAnswer) -> CommandFailure {
    let answer: Option<ApprovalAnswer> = serde_json::from_str(&before.answer).ok();
    let words = answer.as_ref().map_or("an answer", answer_words);
    let message = format!("the question was answered before, by {}: {words}", before.carrier);
    CommandFailure::new(ExitStatus::Failed, message)
}

fn answer_words(answer: &ApprovalAnswer) -> &'static str {
    use sallyport_contract::GrantScope;
    match (answer, answer.grant().map(|grant| grant.scope)) {
        (_, Some(GrantScope::Once)) => "once",
        (_, Some(GrantScope::Session)) => "until the session ends",
        (_, Some(GrantScope::Always)) => "always",
        (ApprovalAnswer::Form(_), None) => "filled in",
        _ => "no",
    }
}
