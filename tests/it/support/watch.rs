//! One plugin in the sandbox alone, watched over by the test: its grant can be changed while its
//! calls run, and what it asks can be answered badly.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallReport, Denial, Redactor, RequestedCall, Secret, Services,
    ToolCallContext,
};
use sallyport_policy::{Grant, Manifest, Policy, ProxyTable};
use sallyport_sandbox::{
    Compiler, ComponentFile, HostCallAuthorizer, OutboundAccess, Plugin, PluginParts, Sandbox,
    SandboxOptions, SystemResolver,
};
use serde_json::{Map, Value, json};
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{Home, home, patience, registry};
use crate::limits::NET;

/// What the guest of these tests requests beside what it imports: any folder.
const FOLDERS: &str = "[[request.fs]]\naccess = \"read-write\"\nwhy = \"tests\"\n";

/// A guest under the eyes of a test.
pub(crate) struct Watch {
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) watcher: Arc<Watcher>,
    runtime: Runtime,
}

/// Holds a grant that may change, and counts how often it is asked.
pub(crate) struct Watcher {
    manifest: Manifest,
    grant: Mutex<Arc<Grant>>,
    questions: AtomicUsize,
    /// The question at which it falls over.
    falls_at: AtomicUsize,
}

impl Watch {
    /// The hostile guest with the table of its policy, as what follows `[plugin.hostile]`.
    pub(crate) fn of(home: &Home, table: &str) -> Self {
        Self::in_sandbox(&sandbox(home), home, table)
    }

    /// The same, beside others in one sandbox.
    pub(crate) fn in_sandbox(sandbox: &Arc<Sandbox>, home: &Home, table: &str) -> Self {
        let manifest = home::manifest("hostile", &format!("{NET}{FOLDERS}"));
        Self::component(sandbox, home, &manifest, home::guest("hostile"), table)
    }

    /// Any component.
    pub(crate) fn component(
        sandbox: &Arc<Sandbox>,
        home: &Home,
        manifest: &str,
        bytes: Vec<u8>,
        table: &str,
    ) -> Self {
        let manifest = Manifest::parse("plugin.toml", manifest).unwrap();
        let watcher = Arc::new(Watcher {
            grant: Mutex::new(grant(home, &manifest, table)),
            manifest,
            questions: AtomicUsize::new(0),
            falls_at: AtomicUsize::new(usize::MAX),
        });
        let file = ComponentFile::new(home.folder.path(), bytes).unwrap();
        let warden: Arc<dyn HostCallAuthorizer> = Arc::clone(&watcher) as _;
        let (manifest, settings) = (&watcher.manifest, Map::new());
        let parts = PluginParts { manifest, file: &file, authorizer: warden, settings };
        let plugin = Arc::new(sandbox.load_plugin(parts).unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        Self { plugin, watcher, runtime }
    }

    /// Gives the plugin another table of a policy, also while it runs.
    pub(crate) fn policy(&self, home: &Home, table: &str) {
        *self.watcher.grant.lock().unwrap() = grant(home, &self.watcher.manifest, table);
    }

    /// Runs a future to its end.
    #[track_caller]
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        patience::run(&self.runtime, future)
    }

    /// Calls a tool and waits.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> CallReport {
        self.wait(self.begin(tool, arguments))
    }

    /// Calls a tool; the future is the call.
    pub(crate) fn begin(&self, tool: &str, arguments: &Value) -> BoxFuture<'static, CallReport> {
        let context = ToolCallContext::default();
        let tool = format!("{}.{tool}", self.watcher.manifest.name).parse().unwrap();
        let call = RequestedCall { context, tool, arguments: arguments.to_string() };
        let call = AdmittedCall::new(call, arguments.clone());
        let plugin = Arc::clone(&self.plugin);
        Box::pin(async move { plugin.call(call).await })
    }

    /// Begins a call that runs beside what the test does next.
    pub(crate) fn spawn(&self, tool: &str, arguments: &Value) -> JoinHandle<CallReport> {
        self.beside(self.begin(tool, arguments))
    }

    /// Runs a call, perhaps of another plugin, beside what the test does next.
    pub(crate) fn beside(&self, call: BoxFuture<'static, CallReport>) -> JoinHandle<CallReport> {
        self.runtime.spawn(call)
    }

    /// Follows a script in one call; what came of each step.
    #[track_caller]
    pub(crate) fn script(&self, steps: &[&str]) -> Vec<String> {
        told(&self.call("follows_script", &json!({ "steps": steps })))
    }
}

/// What came of each step of a script.
#[track_caller]
pub(crate) fn told(report: &CallReport) -> Vec<String> {
    let steps = registry::data(report).as_array().unwrap();
    steps.iter().map(|step| step.as_str().unwrap().to_owned()).collect()
}

impl Watcher {
    /// Falls over when it is asked for the nth time from now.
    pub(crate) fn fall_at(&self, n: usize) {
        let questions = self.questions.load(Ordering::Relaxed);
        self.falls_at.store(questions.saturating_add(n), Ordering::Relaxed);
    }

    /// How often it is asked meanwhile.
    pub(crate) fn questions(&self, act: impl FnOnce()) -> usize {
        let before = self.questions.load(Ordering::Relaxed);
        act();
        self.questions.load(Ordering::Relaxed) - before
    }
}

/// A sandbox with the cache of all tests.
pub(crate) fn sandbox(home: &Home) -> Arc<Sandbox> {
    let cache_dir = Some(home.path("cache/compiled"));
    let resolver = Arc::new(SystemResolver::default());
    let compiler = Compiler::with_program(env!("CARGO_BIN_EXE_sallyport").into());
    let (sandbox, warning) = Sandbox::new(SandboxOptions { cache_dir, compiler, resolver });
    assert_eq!(warning, None);
    sandbox
}

#[track_caller]
fn grant(home: &Home, manifest: &Manifest, table: &str) -> Arc<Grant> {
    let text = format!("[plugin.{}]\n{table}\n", manifest.name);
    let policy = Policy::from_user_file("policy.toml", &text, Some(home.folder.path())).unwrap();
    Arc::new(policy.effective_grant(manifest, &Map::new()))
}

impl HostCallAuthorizer for Watcher {
    fn current_grant(&self) -> Arc<Grant> {
        let question = self.questions.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(question < self.falls_at.load(Ordering::Relaxed), "the watcher falls: hunter2");
        Arc::clone(&self.grant.lock().unwrap())
    }

    fn authorize_access<'a>(
        &'a self,
        _: OutboundAccess<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, Denial>> {
        Box::pin(async { Ok(None) })
    }

    fn look_up_secret(&self, name: &str) -> Result<Secret, String> {
        Err(format!("there is no secret {name} here"))
    }

    fn environment_variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn redactor(&self) -> Arc<Redactor> {
        Arc::new(Redactor::empty())
    }

    fn services(&self) -> Services {
        Services::default()
    }

    fn default_user(&self) -> &str {
        "tester"
    }

    fn proxy_settings(&self) -> Option<Arc<ProxyTable>> {
        None
    }
}
