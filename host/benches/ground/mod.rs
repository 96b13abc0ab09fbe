//! Set-up that the benchmarks share: a host with one plugin of this repository, an empty policy,
//! its own folder, and the usual audit log.

use std::path::{Path, PathBuf};

use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    notice::no_notices,
    registry::PluginSelection,
};
use sallyport_sandbox::Compiler;

/// The folder of built plugins.
pub(crate) fn plugins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").join("plugins-wasm")
}

pub(crate) async fn host(home: &Path, plugin: &str) -> Host {
    let flags = ConfigFlags { plugin_dirs: vec![plugins()], ..ConfigFlags::default() };
    let home = home.to_str().expect("a plain path");
    let settings = HostSettings::resolve(&flags, Env::from_pairs([("SALLYPORT_HOME", home)]));
    let only = PluginSelection::Only(plugin.parse().expect("a name"));
    let options = HostOptions {
        compiler: Some(Compiler::InProcess),
        ..HostOptions::unattended(only, no_notices())
    };
    Host::open(&settings.expect("settings"), options).await.expect("a host")
}
