//! A plugin that is ready to be called: a prepared component, its grant, its settings.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU32},
    time::{Duration, Instant},
};

use sallyport_contract::{Admitted, CallReport, Denial, Failure, FailureKind, Outcome, PluginName};
use sallyport_policy::{Grant, Manifest};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use wasmtime::component::InstancePre;

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::{self, PluginAbi, ToolReturn},
    grant,
    guest::{Guest, bounded_http, bounded_table},
    ledger::Ledger,
    limits::MemoryAccount,
    net::HttpGate,
    power,
    run::{self, Body, Run, Stop},
    runtime::Engine,
};

/// Longest wait of a call for a free place, when the plugin's concurrent calls are used up.
const QUEUE_TIME_MAX: Duration = Duration::from_secs(30);

/// What a plugin is made of.
pub struct PluginParts<'a> {
    /// Name, version and requests.
    pub manifest: &'a Manifest,
    /// The component, as it was read and hashed.
    pub file: &'a ComponentFile,
    /// What it may do.
    pub grant: Arc<Grant>,
    /// Its own settings, defaults filled in.
    pub settings: Map<String, Value>,
    /// The environment entries that it was granted, with their values.
    pub env: Vec<(String, String)>,
}

/// A plugin that is ready to be called.
pub struct Plugin {
    name: PluginName,
    sandbox: Arc<Sandbox>,
    prepared: Prepared,
    grant: Arc<Grant>,
    settings: Arc<Map<String, Value>>,
    env: Vec<(String, String)>,
    places: Semaphore,
    recent: Mutex<VecDeque<Instant>>,
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
            places: Semaphore::new(parts.grant.limits().concurrent_calls as usize),
            recent: Mutex::new(VecDeque::new()),
            grant: parts.grant,
            settings: Arc::new(parts.settings),
            env: parts.env,
        })
    }

    /// Opens a sandbox for one run. The clock starts here.
    pub(crate) fn guest(
        &self,
        grant: &Arc<Grant>,
        settings: &Arc<Map<String, Value>>,
        env: &[(String, String)],
    ) -> Result<Guest, grant::OpenError> {
        let limits = grant.limits();
        let ledger = Ledger::new(limits.log_bytes);
        let opened = grant::open(grant, env, &ledger)?;
        Ok(Guest {
            wasi: opened.wasi,
            table: bounded_table(),
            http: bounded_http(),
            gate: HttpGate {
                grant: Arc::clone(grant),
                ledger: ledger.clone(),
                resolver: Arc::clone(&self.resolver),
                tls: Arc::clone(&self.tls),
                requests: Arc::new(AtomicU32::new(0)),
            },
            memory: MemoryAccount::new(limits.memory_bytes),
            ledger,
            settings: Arc::clone(settings),
            deadline: run::deadline(limits.time),
            output_bytes_max: limits.output_bytes,
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
        let none = Arc::new(self.grant.powerless());
        let (run, _) = self.run(&none, &[], body).await.map_err(|error| error.to_string())?;
        run.result.map_err(|stop| match stop {
            Stop::Deadline => format!("it took longer than {:?}", none.limits().time),
            Stop::Failed(failure) => failure.message,
        })
    }

    /// Runs a call that has passed the gate. Dropping the future ends the guest.
    pub async fn call(&self, call: Admitted) -> CallReport {
        let started = Instant::now();
        let mut report = match self.take_place().await {
            Ok(_place) => self.call_now(call).await,
            Err(failure) => Outcome::Failed(failure).into(),
        };
        report.elapsed = started.elapsed();
        report
    }

    async fn call_now(&self, call: Admitted) -> CallReport {
        let abi = Arc::clone(&self.prepared.abi);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.call_tool(store, instance, &call).await })
        });
        match self.run(&self.grant, &self.env, body).await {
            Ok((run, ledger)) => self.report(run, &ledger),
            Err(error) => {
                let message = format!("{} is not there, though it is granted", error.guest);
                let failure = Failure::new(FailureKind::Unavailable, message);
                Outcome::Failed(failure.with_detail(error.to_string())).into()
            }
        }
    }

    async fn run<R: Send + 'static>(
        &self,
        grant: &Arc<Grant>,
        env: &[(String, String)],
        body: Body<R>,
    ) -> Result<(Run<R>, Ledger), grant::OpenError> {
        let guest = self.sandbox.guest(grant, &self.settings, env)?;
        let ledger = guest.ledger.clone();
        Ok((run::run(&self.prepared, guest, grant.limits(), body).await, ledger))
    }

    fn report(&self, run: Run<ToolReturn>, ledger: &Ledger) -> CallReport {
        let outcome = match run.result {
            Ok(ToolReturn::Output(output)) => Outcome::Completed(output),
            Ok(ToolReturn::Denied(text)) => Outcome::Denied(self.denial(text, ledger)),
            Ok(ToolReturn::Error(failure)) => self.tool_failure(failure, ledger),
            Err(Stop::Deadline) => Outcome::TimedOut { limit: self.grant.limits().time },
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

    /// Waits for a free place, within the plugin's rate.
    async fn take_place(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let limit = self.grant.limits().concurrent_calls;
        let busy = || {
            let message = format!("{} is busy: {limit} of its calls are running", self.name);
            Failure::new(FailureKind::LimitReached, message)
        };
        let waiting = tokio::time::timeout(QUEUE_TIME_MAX, self.places.acquire());
        let place = waiting.await.map_err(|_| busy())?.map_err(|_| busy())?;
        self.count_call(Instant::now())?;
        Ok(place)
    }

    fn count_call(&self, now: Instant) -> Result<(), Failure> {
        let Some(limit) = self.grant.limits().calls_per_minute else { return Ok(()) };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|at| now.duration_since(*at) >= Duration::from_secs(60)) {
            recent.pop_front();
        }
        if recent.len() >= limit as usize {
            let message = format!("{} may be called {limit} times a minute", self.name);
            return Err(Failure::new(FailureKind::LimitReached, message));
        }
        recent.push_back(now);
        Ok(())
    }
}
