//! A plugin that is ready to be called: a prepared component, its grant, its settings.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, FailureKind, PluginName, ToolDescriptor,
};
use sallyport_policy::{InstanceLifetime, Manifest, PluginLimits, PluginRole};
use serde_json::{Map, Value};
use wasmtime::component::InstancePre;

mod report;

pub(crate) use self::report::CompletedRun;
use self::report::cpu_limit_failure;

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::{
        self, PluginAbi, PluginExport,
        command::{self, WasiCommand},
        http::HttpHandler,
    },
    authorizer::HostCallAuthorizer,
    call_slots::{CallSlot, CallSlotError, CallSlots},
    capability::SharedPluginState,
    clock::TimeLimit,
    dynamic::docs::PackageDocs,
    grant,
    guest::Guest,
    instance_pool::{InstanceInfo, InstanceLease, InstancePool},
    interface::ComponentInterface,
    linked_plugin::LinkedPlugin,
    pooled_plugin::PooledPlugin,
    power_imports,
    prepared_instances::PreparedInstances,
    rate_limiter::MinuteRateLimiter,
    role_links::RoleLinks,
    run::{self, GuestInstance, RunResult, RunStopReason},
    run_body::RunBody,
    run_context::{RunContext, RunGuard},
    wasm_engine::WasmEngine,
};

/// The parts of a plugin.
pub struct PluginParts<'a> {
    /// Name, version and requests.
    pub manifest: &'a Manifest,
    /// The component, as it was read and hashed.
    pub file: &'a ComponentFile,
    /// Answers the requests of its calls while they run.
    pub authorizer: Arc<dyn HostCallAuthorizer>,
    /// Its own settings, with defaults filled in.
    pub settings: Map<String, Value>,
}

/// A plugin that is ready to be called.
pub struct Plugin {
    name: PluginName,
    sandbox: Arc<Sandbox>,
    prepared: PreparedPlugin,
    authorizer: Arc<dyn HostCallAuthorizer>,
    shared_state: Arc<SharedPluginState>,
    /// The copy in the memory pool, for calls in fresh instances.
    pooled: Option<Arc<PooledPlugin>>,
    /// Instances that wait for a call, if calls have fresh ones.
    prepared_instances: Option<Arc<PreparedInstances>>,
    call_slots: CallSlots,
    /// Longest wall time of a run, in addition to the policy's limit.
    time_max: Duration,
    /// Its warm instances, if it has one per session.
    instance_pool: Option<Arc<InstancePool>>,
}

/// Makes a body for the exports of one engine.
type BodyMaker<R> = Box<dyn FnOnce(&dyn PluginAbi) -> RunBody<R> + Send>;

/// What a call runs in its instance.
enum CallWork<R> {
    /// Made for the engine of [`PreparedPlugin`].
    Bound(RunBody<R>),
    /// Made for the engine that the instance will have, when that is known.
    ForAbi(BodyMaker<R>),
}

impl<R> CallWork<R> {
    /// The body, for an engine whose exports are those of `abi`.
    fn for_abi(self, abi: &dyn PluginAbi) -> RunBody<R> {
        match self {
            Self::Bound(body) => body,
            Self::ForAbi(make) => make(abi),
        }
    }
}

/// The reason why a plugin cannot be used for now, from the plugin or from the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginUnavailable(pub String);

/// A component that is compiled, linked and type-checked: everything that does not depend on a
/// call.
pub(crate) struct PreparedPlugin {
    pub(crate) linked: LinkedPlugin,
    pub(crate) http: Option<Arc<HttpHandler>>,
    /// The roles that the component exports.
    pub(crate) roles: Vec<PluginRole>,
}

impl PreparedPlugin {
    /// Prepares a component that implements a version of our contract, or has functions of its own,
    /// which `package_docs` describes. Nothing but a list of its tools needs the descriptions.
    pub(crate) fn new(
        sandbox: &Sandbox,
        file: &ComponentFile,
        manifest: &Manifest,
        package_docs: &PackageDocs,
    ) -> Result<Self, LoadError> {
        let (engine, pre) = link_component(sandbox, file, manifest)?;
        let abi = abi::find_plugin_abi(&pre, file, package_docs)?;
        let http = HttpHandler::find_export(&pre);
        let http = http.map_err(|error| LoadError::mismatch(file, &error))?.map(Arc::new);
        let exports = |role: &PluginRole| {
            abi.as_ref().is_some_and(|abi| abi.has_export(PluginExport::from_role(*role)))
        };
        let roles: Vec<PluginRole> = abi::ROLES.into_iter().filter(exports).collect();
        let missing = manifest.roles.iter().find(|role| !roles.contains(role));
        match (abi, missing.or(manifest.roles.first()).copied()) {
            (Some(abi), _) if missing.is_none() => {
                Ok(Self { linked: LinkedPlugin { engine, pre, abi }, http, roles })
            }
            (_, role) => {
                let export = PluginExport::from_role(role.unwrap_or(PluginRole::Tools));
                Err(LoadError::missing_export(
                    file,
                    &abi::export_names(&pre),
                    export.display_name(),
                    export.newest_interface_name(),
                ))
            }
        }
    }

    /// Prepares a component that is a program.
    fn from_command(
        sandbox: &Sandbox,
        parts: &PluginParts<'_>,
        tool: ToolDescriptor,
    ) -> Result<Self, LoadError> {
        let file = parts.file;
        let (engine, pre) = link_component(sandbox, file, parts.manifest)?;
        let command =
            WasiCommand::new(&pre, tool).map_err(|error| LoadError::mismatch(file, &error))?;
        let command = command.ok_or_else(|| {
            let exports = abi::export_names(&pre);
            LoadError::missing_export(file, &exports, "program", command::RUN_INTERFACE)
        })?;
        let linked = LinkedPlugin { engine, pre, abi: Box::new(command) };
        Ok(Self { linked, http: None, roles: vec![PluginRole::Tools] })
    }
}

/// Compiles a component, or maps its cached code, and links its imports.
fn link_component(
    sandbox: &Sandbox,
    file: &ComponentFile,
    manifest: &Manifest,
) -> Result<(Arc<WasmEngine>, InstancePre<Guest>), LoadError> {
    let engine = sandbox.get_or_create_engine()?;
    let component = sandbox.cache.load_or_compile(&engine.wasm, file)?;
    let interface = ComponentInterface::from_compiled(&component);
    power_imports::check_imports(&interface, file, manifest)?;
    let pre = engine.linker.instantiate_pre(&component).map_err(|error| {
        let names = format!("{:#}", error);
        LoadError::UnknownImports { path: file.path().to_owned(), names }
    })?;
    Ok((engine, pre))
}

impl Sandbox {
    /// Loads a plugin: compiles its component, or maps the cached code, and links it.
    ///
    /// # Errors
    ///
    /// Every reason that makes a component unusable; see [`LoadError`].
    pub fn load_plugin(self: &Arc<Self>, parts: PluginParts<'_>) -> Result<Plugin, LoadError> {
        let prepared =
            PreparedPlugin::new(self, parts.file, parts.manifest, &PackageDocs::default())?;
        let instance_pool = (parts.manifest.instance == InstanceLifetime::Session)
            .then(|| self.create_instance_pool());
        let pooled = instance_pool.is_none().then(|| PooledPlugin::new(self, parts.file));
        let plugin = self.build_plugin(parts, prepared, Duration::MAX);
        let prepared_instances = pooled
            .as_ref()
            .map(|pooled| PreparedInstances::new(pooled, &plugin.authorizer, &plugin.shared_state));
        Ok(Plugin { instance_pool, pooled, prepared_instances, ..plugin })
    }

    /// Loads a WASI command as a plugin with one tool. The arguments are its standard input, and
    /// its standard output is the result. It starts anew for each call, even if the manifest asks
    /// for one instance per session, and runs for `time_max` at most.
    ///
    /// # Errors
    ///
    /// Every reason that makes a component unusable; see [`LoadError`].
    pub fn load_command(
        self: &Arc<Self>,
        parts: PluginParts<'_>,
        tool: ToolDescriptor,
        time_max: Duration,
    ) -> Result<Plugin, LoadError> {
        let prepared = PreparedPlugin::from_command(self, &parts, tool)?;
        Ok(self.build_plugin(parts, prepared, time_max))
    }

    fn build_plugin(
        self: &Arc<Self>,
        parts: PluginParts<'_>,
        prepared: PreparedPlugin,
        time_max: Duration,
    ) -> Plugin {
        let has_timers = prepared.linked.abi.has_export(PluginExport::Timers);
        Plugin {
            name: parts.manifest.name.clone(),
            sandbox: Arc::clone(self),
            prepared,
            pooled: None,
            prepared_instances: None,
            call_slots: CallSlots::new(),
            time_max,
            authorizer: parts.authorizer,
            shared_state: Arc::new(SharedPluginState {
                settings: parts.settings,
                notices: MinuteRateLimiter::default(),
                has_timers,
            }),
            instance_pool: None,
        }
    }
}

impl Plugin {
    /// Runs `setup` if the component has one. It has its settings and no grants, because neither a
    /// rule nor the user has allowed anything yet.
    ///
    /// # Errors
    ///
    /// The plugin reports that it cannot be used, or its setup failed.
    pub async fn run_setup(&self) -> Result<(), PluginUnavailable> {
        if !self.is_managed() {
            return Ok(());
        }
        match self.run_lifecycle_call(self.prepared.linked.abi.run_setup()).await {
            Ok(answer) => answer.map_err(PluginUnavailable),
            Err(reason) => Err(PluginUnavailable(format!("its set-up failed: {reason}"))),
        }
    }

    /// Runs `teardown` if the component has one. Errors are ignored: the plugin is going away.
    pub async fn run_teardown(&self) {
        if self.is_managed() {
            let _ = self.run_lifecycle_call(self.prepared.linked.abi.run_teardown()).await;
        }
    }

    async fn run_lifecycle_call<R: Send + 'static>(&self, body: RunBody<R>) -> Result<R, String> {
        let run_context = RunContext::without_call(Arc::clone(&self.authorizer), None);
        self.run_without_call(&run_context, body).await
    }

    /// Runs something without a call, and so without grants, in a fresh instance.
    ///
    /// # Errors
    ///
    /// The reason why it did not return, in human-readable form.
    pub(crate) async fn run_without_call<R: Send + 'static>(
        &self,
        run_context: &Arc<RunContext>,
        body: RunBody<R>,
    ) -> Result<R, String> {
        let guest = self
            .sandbox
            .create_guest(run_context, &self.shared_state)
            .map_err(|error| error.to_string())?;
        run::run_guest(&self.prepared.linked, guest, body).await.result.map_err(|stop| match stop {
            RunStopReason::Expired(TimeLimit::Wall) => {
                format!("it took longer than {:?}", run_context.clock.wall_time_limit())
            }
            RunStopReason::Expired(TimeLimit::Cpu) => {
                cpu_limit_failure(run_context.initial_grant().limits()).message
            }
            RunStopReason::Failed(failure) => failure.message,
        })
    }

    fn is_managed(&self) -> bool {
        self.prepared.linked.abi.has_export(PluginExport::Lifecycle)
    }

    /// The roles that the component exports, including those that its manifest does not name.
    pub fn roles(&self) -> &[PluginRole] {
        &self.prepared.roles
    }

    /// Whether it answers HTTP requests; see [`Plugin::serve_request`].
    pub fn has_http_handler(&self) -> bool {
        self.prepared.http.is_some()
    }

    pub(crate) fn abi(&self) -> &dyn PluginAbi {
        &*self.prepared.linked.abi
    }

    pub(crate) fn http_handler(&self) -> Option<Arc<HttpHandler>> {
        self.prepared.http.clone()
    }

    pub(crate) fn authorizer(&self) -> Arc<dyn HostCallAuthorizer> {
        Arc::clone(&self.authorizer)
    }

    /// Runs a call that has passed the gate. Dropping the future stops the guest.
    pub async fn call(&self, call: impl Into<Arc<AdmittedCall>>) -> CallReport {
        let call = call.into();
        let tool_call = Arc::clone(&call);
        let body = CallWork::ForAbi(Box::new(|abi| abi.call_tool(tool_call)));
        let limits = self.authorizer.current_grant().limits().clone();
        let links = self.prepared.linked.abi.role_links(&call, &limits);
        let completed = self.run_call_with_limits(&limits, call, links, body).await;
        self.build_return_report(completed)
    }

    /// Runs something that has passed the gate, as soon as a place is free, in a fresh instance or
    /// in that of its session. Dropping the future stops the instance.
    pub(crate) async fn run_call<R: Send + 'static>(
        &self,
        call: Arc<AdmittedCall>,
        role: RoleLinks,
        body: RunBody<R>,
    ) -> CompletedRun<R> {
        let limits = self.authorizer.current_grant().limits().clone();
        self.run_call_with_limits(&limits, call, role, CallWork::Bound(body)).await
    }

    /// Like [`run_call`](Self::run_call), with limits that were already looked up.
    async fn run_call_with_limits<R: Send + 'static>(
        &self,
        limits: &PluginLimits,
        call: Arc<AdmittedCall>,
        role: RoleLinks,
        body: CallWork<R>,
    ) -> CompletedRun<R> {
        let started = Instant::now();
        let slot = self.acquire_slot(&call, limits).await;
        let run_context =
            RunContext::for_call(Arc::clone(&self.authorizer), call, role, self.time_max);
        let run_context = RunGuard::new(run_context);
        let run = match slot {
            Ok((lease, _call_slot)) => self.run_in_slot(lease, &run_context, body).await,
            Err(stop) => Err(stop),
        };
        let has_begun = run.is_ok();
        CompletedRun {
            run_context,
            run: run.unwrap_or_else(RunResult::from_failure),
            has_begun,
            elapsed: started.elapsed(),
        }
    }

    /// Waits for a place. A plugin with one instance per session waits for its turn in the session
    /// first, because a call that waits for a turn must not hold a place that other sessions can
    /// use.
    #[tracing::instrument(name = "wait_for_place", skip_all)]
    async fn acquire_slot(
        &self,
        call: &AdmittedCall,
        limits: &PluginLimits,
    ) -> Result<(Option<InstanceLease>, CallSlot<'_>), RunStopReason> {
        let lease = match &self.instance_pool {
            Some(instance_pool) => {
                let slot = instance_pool.session_slot(&call.context().session_id);
                Some(slot.acquire_lease(limits.queue_time).await?)
            }
            None => None,
        };
        let call_slot = self
            .call_slots
            .acquire_slot(limits)
            .await
            .map_err(|slot_error| self.slot_unavailable(&slot_error))?;
        Ok((lease, call_slot))
    }

    #[tracing::instrument(name = "run_guest", skip_all)]
    async fn run_in_slot<R: Send + 'static>(
        &self,
        lease: Option<InstanceLease>,
        run_context: &Arc<RunContext>,
        body: CallWork<R>,
    ) -> Result<RunResult<R>, RunStopReason> {
        let linked = &self.prepared.linked;
        let run = match lease {
            Some(lease) => {
                let start = || {
                    let guest = self.sandbox.create_guest(run_context, &self.shared_state)?;
                    Ok(GuestInstance::new(linked, guest, None))
                };
                lease.run_in_instance(run_context, body.for_abi(&*linked.abi), start).await
            }
            None => self.run_in_unused_instance(run_context, body).await,
        };
        run.map_err(|error| RunStopReason::Failed(grant_open_failure(&error)))
    }

    /// Runs a body in an instance that no other call has used.
    async fn run_in_unused_instance<R: Send + 'static>(
        &self,
        run_context: &Arc<RunContext>,
        body: CallWork<R>,
    ) -> Result<RunResult<R>, grant::GrantOpenError> {
        let prepared = match body {
            CallWork::ForAbi(_) => self.prepared_instances.as_ref(),
            CallWork::Bound(_) => None,
        };
        let taken = prepared.and_then(|prepared| prepared.take_instance(run_context));
        let (run, used) = match taken {
            Some((linked, instance)) => {
                run::run_instance(instance, body.for_abi(&*linked.abi)).await
            }
            None => {
                let guest = self.sandbox.create_guest(run_context, &self.shared_state)?;
                self.run_in_fresh_instance(guest, body).await
            }
        };
        if let Some(prepared) = prepared {
            prepared.end_use(run_context.initial_grant().limits(), used);
        }
        Ok(run)
    }

    /// The number of instances that were made ahead and wait for a call.
    pub fn waiting_instances(&self) -> usize {
        self.prepared_instances.as_ref().map_or(0, |prepared| prepared.waiting())
    }

    /// Whether calls in fresh instances use the memory pool by now, as long as it has free places.
    pub fn is_in_memory_pool(&self) -> bool {
        self.pooled.as_ref().is_some_and(|pooled| pooled.linked().is_some())
    }

    /// Runs a body in the memory pool if it can, and otherwise in memory of its own.
    async fn run_in_fresh_instance<R: Send + 'static>(
        &self,
        guest: Guest,
        body: CallWork<R>,
    ) -> (RunResult<R>, Option<GuestInstance>) {
        let pooled = match body {
            CallWork::ForAbi(_) => self.pooled.as_ref().and_then(PooledPlugin::take_place),
            CallWork::Bound(_) => None,
        };
        let (linked, place) = match pooled {
            Some((linked, place)) => (linked, Some(place)),
            None => (&self.prepared.linked, None),
        };
        let body = body.for_abi(&*linked.abi);
        run::run_instance(GuestInstance::new(linked, guest, place), body).await
    }

    fn slot_unavailable(&self, slot_error: &CallSlotError) -> RunStopReason {
        RunStopReason::Failed(CallFailure::new(
            FailureKind::LimitReached,
            format!("{} {slot_error}", self.name),
        ))
    }

    /// The current warm instances, sorted by session ID.
    pub fn instances(&self) -> Vec<InstanceInfo> {
        self.instance_pool
            .as_ref()
            .map_or_else(Vec::new, |instance_pool| instance_pool.list_instances())
    }
}

fn grant_open_failure(error: &grant::GrantOpenError) -> CallFailure {
    let message = format!("{} is not there, though it is granted", error.guest);
    CallFailure::new(FailureKind::Unavailable, message).with_detail(error.to_string())
}
