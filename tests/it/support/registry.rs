//! The plugins of a home inside the test's own process, for what one start of the program cannot
//! show: two calls of one plugin, many calls at a time, a look at a report.

use std::sync::Arc;

use sallyport_contract::{
    BoxFuture, CallReport, Effect, HostNameResolver, Outcome, RequestedCall, ToolCallContext,
};
use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    notice::no_notices,
    registry::{PluginAvailability, PluginChanges, PluginSelection, RegisteredPlugin, Registry},
};
use sallyport_sandbox::{Compiler, SystemResolver};
use serde_json::Value;
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{Home, home::HomeFolder, patience};

/// The plugins of a home, loaded.
pub(crate) struct Tools {
    pub(crate) host: Host,
    pub(crate) settings: HostSettings,
    pub(crate) registry: Arc<Registry>,
    runtime: Runtime,
    _folder: Arc<HomeFolder>,
}

impl Tools {
    /// Loads the plugins with the system's own name service.
    pub(crate) fn of(home: &Home) -> Self {
        Self::resolving(home, Arc::new(SystemResolver::default()))
    }

    /// Loads the plugins with another name service.
    pub(crate) fn resolving(home: &Home, resolver: Arc<dyn HostNameResolver>) -> Self {
        Self::opened(home, |options| HostOptions { resolver, ..options })
    }

    /// Loads the plugins with other options than those of a program without a user.
    pub(crate) fn opened(home: &Home, choose: impl FnOnce(HostOptions) -> HostOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let env = home.environment();
        let env = Env::from_pairs(env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let settings = HostSettings::resolve(&ConfigFlags::default(), env).unwrap();
        let compiler = Some(Compiler::with_program(env!("CARGO_BIN_EXE_sallyport").into()));
        let unattended = HostOptions::unattended(PluginSelection::All, no_notices());
        let options = choose(HostOptions { compiler, ..unattended });
        let host = patience::run(&runtime, Host::open(&settings, options)).unwrap();
        // On a busy machine, the compiler takes longer than a start waits for it.
        let registry = patience::until("a plugin that is compiled", || {
            let registry = host.registry();
            let mut states = registry.entries().map(RegisteredPlugin::availability);
            if states.any(|state| *state == PluginAvailability::Compiling) {
                patience::run(&runtime, host.reload_silently(&settings)).unwrap();
                return None;
            }
            drop(states);
            Some(registry)
        });
        assert_eq!(registry.problems(), []);
        Self { host, settings, registry, runtime, _folder: Arc::clone(&home.folder) }
    }

    /// Loads the plugins again.
    #[track_caller]
    pub(crate) fn reload(&self) -> PluginChanges {
        self.wait(self.host.reload(&self.settings)).unwrap()
    }

    /// Begins a call that runs beside what the test does next.
    #[track_caller]
    pub(crate) fn spawn(&self, tool: &str, arguments: &Value) -> JoinHandle<CallReport> {
        self.runtime.spawn(self.begin(tool, arguments))
    }

    /// Runs a future to its end.
    #[track_caller]
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        patience::run(&self.runtime, future)
    }

    /// Calls a tool and waits.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> CallReport {
        self.wait(self.begin(tool, arguments))
    }

    /// Calls a tool; the future is the call.
    #[track_caller]
    pub(crate) fn begin(&self, tool: &str, arguments: &Value) -> BoxFuture<'static, CallReport> {
        self.begin_in("s", tool, arguments)
    }

    /// Calls a tool in a session of that name; the future is the call.
    #[track_caller]
    pub(crate) fn begin_in(
        &self,
        session: &str,
        tool: &str,
        arguments: &Value,
    ) -> BoxFuture<'static, CallReport> {
        let toolbox = Arc::clone(self.host.toolbox());
        let context = ToolCallContext {
            call_id: "c".into(),
            session_id: session.into(),
            ..Default::default()
        };
        let call = RequestedCall {
            context,
            tool: tool.parse().unwrap(),
            arguments: arguments.to_string(),
        };
        Box::pin(async move {
            match toolbox.admit_call(call).await {
                Ok(admission) => admission.run_call().await,
                Err(report) => *report,
            }
        })
    }
}

/// What a completed call returned.
#[track_caller]
pub(crate) fn data(report: &CallReport) -> &Value {
    match &report.outcome {
        Outcome::Completed(output) => &output.data,
        other => panic!("not completed: {other:?}"),
    }
}

/// Word and message of an outcome, as a model reads them.
pub(crate) fn told(report: &CallReport) -> String {
    let told = report.outcome.to_model_value();
    let message = match &told["error"] {
        Value::String(error) => error.clone(),
        _ => told.to_string(),
    };
    format!("{}: {message}", report.outcome.as_str())
}

/// The log lines of a call.
pub(crate) fn log(report: &CallReport) -> Vec<&str> {
    let lines = report.effects.iter().filter_map(|effect| match effect {
        Effect::Logged { text, .. } => Some(text.as_str()),
        _ => None,
    });
    lines.collect()
}
