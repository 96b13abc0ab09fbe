//! The guest that uses every capability, in the sandbox alone.

use std::{path::Path, sync::Arc};

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallReport, Denial, Effect, Outcome, RequestedCall, Services,
    ToolCallContext,
};
use sallyport_sandbox::{
    Compiler, ComponentFile, HostCallAuthorizer, Plugin, PluginParts, Sandbox, SandboxOptions,
    SystemResolver,
};
use serde_json::{Map, json};
use tokio::runtime::Runtime;

use super::{home::guest, offers::Offers, patience, warden::Scripted};

/// Everything that the guest asks for.
pub(crate) const REQUESTS: &str = r#"
[[request.net]]
allow = "GET http://127.0.0.1:1-65535/**"
why = "tests"
[[request.fs]]
access = "read-write"
why = "tests"
[[request.env]]
name = "LIVING"
why = "tests"
[[request.state]]
why = "tests"
[[request.schedule]]
why = "tests"
[[request.notify]]
why = "tests"
[[request.progress]]
why = "tests"
[[request.open-url]]
why = "tests"
[[request.packages]]
why = "tests"
[[request.scratch]]
name = "desk"
why = "tests"
"#;

/// The guest with all that is around it.
pub(crate) struct Living {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) warden: Arc<Scripted>,
    pub(crate) offers: Arc<Offers>,
    runtime: Runtime,
}

impl Living {
    /// One with a fresh instance for each call. `table` is what follows `[plugin.living]`.
    pub(crate) fn fresh(table: &str) -> Self {
        Self::by(warden("", table), &sandbox())
    }

    /// One with an instance for each session.
    pub(crate) fn resident(table: &str) -> Self {
        Self::by(warden("instance = \"session\"\n", table), &sandbox())
    }

    /// One that the host offers nothing to.
    pub(crate) fn lonely(table: &str) -> Self {
        Self::with(Arc::default(), warden("", table).offering(Services::default()), &sandbox())
    }

    /// The guest of a warden, beside others in one sandbox.
    pub(crate) fn by(warden: Scripted, sandbox: &Arc<Sandbox>) -> Self {
        let offers = Arc::new(Offers::default());
        let warden = warden.offering(offers.services());
        Self::with(offers, warden, sandbox)
    }

    fn with(offers: Arc<Offers>, warden: Scripted, sandbox: &Arc<Sandbox>) -> Self {
        let warden = Arc::new(warden);
        let file = ComponentFile::new(Path::new("living"), guest("living")).unwrap();
        let plugin = sandbox.load_plugin(PluginParts {
            manifest: warden.manifest(),
            file: &file,
            authorizer: Arc::clone(&warden) as Arc<dyn HostCallAuthorizer>,
            settings: Map::new(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (sandbox, plugin) = (Arc::clone(sandbox), Arc::new(plugin.unwrap()));
        Self { sandbox, plugin, warden, offers, runtime }
    }

    /// From now on another policy holds; the table is what follows `[plugin.living]`.
    pub(crate) fn grant(&self, table: &str) {
        self.warden.change(&policy(table));
    }

    /// Follows a script in one call of the session `s`.
    pub(crate) fn call(&self, steps: &[&str]) -> CallReport {
        self.wait(self.begin("s", steps))
    }

    /// Begins a call; the future is the call.
    pub(crate) fn begin(&self, session: &str, steps: &[&str]) -> BoxFuture<'static, CallReport> {
        let context =
            ToolCallContext { session_id: session.to_owned(), ..ToolCallContext::default() };
        self.begin_in(context, steps)
    }

    /// Begins a call in any context.
    pub(crate) fn begin_in(
        &self,
        context: ToolCallContext,
        steps: &[&str],
    ) -> BoxFuture<'static, CallReport> {
        let arguments = json!({ "steps": steps });
        let tool = "living.acts".parse().unwrap();
        let call = RequestedCall { context, tool, arguments: arguments.to_string() };
        let admitted = AdmittedCall::new(call, arguments);
        let plugin = Arc::clone(&self.plugin);
        Box::pin(async move { plugin.call(admitted).await })
    }

    /// Follows a script; what came of each step.
    #[track_caller]
    pub(crate) fn steps(&self, steps: &[&str]) -> Vec<String> {
        told(&self.call(steps))
    }

    /// Does one step; what came of it.
    #[track_caller]
    pub(crate) fn step(&self, step: &str) -> String {
        self.steps(&[step]).remove(0)
    }

    /// Runs a future to its end.
    #[track_caller]
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        patience::run(&self.runtime, future)
    }

    /// Runs a future beside the test.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(future)
    }
}

/// A warden of the guest.
pub(crate) fn warden(lines: &str, table: &str) -> Scripted {
    Scripted::new("living", &format!("{lines}{REQUESTS}"), &policy(table))
}

fn policy(table: &str) -> String {
    format!("[plugin.living]\n{table}\n")
}

/// A sandbox with the cache of all tests.
pub(crate) fn sandbox() -> Arc<Sandbox> {
    patience::watch();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/compiled");
    let compiler = Compiler::with_program(env!("CARGO_BIN_EXE_sallyport").into());
    let resolver = Arc::new(SystemResolver::default());
    Sandbox::new(SandboxOptions { cache_dir: Some(cache), compiler, resolver }).0
}

/// What came of each step of a call.
#[track_caller]
pub(crate) fn told(report: &CallReport) -> Vec<String> {
    let Outcome::Completed(output) = &report.outcome else { panic!("not completed: {report:?}") };
    let steps = output.data.as_array().unwrap();
    steps.iter().map(|step| step.as_str().unwrap().to_owned()).collect()
}

/// What a call did through the capabilities, as `capability: what`.
pub(crate) fn used(report: &CallReport) -> Vec<String> {
    let used = report.effects.iter().filter_map(|effect| match effect {
        Effect::Used { capability, what } => Some(format!("{capability}: {what}")),
        _ => None,
    });
    used.collect()
}

/// What was refused to a call.
pub(crate) fn refused(report: &CallReport) -> Vec<&Denial> {
    let refused = report.effects.iter().filter_map(|effect| match effect {
        Effect::Refused(denial) => Some(denial),
        _ => None,
    });
    refused.collect()
}
