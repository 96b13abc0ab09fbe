//! `sallyport run PROMPT`: one question and one answer. It never waits for an absent user.

mod args;
mod question;
mod report;

use std::{path::Path, sync::Arc};

use sallyport_contract::{Consent, Redactor};
use sallyport_model::UserInputMessage;
use sallyport_runtime::{
    Host, HostSession,
    config::{ConfigFlags, HostSettings},
    registry::PluginSelection,
    session::{Events, SessionConfig, SessionSelector},
};
use sallyport_session::{
    self as session, FrontEndCommand, NoJournal, RestoredSession, SessionEvent, SessionParts,
    UnattendedConsent,
    tape::{SessionRecorder, SessionReplay},
};

use super::{
    compose, consent,
    events::Told,
    exit::{Exit, Failure},
    output::Output,
    tape::{self, Reel},
    watch::Watch,
};

use report::Report;

pub(super) use args::RunArgs;
pub(super) use report::print_end;

/// A session that is ready for input.
struct Stage<'a> {
    session: HostSession,
    events: Events,
    reel: Reel,
    /// The source of hints about the policy. A recording has none.
    settings: Option<&'a HostSettings>,
}

pub(super) async fn run(
    flags: &ConfigFlags,
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
    flags: &ConfigFlags,
    args: &RunArgs,
    watch: &Watch,
    report: &mut Report<'_>,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let input = question::question(args, &settings, out)?;
    let voice = compose::model(&settings, out)?;
    let talk = compose::open_session(&settings, &SessionSelector::from(&args.session), out)?;
    let consent: Arc<dyn Consent> = match out.can_ask {
        true => Arc::new(consent::AtTerminal { out: *out }),
        false => Arc::new(UnattendedConsent),
    };
    let tools = compose::open_host(&settings, consent, PluginSelection::All, watch, out).await?;
    compose::show_problems(tools.registry(), out);
    // Timers wait during a recording, so that they do not disturb it.
    let timekeeper = args.record.is_none().then(|| tools.start_timekeeper());
    let config = SessionConfig::from_settings(&(&args.model).into(), &settings, &tools).await;
    let parts = config.map_err(Failure::from).and_then(|config| {
        // Approvals are answered at the terminal or not at all, so none comes through the session.
        let (_, approvals) = session::approval::approval_channel();
        let parts = tools.session_parts(talk, &config, &voice, approvals)?;
        recorded(args, parts, &tools)
    });
    let stage = parts.and_then(|(parts, reel)| {
        // A recorded session gets no notices, because a replay could not repeat them. They wait
        // until it is resumed.
        let listens = matches!(reel, Reel::None);
        let started = started(&parts);
        let (session, events) = tools.begin_session(parts, listens)?;
        report.tell(started);
        Ok(Stage { session, events, reel, settings: Some(&settings) })
    });
    let result = match stage {
        Ok(mut stage) => {
            let result = stage.turn(input, report).await;
            stage.session.close(stage.events).await;
            result
        }
        Err(failure) => Err(failure),
    };
    if let Some(timekeeper) = timekeeper {
        timekeeper.stop().await;
    }
    compose::close(tools, out).await.end(result)
}

/// Records the session if requested.
fn recorded(
    args: &RunArgs,
    live: SessionParts,
    tools: &Host,
) -> Result<(SessionParts, Reel), Failure> {
    let Some(path) = &args.record else { return Ok((live, Reel::None)) };
    let gate = Arc::clone(tools.registry().gate());
    let redactor = move || Redactor::clone(&gate.redactor());
    let file = tape::create(path)?;
    let (model, toolbox) = (&*live.model, &*live.toolbox);
    let recording = SessionRecorder::start(file, redactor(), &live.options, model, toolbox);
    let recording = recording.with_live_redactor(redactor);
    let (model, toolbox) = (recording.wrap_model(live.model), recording.wrap_toolbox(live.toolbox));
    let recall = live.recall.map(|recall| recording.wrap_recall(recall));
    Ok((SessionParts { model, toolbox, recall, ..live }, Reel::Records(recording)))
}

/// The first event of a session.
fn started(parts: &SessionParts) -> Told {
    Told::SessionStarted {
        session_id: parts.options.session_id.clone(),
        model: parts.model.name().to_owned(),
        tools: parts.toolbox.tools().iter().map(|tool| tool.id.to_string()).collect(),
        past_turns: parts.past.turn_count(),
    }
}

/// Replays the inputs of a recording in order.
async fn replay(file: &Path, report: &mut Report<'_>) -> Result<Exit, Failure> {
    let tape = tape::read(file)?;
    let (inputs, options) = (tape.inputs().to_vec(), tape.options());
    // A recording contains no secrets, so nothing has to be redacted.
    let player = SessionReplay::new(tape, Redactor::empty());
    let (_, approvals) = session::approval::approval_channel();
    let (model, toolbox) = (player.to_chat_model(), player.to_toolbox());
    let (journal, past) = (Box::new(NoJournal), RestoredSession::default());
    let recall = player.to_session_memory();
    let parts = SessionParts { model, toolbox, approvals, journal, past, recall, options };
    let started = started(&parts);
    let (session, events) = HostSession::start_detached(parts)?;
    report.tell(started);
    let mut stage = Stage { session, events, reel: Reel::Plays(player), settings: None };
    let mut exit = Err(Failure::new(Exit::Failed, "the recording contains no input"));
    for input in inputs {
        exit = Ok(stage.turn(input, report).await?);
    }
    exit
}

impl Stage<'_> {
    async fn turn(
        &mut self,
        input: UserInputMessage,
        report: &mut Report<'_>,
    ) -> Result<Exit, Failure> {
        self.reel.input(&input);
        self.send(FrontEndCommand::SubmitInput { input }).await?;
        // Cancel only once. A lasting reason, such as a closed pipe, would repeat forever.
        let mut is_called_off = false;
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = called_off(&self.reel), if !is_called_off => {
                    is_called_off = true;
                    self.reel.cancel();
                    self.send(FrontEndCommand::Cancel).await?;
                    continue;
                }
            };
            match event.map(|event| self.reel.event(event)) {
                Some(SessionEvent::TurnEnded { reason, usage }) => {
                    self.stop_hearing(report).await;
                    self.reel.settle()?;
                    return Ok(report.end(
                        &self.session.session_id,
                        &reason,
                        &usage,
                        self.settings,
                    ));
                }
                Some(event) => report.take(&event),
                None => return Err(ended()),
            }
        }
    }

    /// Stops listening to plugins and reports the notices that have arrived.
    async fn stop_hearing(&mut self, report: &mut Report<'_>) {
        self.session.stop_listening().await;
        while let Ok(event) = self.events.try_recv() {
            report.take(&event);
        }
    }

    async fn send(&self, command: FrontEndCommand) -> Result<(), Failure> {
        self.session.handle.send(command).await.map_err(|_| ended())
    }
}

/// Waits until the turn is cancelled, by the user or by the recording.
async fn called_off(reel: &Reel) {
    tokio::select! {
        () = compose::interrupted() => {}
        () = reel.cancel_due() => {}
    }
}

fn ended() -> Failure {
    Failure::new(Exit::Failed, "the session ended unexpectedly")
}
