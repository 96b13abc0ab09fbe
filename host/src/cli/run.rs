//! `sallyport run PROMPT`: one question, one answer. It never waits for somebody who is not there.

use std::{io::Read, sync::Arc};

use sallyport_contract::{Consent, Denial, Outcome};
use sallyport_model::Delta;
use sallyport_session::{
    self as session, Command, Event, NoJournal, NobodyToAsk, Notice, Options, Parts, Restored,
    TurnEnd,
};

use super::{
    args::{ModelArgs, RunArgs},
    compose, consent,
    exit::{Exit, Failure},
    output::Output,
    show,
    watch::Watch,
};
use crate::{
    config::{Flags, ModelChoice, Settings},
    registry::Selection,
};

/// Longest question that is read from standard input; a longer one is read no further, and refused.
const PROMPT_BYTES_MAX: u64 = 1024 * 1024;

/// What is remembered of a turn until it ends.
#[derive(Default)]
struct Seen {
    denials: Vec<Denial>,
    nobody_to_ask: bool,
    any_failed: bool,
    streamed: bool,
    /// Standard output is kept for something else than the answer.
    is_quiet: bool,
    no_answer: bool,
}

pub(super) async fn run(
    flags: &Flags,
    args: &RunArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let prompt = prompt(&args.prompt)?;
    let settings = compose::settings(flags)?;
    let model = compose::model(&settings, out)?;
    let consent: Arc<dyn Consent> = if out.can_ask {
        Arc::new(consent::AtTerminal { out: *out })
    } else {
        Arc::new(NobodyToAsk)
    };
    let tools = compose::tools(&settings, consent, Selection::All, watch, out).await?;
    compose::show_problems(&tools.registry, out);
    let toolbox = Arc::clone(&tools.toolbox);
    // Questions are answered at the terminal, or not at all: none comes by way of the session.
    let (_, approvals) = session::approval::channel();
    let options = options(&args.model, &settings);
    let (journal, past) = (Box::new(NoJournal), Restored::default());
    let parts = Parts { model, toolbox, approvals, journal, past, options };
    let exit = turn(parts, prompt, args, watch.verbose, &settings, out).await;
    tools.close(out).await;
    exit
}

async fn turn(
    parts: Parts,
    prompt: String,
    args: &RunArgs,
    verbose: bool,
    settings: &Settings,
    out: &Output,
) -> Result<Exit, Failure> {
    let (handle, mut events) = session::spawn(parts).map_err(collision)?;
    let ended = |_| Failure::new(Exit::Failed, "the session ended before the turn did");
    handle.send(Command::SubmitInput { input: prompt.into() }).await.map_err(ended)?;
    let mut seen = Seen { is_quiet: args.emit_needed_grants, ..Seen::default() };
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = compose::interrupted() => {
                handle.send(Command::Cancel).await.map_err(ended)?;
                continue;
            }
        };
        match event {
            Some(Event::TurnEnded { reason, .. }) => {
                return Ok(finish(&reason, &seen, args, settings, out));
            }
            Some(event) => seen.take(event, verbose, out),
            None => return Err(Failure::new(Exit::Failed, "the session ended without an answer")),
        }
    }
}

impl Seen {
    fn take(&mut self, event: Event, verbose: bool, out: &Output) {
        match event {
            Event::Delta(Delta::Text(text)) if out.stdout_is_terminal && !self.is_quiet => {
                self.streamed = true;
                out.piece(&text);
            }
            Event::MessageComplete { .. } if self.streamed => out.line(""),
            Event::CallFinished { tool, report, .. } => {
                if out.stderr_is_terminal && !verbose {
                    out.note(&format!("· {tool} {}", show::ending(&report)));
                }
                self.any_failed |= !matches!(report.outcome, Outcome::Completed(_));
                if let Outcome::Denied(denial) = report.outcome {
                    self.nobody_to_ask |= denial.nobody_to_ask;
                    // Two calls that miss the same grant are helped by the same text.
                    if !self.denials.iter().any(|seen| seen.fix == denial.fix) {
                        self.denials.push(denial);
                    }
                }
            }
            Event::Notice(notice) => {
                self.no_answer |= matches!(notice, Notice::AnswerEmpty | Notice::AnswerWithheld);
                out.warn(&notice.to_string());
            }
            _ => {}
        }
    }
}

fn finish(end: &TurnEnd, seen: &Seen, args: &RunArgs, settings: &Settings, out: &Output) -> Exit {
    if args.emit_needed_grants && !seen.denials.is_empty() {
        show::needed(&seen.denials, out);
    } else {
        print_end(end, seen.streamed, out);
        let file = settings.policy.user_file();
        seen.denials.iter().for_each(|denial| show::fix(denial, file, out));
    }
    match Exit::of_turn(end) {
        Exit::Done if seen.no_answer => Exit::Failed,
        Exit::Done if seen.nobody_to_ask => Exit::NobodyToAsk,
        Exit::Done if seen.any_failed && args.fail_on_tool_error => Exit::ToolFailed,
        exit => exit,
    }
}

/// Prints how a turn ended. What was streamed has been printed already.
pub(super) fn print_end(end: &TurnEnd, streamed: bool, out: &Output) {
    match end {
        TurnEnd::Answered { .. } if streamed => {}
        TurnEnd::Answered { text } | TurnEnd::Spoken { text } => out.answer(text),
        TurnEnd::ModelFailed(error) => {
            out.error(&error.to_string());
            out.hint(error.hint());
        }
        TurnEnd::BudgetReached { what } => out.error(&format!("stopped: {what}")),
        TurnEnd::Cancelled => out.note("cancelled"),
        TurnEnd::InputRefused(error) => out.error(&error.to_string()),
    }
}

/// What the flags say about a session. The offline matcher has no words of its own: a sentence that
/// the tool gives is the better answer.
pub(super) fn options(args: &ModelArgs, settings: &Settings) -> Options {
    let mut options = Options::new(compose::session_id());
    options.spoken = args.speak || matches!(settings.model, ModelChoice::Offline { .. });
    options.system_prompt = args.system.clone();
    if let Some(turns) = args.max_turns {
        options.limits.turns_max = turns;
    }
    options
}

/// Two tools that a model could not tell apart.
pub(super) fn collision(error: sallyport_contract::mangle::Collision) -> Failure {
    Failure::new(Exit::PluginRejected, error.to_string())
}

/// The words of the command line, or standard input.
fn prompt(words: &[String]) -> Result<String, Failure> {
    if !words.is_empty() {
        return Ok(words.join(" "));
    }
    let mut text = String::new();
    std::io::stdin().take(PROMPT_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read the question from standard input: {error}"))
    })?;
    Ok(text)
}
