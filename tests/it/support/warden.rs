//! A plugin whose warden is a script: what it is granted, who is asked, which secrets there are.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sallyport_contract::{
    AdmittedCall, BoxFuture, CallReport, Denial, HostNameResolver, Redactor, RequestedCall, Secret,
    Services, ToolCallContext, ToolDescriptor,
};
use sallyport_policy::{Grant, Manifest, Policy, ProxyTable};
use sallyport_sandbox::{
    Compiler, ComponentFile, HostCallAuthorizer, LoadError, OutboundAccess, Plugin, PluginParts,
    Sandbox, SandboxOptions, SystemResolver,
};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use super::{
    Server,
    home::{guest, manifest},
    patience,
};

/// What came of asking about a request.
pub(crate) type Agreement = Result<Option<String>, Denial>;

type Agree =
    dyn for<'a> Fn(&'a Scripted, &'a OutboundAccess<'_>) -> BoxFuture<'a, Agreement> + Send + Sync;

/// A warden that does what a test says.
pub(crate) struct Scripted {
    manifest: Manifest,
    policy: Mutex<(Arc<Grant>, Option<Arc<ProxyTable>>)>,
    agree: Box<Agree>,
    secrets: BTreeMap<String, Result<Secret, String>>,
    settings: Map<String, Value>,
    services: Services,
    /// The requests that it was asked about.
    asked: Mutex<Vec<String>>,
    grants: AtomicUsize,
}

impl Scripted {
    /// A guest's warden under a policy; it agrees to everything. `requests` is the end of the
    /// manifest.
    pub(crate) fn new(name: &str, requests: &str, policy: &str) -> Self {
        Self::of_manifest(&manifest(name, requests), policy)
    }

    /// The warden of a plugin with a manifest of its own.
    pub(crate) fn of_manifest(manifest: &str, policy: &str) -> Self {
        let manifest = Manifest::parse("plugin.toml", manifest).unwrap();
        Self {
            policy: Mutex::new(read(&manifest, policy)),
            manifest,
            agree: Box::new(|_, _| Box::pin(async { Ok(None) })),
            secrets: BTreeMap::new(),
            settings: Map::new(),
            services: Services::default(),
            asked: Mutex::new(Vec::new()),
            grants: AtomicUsize::new(0),
        }
    }

    /// Answers questions.
    pub(crate) fn agreeing(
        self,
        agree: impl for<'a> Fn(&'a Self, &'a OutboundAccess<'_>) -> BoxFuture<'a, Agreement>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { agree: Box::new(agree), ..self }
    }

    /// Knows a secret, or why it cannot be had.
    pub(crate) fn secret(mut self, name: &str, value: Result<&str, &str>) -> Self {
        let value = value.map(Secret::new).map_err(str::to_owned);
        self.secrets.insert(name.to_owned(), value);
        self
    }

    /// Has something to keep, plan and say things with.
    pub(crate) fn offering(self, services: Services) -> Self {
        Self { services, ..self }
    }

    /// Gives the plugin a setting.
    pub(crate) fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.insert(name.to_owned(), value.into());
        self
    }

    /// The manifest of its plugin.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// From now on another policy holds.
    pub(crate) fn change(&self, policy: &str) {
        *self.policy.lock().unwrap() = read(&self.manifest, policy);
    }

    /// What it was asked about, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How often somebody looked at the grant.
    pub(crate) fn looks(&self) -> usize {
        self.grants.load(Ordering::SeqCst)
    }
}

/// The end of a manifest that requests these patterns.
pub(crate) fn requests(patterns: &[&str]) -> String {
    let request = |allow: &&str| format!("[[request.net]]\nallow = \"{allow}\"\nwhy = \"tests\"\n");
    patterns.iter().map(request).collect()
}

/// The entry that grants all of one server. `more` stands beside the pattern.
pub(crate) fn entry(server: &Server, more: &str) -> String {
    format!("{{ allow = \"GET,HEAD,POST {}/**\", to-private = true{more} }}", server.url())
}

/// A policy that grants these entries to the hostile guest. `more` are further lines of its table.
pub(crate) fn policy(entries: &[String], more: &str) -> String {
    format!("[plugin.hostile]\nnet = [{}]\n{more}\n", entries.join(", "))
}

/// The warden of a hostile guest that may reach one server.
pub(crate) fn hostile(server: &Server, more: &str) -> Scripted {
    let request = requests(&[&format!("GET,HEAD,POST {}/**", server.url())]);
    Scripted::new("hostile", &request, &policy(&[entry(server, "")], more))
}

fn read(manifest: &Manifest, policy: &str) -> (Arc<Grant>, Option<Arc<ProxyTable>>) {
    let policy = Policy::from_user_file("policy.toml", policy, None).unwrap();
    let proxy = policy.proxy().cloned().map(Arc::new);
    (Arc::new(policy.effective_grant(manifest, &Map::new())), proxy)
}

impl HostCallAuthorizer for Scripted {
    fn current_grant(&self) -> Arc<Grant> {
        self.grants.fetch_add(1, Ordering::SeqCst);
        Arc::clone(&self.policy.lock().unwrap().0)
    }

    fn authorize_access<'a>(&'a self, access: OutboundAccess<'a>) -> BoxFuture<'a, Agreement> {
        self.asked.lock().unwrap().push(access.what.to_owned());
        Box::pin(async move { (self.agree)(self, &access).await })
    }

    fn look_up_secret(&self, name: &str) -> Result<Secret, String> {
        self.secrets.get(name).cloned().unwrap_or_else(|| Err("there is none".to_owned()))
    }

    fn environment_variable(&self, name: &str) -> Option<String> {
        Some(format!("the value of {name}"))
    }

    fn redactor(&self) -> Arc<Redactor> {
        let known = self.secrets.iter();
        let known = known.filter_map(|(name, value)| Some((name.as_str(), value.as_ref().ok()?)));
        Arc::new(Redactor::new(known))
    }

    fn services(&self) -> Services {
        self.services.clone()
    }

    fn default_user(&self) -> &str {
        "tester"
    }

    fn proxy_settings(&self) -> Option<Arc<ProxyTable>> {
        self.policy.lock().unwrap().1.clone()
    }
}

/// A guest of the tests with its warden.
pub(crate) struct Guarded {
    pub(crate) warden: Arc<Scripted>,
    pub(crate) plugin: Arc<Plugin>,
    runtime: Runtime,
}

impl Guarded {
    /// Loads the warden's guest, with the system's own name service.
    #[track_caller]
    pub(crate) fn by(warden: Scripted) -> Self {
        Self::resolving(warden, Arc::new(SystemResolver::default()))
    }

    /// Loads the warden's guest, with another name service.
    #[track_caller]
    pub(crate) fn resolving(warden: Scripted, resolver: Arc<dyn HostNameResolver>) -> Self {
        Self::load(warden, resolver).unwrap()
    }

    /// Loads the warden's guest, if it can be loaded.
    pub(crate) fn load(
        warden: Scripted,
        resolver: Arc<dyn HostNameResolver>,
    ) -> Result<Self, LoadError> {
        let name = warden.manifest.name.to_string();
        Self::made_of(warden, resolver, guest(&name), |sandbox, parts| sandbox.load_plugin(parts))
    }

    /// Loads any component as the warden's plugin.
    pub(crate) fn of(warden: Scripted, bytes: Vec<u8>) -> Result<Self, LoadError> {
        let resolver = Arc::new(SystemResolver::default());
        Self::made_of(warden, resolver, bytes, |sandbox, parts| sandbox.load_plugin(parts))
    }

    /// Loads a component as a program that is one tool.
    pub(crate) fn program(
        warden: Scripted,
        bytes: Vec<u8>,
        tool: ToolDescriptor,
    ) -> Result<Self, LoadError> {
        let resolver = Arc::new(SystemResolver::default());
        Self::made_of(warden, resolver, bytes, |sandbox, parts| {
            sandbox.load_command(parts, tool, Duration::MAX)
        })
    }

    fn made_of(
        warden: Scripted,
        resolver: Arc<dyn HostNameResolver>,
        bytes: Vec<u8>,
        load: impl FnOnce(&Arc<Sandbox>, PluginParts<'_>) -> Result<Plugin, LoadError>,
    ) -> Result<Self, LoadError> {
        patience::watch();
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/compiled");
        let compiler = Compiler::with_program(env!("CARGO_BIN_EXE_sallyport").into());
        let options = SandboxOptions { cache_dir: Some(cache), compiler, resolver };
        let (sandbox, _) = Sandbox::new(options);
        let warden = Arc::new(warden);
        let file = ComponentFile::new(Path::new(warden.manifest.name.as_str()), bytes)?;
        let parts = PluginParts {
            manifest: &warden.manifest,
            file: &file,
            authorizer: Arc::clone(&warden) as Arc<dyn HostCallAuthorizer>,
            settings: warden.settings.clone(),
        };
        let plugin = load(&sandbox, parts)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        Ok(Self { warden, plugin: Arc::new(plugin), runtime })
    }

    /// Calls a tool and waits.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> CallReport {
        self.wait(self.begin(tool, arguments))
    }

    /// Calls a tool; the future is the call.
    pub(crate) fn begin(&self, tool: &str, arguments: &Value) -> BoxFuture<'static, CallReport> {
        let admitted = self.admitted(tool, arguments);
        let plugin = Arc::clone(&self.plugin);
        Box::pin(async move { plugin.call(admitted).await })
    }

    /// A call that the gate has let through.
    pub(crate) fn admitted(&self, tool: &str, arguments: &Value) -> AdmittedCall {
        let context =
            ToolCallContext { call_id: "c".into(), session_id: "s".into(), ..Default::default() };
        let tool = format!("{}.{tool}", self.warden.manifest.name).parse().unwrap();
        let call = RequestedCall { context, tool, arguments: arguments.to_string() };
        AdmittedCall::new(call, arguments.clone())
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
