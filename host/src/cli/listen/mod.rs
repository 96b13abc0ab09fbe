//! Sessions that plugins attend: `sallyport listen`, which listeners feed, and `chat --ui`, which a
//! plugin shows.
//!
//! They differ only in the participants: the source of input, the display, and the answers to
//! questions. [`participants`] finds the plugins and binds their granted addresses before anything starts.
//! [`attended_session`] runs the session from its first event to its last. A UI draws on the [`terminal_surface`].

mod args;
mod attended_session;
mod optional_inputs;
mod participants;
mod questions;
mod session_facts;
mod terminal_surface;

use std::{io::IsTerminal, sync::Arc};

use sallyport_contract::{Denial, Outcome};
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, HostSettings},
    host::CompileWait,
    roles::failure_reason,
    session::{SessionError, SessionSelector, SessionSpec},
};
use sallyport_session::UnattendedConsent;

use super::{
    args::ChatArgs,
    call_display,
    exit::{CommandFailure, ExitStatus},
    observers::CallObservers,
    output::{CliOutput, format_count},
    plugin_reload::{PluginReload, PluginReloader},
    setup::{self, PluginsOfSession, SessionHost},
};

use args::AttendedSessionOptions;
pub(super) use args::ListenArgs;
use attended_session::AttendedSession;
use participants::Participants;
use session_facts::SessionFacts;
use terminal_surface::TerminalSurface;

/// The reason why the session cannot start.
enum SessionStartError {
    Failure(CommandFailure),
    /// The policy does not grant the selected role to a plugin.
    Denied(Box<Denial>),
}

impl SessionStartError {
    /// Converts the outcome of a role's run that the gate did not admit.
    fn from_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Denied(denial) => Self::Denied(Box::new(denial)),
            outcome => {
                let why = failure_reason(&outcome.into());
                let why = why.unwrap_or_else(|| "it was cancelled".to_owned());
                Self::Failure(CommandFailure::new(ExitStatus::PluginRejected, why))
            }
        }
    }
}

impl From<SessionError> for SessionStartError {
    fn from(error: SessionError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<CommandFailure> for SessionStartError {
    fn from(failure: CommandFailure) -> Self {
        Self::Failure(failure)
    }
}

/// Runs a session with input from listeners.
pub(super) async fn run_listen_command(
    flags: &ConfigFlags,
    args: &ListenArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    run_attended_session(flags, &AttendedSessionOptions::from_listen(args), observers, out).await
}

/// Runs a session with a plugin as its UI.
pub(super) async fn run_ui_chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    ui: &str,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if !args.files.attach.is_empty() || args.files.audio.is_some() || args.prompt.is_some() {
        let failure = CommandFailure::new(
            ExitStatus::Usage,
            "with --ui, the first message comes from the plugin's user interface",
        );
        return Err(failure.with_hint("leave out the prompt, --attach and --audio"));
    }
    run_attended_session(flags, &AttendedSessionOptions::from_chat(args, ui), observers, out).await
}

async fn run_attended_session(
    flags: &ConfigFlags,
    options: &AttendedSessionOptions<'_>,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let opened =
        setup::open_session(&settings, &SessionSelector::from(options.session), out).await?;
    // A change that comes while the plugins are being loaded counts as one after it.
    let reloader = PluginReloader::beside_person(&settings);
    let consent = Arc::new(UnattendedConsent);
    let SessionHost { host, config, model } = setup::open_session_host(
        &settings,
        &options.model.into(),
        consent,
        PluginsOfSession::all(CompileWait::Start),
        observers,
        out,
    )
    .await?;
    let run_result = async {
        let (config, model) = (&config, &model);
        let prepared = host.prepare_session(SessionSpec {
            opened,
            config,
            model,
            answers_questions: true,
            receives_notices: true,
        })?;
        let session_id = prepared.parts.options.session_id.clone();
        let surface = Arc::new(TerminalSurface::new(*out));
        let participants =
            Participants::gather(options, host.roles(), &session_id, &surface).await?;
        let model_name = prepared.parts.model.name().to_owned();
        print_overview(&participants, &model_name, &host, out);
        let may_confirm = participants.ui.as_ref().is_some_and(|ui| ui.may_confirm);
        let facts = SessionFacts::new(&host, &model_name, &session_id, may_confirm);
        let (session, events) = host.start_session(prepared)?;
        let timekeeper = host.start_timekeeper();
        let attended_session =
            AttendedSession::new(session, participants, facts, &settings, surface);
        let exit_result = attended_session.run(events).await;
        timekeeper.stop().await;
        print_resume_hint(options, &settings, &session_id, out).await;
        exit_result
    };
    let report = |reload: &PluginReload| reload.print(&host, out);
    let run_result = tokio::select! {
        run_result = run_result => run_result,
        never = reloader.keep_plugins_current(&host, flags, report) => match never {},
    };
    let exit = report_session_result(run_result, out);
    setup::close_host(host, out).await.apply_to_result(exit)
}

/// Prints how to resume the session if it can be resumed.
async fn print_resume_hint(
    options: &AttendedSessionOptions<'_>,
    settings: &HostSettings,
    session_id: &str,
    out: &CliOutput,
) {
    let session = setup::find_stored_session(settings, session_id).await;
    if session.is_some_and(|session| session.used.turns > 0) {
        out.print_note(&format!(
            "Resume with: sallyport {} --session {session_id}",
            options.command_line()
        ));
    }
}

fn report_session_result(
    run_result: Result<ExitStatus, SessionStartError>,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    match run_result {
        Ok(exit) => Ok(exit),
        Err(SessionStartError::Failure(failure)) => Err(failure),
        Err(SessionStartError::Denied(denial)) => {
            out.print_error(&denial.to_string());
            call_display::print_denial_fix(&denial, out);
            Ok(ExitStatus::Policy)
        }
    }
}

/// Prints the model, the tools and the addresses.
fn print_overview(participants: &Participants, model: &str, host: &Host, out: &CliOutput) {
    let end = if std::io::stdin().is_terminal() { " · Ctrl-C to leave" } else { "" };
    let tools = format_count(host.registry().tools().len(), "tool");
    out.print_note(&format!("{model} · {tools}{end}"));
    for address in participants.address_lines() {
        out.print_note(&address);
    }
    if let Some(words) = participants.missing_grant_message() {
        out.print_note(&words);
    }
}
