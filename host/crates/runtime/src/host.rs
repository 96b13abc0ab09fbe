//! The host: loaded plugins and everything that their calls need.
//!
//! [`Host::open`] loads plugins for use: it pins new ones, disables changed ones until the user
//! accepts them, and audits every decision and call. [`load_for_inspection`] loads them for
//! inspection: it calls nothing, asks nothing and records nothing.

mod compile_wait;
mod plugin_loading;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{Stream, stream};
use sallyport_contract::{
    CallReport, Consent, HostNameResolver, PluginName, Principal, RequestedCall, Services,
    ToolDescriptor, ToolId, Toolbox, mangle::ToolNameCollision,
};
use sallyport_policy::SecretSource;
use sallyport_sandbox::{Compiler, Sandbox, Simulation, SystemResolver, schema::prepare_schemas};
use sallyport_session::{SessionHandle, UnattendedConsent};
use sallyport_store::{AuditEntry, AuditFilter, AuditLog, HostStore, StoreError, audit::HostUser};
use tokio::sync::{Mutex, broadcast};

use crate::{
    config::{ConfigError, HostSettings, McpServerSettings},
    connections::ConnectionDesk,
    gate::{Activity, ApprovalHook, Gate, GateParts, GrantDesk, MessageSink, PolicyLoadError},
    load_reports::report_still_compiling,
    lock::LockError,
    notice::{HostNotice, NoticeSink, warning_reporter},
    observer::RunObserver,
    registry::{
        AuditedRegistry, PluginChanges, PluginLookupError, PluginSelection, Registry,
        ReplacedPlugins, create_sandbox,
    },
    roles::{RoleError, SessionRoles, guide::GuideError},
    services::{Browser, HostServices, HostServicesParts, ProgressSink, Subscription},
    session_directory::SessionDirectory,
    session_id::new_session_id,
    timekeeper::{Timekeeper, TimekeeperParts},
};
pub use compile_wait::CompileWait;
use plugin_loading::{LoadOptions, load_registry};

/// Maximum wait for the last audit records at shutdown. A disk that needs longer is not responding.
const AUDIT_TIME_MAX: Duration = Duration::from_secs(5);

/// Most changes of the plugins that may wait for a slow observer. It misses the oldest ones beyond.
const CHANGES_WAITING_MAX: usize = 64;

/// Why a host, or a part of it, is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
    /// The record of accepted plugins cannot be read or written.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The plugin or tool does not exist, or cannot be used.
    #[error("{}", .0.message())]
    PluginLookup(PluginLookupError),
    /// A plugin cannot play a role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The guide cannot be used.
    #[error(transparent)]
    Guide(#[from] GuideError),
    /// A model could not distinguish two tools.
    #[error("{0}")]
    Collision(ToolNameCollision),
}

/// Decides whether a changed plugin may be used. Receives the plugin's name and the differences.
pub type ChangeConsent = Box<dyn Fn(&PluginName, &[String]) -> bool + Send + Sync>;

/// The choices of a program that embeds the host.
pub struct HostOptions {
    /// The plugins to load.
    pub selection: PluginSelection,
    /// Answers the questions that the policy asks, unless an open session answers them.
    pub consent: Arc<dyn Consent>,
    /// Receives the host's notices.
    pub notices: NoticeSink,
    /// Receives the name of each server that a running call connects to.
    pub activity: Activity,
    /// Observes every call.
    pub observer: Option<Arc<dyn RunObserver>>,
    /// Decides about plugins that have changed.
    pub accepts_change: ChangeConsent,
    /// Whether a user is watching and can open an address if no browser starts.
    pub is_watched: bool,
    /// Resolves the names of servers.
    pub resolver: Arc<dyn HostNameResolver>,
    /// How long to wait for plugins that are not compiled yet.
    pub compile_wait: CompileWait,
    /// Compiles components. The default is this program, started again.
    pub compiler: Option<Compiler>,
    /// Keeps everything that outlives the program. The default is SQLite in the state folder.
    pub store: Option<HostStore>,
    /// The parts of the world that are simulated for plugins, for tests of them.
    pub simulation: Simulation,
}

impl HostOptions {
    /// Returns options for a program without a user. No user can be asked, so calls that the policy
    /// does not allow are denied and changed plugins stay disabled.
    pub fn unattended(selection: PluginSelection, notices: NoticeSink) -> Self {
        Self {
            selection,
            consent: Arc::new(UnattendedConsent),
            notices,
            activity: Arc::new(|_, _| {}),
            observer: None,
            accepts_change: Box::new(|_, _| false),
            is_watched: false,
            resolver: Arc::new(SystemResolver::default()),
            compile_wait: CompileWait::Start,
            compiler: None,
            store: None,
            simulation: Simulation::default(),
        }
    }
}

/// Loaded plugins, and the audit log that records their calls.
pub struct Host {
    selection: PluginSelection,
    accepts_change: ChangeConsent,
    sandbox: Arc<Sandbox>,
    audited: Arc<AuditedRegistry>,
    toolbox: Arc<dyn Toolbox>,
    /// Locked for the whole of a reload.
    reloading: Mutex<()>,
    replaced: ReplacedPlugins,
    /// MCP servers that are not in the configuration.
    added_servers: Mutex<BTreeMap<PluginName, McpServerSettings>>,
    changes: broadcast::Sender<PluginChanges>,
    roles: Arc<SessionRoles>,
    pub(crate) host_services: HostServices,
    directory: Arc<SessionDirectory>,
    store: HostStore,
    log: Arc<AuditLog>,
    notices: NoticeSink,
}

/// The state of the audit log after shutdown: records that may be missing, and changes made from
/// outside.
#[must_use = "what is not on record changes how a program ends"]
#[derive(Debug)]
pub struct HostShutdownReport {
    /// Why the last audit records may be missing.
    pub write_error: Option<sallyport_store::AuditError>,
    /// Changes that another program made to the audit log meanwhile.
    pub tampered: Vec<String>,
}

impl Host {
    /// Loads plugins for use.
    ///
    /// # Errors
    ///
    /// The policy, the lock or the store cannot be used. [`Registry::problems`] lists bad plugins.
    #[tracing::instrument(name = "open_host", skip_all)]
    pub async fn open(settings: &HostSettings, options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { selection, consent, notices, activity, observer, .. } = options;
        prepare_schemas();
        let sandbox = create_sandbox(
            settings,
            options.compiler,
            options.resolver,
            options.simulation,
            &notices,
        );
        let store = options.store.map_or_else(|| open_store(settings), Ok)?;
        // The log's thread opens the database while plugins are loaded.
        let log = Arc::new(store.audit_log());
        let host_services = create_services(settings, store.clone(), &notices, options.is_watched);
        let grant_desk = Arc::<GrantDesk>::default();
        let directory = Arc::new(SessionDirectory::new(consent, Arc::clone(&grant_desk)));
        let parts = GateParts {
            files: settings.policy.clone(),
            env: settings.env.clone(),
            consent: Arc::clone(&directory) as Arc<dyn Consent>,
            store: Some(store.clone()),
            message_sink: warning_reporter(&notices),
            activity,
            services: host_services.services.clone(),
            audit: Some(Arc::clone(&log)),
            grant_desk,
            approval_hook: settings.approvals.hook.clone().and_then(ApprovalHook::from_command),
            connections: Some(open_connections(settings, &store)),
        };
        let gate = Gate::open(parts)?;
        gate.add_redacted_keys(settings.server_keys());
        // Load every secret before the first guest runs, and report those that are missing.
        gate.redactor();
        let load_options = LoadOptions {
            sandbox: Arc::clone(&sandbox),
            selection: selection.clone(),
            pins_new_plugins: true,
            accepts_change: &*options.accepts_change,
            previous: None,
            added_servers: BTreeMap::new(),
            compile_wait: options.compile_wait,
        };
        let registry = load_registry(settings, gate, load_options, &notices).await?;
        report_still_compiling(&registry, &notices);
        let user = HostUser::from_process(settings.env.get("USER").unwrap_or_default());
        let audited = Arc::new(AuditedRegistry::new(registry, Arc::clone(&log), user, observer));
        Ok(Self {
            selection,
            accepts_change: options.accepts_change,
            sandbox,
            toolbox: Arc::clone(&audited) as Arc<dyn Toolbox>,
            roles: SessionRoles::new(Arc::clone(&audited)),
            audited,
            reloading: Mutex::default(),
            replaced: ReplacedPlugins::default(),
            added_servers: Mutex::default(),
            changes: broadcast::Sender::new(CHANGES_WAITING_MAX),
            host_services,
            directory,
            store,
            log,
            notices,
        })
    }

    /// Loads the plugins again, as [`open`](Self::open) does, and returns what differs. Of the
    /// settings, those of plugins count: their folders and what each is configured with. Unchanged
    /// plugins are kept with their instances. Running calls end on the plugin that they began with,
    /// and so does a plugin that plays a role in a session, unless it is gone; its teardown follows.
    /// A session uses the new tools from its next turn on. If it fails, nothing changes.
    ///
    /// # Errors
    ///
    /// The lock cannot be used.
    pub async fn reload(&self, settings: &HostSettings) -> Result<PluginChanges, HostError> {
        self.reload_with(settings, &*self.accepts_change).await
    }

    /// Does the same without a question: a changed plugin stays disabled until the user accepts it.
    ///
    /// # Errors
    ///
    /// As for [`reload`](Self::reload).
    pub async fn reload_silently(
        &self,
        settings: &HostSettings,
    ) -> Result<PluginChanges, HostError> {
        self.reload_with(settings, &|_, _| false).await
    }

    async fn reload_with(
        &self,
        settings: &HostSettings,
        accepts_change: &(dyn Fn(&PluginName, &[String]) -> bool + Send + Sync),
    ) -> Result<PluginChanges, HostError> {
        let _reloading = self.reloading.lock().await;
        let previous = self.registry();
        let load_options = LoadOptions {
            sandbox: Arc::clone(&self.sandbox),
            selection: self.selection.clone(),
            pins_new_plugins: true,
            accepts_change,
            previous: Some(&previous),
            added_servers: self.added_servers.lock().await.clone(),
            compile_wait: CompileWait::Start,
        };
        let gate = Arc::clone(previous.gate());
        let registry = load_registry(settings, gate, load_options, &self.notices).await?;
        let changes = registry.changes_since(&previous);
        if !changes.is_empty() {
            report_still_compiling(&registry, &self.notices);
        }
        let replaced = registry.replaced_plugins(&previous);
        self.audited.replace_registry(registry);
        drop(previous);
        self.replaced.add(replaced).await;
        if !changes.is_empty() {
            // Nobody may be observing.
            let _ = self.changes.send(changes.clone());
        }
        Ok(changes)
    }

    /// Replaces the MCP servers that are used besides those of the configuration, such as the ones
    /// that a client brings along, and loads the plugins again. A server whose name a plugin has
    /// already is a problem of [`Registry::problems`], and so is one whose program is missing. All
    /// sessions of the host see the tools. A server may run only if the policy grants its plugin
    /// `process`.
    ///
    /// # Errors
    ///
    /// As for [`reload`](Self::reload).
    pub async fn set_mcp_servers(
        &self,
        settings: &HostSettings,
        servers: BTreeMap<PluginName, McpServerSettings>,
    ) -> Result<PluginChanges, HostError> {
        let secrets = servers.iter().flat_map(|(name, server)| server.secrets(name));
        self.registry().gate().add_redacted_keys(secrets);
        *self.added_servers.lock().await = servers;
        self.reload(settings).await
    }

    /// Returns the changes that each [`reload`](Self::reload) makes from now on, without those that
    /// change nothing. The stream ends with the host.
    pub fn changes(&self) -> impl Stream<Item = PluginChanges> + Send + use<> {
        stream::unfold(self.changes.subscribe(), |mut receiver| async move {
            loop {
                match receiver.recv().await {
                    Ok(changes) => return Some((changes, receiver)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }

    /// Returns the tools that a model can call.
    pub fn tools(&self) -> Arc<[ToolDescriptor]> {
        self.audited.tools()
    }

    /// Returns the plugins of this moment.
    pub fn registry(&self) -> Arc<Registry> {
        self.audited.registry()
    }

    /// Returns the accounts of users.
    pub fn connections(&self) -> Option<Arc<ConnectionDesk>> {
        self.registry().gate().connections.clone()
    }

    /// Returns all tools, behind the gate and the audit.
    pub fn toolbox(&self) -> &Arc<dyn Toolbox> {
        &self.toolbox
    }

    /// Returns the roles that plugins play besides tools, behind the same gate and audit.
    pub fn roles(&self) -> &Arc<SessionRoles> {
        &self.roles
    }

    /// Returns the open sessions.
    pub(crate) fn directory(&self) -> &Arc<SessionDirectory> {
        &self.directory
    }

    /// Returns the sandbox that runs the components.
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// Returns the sink for the host's notices.
    pub fn notices(&self) -> &NoticeSink {
        &self.notices
    }

    /// Sets what receives the progress of calls that belong to no open session. Only the first one
    /// counts. It must not wait.
    pub fn set_progress_sink(&self, sink: ProgressSink) {
        self.host_services.notification_hub.set_progress_sink(sink);
    }

    /// Returns the persistent store.
    pub fn store(&self) -> &HostStore {
        &self.store
    }

    /// Returns records of the audit, among them all that were accepted before the call.
    ///
    /// # Errors
    ///
    /// The audit cannot be read.
    pub async fn read_audit(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        // A record that cannot be written is reported by the next call, and when the host closes.
        let _ = self.log.wait_until_durable().await;
        self.store.audit.read_records(filter).await
    }

    /// Calls one tool, with all checks of the gate, outside of any session. `arguments` is JSON text.
    /// Dropping the future cancels the call.
    pub async fn call(&self, principal: &Principal, tool: ToolId, arguments: String) -> CallReport {
        let context = principal.call_context("call-1".to_owned(), &new_session_id());
        self.call_tool(RequestedCall { context, tool, arguments }).await
    }

    /// Calls one tool with a context of the caller's, with all checks of the gate. Dropping the
    /// future cancels the call.
    pub async fn call_tool(&self, call: RequestedCall) -> CallReport {
        match Arc::clone(&self.toolbox).admit_call(call).await {
            Ok(admission) => admission.run_call().await,
            Err(report) => *report,
        }
    }

    /// Starts to deliver messages from plugins to a session.
    pub(crate) fn subscribe_session(
        &self,
        user: &str,
        session_id: &str,
        handle: &SessionHandle,
    ) -> Subscription {
        self.host_services.notification_hub.subscribe(user, session_id, handle.clone())
    }

    /// Starts to fire timers.
    pub fn start_timekeeper(&self) -> Timekeeper {
        Timekeeper::start(TimekeeperParts {
            timers: Arc::clone(&self.store.timers),
            alarm: Arc::clone(&self.host_services.alarm),
            notification_hub: Arc::clone(&self.host_services.notification_hub),
            roles: Arc::clone(&self.roles),
            message_sink: warning_reporter(&self.notices),
        })
    }

    /// Withdraws open questions, notifies managed plugins of the shutdown, and waits until every
    /// record is on disk.
    pub async fn close(self) -> HostShutdownReport {
        self.tear_down_plugins().await;
        drop((self.toolbox, self.roles, self.audited));
        flush_audit(&self.log)
    }

    /// Does the same for a host that others still hold. No call may run any more, because its
    /// record could come too late.
    pub async fn close_shared(&self) -> HostShutdownReport {
        self.tear_down_plugins().await;
        flush_audit(&self.log)
    }

    async fn tear_down_plugins(&self) {
        let registry = self.registry();
        tokio::join!(registry.shutdown(), registry.gate().approver.wait_for_withdrawals());
        self.replaced.tear_down_all().await;
    }
}

fn flush_audit(log: &AuditLog) -> HostShutdownReport {
    let write_error = log.flush(AUDIT_TIME_MAX).err();
    let tampered = log.warnings().iter().map(ToString::to_string).collect();
    HostShutdownReport { write_error, tampered }
}

/// Loads plugins for inspection: calls nothing, asks nothing and records nothing.
///
/// # Errors
///
/// The policy or the lock cannot be read.
pub async fn load_for_inspection(
    settings: &HostSettings,
    selection: PluginSelection,
    wait: CompileWait,
    notices: &NoticeSink,
) -> Result<Arc<Registry>, HostError> {
    let gate = open_inspection_gate(settings, notices)?;
    let (resolver, simulation) = (Arc::new(SystemResolver::default()), Simulation::default());
    let sandbox = create_sandbox(settings, None, resolver, simulation, notices);
    let load_options = LoadOptions {
        sandbox,
        selection,
        pins_new_plugins: false,
        accepts_change: &|_, _| false,
        previous: None,
        added_servers: BTreeMap::new(),
        compile_wait: wait,
    };
    let registry = load_registry(settings, gate, load_options, notices).await?;
    if wait != CompileWait::Short {
        report_still_compiling(&registry, notices);
    }
    Ok(registry)
}

/// Returns the persistent store, where `[store]` of the configuration says, or else in the home. The
/// database is opened at its first use.
///
/// # Errors
///
/// The state folder cannot be used, or the address of the database has a mistake.
pub fn open_store(settings: &HostSettings) -> Result<HostStore, StoreError> {
    match settings.database_address()? {
        Some(address) => HostStore::connect(&address, &settings.database_folder()),
        None => HostStore::open(&settings.paths.state),
    }
}

/// Returns the accounts that users have connected.
pub fn open_connections(settings: &HostSettings, store: &HostStore) -> Arc<ConnectionDesk> {
    ConnectionDesk::new(Arc::clone(&store.connections), &settings.paths.state)
}

/// Returns every secret that the policy names, with the source of its value.
///
/// # Errors
///
/// The policy cannot be read.
pub fn secret_sources(
    settings: &HostSettings,
    notices: &NoticeSink,
) -> Result<BTreeMap<String, SecretSource>, HostError> {
    let policy = open_inspection_gate(settings, notices)?.policy_store.current().policy;
    let sources = policy.secret_sources();
    Ok(sources.map(|(name, source)| (name.to_string(), source.clone())).collect())
}

/// Creates the services that plugins are offered. Each is opened at its first use.
fn create_services(
    settings: &HostSettings,
    store: HostStore,
    notices: &NoticeSink,
    is_watched: bool,
) -> HostServices {
    let command = settings.browser.command.as_deref();
    let notice_sink = Arc::clone(notices);
    let message_sink: MessageSink =
        Arc::new(move |text| notice_sink(HostNotice::Info(text.to_owned())));
    HostServices::new(HostServicesParts {
        store,
        browser: Browser::new(command, &settings.env, is_watched, message_sink),
        package_index: settings.packages.index.clone(),
        package_folder: settings.paths.cache.join("packages"),
        undo_folder: settings.paths.undo_folder(),
        message_sink: warning_reporter(notices),
    })
}

/// Opens a gate for inspection.
fn open_inspection_gate(
    settings: &HostSettings,
    notices: &NoticeSink,
) -> Result<Arc<Gate>, PolicyLoadError> {
    Gate::open(GateParts {
        files: settings.policy.clone(),
        env: settings.env.clone(),
        consent: Arc::new(UnattendedConsent),
        store: None,
        message_sink: warning_reporter(notices),
        activity: Arc::new(|_, _| {}),
        services: Services::default(),
        audit: None,
        grant_desk: Arc::default(),
        approval_hook: None,
        connections: existing_connections(settings),
    })
}

/// The accounts of an earlier run, which a server that lists its tools may need. A look at plugins
/// creates no state folder.
fn existing_connections(settings: &HostSettings) -> Option<Arc<ConnectionDesk>> {
    let store = settings.paths.state.is_dir().then(|| open_store(settings)).transpose().ok()??;
    Some(open_connections(settings, &store))
}
