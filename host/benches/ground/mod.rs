//! The ground that benchmarks stand on: a sandbox with a cache of its own, and a registry of one
//! plugin of this repository under an empty policy.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport::{
    config::{Env, Flags, Settings},
    gate::{Gate, GateParts},
    lock::Lock,
    registry::{LoadParts, Registry, Selection},
};
use sallyport_contract::Services;
use sallyport_sandbox::{Compiler, Sandbox, SandboxOptions, SystemResolver};
use sallyport_session::NobodyToAsk;

/// The folder of built plugins.
pub(crate) fn plugins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").join("plugins-wasm")
}

pub(crate) fn sandbox(home: &Path) -> Arc<Sandbox> {
    let (sandbox, _) = Sandbox::new(SandboxOptions {
        cache_dir: Some(home.join("cache")),
        compiler: Compiler::InProcess,
        resolver: Arc::new(SystemResolver::default()),
    });
    sandbox
}

pub(crate) async fn registry(sandbox: &Arc<Sandbox>, home: &Path, plugin: &str) -> Registry {
    let flags = Flags { plugin_dirs: vec![plugins()], ..Flags::default() };
    let home = home.to_str().expect("a plain path");
    let settings = Settings::resolve(&flags, Env::of([("SALLYPORT_HOME", home)]));
    let settings = settings.expect("settings");
    let gate = Gate::open(GateParts {
        files: settings.policy.clone(),
        env: settings.env.clone(),
        consent: Arc::new(NobodyToAsk),
        store: None,
        tell: Arc::new(|_| {}),
        activity: Arc::new(|_, _| {}),
        services: Services::default(),
    });
    let lock = Lock::read(&settings.paths.lock()).expect("a lock");
    let registry = Registry::load(LoadParts {
        sandbox: Arc::clone(sandbox),
        settings: &settings,
        gate: gate.expect("a policy"),
        selection: Selection::Only(plugin.parse().expect("a name")),
        lock: &lock,
        pins: false,
        agrees: &|_, _| false,
    });
    registry.await.expect("a registry")
}
