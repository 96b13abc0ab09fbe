//! How commands run: on which threads, with which settings and which host.

use std::{collections::BTreeMap, fmt, fs::File, future::Future, sync::Arc};

use sallyport_contract::Consent;
use sallyport_policy::SecretSource;
use sallyport_runtime::{
    Host, HostEnd, HostError, HostNotice,
    config::{Env, Flags, ModelChoice, Settings},
    host::{self, CompileWait},
    policy_change::{ChangeError, record_change},
    registry::{Registry, Selection},
    session::{self, ModelHandle, OpenedSession, SessionSelector},
};
use sallyport_session::Restored;
use sallyport_store::Store;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    consent,
    exit::{Exit, Failure},
    notices,
    output::{self, Output},
    watch::Watch,
};

/// Files that tokio opens for timers, sockets and signals, and some to spare.
const RUNTIME_FILES: usize = 8;

/// Runs a command that makes at most one call: no thread is started for it.
pub(super) fn on_this_thread<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    room_for_runtime()?;
    finish(tokio::runtime::Builder::new_current_thread().enable_all().build()?, work)
}

/// Runs a command that does several things at once.
pub(super) fn on_threads(
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    room_for_runtime()?;
    finish(tokio::runtime::Builder::new_multi_thread().enable_all().build()?, work)
}

/// Makes sure of the files that tokio opens for itself, because it panics where it cannot.
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
    // A guest's file operation may still hang on a pipe; the process does not wait for it.
    runtime.shutdown_background();
    result
}

/// Waits until the user or the system asks the program to stop: Ctrl-C, or a polite kill. Both end
/// a running guest first, so that nothing of it is left behind.
pub(super) async fn interrupted() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Waits until the system asks the program to stop, or nobody can read its answer any more.
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
        // Without a handler the system's own default applies.
        _ => std::future::pending().await,
    }
}

/// Reads the configuration, and says which files of projects do not count.
pub(super) fn settings(flags: &Flags) -> Result<Settings, Failure> {
    let settings = Settings::resolve(flags, Env::of_process())?;
    warn_of_foreign(&settings);
    Ok(settings)
}

/// Says which files of projects do not count because they may be a stranger's.
pub(super) fn warn_of_foreign(settings: &Settings) {
    let out = Output::new();
    for file in &settings.policy.foreign {
        notices::show(&HostNotice::ForeignFile(file.clone()), &out);
    }
}

/// Asks for a yes at the terminal. A plain enter is none.
pub(super) fn confirms(question: &str, out: &Output) -> Result<bool, Failure> {
    if !out.can_ask {
        let failure = Failure::new(Exit::NobodyToAsk, "nobody is there to ask");
        return Err(failure.with_hint("pass --yes to confirm"));
    }
    out.forget_typed();
    out.aside(&format!("{question} [y]es / [n]o: "));
    Ok(consent::says_yes(out))
}

/// What outlives the process. Nothing is opened yet.
pub(super) fn store(settings: &Settings) -> Result<Store, Failure> {
    Ok(host::open_store(settings).map_err(HostError::Store)?)
}

/// Loads plugins in order to use them.
pub(super) async fn open_host(
    settings: &Settings,
    consent: Arc<dyn Consent>,
    selection: Selection,
    watch: &Watch,
    out: &Output,
) -> Result<Host, Failure> {
    Ok(Host::open(settings, watch.options(consent, selection, out)).await?)
}

/// Ends a host, and says what of the audit may be missing or was changed.
pub(super) async fn close(host: Host, out: &Output) -> Recorded {
    let HostEnd { unwritten, tampered } = host.close().await;
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

/// Whether everything that was decided and done is on record, which tells how the program ends.
#[must_use = "what is not on record changes the exit code"]
#[derive(Debug, Clone, Copy)]
pub(super) struct Recorded {
    is_whole: bool,
}

impl Recorded {
    /// Fails when something is not on record.
    pub(super) fn check(self) -> Result<(), Failure> {
        let unwritten = || Failure::new(Exit::AuditUnwritten, "the audit could not be written");
        self.is_whole.then_some(()).ok_or_else(unwritten)
    }

    /// The end of a command that ended like this otherwise.
    pub(super) fn end(self, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
        match result {
            result if self.is_whole => result,
            Ok(_) => Ok(Exit::AuditUnwritten),
            Err(failure) => Err(Failure { exit: Exit::AuditUnwritten, ..failure }),
        }
    }
}

/// Finds the session that is meant, and says what the user has to know before it is resumed.
pub(super) fn open_session(
    settings: &Settings,
    which: &SessionSelector,
    out: &Output,
) -> Result<OpenedSession, Failure> {
    let opened = session::open(settings, which)?;
    tell(&opened.past, out);
    Ok(opened)
}

/// Says what the person has to know before the session goes on.
fn tell(past: &Restored, out: &Output) {
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

/// Every secret that the policy names, with where its value is.
pub(super) fn secret_sources(
    settings: &Settings,
    out: &Output,
) -> Result<BTreeMap<String, SecretSource>, Failure> {
    Ok(host::secret_sources(settings, &Watch::default().notices(out))?)
}

/// Loads all plugins in order to look at them: nothing is called, asked or written down.
pub(super) async fn registry(settings: &Settings, out: &Output) -> Result<Arc<Registry>, Failure> {
    look(settings, Selection::All, CompileWait::Short, out).await
}

/// The same, with those that have to be compiled first.
pub(super) async fn whole_registry(
    settings: &Settings,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    look(settings, Selection::All, CompileWait::Whole, out).await
}

/// Loads some plugins in order to look at them.
pub(super) async fn registry_of(
    settings: &Settings,
    selection: Selection,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    look(settings, selection, CompileWait::Short, out).await
}

async fn look(
    settings: &Settings,
    selection: Selection,
    wait: CompileWait,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    Ok(host::look(settings, selection, wait, &Watch::default().notices(out)).await?)
}

/// Changes what a plugin may do once the record of it is on the disk.
///
/// # Errors
///
/// The audit cannot be written, and nothing is changed; or the change fails.
pub(super) fn record_policy<E: Into<Failure> + fmt::Display>(
    settings: &Settings,
    plugin: &str,
    what: &str,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), Failure> {
    record_change(settings, plugin, what, change).map_err(|error| match error {
        ChangeError::Store(error) => HostError::Store(error).into(),
        ChangeError::Unrecorded(error) => {
            let message = format!("nothing was changed: {error}");
            Failure { hint: error.hint(), ..Failure::new(Exit::AuditUnwritten, message) }
        }
        ChangeError::Failed(error) => error.into(),
    })
}

/// Says on standard error which plugins could not be loaded.
pub(super) fn show_problems(registry: &Registry, out: &Output) {
    for problem in registry.problems() {
        out.warn(&format!("{}: {}", problem.place.display(), problem.message));
        if let Some(hint) = &problem.hint {
            out.hint(hint);
        }
    }
}

/// Makes the model ready, and says so when it is only the built-in matcher.
pub(super) fn model(settings: &Settings, out: &Output) -> Result<ModelHandle, Failure> {
    if settings.model == (ModelChoice::Offline { on_purpose: false }) {
        out.note(
            "No model is configured: the built-in offline matcher answers. It is no language model.",
        );
        out.hint(&settings.models.what_to_add());
    }
    Ok(ModelHandle::of(&settings.chosen)?)
}
