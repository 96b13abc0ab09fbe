//! A plugin that is ready to be called: a prepared component, its grant, its settings.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, Denial, FailureKind, LogLevel, Outcome, PluginName,
    ToolDescriptor,
};
use sallyport_policy::{InstanceLifetime, Manifest, PluginLimits, PluginRole};
use serde_json::{Map, Value};
use wasmtime::component::InstancePre;

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::{
        self, Export, PluginAbi, ToolReturn,
        command::{self, Command},
        http::HttpHandler,
    },
    capability::{stdio::GuestOutput, uses::Uses},
    case::{Case, Unreported},
    clock::Expired,
    docket::Docket,
    grant,
    guest::{Common, Guest, bounded_http, bounded_table},
    ledger::{Ledger, STDERR_LEVEL},
    limits::MemoryAccount,
    net::{Account, HttpGate},
    places::{NoPlace, Place, Places},
    power,
    rate::Minute,
    resident::{InstanceInfo, Residents, Visit},
    roles::RoleLinks,
    run::{self, Body, Run, Stop, Vessel},
    runtime::Engine,
    warden::Warden,
};

/// The parts of a plugin.
pub struct PluginParts<'a> {
    /// Name, version and requests.
    pub manifest: &'a Manifest,
    /// The component, as it was read and hashed.
    pub file: &'a ComponentFile,
    /// Answers the requests of its calls while they run.
    pub warden: Arc<dyn Warden>,
    /// Its own settings, with defaults filled in.
    pub settings: Map<String, Value>,
}

/// A plugin that is ready to be called.
pub struct Plugin {
    name: PluginName,
    sandbox: Arc<Sandbox>,
    prepared: Prepared,
    warden: Arc<dyn Warden>,
    common: Arc<Common>,
    places: Places,
    /// Longest wall time of a run, in addition to the policy's limit.
    time_max: Duration,
    /// Its warm instances, if it has one per session.
    residents: Option<Arc<Residents>>,
}

/// The reason why a plugin cannot be used for now, from the plugin or from the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// A component that is compiled, linked and type-checked: everything that does not depend on a
/// call.
pub(crate) struct Prepared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) abi: Arc<dyn PluginAbi>,
    pub(crate) http: Option<Arc<HttpHandler>>,
    /// The roles that the component exports.
    pub(crate) roles: Vec<PluginRole>,
}

impl Prepared {
    /// Prepares a component that implements a version of our contract.
    pub(crate) fn new(
        sandbox: &Sandbox,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Result<Self, LoadError> {
        let (engine, pre) = link(sandbox, file, manifest)?;
        let mismatch = |error| mismatch(file, &error);
        let abi = abi::choose(&pre).map_err(mismatch)?;
        let http = HttpHandler::find(&pre).map_err(mismatch)?.map(Arc::new);
        let exports =
            |role: &PluginRole| abi.as_ref().is_some_and(|abi| abi.exports(Export::of(*role)));
        let roles: Vec<PluginRole> = abi::ROLES.into_iter().filter(exports).collect();
        let missing = manifest.roles.iter().find(|role| !roles.contains(role));
        match (abi, missing.or(manifest.roles.first()).copied()) {
            (Some(abi), _) if missing.is_none() => Ok(Self { engine, pre, abi, http, roles }),
            (_, role) => {
                let export = Export::of(role.unwrap_or(PluginRole::Tools));
                Err(lacking(file, &pre, export.word(), export.newest()))
            }
        }
    }

    /// Prepares a component that is a program.
    fn command(
        sandbox: &Sandbox,
        parts: &PluginParts<'_>,
        tool: ToolDescriptor,
    ) -> Result<Self, LoadError> {
        let file = parts.file;
        let (engine, pre) = link(sandbox, file, parts.manifest)?;
        let command = Command::new(&pre, tool).map_err(|error| mismatch(file, &error))?;
        let command = command.ok_or_else(|| lacking(file, &pre, "program", command::RUN))?;
        Ok(Self { engine, pre, abi: Arc::new(command), http: None, roles: vec![PluginRole::Tools] })
    }
}

/// Compiles a component, or maps its cached code, and links its imports.
fn link(
    sandbox: &Sandbox,
    file: &ComponentFile,
    manifest: &Manifest,
) -> Result<(Arc<Engine>, InstancePre<Guest>), LoadError> {
    let engine = sandbox.engine()?;
    let component = sandbox.cache.component(&engine.wasm, file)?;
    power::check(&power::imported(&component), file, manifest)?;
    let pre = engine.linker.instantiate_pre(&component).map_err(|error| {
        let names = format!("{:#}", error);
        LoadError::UnknownImports { path: file.path().to_owned(), names }
    })?;
    Ok((engine, pre))
}

fn mismatch(file: &ComponentFile, error: &wasmtime::Error) -> LoadError {
    LoadError::Mismatch { path: file.path().to_owned(), message: format!("{error:#}") }
}

fn lacking(
    file: &ComponentFile,
    pre: &InstancePre<Guest>,
    export: &'static str,
    wanted: &'static str,
) -> LoadError {
    LoadError::Lacking { path: file.path().to_owned(), export, found: abi::found(pre), wanted }
}

impl Sandbox {
    /// Loads a plugin: compiles its component, or maps the cached code, and links it.
    ///
    /// # Errors
    ///
    /// Every reason that makes a component unusable; see [`LoadError`].
    pub fn load(self: &Arc<Self>, parts: PluginParts<'_>) -> Result<Plugin, LoadError> {
        let prepared = Prepared::new(self, parts.file, parts.manifest)?;
        let residents =
            (parts.manifest.instance == InstanceLifetime::Session).then(|| self.residents());
        Ok(self.plugin(parts, prepared, Duration::MAX, residents))
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
        let prepared = Prepared::command(self, &parts, tool)?;
        Ok(self.plugin(parts, prepared, time_max, None))
    }

    fn plugin(
        self: &Arc<Self>,
        parts: PluginParts<'_>,
        prepared: Prepared,
        time_max: Duration,
        residents: Option<Arc<Residents>>,
    ) -> Plugin {
        let has_timers = prepared.abi.exports(Export::Timers);
        Plugin {
            name: parts.manifest.name.clone(),
            sandbox: Arc::clone(self),
            prepared,
            places: Places::new(),
            time_max,
            warden: parts.warden,
            common: Arc::new(Common {
                settings: parts.settings,
                notices: Minute::default(),
                has_timers,
            }),
            residents,
        }
    }

    /// Opens a sandbox for one run.
    pub(crate) fn guest(
        &self,
        case: &Arc<Case>,
        common: &Arc<Common>,
    ) -> Result<Guest, grant::OpenError> {
        let environment = case.environment(case.granted());
        let docket = Docket::of(case);
        let output = [LogLevel::Info, STDERR_LEVEL].map(|level| GuestOutput::new(&docket, level));
        let opened = grant::open(&docket, &output, &environment, &self.disk)?;
        let limits = case.granted().limits().clone();
        Ok(Guest {
            wasi: opened.wasi,
            files: opened.files,
            table: bounded_table(limits.handles),
            http: bounded_http(),
            gate: HttpGate {
                case: Arc::clone(case),
                resolver: Arc::clone(&self.resolver),
                tls: Arc::clone(&self.tls),
                account: Arc::new(Account::default()),
            },
            memory: MemoryAccount::new(limits.memory_bytes),
            case: Arc::clone(case),
            docket,
            output,
            uses: Uses::default(),
            common: Arc::clone(common),
            limits,
            _scratch: opened.scratch,
        })
    }
}

impl Plugin {
    /// Runs `setup` if the component has one. It has its settings and no grants, because neither a
    /// rule nor the user has allowed anything yet.
    ///
    /// # Errors
    ///
    /// The plugin reports that it cannot be used, or its setup failed.
    pub async fn setup(&self) -> Result<(), Unavailable> {
        if !self.is_managed() {
            return Ok(());
        }
        let abi = Arc::clone(&self.prepared.abi);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.setup(store, instance).await })
        });
        match self.run_managed(body).await {
            Ok(answer) => answer.map_err(Unavailable),
            Err(reason) => Err(Unavailable(format!("its set-up failed: {reason}"))),
        }
    }

    /// Runs `teardown` if the component has one. Errors are ignored: the plugin is going away.
    pub async fn teardown(&self) {
        if self.is_managed() {
            let abi = Arc::clone(&self.prepared.abi);
            let body = run::body(move |store, instance| {
                Box::pin(async move { abi.teardown(store, instance).await })
            });
            let _ = self.run_managed(body).await;
        }
    }

    async fn run_managed<R: Send + 'static>(&self, body: Body<R>) -> Result<R, String> {
        let case = Case::of_nobody(Arc::clone(&self.warden), None);
        self.run_for_nobody(&case, body).await
    }

    /// Runs something without a call, and so without grants, in a fresh instance.
    ///
    /// # Errors
    ///
    /// The reason why it did not return, in human-readable form.
    pub(crate) async fn run_for_nobody<R: Send + 'static>(
        &self,
        case: &Arc<Case>,
        body: Body<R>,
    ) -> Result<R, String> {
        let guest = self.sandbox.guest(case, &self.common).map_err(|error| error.to_string())?;
        run::run(&self.prepared, guest, body).await.result.map_err(|stop| match stop {
            Stop::Expired(Expired::Wall) => {
                format!("it took longer than {:?}", case.clock.wall())
            }
            Stop::Expired(Expired::Cpu) => out_of_cpu(case.granted().limits()).message,
            Stop::Failed(failure) => failure.message,
        })
    }

    fn is_managed(&self) -> bool {
        self.prepared.abi.exports(Export::Lifecycle)
    }

    /// The roles that the component exports, including those that its manifest does not name.
    pub fn roles(&self) -> &[PluginRole] {
        &self.prepared.roles
    }

    /// Whether it answers HTTP requests; see [`Plugin::serve`].
    pub fn serves_http(&self) -> bool {
        self.prepared.http.is_some()
    }

    pub(crate) fn abi(&self) -> Arc<dyn PluginAbi> {
        Arc::clone(&self.prepared.abi)
    }

    pub(crate) fn http(&self) -> Option<Arc<HttpHandler>> {
        self.prepared.http.clone()
    }

    pub(crate) fn warden(&self) -> Arc<dyn Warden> {
        Arc::clone(&self.warden)
    }

    /// Runs a call that has passed the gate. Dropping the future stops the guest.
    pub async fn call(&self, call: AdmittedCall) -> CallReport {
        let (abi, call) = (Arc::clone(&self.prepared.abi), Arc::new(call));
        let admitted = Arc::clone(&call);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.call_tool(store, instance, &admitted).await })
        });
        let limits = self.warden.grant().limits().clone();
        let links = self.prepared.abi.links(&call, &limits);
        let ran = self.run_within(&limits, call, links, body).await;
        self.report(ran, |value, ledger| self.outcome(value, ledger))
    }

    /// Runs something that has passed the gate, as soon as a place is free, in a fresh instance or
    /// in that of its session. Dropping the future stops the instance.
    pub(crate) async fn run_for<R: Send + 'static>(
        &self,
        call: Arc<AdmittedCall>,
        role: RoleLinks,
        body: Body<R>,
    ) -> Ran<R> {
        let limits = self.warden.grant().limits().clone();
        self.run_within(&limits, call, role, body).await
    }

    /// Like [`run_for`](Self::run_for), with limits that were already looked up.
    async fn run_within<R: Send + 'static>(
        &self,
        limits: &PluginLimits,
        call: Arc<AdmittedCall>,
        role: RoleLinks,
        body: Body<R>,
    ) -> Ran<R> {
        let started = Instant::now();
        let room = self.enter(&call, limits).await;
        let case = Case::of_call(Arc::clone(&self.warden), call, role, self.time_max);
        let case = Unreported::of(case);
        let run = match room {
            Ok((visit, _place)) => self.run_in_place(visit, &case, body).await,
            Err(stop) => Err(stop),
        };
        let has_begun = run.is_ok();
        Ran { case, run: run.unwrap_or_else(Run::refused), has_begun, elapsed: started.elapsed() }
    }

    /// Waits for a place. A plugin with one instance per session waits for its turn in the session
    /// first, because a call that waits for a turn must not hold a place that other sessions can
    /// use.
    async fn enter(
        &self,
        call: &AdmittedCall,
        limits: &PluginLimits,
    ) -> Result<(Option<Visit>, Place<'_>), Stop> {
        let visit = match &self.residents {
            Some(residents) => {
                let room = residents.room(&call.context().session_id);
                Some(room.enter(limits.queue_time).await?)
            }
            None => None,
        };
        let place = self.places.take(limits).await.map_err(|none| self.no_place(&none))?;
        Ok((visit, place))
    }

    async fn run_in_place<R: Send + 'static>(
        &self,
        visit: Option<Visit>,
        case: &Arc<Case>,
        body: Body<R>,
    ) -> Result<Run<R>, Stop> {
        let guest = || self.sandbox.guest(case, &self.common);
        let run = match visit {
            Some(visit) => {
                visit.run(case, body, || Ok(Vessel::new(&self.prepared, guest()?))).await
            }
            None => match guest() {
                Ok(guest) => Ok(run::run(&self.prepared, guest, body).await),
                Err(error) => Err(error),
            },
        };
        run.map_err(|error| Stop::Failed(not_there(&error)))
    }

    fn no_place(&self, none: &NoPlace) -> Stop {
        Stop::Failed(CallFailure::new(FailureKind::LimitReached, format!("{} {none}", self.name)))
    }

    /// The current warm instances, sorted by session ID.
    pub fn instances(&self) -> Vec<InstanceInfo> {
        self.residents.as_ref().map_or_else(Vec::new, |residents| residents.infos())
    }

    /// Creates the report of a run. Known secrets are removed: the model, the user and the log all
    /// read it.
    pub(crate) fn report<R>(
        &self,
        ran: Ran<R>,
        outcome: impl FnOnce(R, &Ledger) -> Outcome,
    ) -> CallReport {
        let (limits, ledger) = (ran.case.granted().limits(), &ran.case.ledger);
        let outcome = match ran.run.result {
            Ok(value) => outcome(value, ledger),
            Err(Stop::Expired(Expired::Wall)) => Outcome::TimedOut { limit: ran.case.clock.wall() },
            Err(Stop::Expired(Expired::Cpu)) => Outcome::Failed(out_of_cpu(limits)),
            Err(Stop::Failed(failure)) => Outcome::Failed(failure),
        };
        let mut report = CallReport {
            outcome,
            effects: ledger.close(),
            elapsed: ran.elapsed,
            memory_bytes_peak: ran.run.memory_bytes_peak,
        };
        self.warden.redactor().redact_report(&mut report);
        report
    }

    /// Converts a plugin's result to an outcome, which also depends on refusals and limits.
    pub(crate) fn outcome(&self, value: ToolReturn, ledger: &Ledger) -> Outcome {
        match value {
            ToolReturn::Output(output) => Outcome::Completed(output),
            ToolReturn::Denied(text) => Outcome::Denied(self.denial(text, ledger)),
            ToolReturn::Error(failure) => self.tool_failure(failure, ledger),
        }
    }

    /// A tool that fails after the gate refused it something is reported as denied.
    fn tool_failure(&self, failure: CallFailure, ledger: &Ledger) -> Outcome {
        if let Some(denial) = ledger.last_refusal() {
            return Outcome::Denied(denial);
        }
        match (failure.kind, ledger.limit()) {
            (FailureKind::InvalidArguments, _) => Outcome::InvalidArguments(failure),
            (_, Some(limit)) => {
                let message = format!("{} (the limit of {limit} is reached)", failure.message);
                Outcome::Failed(CallFailure::new(FailureKind::LimitReached, message))
            }
            (_, None) => Outcome::Failed(failure),
        }
    }

    /// The gate's own denial if there is one, otherwise the plugin's.
    fn denial(&self, text: String, ledger: &Ledger) -> Denial {
        ledger.last_refusal().unwrap_or_else(|| Denial {
            what: format!("{} lacks something that it needs", self.name),
            why: text,
            fix: None,
            nobody_to_ask: false,
        })
    }
}

/// The result of a run on behalf of a call.
pub(crate) struct Ran<R> {
    pub(crate) case: Unreported,
    pub(crate) run: Run<R>,
    /// False if the call got no place, or a granted folder could not be opened.
    pub(crate) has_begun: bool,
    /// The elapsed time, including the wait for a place.
    pub(crate) elapsed: Duration,
}

fn not_there(error: &grant::OpenError) -> CallFailure {
    let message = format!("{} is not there, though it is granted", error.guest);
    CallFailure::new(FailureKind::Unavailable, message).with_detail(error.to_string())
}

fn out_of_cpu(limits: &PluginLimits) -> CallFailure {
    let limit = limits.cpu.unwrap_or(limits.time);
    let message = format!(
        "the plugin was stopped: its limit of {limit:?} of processor time (limits.cpu) is reached"
    );
    CallFailure::new(FailureKind::LimitReached, message)
}
