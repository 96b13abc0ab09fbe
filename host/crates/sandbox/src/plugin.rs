//! A plugin that is ready to be called: a prepared component, its grant, its settings.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sallyport_contract::{Admitted, CallReport, Denial, Failure, FailureKind, Outcome, PluginName};
use sallyport_policy::{Limits, Manifest};
use serde_json::{Map, Value};
use wasmtime::component::InstancePre;

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::{self, PluginAbi, ToolReturn},
    case::Case,
    clock::Expired,
    grant,
    guest::{Guest, bounded_http, bounded_table},
    ledger::Ledger,
    limits::MemoryAccount,
    net::{Account, HttpGate},
    places::Places,
    power,
    run::{self, Body, Run, Stop},
    runtime::Engine,
    warden::Warden,
};

/// What a plugin is made of.
pub struct PluginParts<'a> {
    /// Name, version and requests.
    pub manifest: &'a Manifest,
    /// The component, as it was read and hashed.
    pub file: &'a ComponentFile,
    /// Who answers what its calls ask for while they run.
    pub warden: Arc<dyn Warden>,
    /// Its own settings, defaults filled in.
    pub settings: Map<String, Value>,
}

/// A plugin that is ready to be called.
pub struct Plugin {
    name: PluginName,
    sandbox: Arc<Sandbox>,
    prepared: Prepared,
    warden: Arc<dyn Warden>,
    settings: Arc<Map<String, Value>>,
    places: Places,
}

/// Why a plugin cannot be used for now, in its own words or those of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// A component that is compiled, linked and type-checked: everything that does not depend on a call.
pub(crate) struct Prepared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) abi: Arc<dyn PluginAbi>,
}

impl Prepared {
    pub(crate) fn new(
        sandbox: &Sandbox,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Result<Self, LoadError> {
        let engine = sandbox.engine()?;
        let component = sandbox.cache.component(&engine.wasm, file)?;
        power::check(&power::imported(&component), file, manifest)?;
        let pre = engine.linker.instantiate_pre(&component).map_err(|error| {
            let names = format!("{:#}", error);
            LoadError::UnknownImports { path: file.path().to_owned(), names }
        })?;
        let mismatch = |error: wasmtime::Error| LoadError::Mismatch {
            path: file.path().to_owned(),
            message: format!("{error:#}"),
        };
        let abi = abi::choose(&pre).map_err(mismatch)?.ok_or_else(|| LoadError::NoTools {
            path: file.path().to_owned(),
            found: abi::found(&pre),
            wanted: abi::NEWEST.to_owned(),
        })?;
        Ok(Self { engine, pre, abi: Arc::from(abi) })
    }
}

impl Sandbox {
    /// Makes a plugin ready: compiles it, or maps what was compiled before, and links it.
    ///
    /// # Errors
    ///
    /// Everything that makes a component unusable, see [`LoadError`].
    pub fn load(self: &Arc<Self>, parts: PluginParts<'_>) -> Result<Plugin, LoadError> {
        let prepared = Prepared::new(self, parts.file, parts.manifest)?;
        Ok(Plugin {
            name: parts.manifest.name.clone(),
            sandbox: Arc::clone(self),
            prepared,
            places: Places::new(),
            warden: parts.warden,
            settings: Arc::new(parts.settings),
        })
    }

    /// Opens a sandbox for one run.
    pub(crate) fn guest(
        &self,
        case: &Arc<Case>,
        settings: &Arc<Map<String, Value>>,
    ) -> Result<Guest, grant::OpenError> {
        let environment = case.environment(case.granted());
        let opened = grant::open(case, &environment, &self.shelves)?;
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
            settings: Arc::clone(settings),
            limits,
            _scratch: opened.scratch,
        })
    }
}

impl Plugin {
    /// Runs `setup`, when the component has one: with its settings, and without any grant, since no
    /// rule and no person has agreed to anything yet.
    ///
    /// # Errors
    ///
    /// The plugin says that it cannot be used, or its set-up broke.
    pub async fn setup(&self) -> Result<(), Unavailable> {
        if !self.prepared.abi.is_managed() {
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

    /// Runs `teardown`, when the component has one. There is nobody left to tell about errors.
    pub async fn teardown(&self) {
        if self.prepared.abi.is_managed() {
            let abi = Arc::clone(&self.prepared.abi);
            let body = run::body(move |store, instance| {
                Box::pin(async move { abi.teardown(store, instance).await })
            });
            let _ = self.run_managed(body).await;
        }
    }

    async fn run_managed<R: Send + 'static>(&self, body: Body<R>) -> Result<R, String> {
        let case = Case::of_nobody(Arc::clone(&self.warden), None);
        let run = self.run(&case, body).await.map_err(|error| error.to_string())?;
        run.result.map_err(|stop| match stop {
            Stop::Expired(Expired::Wall) => {
                format!("it took longer than {:?}", case.granted().limits().time)
            }
            Stop::Expired(Expired::Cpu) => out_of_cpu(case.granted().limits()).message,
            Stop::Failed(failure) => failure.message,
        })
    }

    /// Runs a call that has passed the gate. Dropping the future ends the guest.
    pub async fn call(&self, call: Admitted) -> CallReport {
        let started = Instant::now();
        let limits = self.warden.grant().limits().clone();
        let mut report = match self.places.take(&limits).await {
            Ok(_place) => self.call_now(call).await,
            Err(none) => {
                let message = format!("{} {none}", self.name);
                Outcome::Failed(Failure::new(FailureKind::LimitReached, message)).into()
            }
        };
        report.elapsed = started.elapsed();
        // Whoever reads it, model, person or log: no known secret is in it.
        self.warden.redactor().report(&mut report);
        report
    }

    async fn call_now(&self, call: Admitted) -> CallReport {
        let abi = Arc::clone(&self.prepared.abi);
        let call = Arc::new(call);
        let case = Case::of_call(Arc::clone(&self.warden), Arc::clone(&call));
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.call_tool(store, instance, &call).await })
        });
        match self.run(&case, body).await {
            Ok(run) => self.report(run, &case),
            Err(error) => {
                let message = format!("{} is not there, though it is granted", error.guest);
                let failure = Failure::new(FailureKind::Unavailable, message);
                Outcome::Failed(failure.with_detail(error.to_string())).into()
            }
        }
    }

    async fn run<R: Send + 'static>(
        &self,
        case: &Arc<Case>,
        body: Body<R>,
    ) -> Result<Run<R>, grant::OpenError> {
        let guest = self.sandbox.guest(case, &self.settings)?;
        Ok(run::run(&self.prepared, guest, body).await)
    }

    fn report(&self, run: Run<ToolReturn>, case: &Case) -> CallReport {
        let (limits, ledger) = (case.granted().limits(), &case.ledger);
        let outcome = match run.result {
            Ok(ToolReturn::Output(output)) => Outcome::Completed(output),
            Ok(ToolReturn::Denied(text)) => Outcome::Denied(self.denial(text, ledger)),
            Ok(ToolReturn::Error(failure)) => self.tool_failure(failure, ledger),
            Err(Stop::Expired(Expired::Wall)) => Outcome::TimedOut { limit: limits.time },
            Err(Stop::Expired(Expired::Cpu)) => Outcome::Failed(out_of_cpu(limits)),
            Err(Stop::Failed(failure)) => Outcome::Failed(failure),
        };
        CallReport {
            outcome,
            effects: ledger.close(),
            elapsed: Duration::ZERO,
            memory_bytes_peak: run.memory_bytes_peak,
        }
    }

    /// A tool that failed after the gate refused it something failed because of that.
    fn tool_failure(&self, failure: Failure, ledger: &Ledger) -> Outcome {
        if let Some(denial) = ledger.last_refusal() {
            return Outcome::Denied(denial);
        }
        match (failure.kind, ledger.limit()) {
            (FailureKind::InvalidArguments, _) => Outcome::InvalidArguments(failure),
            (_, Some(limit)) => {
                let message = format!("{} (the limit of {limit} is reached)", failure.message);
                Outcome::Failed(Failure::new(FailureKind::LimitReached, message))
            }
            (_, None) => Outcome::Failed(failure),
        }
    }

    /// The gate's own words when it refused something, else the plugin's.
    fn denial(&self, text: String, ledger: &Ledger) -> Denial {
        ledger.last_refusal().unwrap_or_else(|| Denial {
            what: format!("{} lacks something that it needs", self.name),
            why: text,
            fix: None,
            nobody_to_ask: false,
        })
    }
}

fn out_of_cpu(limits: &Limits) -> Failure {
    let limit = limits.cpu.unwrap_or(limits.time);
    let message = format!(
        "the plugin was stopped: its limit of {limit:?} of processor time (limits.cpu) is reached"
    );
    Failure::new(FailureKind::LimitReached, message)
}
