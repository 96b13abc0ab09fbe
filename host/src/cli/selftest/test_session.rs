//! The environment of the sentences: a temporary home with its own policy, and a session.

use std::{path::Path, sync::Arc, time::Instant};

use sallyport_contract::{Denial, Outcome};
use sallyport_model::UserInputMessage;
use sallyport_runtime::{
    Host, HostSession,
    config::{ConfigFlags, Env, HostSettings, SettingOrigin, env, values::NonblankText},
    host::CompileWait,
    registry::PluginSelection,
    services::browser,
    session::{Events, SessionOverrides, SessionSelector, SessionSpec},
};
use sallyport_session::{FrontEndCommand, SessionEvent, TurnEnd, UnattendedConsent};
use sallyport_store::AuditVerification;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{
    list::{HOME, SentenceList},
    report::{ObservedCall, SentenceResult},
};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    interrupt::InterruptListener,
    observers::{CallObservers, SideMessage},
    output::CliOutput,
    setup::{self, PluginsOfSession, SessionHost},
};

/// The user's variables that sentences may depend on. No others are copied, especially no keys.
const VARIABLES: [&str; 2] = ["TZ", "LANG"];

/// A session for the whole test.
pub(super) struct SelftestSession {
    pub(super) host: Host,
    settings: HostSettings,
    session: HostSession,
    events: Events,
    interrupts: InterruptListener,
    /// Messages other than answers.
    side_messages: mpsc::UnboundedReceiver<SideMessage>,
    _folder: TempDir,
}

impl SelftestSession {
    /// Creates a home, loads the user's plugins under the list's policy, and starts a session.
    pub(super) async fn new(
        flags: &ConfigFlags,
        list: &SentenceList,
        observers: &CallObservers,
        out: &CliOutput,
    ) -> Result<Self, CommandFailure> {
        let user_settings = setup::read_settings(flags)?;
        let folder = TempDir::with_prefix("sallyport-selftest-")?;
        let settings = selftest_settings(user_settings, list, folder.path())?;
        let (side_message_sender, side_messages) = mpsc::unbounded_channel();
        let observers =
            CallObservers { side_messages: Some(side_message_sender), ..observers.clone() };
        let opened = setup::open_session(&settings, &SessionSelector::New, out).await?;
        // Use the tool's own sentence, because the matcher composes none.
        let overrides = SessionOverrides { spoken: true, ..SessionOverrides::default() };
        let consent = Arc::new(UnattendedConsent);
        // Others could be meant by the same words.
        let selection = PluginSelection::AnyOf(list.plugins());
        let plugins = PluginsOfSession { selection, compile_wait: CompileWait::OneAnswer };
        let SessionHost { host, config, model } =
            setup::open_session_host(&settings, &overrides, consent, plugins, &observers, out)
                .await?;
        let started = host.session(SessionSpec {
            opened,
            config: &config,
            model: &model,
            answers_questions: false,
            receives_notices: false,
        });
        match started {
            Ok((session, events)) => Ok(Self {
                host,
                settings,
                session,
                events,
                interrupts: InterruptListener::new(),
                side_messages,
                _folder: folder,
            }),
            Err(error) => {
                let audit = setup::close_host(host, out).await;
                Err(audit.check_complete().err().unwrap_or_else(|| error.into()))
            }
        }
    }

    /// Runs a sentence and returns the result, or `None` if the user interrupts.
    pub(super) async fn run_sentence(
        &mut self,
        text: &str,
    ) -> Result<Option<SentenceResult>, CommandFailure> {
        let started = Instant::now();
        let mut sentence_result = SentenceResult::default();
        self.send(FrontEndCommand::SubmitInput { input: UserInputMessage::from(text) }).await?;
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = self.interrupts.wait() => return Ok(None),
            };
            match event {
                Some(SessionEvent::TurnEnded { reason, .. }) => {
                    sentence_result.answer = turn_end_text(reason);
                    sentence_result.asides = self.take_messages();
                    sentence_result.elapsed = started.elapsed();
                    return Ok(Some(sentence_result));
                }
                Some(event) => collect_call(event, &mut sentence_result.calls),
                None => return Err(session_ended_failure()),
            }
        }
    }

    /// Returns the messages since the last sentence.
    fn take_messages(&mut self) -> Vec<String> {
        let messages = std::iter::from_fn(|| self.side_messages.try_recv().ok());
        let line = |side_message| match side_message {
            SideMessage::Warning(what) => Some(format!("warning: {what}")),
            SideMessage::Trace(line) | SideMessage::Info(line) => Some(line),
            SideMessage::HostContacted { .. } => None,
        };
        messages.filter_map(line).collect()
    }

    /// Ends the session and verifies the audit.
    pub(super) async fn close(self, out: &CliOutput) -> Result<AuditVerification, CommandFailure> {
        self.session.close(self.events).await;
        setup::close_host(self.host, out).await.check_complete()?;
        Ok(setup::open_store(&self.settings)?.audit.verify(None).await?)
    }

    async fn send(&self, command: FrontEndCommand) -> Result<(), CommandFailure> {
        self.session.handle.send(command).await.map_err(|_| session_ended_failure())
    }
}

/// Settings in the test's home with the user's plugins and compilation cache.
fn selftest_settings(
    user_settings: HostSettings,
    list: &SentenceList,
    folder: &Path,
) -> Result<HostSettings, CommandFailure> {
    list.write_files(folder)?;
    let home = folder.join(HOME);
    std::fs::create_dir(&home)?;
    let policy = home.join("policy.toml");
    std::fs::write(&policy, list.policy_text(folder))?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let (home, user) = (text(&home), text(folder));
    let copied_variables =
        VARIABLES.iter().filter_map(|name| Some((*name, user_settings.env.get(name)?)));
    let variables = copied_variables.chain([(env::HOME, home.as_str()), ("HOME", user.as_str())]);
    // The default folder may be missing.
    let named = user_settings.plugin_dirs_origin != SettingOrigin::Default;
    let plugin_dirs = user_settings.plugin_dirs.iter().filter(|dir| named || dir.is_dir()).cloned();
    let flags = ConfigFlags {
        plugin_dirs: plugin_dirs.collect(),
        policy: Some(policy),
        model: Some("offline".to_owned()),
        folder: Some(folder.to_owned()),
        ..ConfigFlags::default()
    };
    let mut settings = HostSettings::resolve(&flags, Env::from_pairs(variables))?;
    // Print the address of a page instead of opening it.
    settings.browser.command = Some(NonblankText(browser::NO_BROWSER.to_owned()));
    settings.policy.host_files.push(user_settings.paths.cache.clone());
    settings.paths.cache = user_settings.paths.cache;
    Ok(settings)
}

fn collect_call(event: SessionEvent, calls: &mut Vec<ObservedCall>) {
    match event {
        SessionEvent::CallRequested { tool, arguments, .. } => {
            calls.push(ObservedCall { tool: tool.to_string(), arguments, outcome: "", fix: None });
        }
        SessionEvent::CallFinished { tool, report, .. } => {
            let tool = tool.to_string();
            let is_pending =
                |call: &&mut ObservedCall| call.tool == tool && call.outcome.is_empty();
            if let Some(call) = calls.iter_mut().find(is_pending) {
                call.outcome = report.outcome.as_str();
                call.fix = match report.outcome {
                    Outcome::Denied(Denial { fix, .. }) => fix,
                    _ => None,
                };
            }
        }
        _ => {}
    }
}

fn turn_end_text(end: TurnEnd) -> String {
    match end {
        TurnEnd::Answered { text } | TurnEnd::Spoken { text } => text,
        TurnEnd::BudgetReached { limit: what } => format!("stopped: {what}"),
        TurnEnd::ModelFailed(error) => error.to_string(),
        TurnEnd::InputRefused(error) => error.to_string(),
        TurnEnd::Cancelled => "cancelled".to_owned(),
    }
}

fn session_ended_failure() -> CommandFailure {
    CommandFailure::new(ExitStatus::Failed, "the session ended unexpectedly")
}
