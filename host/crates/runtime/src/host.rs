//! A host: plugins that are loaded, and everything that their calls need.
//!
//! [`Host::open`] loads plugins in order to use them: new ones are pinned, changed ones stop until
//! somebody accepts them, and every decision and call is written to the audit. [`look`] loads them in
//! order to look at them: nothing is called, asked or written down.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use sallyport_contract::{
    CallReport, Consent, PluginName, Resolver, Services, ToolCall, ToolSpec, Toolbox,
    mangle::Collision,
};
use sallyport_policy::{SecretSource, source::nearest};
use sallyport_sandbox::{CompileProgress, Compiler, Sandbox, SandboxOptions, SystemResolver};
use sallyport_session::{Handle, NobodyToAsk};
use sallyport_store::{AuditLog, Store, StoreError, audit::Who};

use crate::{
    config::{ConfigError, Settings},
    gate::{Activity, Audited, Gate, GateParts, StandingError, Tell},
    lock::{Lock, LockError},
    notice::{HostNotice, NoticeSink},
    observer::{ObservedToolbox, RunObserver},
    registry::{LoadParts, Missing, Registry, Selection, State},
    roles::{RoleError, Roles, guide::GuideError},
    services::{Attendance, Browser, Offer, OfferParts},
    timekeeper::{Timekeeper, TimekeeperParts},
};

/// How long commands that only list plugins wait for those that are not compiled yet: no longer than
/// a user notices.
const LIST_WAIT: Duration = Duration::from_millis(80);

/// How long a start that will use plugins waits for those: what is small is compiled by then, and
/// what is not comes with a later start.
const USE_WAIT: Duration = Duration::from_secs(2);

/// The wait of those that need to know how compiling ends; the limits of compiling bound it.
const WHOLE_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Longest wait, at the end, for the last records of the audit; a disk that is slower hangs.
const AUDIT_TIME_MAX: Duration = Duration::from_secs(5);

/// Why a host, or a part of it, cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] StandingError),
    /// The record of accepted plugins cannot be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such plugin or tool, or it cannot be used.
    #[error("{}", .0.message())]
    Missing(Missing),
    /// A plugin cannot play a role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The guide cannot be used.
    #[error(transparent)]
    Guide(#[from] GuideError),
    /// A model could not tell two tools apart.
    #[error("{0}")]
    Collision(Collision),
}

/// Decides whether a plugin that has changed may be used; it is given the differences.
pub type ChangeConsent = Box<dyn Fn(&PluginName, &[String]) -> bool + Send + Sync>;

/// What a program that embeds the host decides.
pub struct HostOptions {
    /// Which plugins are needed.
    pub selection: Selection,
    /// Who is asked where the policy says "ask".
    pub consent: Arc<dyn Consent>,
    /// Receives what the host reports about itself.
    pub notices: NoticeSink,
    /// Is told which server a running call turns to.
    pub activity: Activity,
    /// Sees every call.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Asked about plugins that have changed.
    pub accepts_change: ChangeConsent,
    /// Whether a user watches, who can open an address that no browser could be started for.
    pub is_watched: bool,
    /// Looks up the names of servers.
    pub resolver: Arc<dyn Resolver>,
    /// Compiles components; usually this program, started again.
    pub compiler: Option<Compiler>,
}

impl HostOptions {
    /// Options for a program without a user: nobody is asked, so what the policy does not allow is
    /// denied, and a plugin that has changed stays stopped.
    pub fn unattended(selection: Selection, notices: NoticeSink) -> Self {
        Self {
            selection,
            consent: Arc::new(NobodyToAsk),
            notices,
            activity: Arc::new(|_, _| {}),
            observer: None,
            accepts_change: Box::new(|_, _| false),
            is_watched: false,
            resolver: Arc::new(SystemResolver::default()),
            compiler: None,
        }
    }
}

/// Plugins that can be called, and the audit that their calls go to.
pub struct Host {
    sandbox: Arc<Sandbox>,
    registry: Arc<Registry>,
    toolbox: Arc<dyn Toolbox>,
    roles: Arc<Roles>,
    offer: Offer,
    store: Store,
    log: Arc<AuditLog>,
    notices: NoticeSink,
}

/// How a host ended: what of the audit may be missing, and what was changed from outside.
#[must_use = "what is not on record changes how a program ends"]
#[derive(Debug)]
pub struct HostEnd {
    /// Why the last records of the audit may be missing.
    pub unwritten: Option<sallyport_store::AuditError>,
    /// Changes to the audit that somebody else made meanwhile.
    pub tampered: Vec<String>,
}

impl Host {
    /// Loads plugins in order to use them.
    ///
    /// # Errors
    ///
    /// The policy, the lock or the store cannot be used. A plugin that cannot be used is no error:
    /// [`Registry::problems`] has it.
    pub async fn open(settings: &Settings, options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { selection, consent, notices, activity, observer, .. } = options;
        let sandbox = sandbox(settings, options.compiler, options.resolver, &notices);
        let store = open_store(settings)?;
        // Its thread opens the database while plugins are loaded.
        let log = Arc::new(store.audit_log());
        let offer = offer(settings, store.clone(), &notices, options.is_watched);
        let parts = GateParts {
            files: settings.policy.clone(),
            env: settings.env.clone(),
            consent,
            store: Some(store.clone()),
            tell: warnings(&notices),
            activity,
            services: offer.services.clone(),
        };
        let gate = Gate::open(parts)?;
        gate.know(settings.keys());
        // Every secret is known before the first guest runs, and the operator hears of those that
        // are not.
        gate.redactor();
        let accepts = &*options.accepts_change;
        let loading = Loading {
            sandbox: Arc::clone(&sandbox),
            selection,
            pins: true,
            agrees: accepts,
            wait: USE_WAIT,
        };
        let registry = load(settings, gate, loading, &notices).await?;
        note_compiling(&registry, &notices);
        let who = Who::of_process(settings.env.get("USER").unwrap_or_default());
        let audited = Arc::new(Audited::new(Arc::clone(&registry), Arc::clone(&log), who));
        let roles = Roles::new(Arc::clone(&audited), observer.clone());
        let toolbox: Arc<dyn Toolbox> = match observer {
            Some(observer) => Arc::new(ObservedToolbox { inner: audited, observer }),
            None => audited,
        };
        Ok(Self { sandbox, registry, toolbox, roles, offer, store, log, notices })
    }

    /// The tools that a model can call.
    pub fn tools(&self) -> &[ToolSpec] {
        self.registry.tools()
    }

    /// The plugins.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// All tools, behind the gate and the audit.
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.toolbox
    }

    /// What plugins do besides tools, behind the same gate and audit.
    pub fn roles(&self) -> &Arc<Roles> {
        &self.roles
    }

    /// What runs the components.
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// Receives what the host reports about itself.
    pub fn notices(&self) -> &NoticeSink {
        &self.notices
    }

    /// What outlives the process.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Calls one tool, with everything that stands between a call and its effects. Dropping the
    /// future cancels the call.
    pub async fn call(&self, call: ToolCall) -> CallReport {
        match self.toolbox.admit(call).await {
            Ok(admitted) => self.toolbox.run(admitted).await,
            Err(report) => *report,
        }
    }

    /// Brings messages of plugins to a session, from here on.
    pub fn attend(&self, session_id: &str, handle: &Handle) -> Attendance {
        self.offer.conversations.attend(session_id, handle.clone())
    }

    /// Lets timers fire, from here on.
    pub fn keep_time(&self) -> Timekeeper {
        Timekeeper::start(TimekeeperParts {
            timers: self.store.timers(),
            alarm: Arc::clone(&self.offer.alarm),
            conversations: Arc::clone(&self.offer.conversations),
            roles: Arc::clone(&self.roles),
            tell: warnings(&self.notices),
        })
    }

    /// Tells managed plugins that the host shuts down, and waits until every record is on the disk.
    pub async fn close(self) -> HostEnd {
        self.registry.shutdown().await;
        drop((self.toolbox, self.roles));
        let unwritten = self.log.flush(AUDIT_TIME_MAX).err();
        let tampered = self.log.warnings().iter().map(ToString::to_string).collect();
        HostEnd { unwritten, tampered }
    }
}

/// How long to wait for plugins that are not compiled yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileWait {
    /// No longer than a user notices.
    Short,
    /// Until all are compiled, or refused.
    Whole,
}

/// Loads plugins in order to look at them: nothing is called, asked or written down.
///
/// # Errors
///
/// The policy or the lock cannot be read.
pub async fn look(
    settings: &Settings,
    selection: Selection,
    wait: CompileWait,
    notices: &NoticeSink,
) -> Result<Arc<Registry>, HostError> {
    let wait = match wait {
        CompileWait::Short => LIST_WAIT,
        CompileWait::Whole => WHOLE_WAIT,
    };
    let gate = looking_gate(settings, notices)?;
    let sandbox = sandbox(settings, None, Arc::new(SystemResolver::default()), notices);
    let loading = Loading { sandbox, selection, pins: false, agrees: &|_, _| false, wait };
    load(settings, gate, loading, notices).await
}

/// What outlives the process. Nothing is opened yet.
///
/// # Errors
///
/// The state folder cannot be used.
pub fn open_store(settings: &Settings) -> Result<Store, StoreError> {
    Store::open(&settings.paths.state)
}

/// Every secret that the policy names, with where its value is.
///
/// # Errors
///
/// The policy cannot be read.
pub fn secret_sources(
    settings: &Settings,
    notices: &NoticeSink,
) -> Result<BTreeMap<String, SecretSource>, HostError> {
    let policy = looking_gate(settings, notices)?.standing.present().policy;
    let sources = policy.secret_sources();
    Ok(sources.map(|(name, source)| (name.to_string(), source.clone())).collect())
}

/// A new name for a session that no other has: what is accepted for one holds for no other.
pub fn new_session_id() -> String {
    let mut random = [0; 8];
    // Only a kernel older than the flag fails; the time alone tells sessions of one user apart.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    format!("{:x}-{:016x}", crate::gate::now_ms(), u64::from_ne_bytes(random))
}

/// Makes the sandbox that the settings ask for.
fn sandbox(
    settings: &Settings,
    compiler: Option<Compiler>,
    resolver: Arc<dyn Resolver>,
    notices: &NoticeSink,
) -> Arc<Sandbox> {
    let this_program = || Compiler::this_program(settings.compile.limits());
    let (sandbox, warning) = Sandbox::new(SandboxOptions {
        cache_dir: Some(settings.paths.cache.join("compiled")),
        compiler: compiler.unwrap_or_else(this_program),
        resolver,
    });
    if let Some(warning) = warning {
        notices(HostNotice::Sandbox(warning));
    }
    sandbox
}

/// What plugins are offered. Nothing of it is opened yet.
fn offer(settings: &Settings, store: Store, notices: &NoticeSink, is_watched: bool) -> Offer {
    let command = settings.browser.command.as_deref();
    let told = Arc::clone(notices);
    let tell: Tell = Arc::new(move |words| told(HostNotice::Info(words.to_owned())));
    Offer::new(OfferParts {
        store,
        browser: Browser::new(command, &settings.env, is_watched, tell),
        index: settings.packages.index.clone(),
        packages: settings.paths.cache.join("packages"),
        tell: warnings(notices),
    })
}

/// A gate for those who only look.
fn looking_gate(settings: &Settings, notices: &NoticeSink) -> Result<Arc<Gate>, StandingError> {
    Gate::open(GateParts {
        files: settings.policy.clone(),
        env: settings.env.clone(),
        consent: Arc::new(NobodyToAsk),
        store: None,
        tell: warnings(notices),
        activity: Arc::new(|_, _| {}),
        services: Services::default(),
    })
}

/// Passes sentences on as warnings.
pub fn warnings(notices: &NoticeSink) -> Tell {
    let notices = Arc::clone(notices);
    Arc::new(move |words| notices(HostNotice::Warning(words.to_owned())))
}

/// How plugins are loaded.
struct Loading<'a> {
    sandbox: Arc<Sandbox>,
    selection: Selection,
    pins: bool,
    agrees: &'a (dyn Fn(&PluginName, &[String]) -> bool + Send + Sync),
    /// How long to wait for plugins that are not compiled, unless the user says so or there is only
    /// one, which is needed.
    wait: Duration,
}

async fn load(
    settings: &Settings,
    gate: Arc<Gate>,
    loading: Loading<'_>,
    notices: &NoticeSink,
) -> Result<Arc<Registry>, HostError> {
    let Loading { sandbox, selection, pins, agrees, wait } = loading;
    let compile_wait = match (&selection, wait) {
        (Selection::Only(_), _) | (_, WHOLE_WAIT) => WHOLE_WAIT,
        (Selection::All, wait) => settings.compile.wait.unwrap_or(wait),
    };
    let lock = &Lock::read(&settings.paths.lock(), &settings.paths.state)?;
    if lock.is_lost() {
        notices(HostNotice::LockLost { path: lock.path().to_owned() });
    }
    let progress = &|progress: CompileProgress<'_>| notices(compiling(&progress));
    let sees_all = matches!(selection, Selection::All);
    let parts = LoadParts {
        sandbox,
        settings,
        gate,
        selection,
        lock,
        pins,
        compile_wait,
        progress,
        agrees: &|plugin, differences| agrees(plugin, differences),
    };
    let registry = Registry::load(parts).await;
    notices(HostNotice::CompilingEnded);
    let registry = Arc::new(registry?);
    if sees_all {
        note_unused_settings(settings, &registry, notices);
    }
    Ok(registry)
}

fn compiling(progress: &CompileProgress<'_>) -> HostNotice {
    let CompileProgress { done, total, waiting } = progress;
    let stems = waiting.iter().filter_map(|path| path.file_stem());
    let waiting = stems.map(|stem| stem.to_string_lossy().into_owned()).collect();
    HostNotice::Compiling { done: *done, total: *total, waiting }
}

fn note_compiling(registry: &Registry, notices: &NoticeSink) {
    let compiling = registry.entries().filter(|entry| *entry.state() == State::Compiling);
    let names: Vec<PluginName> = compiling.map(|entry| entry.name().clone()).collect();
    if !names.is_empty() {
        notices(HostNotice::StillCompiling(names));
    }
}

/// Reports settings for plugins that do not exist: a misspelt name would change nothing, without a
/// word. A plugin that was rejected has its own report.
fn note_unused_settings(settings: &Settings, registry: &Registry, notices: &NoticeSink) {
    for plugin in settings.plugin_settings.keys() {
        if matches!(registry.plugin(plugin.as_str()), Err(Missing::Unknown { .. })) {
            let names = registry.entries().map(|entry| entry.name().as_str());
            let near = nearest(plugin.as_str(), names).map(str::to_owned);
            notices(HostNotice::UnusedSettings { plugin: plugin.clone(), near });
        }
    }
}
