//! The composition root: builds the parts and puts them together.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use sallyport_contract::{Consent, PluginName, Redactor, Services, Toolbox};
use sallyport_policy::SecretSource;
use sallyport_sandbox::{Compiler, Sandbox, SandboxOptions, SystemResolver};
use sallyport_session::{Handle, NobodyToAsk};
use sallyport_store::{AuditKind, AuditLog, AuditRecord, Store, audit::Who};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    consent,
    exit::{Exit, Failure},
    output::Output,
    trace::Traced,
    voice::Voice,
    watch::{Noted, Watch},
};
use crate::{
    config::{Env, Flags, ModelChoice, Settings},
    gate::{Audited, Gate, GateParts, now_ms},
    lock::Lock,
    registry::{LoadParts, Registry, Selection},
    roles::Roles,
    services::{Attendance, Browser, Offer, OfferParts},
    timekeeper::{Timekeeper, TimekeeperParts},
};

/// Longest wait, at the end, for the last records of the audit; a disk that is slower hangs.
const AUDIT_TIME_MAX: Duration = Duration::from_secs(5);

/// Runs a command that makes at most one call: no thread is started for it.
pub(super) fn on_this_thread<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    finish(tokio::runtime::Builder::new_current_thread().enable_all().build()?, work)
}

/// Runs a command that does several things at once.
pub(super) fn on_threads(
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    finish(tokio::runtime::Builder::new_multi_thread().enable_all().build()?, work)
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

/// Waits until the system asks the program to stop.
pub(super) async fn terminated() {
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

/// Reads the configuration.
pub(super) fn settings(flags: &Flags) -> Result<Settings, Failure> {
    Ok(Settings::resolve(flags, Env::of_process())?)
}

/// Asks for a yes at the terminal. A plain enter is none.
pub(super) fn confirms(question: &str, out: &Output) -> Result<bool, Failure> {
    if !out.can_ask {
        let failure = Failure::new(Exit::NobodyToAsk, "nobody is there to ask");
        return Err(failure.with_hint("--yes answers for you"));
    }
    out.forget_typed();
    out.aside(&format!("{question} [y]es / [n]o: "));
    Ok(consent::says_yes())
}

/// A name for a session that no other has: what is agreed to for one holds for no other.
pub(super) fn session_id() -> String {
    let mut random = [0; 8];
    // Only a kernel older than the flag fails; the time alone tells sessions of one user apart.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    format!("{:x}-{:016x}", now_ms(), u64::from_ne_bytes(random))
}

/// Makes the sandbox that the settings ask for.
pub(super) fn sandbox(settings: &Settings, out: &Output) -> Arc<Sandbox> {
    let (sandbox, warning) = Sandbox::new(SandboxOptions {
        cache_dir: Some(settings.paths.cache.join("compiled")),
        compiler: Compiler::this_program(),
        resolver: Arc::new(SystemResolver::default()),
    });
    if let Some(warning) = warning {
        out.warn(&warning);
    }
    sandbox
}

/// What outlives the process. Nothing is opened yet.
pub(super) fn store(settings: &Settings) -> Result<Store, Failure> {
    Store::open(&settings.paths.state).map_err(|error| {
        let failure = Failure::new(Exit::Policy, error.to_string());
        Failure { hint: error.hint(), ..failure }
    })
}

/// Plugins that are going to be called, and the audit that their calls go into.
pub(super) struct Tools {
    pub(super) registry: Arc<Registry>,
    pub(super) toolbox: Arc<dyn Toolbox>,
    /// What plugins do beside tools, written down in the same audit.
    pub(super) roles: Arc<Roles>,
    offer: Offer,
    store: Store,
    log: Arc<AuditLog>,
}

impl Tools {
    /// Brings messages of plugins to a session, from here on.
    pub(super) fn attend(&self, session_id: &str, handle: &Handle) -> Attendance {
        self.offer.conversations.attend(session_id, handle.clone())
    }

    /// Lets timers fire, from here on.
    pub(super) fn keep_time(&self, watch: &Watch, out: &Output) -> Timekeeper {
        Timekeeper::start(TimekeeperParts {
            timers: self.store.timers(),
            alarm: Arc::clone(&self.offer.alarm),
            conversations: Arc::clone(&self.offer.conversations),
            roles: Arc::clone(&self.roles),
            tell: watch.warner(out),
        })
    }

    /// Tells managed plugins that the host shuts down, and waits until every record is written.
    pub(super) async fn close(self, out: &Output) {
        self.registry.shutdown().await;
        drop((self.toolbox, self.roles));
        if let Err(error) = self.log.flush(AUDIT_TIME_MAX) {
            out.error(&format!("the last records of the audit may be missing: {error}"));
        }
        for problem in self.log.warnings() {
            out.warn(&format!("the audit was changed from outside: {problem}"));
        }
    }
}

/// Every secret that the policy names, with where its value lies.
pub(super) fn secret_sources(
    settings: &Settings,
    out: &Output,
) -> Result<BTreeMap<String, SecretSource>, Failure> {
    let gate = looking_gate(settings, out)?;
    let policy = gate.standing.present().policy;
    let sources = policy.secret_sources();
    Ok(sources.map(|(name, source)| (name.to_string(), source.clone())).collect())
}

/// Knows the values of all secrets that the policy names, as far as they have one.
pub(super) fn redactor(registry: &Registry) -> Redactor {
    let gate = registry.gate();
    let policy = gate.standing.present().policy;
    for (name, source) in policy.secret_sources() {
        // One that cannot be read is in no text either.
        let _ = gate.vault.get(name.as_str(), source);
    }
    Redactor::clone(&gate.vault.redactor())
}

/// Loads plugins in order to use them: new ones are pinned, changed ones stop until the user agrees,
/// and every decision and call is written down.
pub(super) async fn tools(
    settings: &Settings,
    consent: Arc<dyn Consent>,
    selection: Selection,
    watch: &Watch,
    out: &Output,
) -> Result<Tools, Failure> {
    let store = store(settings)?;
    // Its thread opens the database while plugins are loaded.
    let log = Arc::new(store.audit_log());
    let offer = offer(settings, store.clone(), watch, out);
    let services = offer.services.clone();
    let gate = gate(settings, consent, Some(store.clone()), services, watch, out)?;
    let asking = *out;
    let agrees = move |plugin: &PluginName, differences: &[String]| {
        consent::agrees_to_change(plugin, differences, &asking)
    };
    let registry = load(settings, gate, selection, true, &agrees, out).await?;
    let who = Who::of_process(settings.env.get("USER").unwrap_or_default());
    let audited = Arc::new(Audited::new(Arc::clone(&registry), Arc::clone(&log), who));
    let roles = Roles::new(Arc::clone(&audited), watch.witness(out));
    let mut toolbox: Arc<dyn Toolbox> = audited;
    if let Some(notebook) = &watch.notebook {
        toolbox = Arc::new(Noted { inner: toolbox, notebook: Arc::clone(notebook) });
    }
    if watch.verbose {
        toolbox = Arc::new(Traced { inner: toolbox, tracer: watch.tracer(out) });
    }
    Ok(Tools { registry, toolbox, roles, offer, store, log })
}

/// Loads all plugins in order to look at them: nothing is called, asked or written down.
pub(super) async fn registry(settings: &Settings, out: &Output) -> Result<Arc<Registry>, Failure> {
    registry_of(settings, Selection::All, out).await
}

/// Loads some plugins in order to look at them.
pub(super) async fn registry_of(
    settings: &Settings,
    selection: Selection,
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    let gate = looking_gate(settings, out)?;
    load(settings, gate, selection, false, &|_, _| false, out).await
}

/// Puts a change of what a plugin may do on record.
pub(super) fn record_policy(
    settings: &Settings,
    plugin: &PluginName,
    what: &str,
) -> Result<(), Failure> {
    let log = store(settings)?.audit_log();
    let who = Who::of_process(settings.env.get("USER").unwrap_or_default());
    let record = AuditRecord {
        plugin: Some(plugin.to_string()),
        message: Some(what.to_owned()),
        ..AuditRecord::new(AuditKind::Policy, now_ms(), who)
    };
    let written = log.append(record).and_then(|()| log.flush(AUDIT_TIME_MAX));
    written.map_err(|error| {
        let message = format!("it is changed, but the audit does not say so: {error}");
        Failure { hint: error.hint(), ..Failure::new(Exit::Failed, message) }
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

/// What plugins are offered. Nothing of it is opened yet.
fn offer(settings: &Settings, store: Store, watch: &Watch, out: &Output) -> Offer {
    let command = settings.browser.command.as_deref();
    let browser = Browser::new(command, &settings.env, out.stderr_is_terminal, watch.teller(out));
    Offer::new(OfferParts {
        store,
        browser,
        index: settings.packages.index.clone(),
        packages: settings.paths.cache.join("packages"),
        tell: watch.warner(out),
    })
}

/// A gate for those who only look.
fn looking_gate(settings: &Settings, out: &Output) -> Result<Arc<Gate>, Failure> {
    let (nobody, nothing) = (Arc::new(NobodyToAsk), Services::default());
    gate(settings, nobody, None, nothing, &Watch::default(), out)
}

fn gate(
    settings: &Settings,
    consent: Arc<dyn Consent>,
    store: Option<Store>,
    services: Services,
    watch: &Watch,
    out: &Output,
) -> Result<Arc<Gate>, Failure> {
    let parts = GateParts {
        files: settings.policy.clone(),
        env: settings.env.clone(),
        consent,
        store,
        tell: watch.warner(out),
        activity: watch.activity(),
        services,
    };
    Ok(Gate::open(parts)?)
}

async fn load(
    settings: &Settings,
    gate: Arc<Gate>,
    selection: Selection,
    pins: bool,
    agrees: &(dyn Fn(&PluginName, &[String]) -> bool + Sync),
    out: &Output,
) -> Result<Arc<Registry>, Failure> {
    let sandbox = sandbox(settings, out);
    let lock = Lock::read(&settings.paths.lock())?;
    let parts = LoadParts { sandbox, settings, gate, selection, lock: &lock, pins, agrees };
    Ok(Arc::new(Registry::load(parts).await?))
}

/// Makes the model ready, and says so when it is only the built-in matcher.
pub(super) fn model(settings: &Settings, out: &Output) -> Result<Voice, Failure> {
    if settings.model == (ModelChoice::Offline { on_purpose: false }) {
        out.note(
            "No model is configured: the built-in offline matcher answers. It is no language model.",
        );
        out.hint(&settings.models.what_to_add());
    }
    Voice::of(&settings.model)
}
