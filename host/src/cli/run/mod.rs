//! `sallyport run PROMPT`: one question and one answer. It never waits for an absent user.

mod args;
mod question;
mod report;

use std::{path::Path, sync::Arc};

use sallyport_contract::Redactor;
use sallyport_model::UserInputMessage;
use sallyport_runtime::{
    Host, HostSession,
    config::{ConfigFlags, HostSettings},
    host::CompileWait,
    session::{Events, PreparedSession, SessionSelector, SessionSpec},
};
use sallyport_session::{
    self as session, FrontEndCommand, MemoryJournal, RestoredSession, SessionActivity,
    SessionEvent, SessionParts,
    recording::{SessionRecorder, SessionReplay},
};

use super::{
    consent::TerminalConsent,
    events::ProgramEvent,
    exit::{CommandFailure, ExitStatus},
    interrupt::InterruptListener,
    new_file,
    observers::CallObservers,
    output::CliOutput,
    run_recording::{self, RunRecording},
    setup::{self, PluginsOfSession, SessionHost},
};

use report::RunReport;

pub(super) use args::RunArgs;
pub(super) use report::print_turn_end;

/// A session that is ready for input.
struct RunSession<'a> {
    session: HostSession,
    events: Events,
    interrupts: InterruptListener,
    run_recording: RunRecording,
    /// The source of hints about the policy. A recording has none.
    settings: Option<&'a HostSettings>,
    /// After a turn, the session says that it is ready for an input that nobody types. Whether that
    /// arrives before the end is a matter of chance, so it is not reported.
    has_ended_turn: bool,
}

pub(super) async fn run_prompt(
    flags: &ConfigFlags,
    args: &RunArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let mut report = RunReport::new(args, observers.verbose, out);
    let result = match &args.replay {
        Some(file) => replay_recording(file, &mut report).await,
        None => ask_question(flags, args, observers, &mut report, out).await,
    };
    if let Err(failure) = &result {
        report.report_failure(failure);
    }
    result
}

async fn ask_question(
    flags: &ConfigFlags,
    args: &RunArgs,
    observers: &CallObservers,
    report: &mut RunReport<'_>,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let input = question::read_question(args, &settings, out)?;
    let opened = setup::open_session(&settings, &SessionSelector::from(&args.session), out).await?;
    let consent = Arc::new(TerminalConsent { out: *out });
    let overrides = (&args.model).into();
    let SessionHost { host, config, model } = setup::open_session_host(
        &settings,
        &overrides,
        consent,
        PluginsOfSession::all(CompileWait::OneAnswer),
        observers,
        out,
    )
    .await?;
    // Timers wait during a recording, so that they do not disturb it.
    let timekeeper = args.record.is_none().then(|| host.start_timekeeper());
    let prepared = host.prepare_session(SessionSpec {
        opened,
        config: &config,
        model: &model,
        // Questions are answered at the terminal or not at all.
        answers_questions: false,
        // A recorded session gets no notices, because a replay could not repeat them. They wait
        // until it is resumed.
        receives_notices: args.record.is_none(),
    });
    let prepared =
        prepared.map_err(Into::into).and_then(|prepared| with_recording(args, prepared, &host));
    let run_session = prepared.and_then(|(prepared, run_recording)| {
        let started = session_started_event(&prepared.parts);
        let (session, events) = host.start_session(prepared)?;
        report.report_program_event(started);
        Ok(RunSession {
            session,
            events,
            interrupts: InterruptListener::new(),
            run_recording,
            settings: Some(&settings),
            has_ended_turn: false,
        })
    });
    let result = match run_session {
        Ok(mut run_session) => {
            let result = run_session.run_turn(input, report).await;
            run_session.session.close(run_session.events).await;
            result
        }
        Err(failure) => Err(failure),
    };
    if let Some(timekeeper) = timekeeper {
        timekeeper.stop().await;
    }
    setup::close_host(host, out).await.apply_to_result(result)
}

/// Records the session if requested.
fn with_recording(
    args: &RunArgs,
    mut prepared: PreparedSession,
    host: &Host,
) -> Result<(PreparedSession, RunRecording), CommandFailure> {
    let Some(path) = &args.record else { return Ok((prepared, RunRecording::None)) };
    let live_parts = prepared.parts;
    let gate = Arc::clone(host.registry().gate());
    let redactor = move || Redactor::clone(&gate.redactor());
    let file = new_file::create_private_file(path)?;
    let (model, toolbox) = (&*live_parts.model, &*live_parts.toolbox);
    let recording = SessionRecorder::start(file, redactor(), &live_parts.options, model, toolbox);
    let recording = recording.with_live_redactor(redactor);
    let (model, toolbox) =
        (recording.wrap_model(live_parts.model), recording.wrap_toolbox(live_parts.toolbox));
    let recall = live_parts.recall.map(|recall| recording.wrap_recall(recall));
    prepared.parts = SessionParts { model, toolbox, recall, ..live_parts };
    Ok((prepared, RunRecording::Recording(recording)))
}

/// The first event of a session.
fn session_started_event(parts: &SessionParts) -> ProgramEvent {
    ProgramEvent::SessionStarted {
        session_id: parts.options.session_id.clone(),
        model: parts.model.name().to_owned(),
        tools: parts.toolbox.tools().iter().map(|tool| tool.id.to_string()).collect(),
        past_turns: parts.past.turn_count(),
    }
}

/// Replays the inputs of a recording in order.
async fn replay_recording(
    file: &Path,
    report: &mut RunReport<'_>,
) -> Result<ExitStatus, CommandFailure> {
    let session_recording = run_recording::read_recording(file)?;
    let (inputs, options) = (session_recording.inputs().to_vec(), session_recording.options());
    // A recording contains no secrets, so nothing has to be redacted.
    let session_replay = SessionReplay::new(session_recording, Redactor::empty());
    let (_, approvals) = session::approval::approval_channel();
    let (model, toolbox) = (session_replay.to_chat_model(), session_replay.to_toolbox());
    let (journal, past) = (Box::new(MemoryJournal::default()), RestoredSession::default());
    let recall = session_replay.to_session_memory();
    let parts =
        SessionParts { model, toolbox, approvals, journal, past, recall, account: None, options };
    let started = session_started_event(&parts);
    let (session, events) = HostSession::start_detached(parts)?;
    report.report_program_event(started);
    let mut run_session = RunSession {
        session,
        events,
        interrupts: InterruptListener::new(),
        run_recording: RunRecording::Replaying(session_replay),
        settings: None,
        has_ended_turn: false,
    };
    let mut exit = Err(CommandFailure::new(ExitStatus::Failed, "the recording contains no input"));
    for input in inputs {
        exit = Ok(run_session.run_turn(input, report).await?);
    }
    exit
}

impl RunSession<'_> {
    async fn run_turn(
        &mut self,
        input: UserInputMessage,
        report: &mut RunReport<'_>,
    ) -> Result<ExitStatus, CommandFailure> {
        self.run_recording.record_input(&input);
        self.send(FrontEndCommand::SubmitInput { input }).await?;
        // Cancel only once. A lasting reason, such as a closed pipe, would repeat forever.
        let mut is_cancelled = false;
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = wait_for_cancel(&mut self.interrupts, &self.run_recording), if !is_cancelled => {
                    is_cancelled = true;
                    self.run_recording.record_cancel();
                    self.send(FrontEndCommand::Cancel).await?;
                    continue;
                }
            };
            match event.map(|event| self.run_recording.record_event(event)) {
                Some(SessionEvent::TurnEnded { reason, usage }) => {
                    self.has_ended_turn = true;
                    self.stop_listening(report).await;
                    self.run_recording.finish_recording()?;
                    return Ok(report.report_end(
                        &self.session.session_id,
                        &reason,
                        &usage,
                        self.settings,
                    ));
                }
                Some(event) => self.report_event(&event, report),
                None => return Err(session_ended_failure()),
            }
        }
    }

    /// Stops listening to plugins and reports the notices that have arrived.
    async fn stop_listening(&mut self, report: &mut RunReport<'_>) {
        self.session.stop_listening().await;
        while let Ok(event) = self.events.try_recv() {
            self.report_event(&event, report);
        }
    }

    fn report_event(&self, event: &SessionEvent, report: &mut RunReport<'_>) {
        let is_ready = matches!(event, SessionEvent::State { state: SessionActivity::Ready });
        if !(self.has_ended_turn && is_ready) {
            report.report_event(event);
        }
    }

    async fn send(&self, command: FrontEndCommand) -> Result<(), CommandFailure> {
        self.session.handle.send(command).await.map_err(|_| session_ended_failure())
    }
}

/// Waits until the turn is cancelled, by the user or by the recording.
async fn wait_for_cancel(interrupts: &mut InterruptListener, run_recording: &RunRecording) {
    tokio::select! {
        () = interrupts.wait() => {}
        () = run_recording.wait_for_cancel() => {}
    }
}

fn session_ended_failure() -> CommandFailure {
    CommandFailure::new(ExitStatus::Failed, "the session ended unexpectedly")
}
