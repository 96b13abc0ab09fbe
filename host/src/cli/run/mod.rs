//! `sallyport run PROMPT`: one question, one answer. It never waits for somebody who is not there.

mod args;
mod question;
mod report;

use std::{path::Path, sync::Arc};

use sallyport_contract::{Consent, Redactor, mangle::Collision};
use sallyport_model::UserMessage;
use sallyport_session::{
    self as session, Command, Event, Handle, NoJournal, NobodyToAsk, Parts, Restored,
    tape::{Recording, Replay},
};
use tokio::sync::mpsc;

use super::{
    compose, consent,
    conversation::{self, Conversation, Which},
    events::Told,
    exit::{Exit, Failure},
    manner::Manner,
    output::Output,
    tape::{self, Reel},
    voice::Voice,
    watch::Watch,
};
use crate::{
    config::{Flags, Settings},
    registry::Selection,
    services::Attendance,
};

use report::Report;

pub(super) use args::RunArgs;
pub(super) use report::print_end;

/// A session that is ready to be asked.
struct Stage<'a> {
    session_id: String,
    handle: Handle,
    events: mpsc::Receiver<Event>,
    reel: Reel,
    /// What plugins say comes in by it, as far as it is heard.
    attendance: Option<Attendance>,
    /// For hints about the policy; a tape has none.
    settings: Option<&'a Settings>,
}

pub(super) async fn run(
    flags: &Flags,
    args: &RunArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let mut report = Report::new(args, watch.verbose, out);
    let result = match &args.replay {
        Some(file) => replay(file, &mut report).await,
        None => ask(flags, args, watch, &mut report, out).await,
    };
    if let Err(failure) = &result {
        report.fail(failure);
    }
    result
}

async fn ask(
    flags: &Flags,
    args: &RunArgs,
    watch: &Watch,
    report: &mut Report<'_>,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let input = question::question(args, &settings, out)?;
    let voice = compose::model(&settings, out)?;
    let talk = conversation::open(&settings, &Which::from(&args.session), out)?;
    let consent: Arc<dyn Consent> = match out.can_ask {
        true => Arc::new(consent::AtTerminal { out: *out }),
        false => Arc::new(NobodyToAsk),
    };
    let tools = compose::tools(&settings, consent, Selection::All, watch, out).await?;
    compose::show_problems(&tools.registry, out);
    // What is recorded is not disturbed: what is due waits.
    let timekeeper = args.record.is_none().then(|| tools.keep_time(watch, out));
    let manner = Manner::of(&args.model, &settings, &tools, watch, out).await;
    let parts = manner.and_then(|manner| parts(args, talk, &voice, &manner, &tools));
    let stage = parts.and_then(|(parts, reel)| Stage::new(parts, reel, Some(&settings), report));
    let result = match stage {
        Ok(stage) => {
            let mut stage = stage.hearing(&tools);
            let result = stage.turn(input, report).await;
            stage.close().await;
            result
        }
        Err(failure) => Err(failure),
    };
    if let Some(timekeeper) = timekeeper {
        timekeeper.stop().await;
    }
    tools.close(out).await;
    result
}

/// Puts a session together, recorded if that was asked for.
fn parts(
    args: &RunArgs,
    talk: Conversation,
    voice: &Voice,
    manner: &Manner,
    tools: &compose::Tools,
) -> Result<(Parts, Reel), Failure> {
    let Conversation { session_id, journal, past, is_kept } = talk;
    let model = voice.in_session(&tools.roles, &session_id)?;
    let options = manner.options(&session_id);
    let recall = manner.recall(&session_id, is_kept);
    // Questions are answered at the terminal, or not at all: none comes by way of the session.
    let (_, approvals) = session::approval::channel();
    let toolbox = Arc::clone(&tools.toolbox);
    let live = Parts { model, toolbox, approvals, journal, past, recall, options };
    let Some(path) = &args.record else { return Ok((live, Reel::None)) };
    let redactor = compose::redactor(&tools.registry);
    let file = tape::create(path)?;
    let recording = Recording::begin(file, redactor, &live.options, &*live.model, &*live.toolbox);
    let (model, toolbox) = (recording.model(live.model), recording.toolbox(live.toolbox));
    let recall = live.recall.map(|recall| recording.recall(recall));
    Ok((Parts { model, toolbox, recall, ..live }, Reel::Records(recording)))
}

/// Plays a tape: its inputs, one after another.
async fn replay(file: &Path, report: &mut Report<'_>) -> Result<Exit, Failure> {
    let tape = tape::read(file)?;
    let (inputs, options) = (tape.inputs().to_vec(), tape.options());
    // Whatever was secret is not on a tape, so nothing has to be hidden.
    let player = Replay::new(tape, Redactor::none());
    let (_, approvals) = session::approval::channel();
    let (model, toolbox) = (player.model(), player.toolbox());
    let (journal, past) = (Box::new(NoJournal), Restored::default());
    let recall = player.recall();
    let parts = Parts { model, toolbox, approvals, journal, past, recall, options };
    let mut stage = Stage::new(parts, Reel::Plays(player), None, report)?;
    let mut exit = Err(Failure::new(Exit::Failed, "nothing is said on this tape"));
    for input in inputs {
        exit = Ok(stage.turn(input, report).await?);
    }
    exit
}

impl<'a> Stage<'a> {
    fn new(
        parts: Parts,
        reel: Reel,
        settings: Option<&'a Settings>,
        report: &mut Report<'_>,
    ) -> Result<Self, Failure> {
        let session_id = parts.options.session_id.clone();
        let started = Told::SessionStarted {
            session_id: session_id.clone(),
            model: parts.model.name().to_owned(),
            tools: parts.toolbox.tools().iter().map(|tool| tool.id.to_string()).collect(),
            past_turns: parts.past.turns(),
        };
        let (handle, events) = session::spawn(parts).map_err(collision)?;
        report.tell(started);
        Ok(Self { session_id, handle, events, reel, attendance: None, settings })
    }

    /// Hears what plugins say. What is recorded hears nothing, so that it can be played again: what
    /// is said meanwhile waits for the session to go on.
    fn hearing(mut self, tools: &compose::Tools) -> Self {
        if let Reel::None = self.reel {
            self.attendance = Some(tools.attend(&self.session_id, &self.handle));
        }
        self
    }

    async fn turn(&mut self, input: UserMessage, report: &mut Report<'_>) -> Result<Exit, Failure> {
        self.reel.input(&input);
        self.send(Command::SubmitInput { input }).await?;
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = called_off(&self.reel) => {
                    self.reel.cancel();
                    self.send(Command::Cancel).await?;
                    continue;
                }
            };
            match event.map(|event| self.reel.event(event)) {
                Some(Event::TurnEnded { reason, usage }) => {
                    self.stop_hearing(report).await;
                    self.reel.settle()?;
                    return Ok(report.end(&self.session_id, &reason, &usage, self.settings));
                }
                Some(event) => report.take(&event),
                None => return Err(ended()),
            }
        }
    }

    /// Hears no plugin any more; what they have said until now is told.
    async fn stop_hearing(&mut self, report: &mut Report<'_>) {
        let Some(attendance) = self.attendance.take() else { return };
        attendance.leave().await;
        while let Ok(event) = self.events.try_recv() {
            report.take(&event);
        }
    }

    /// Ends the session, and waits until it has done what it still owes.
    async fn close(mut self) {
        // When it has ended already there is nothing to end.
        let _ = self.handle.send(Command::Close).await;
        while self.events.recv().await.is_some() {}
    }

    async fn send(&self, command: Command) -> Result<(), Failure> {
        self.handle.send(command).await.map_err(|_| ended())
    }
}

/// Waits until the turn is to be called off: by the person, or as it was on the tape.
async fn called_off(reel: &Reel) {
    tokio::select! {
        () = compose::interrupted() => {}
        () = reel.cancel_due() => {}
    }
}

fn ended() -> Failure {
    Failure::new(Exit::Failed, "the session ended before the turn did")
}

/// Two tools that a model could not tell apart.
pub(super) fn collision(error: Collision) -> Failure {
    Failure::new(Exit::PluginRejected, error.to_string())
}
