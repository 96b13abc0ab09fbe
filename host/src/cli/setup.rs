//! Set-up that commands share: threads, settings and the host.

use std::{collections::BTreeMap, fmt, fs::File, future::Future, sync::Arc};

use sallyport_contract::{Consent, LOCAL_USER, Principal};
use sallyport_policy::SecretSource;
use sallyport_runtime::{
    Host, HostError, HostNotice, HostOptions, HostShutdownReport,
    config::{ConfigFlags, Env, HostSettings, ModelChoice},
    host::{self, CompileWait},
    policy_change::{PolicyChangeError, record_change},
    registry::{PluginSelection, Registry},
    session::{self, ModelHandle, OpenedSession, SessionConfig, SessionOverrides, SessionSelector},
};
use sallyport_session::RestoredSession;
use sallyport_store::{HostStore, StoredSession, audit::HostUser};

use super::{
    consent,
    exit::{CommandFailure, ExitStatus},
    notices,
    observers::CallObservers,
    output::CliOutput,
    telemetry,
};

/// Number of files that tokio opens for timers, sockets and signals, with a reserve.
const RUNTIME_FILES: usize = 8;

/// Runs a command that makes at most one call, on the current thread.
pub(super) fn run_on_current_thread<T>(
    work: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    check_file_limit()?;
    run_on_runtime(tokio::runtime::Builder::new_current_thread().enable_all().build()?, work)
}

/// Runs a command that does several things at the same time, on a thread pool.
pub(super) fn run_on_thread_pool(
    work: impl Future<Output = Result<ExitStatus, CommandFailure>>,
) -> Result<ExitStatus, CommandFailure> {
    check_file_limit()?;
    run_on_runtime(tokio::runtime::Builder::new_multi_thread().enable_all().build()?, work)
}

/// Checks that tokio can open its own files, because it panics if it cannot.
fn check_file_limit() -> Result<(), CommandFailure> {
    let opened: Result<Vec<File>, _> =
        (0..RUNTIME_FILES).map(|_| File::open("/dev/null")).collect();
    opened.map(drop).map_err(|error| {
        let failure = CommandFailure::new(ExitStatus::Failed, format!("cannot start: {error}"));
        failure.with_hint("raise the limit of open files: ulimit -n 256")
    })
}

fn run_on_runtime<T>(
    runtime: tokio::runtime::Runtime,
    work: impl Future<Output = Result<T, CommandFailure>>,
) -> Result<T, CommandFailure> {
    let result = runtime.block_on(work);
    // Do not wait: a guest's file operation may still block on a pipe.
    runtime.shutdown_background();
    result
}

/// Reads the configuration, and warns about ignored project files.
pub(super) fn read_settings(flags: &ConfigFlags) -> Result<HostSettings, CommandFailure> {
    let settings = HostSettings::resolve(flags, Env::from_process())?;
    warn_of_ignored_files(&settings);
    Ok(settings)
}

/// Warns about ignored project files. Another user may have written them.
pub(super) fn warn_of_ignored_files(settings: &HostSettings) {
    let out = CliOutput::new();
    for file in &settings.policy.foreign {
        notices::print_notice(&HostNotice::ForeignFile(file.clone()), &out);
    }
}

/// Asks for confirmation at the terminal. Enter alone does not confirm.
pub(super) fn ask_confirmation(question: &str, out: &CliOutput) -> Result<bool, CommandFailure> {
    if !out.can_ask {
        let failure = CommandFailure::new(
            ExitStatus::NobodyToAsk,
            "this needs a confirmation, and no terminal is attached",
        );
        return Err(failure.with_hint("pass --yes to confirm"));
    }
    out.discard_typed_input();
    out.print_note_piece(&format!("{question} [y]es / [n]o: "));
    Ok(consent::read_confirmation(out))
}

/// The persistent store. Nothing is opened yet.
pub(super) fn open_store(settings: &HostSettings) -> Result<HostStore, CommandFailure> {
    Ok(host::open_store(settings).map_err(HostError::Store)?)
}

/// Loads plugins in order to call them.
pub(super) async fn open_host(
    settings: &HostSettings,
    consent: Arc<dyn Consent>,
    selection: PluginSelection,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<Host, CommandFailure> {
    let host = Host::open(settings, observers.host_options(consent, selection, out)).await?;
    telemetry::start(settings, &host, out);
    Ok(host)
}

/// A host with the configuration and the model of its sessions.
pub(super) struct SessionHost {
    pub(super) host: Host,
    pub(super) config: SessionConfig,
    pub(super) model: ModelHandle,
}

/// The plugins that sessions use.
pub(super) struct PluginsOfSession {
    pub(super) selection: PluginSelection,
    /// How long to wait for those that are not compiled yet.
    pub(super) compile_wait: CompileWait,
}

impl PluginsOfSession {
    pub(super) fn all(compile_wait: CompileWait) -> Self {
        Self { selection: PluginSelection::All, compile_wait }
    }
}

/// Loads plugins for sessions, prints those that could not be loaded, and prepares the configuration
/// and the model.
pub(super) async fn open_session_host(
    settings: &HostSettings,
    overrides: &SessionOverrides,
    consent: Arc<dyn Consent>,
    plugins: PluginsOfSession,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<SessionHost, CommandFailure> {
    let model = prepare_model(settings, out)?;
    let PluginsOfSession { selection, compile_wait } = plugins;
    let host_options = observers.host_options(consent, selection, out);
    let host = Host::open(settings, HostOptions { compile_wait, ..host_options }).await?;
    telemetry::start(settings, &host, out);
    print_load_problems(&host.registry(), out);
    match SessionConfig::from_settings(overrides, settings, &host, &Principal::local()).await {
        Ok(config) => Ok(SessionHost { host, config, model }),
        Err(error) => {
            let audit = close_host(host, out).await;
            Err(audit.check_complete().err().unwrap_or_else(|| error.into()))
        }
    }
}

/// Closes a host, and reports records of the audit that may be missing or were modified.
pub(super) async fn close_host(host: Host, out: &CliOutput) -> AuditCompleteness {
    print_shutdown(host.close().await, out)
}

/// Reports records of the audit that may be missing or were modified.
pub(super) fn print_shutdown(report: HostShutdownReport, out: &CliOutput) -> AuditCompleteness {
    let HostShutdownReport { write_error: unwritten, tampered } = report;
    if let Some(error) = &unwritten {
        out.print_error(&format!("the last records of the audit may be missing: {error}"));
        if let Some(hint) = error.hint() {
            out.print_hint(&hint);
        }
    }
    for problem in tampered {
        out.print_warning(&format!("the audit was modified outside Sallyport: {problem}"));
    }
    AuditCompleteness { is_complete: unwritten.is_none() }
}

/// Whether every decision and call was recorded. This affects the exit code.
#[must_use = "what is not on record changes the exit code"]
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditCompleteness {
    is_complete: bool,
}

impl AuditCompleteness {
    /// Fails if a record is missing.
    pub(super) fn check_complete(self) -> Result<(), CommandFailure> {
        let unwritten =
            || CommandFailure::new(ExitStatus::AuditUnwritten, "the audit could not be written");
        self.is_complete.then_some(()).ok_or_else(unwritten)
    }

    /// Returns the result of a command, with the exit code changed if a record is missing.
    pub(super) fn apply_to_result(
        self,
        result: Result<ExitStatus, CommandFailure>,
    ) -> Result<ExitStatus, CommandFailure> {
        match result {
            result if self.is_complete => result,
            Ok(_) => Ok(ExitStatus::AuditUnwritten),
            Err(failure) => Err(CommandFailure { exit: ExitStatus::AuditUnwritten, ..failure }),
        }
    }
}

/// Opens the selected session, and reports what the user has to know before it is resumed.
pub(super) async fn open_session(
    settings: &HostSettings,
    selector: &SessionSelector,
    out: &CliOutput,
) -> Result<OpenedSession, CommandFailure> {
    let (store, principal) = (open_store(settings)?, Principal::local());
    let opened = session::open_session(&store, settings.sessions, &principal, selector).await?;
    warn_of_session_damage(&opened.past, out);
    Ok(opened)
}

/// Returns a session that can be resumed. Returns `None` if it was removed or cannot be read.
pub(super) async fn find_stored_session(
    settings: &HostSettings,
    session_id: &str,
) -> Option<StoredSession> {
    open_store(settings).ok()?.sessions.get(LOCAL_USER, session_id).await.ok()
}

/// Warns about unreadable records and an interrupted turn.
fn warn_of_session_damage(past: &RestoredSession, out: &CliOutput) {
    if past.skipped > 0 {
        let count = past.skipped;
        out.print_warning(&format!(
            "{count} records of this session cannot be read and are left out"
        ));
    }
    let Some(interrupted) = &past.interrupted else { return };
    out.print_warning("the last turn of this session did not come to its end");
    if !interrupted.calls.is_empty() {
        let calls = interrupted.calls.join(", ");
        out.print_warning(&format!(
            "the end of {calls} is not known: it may or may not have had its effect"
        ));
    }
}

/// Returns every secret in the policy, with the place of its value.
pub(super) fn secret_sources(
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<BTreeMap<String, SecretSource>, CommandFailure> {
    Ok(host::secret_sources(settings, &CallObservers::default().notice_sink(out))?)
}

/// Loads all plugins for inspection: no calls, no questions, no records.
pub(super) async fn load_registry(
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<Arc<Registry>, CommandFailure> {
    load_selected_registry(settings, PluginSelection::All, out).await
}

/// Loads all plugins for an answer about their tools. It waits for those that have to be compiled,
/// unless the configuration sets a time, because an answer without their tools looks complete.
pub(super) async fn load_registry_for_answer(
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<Arc<Registry>, CommandFailure> {
    open_registry(settings, PluginSelection::All, CompileWait::OneAnswer, out).await
}

/// Loads all plugins for inspection and waits for those that have to be compiled.
pub(super) async fn load_compiled_registry(
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<Arc<Registry>, CommandFailure> {
    open_registry(settings, PluginSelection::All, CompileWait::Complete, out).await
}

/// Loads selected plugins for inspection.
pub(super) async fn load_selected_registry(
    settings: &HostSettings,
    selection: PluginSelection,
    out: &CliOutput,
) -> Result<Arc<Registry>, CommandFailure> {
    open_registry(settings, selection, CompileWait::Short, out).await
}

async fn open_registry(
    settings: &HostSettings,
    selection: PluginSelection,
    wait: CompileWait,
    out: &CliOutput,
) -> Result<Arc<Registry>, CommandFailure> {
    Ok(host::load_for_inspection(
        settings,
        selection,
        wait,
        &CallObservers::default().notice_sink(out),
    )
    .await?)
}

/// Changes what a plugin may do, after the record of the change is on disk.
///
/// # Errors
///
/// The audit cannot be written, and nothing is changed; or the change fails.
pub(super) fn record_policy_change<E: Into<CommandFailure> + fmt::Display>(
    settings: &HostSettings,
    plugin: &str,
    what: &str,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), CommandFailure> {
    let (store, user) = (
        open_store(settings)?,
        HostUser::from_process(settings.env.get("USER").unwrap_or_default()),
    );
    record_change(&store, &user, plugin, what, change).map_err(|error| match error {
        PolicyChangeError::Audit(error) => {
            let message = format!("nothing was changed: {error}");
            CommandFailure {
                hint: error.hint(),
                ..CommandFailure::new(ExitStatus::AuditUnwritten, message)
            }
        }
        PolicyChangeError::Failed(error) => error.into(),
    })
}

/// Prints the plugins that could not be loaded to standard error.
pub(super) fn print_load_problems(registry: &Registry, out: &CliOutput) {
    for problem in registry.problems() {
        let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let place = problem.location.display();
        out.print_warning(&format!("{place}: {}{hint}", problem.message));
    }
}

/// Prepares the model. Reports if it is only the built-in matcher.
fn prepare_model(settings: &HostSettings, out: &CliOutput) -> Result<ModelHandle, CommandFailure> {
    if settings.model == (ModelChoice::Offline { is_explicit: false }) {
        out.print_note(
            "No model is configured: the built-in offline matcher answers. It is not a language model.",
        );
        out.print_hint(&settings.models.setup_advice());
    }
    Ok(ModelHandle::from_choice(&settings.chosen_model)?)
}
