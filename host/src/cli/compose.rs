//! Set-up that commands share: threads, settings and the host.

use std::{collections::BTreeMap, fmt, fs::File, future::Future, sync::Arc};

use sallyport_contract::Consent;
use sallyport_policy::SecretSource;
use sallyport_runtime::{
    Host, HostError, HostNotice, HostShutdownReport,
    config::{ConfigFlags, Env, HostSettings, ModelChoice},
    host::{self, CompileWait},
    policy_change::{PolicyChangeError, record_change},
    registry::{PluginSelection, Registry},
    session::{self, ModelHandle, OpenedSession, SessionSelector},
};
use sallyport_session::RestoredSession;
use sallyport_store::HostStore;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    consent,
    exit::{Exit, Failure},
    notices,
    output::{self, Output},
    watch::Watch,
};

/// Number of files that tokio opens for timers, sockets and signals, with a reserve.
const RUNTIME_FILES: usize = 8;

/// Runs a command that makes at most one call, on the current thread.
pub(super) fn on_this_thread<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    room_for_runtime()?;
    finish(tokio::runtime::Builder::new_current_thread().enable_all().build()?, work)
}

/// Runs a command that does several things at the same time, on a thread pool.
pub(super) fn on_threads(
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    room_for_runtime()?;
    finish(tokio::runtime::Builder::new_multi_thread().enable_all().build()?, work)
}

/// Checks that tokio can open its own files, because it panics if it cannot.
fn room_for_runtime() -> Result<(), Failure> {
    let opened: Result<Vec<File>, _> =
        (0..RUNTIME_FILES).map(|_| File::open("/dev/null")).collect();
    opened.map(drop).map_err(|error| {
        let failure = Failure::new(Exit::Failed, format!("cannot start: {error}"));
        failure.with_hint("raise the limit of open files: ulimit -n 256")
    })
}

fn finish<T>(
    runtime: tokio::runtime::Runtime,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let result = runtime.block_on(work);
    // Do not wait: a guest's file operation may still block on a pipe.
    runtime.shutdown_background();
    result
}

/// Waits until the user or the system asks the program to stop: Ctrl-C, SIGTERM, SIGHUP, or a lost
/// standard output.
///
/// The caller ends a running guest first, so that nothing of it is left behind.
pub(super) async fn interrupted() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Waits until the system asks the program to stop, or until standard output is lost.
pub(super) async fn terminated() {
    tokio::select! {
        () = ended_by_system() => {}
        () = output::stdout_is_lost() => {}
    }
}

async fn ended_by_system() {
    match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
        (Ok(mut terminate), Ok(mut hangup)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        // Without a handler the system's default action applies.
        _ => std::future::pending().await,
    }
}

/// Reads the configuration, and warns about ignored project files.
pub(super) fn settings(flags: &ConfigFlags) -> Result<HostSettings, Failure> {
    let settings = HostSettings::resolve(flags, Env::from_process())?;
    warn_of_foreign(&settings);
    Ok(settings)
}

/// Warns about ignored project files. Another user may have written them.
pub(super) fn warn_of_foreign(settings: &HostSettings) {
    let out = Output::new();
    for file in &settings.policy.foreign {
        notices::show(&HostNotice::ForeignFile(file.clone()), &out);
    }
}

/// Asks for confirmation at the terminal. Enter alone does not confirm.
pub(super) fn confirms(question: &str, out: &Output) -> Result<bool, Failure> {
    if !out.can_ask {
        let failure = Failure::new(Exit::NobodyToAsk, "nobody is there to ask");
        return Err(failure.with_hint("pass --yes to confirm"));
    }
    out.forget_typed();
    out.aside(&format!("{question} [y]es / [n]o: "));
    Ok(consent::says_yes(out))
}

/// The persistent store. Nothing is opened yet.
pub(super) fn store(settings: &HostSettings) -> Result<HostStore, Failure> {
    Ok(host::open_store(settings).map_err(HostError::Store)?)
}

/// Loads plugins in order to call them.
pub(super) async fn open_host(
    settings: &HostSettings,
    consent: Arc<dyn Consent>,
    selection: PluginSelection,
    watch: &Watch,
    out: &Output,
) -> Result<Host, Failure> {
    Ok(Host::open(settings, watch.options(consent, selection, out)).await?)
}

/// Closes a host, and reports records of the audit that may be missing or were modified.
pub(super) async fn close(host: Host, out: &Output) -> Recorded {
    let HostShutdownReport { unwritten, tampered } = host.close().await;
    if let Some(error) = &unwritten {
        out.error(&format!("the last records of the audit may be missing: {error}"));
        if let Some(hint) = error.hint() {
            out.hint(&hint);
        }
    }
    for problem in tampered {
        out.warn(&format!("the audit was modified outside Sallyport: {problem}"));
    }
    Recorded { is_whole: unwritten.is_none() }
}

/// Whether every decision and call was recorded. This affects the exit code.
#[must_use = "what is not on record changes the exit code"]
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded {
    is_whole: bool,
}

impl Recorded {
    /// Fails if a record is missing.
    pub(super) fn check(self) -> Result<(), Failure> {
        let unwritten = || Failure::new(Exit::AuditUnwritten, "the audit could not be written");
        self.is_whole.then_some(()).ok_or_else(unwritten)
    }

    /// Returns the result of a command, with the exit code changed if a record is missing.
    pub(super) fn end(self, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
        match result {
            result if self.is_whole => result,
            Ok(_) => Ok(Exit::AuditUnwritten),
            Err(failure) => Err(Failure { exit: Exit::AuditUnwritten, ..failure }),
        }
    }
}

/// Opens the selected session, and reports what the user has to know before it is resumed.
pub(super) fn open_session(
    settings: &HostSettings,
    which: &SessionSelector,
    out: &Output,
) -> Result<OpenedSession, Failure> {
    let opened = session::open_session(settings, which)?;
    tell(&opened.past, out);
    Ok(opened)
}

/// Warns about unreadable records and an interrupted turn.
fn tell(past: &RestoredSession, out: &Output) {
    if past.skipped > 0 {
        let count = past.skipped;
        out.warn(&format!("{count} records of this session cannot be read and are left out"));
    }
    let Some(interrupted) = &past.interrupted else { return };
    out.warn("the last turn of this session did not come to its end");
    if !interrupted.calls.is_empty() {
        let calls = interrupted.calls.join(", ");
        out.warn(&format!("nobody saw the end of {calls}: it may or may not have had its effect"));
    }
}

/// Returns every secret in the policy, with the place of its value.
pub(super) fn secret_sources(
    settings: &HostSettings,
    out: &Output,
) -> Result<BTreeMap<String, SecretSource>, Failure> {
    Ok(host::secret_sources(settings, &Watch::default().notices(out))?)
}

/// Loads all plugins for inspection: no calls, no questions, no records.
pub(super) async fn registry(
    settings: &HostSettings,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    look(settings, PluginSelection::All, CompileWait::Short, out).await
}

/// Loads all plugins for inspection and waits for those that have to be compiled.
pub(super) async fn whole_registry(
    settings: &HostSettings,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    look(settings, PluginSelection::All, CompileWait::Whole, out).await
}

/// Loads selected plugins for inspection.
pub(super) async fn registry_of(
    settings: &HostSettings,
    selection: PluginSelection,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    look(settings, selection, CompileWait::Short, out).await
}

async fn look(
    settings: &HostSettings,
    selection: PluginSelection,
    wait: CompileWait,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    Ok(host::load_for_inspection(settings, selection, wait, &Watch::default().notices(out)).await?)
}

/// Changes what a plugin may do, after the record of the change is on disk.
///
/// # Errors
///
/// The audit cannot be written, and nothing is changed; or the change fails.
pub(super) fn record_policy<E: Into<Failure> + fmt::Display>(
    settings: &HostSettings,
    plugin: &str,
    what: &str,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), Failure> {
    record_change(settings, plugin, what, change).map_err(|error| match error {
        PolicyChangeError::Store(error) => HostError::Store(error).into(),
        PolicyChangeError::Unrecorded(error) => {
            let message = format!("nothing was changed: {error}");
            Failure { hint: error.hint(), ..Failure::new(Exit::AuditUnwritten, message) }
        }
        PolicyChangeError::Failed(error) => error.into(),
    })
}

/// Prints the plugins that could not be loaded to standard error.
pub(super) fn show_problems(registry: &Registry, out: &Output) {
    for problem in registry.problems() {
        out.warn(&format!("{}: {}", problem.place.display(), problem.message));
        if let Some(hint) = &problem.hint {
            out.hint(hint);
        }
    }
}

/// Prepares the model. Reports if it is only the built-in matcher.
pub(super) fn model(settings: &HostSettings, out: &Output) -> Result<ModelHandle, Failure> {
    if settings.model == (ModelChoice::Offline { on_purpose: false }) {
        out.note(
            "No model is configured: the built-in offline matcher answers. It is no language model.",
        );
        out.hint(&settings.models.setup_advice());
    }
    Ok(ModelHandle::from_choice(&settings.chosen)?)
}
