//! Set-up that the benchmarks share: a host with a few plugins, an empty policy, its own folder, and
//! the usual audit log.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    host::CompileWait,
    notice::no_notices,
    registry::PluginSelection,
};
use sallyport_sandbox::Compiler;

/// The component of a plugin of this repository, or of the guest that returns its argument.
pub(crate) fn component(plugin: &str) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    if plugin.starts_with("echo") {
        repository.join("tests/guests/target/wasm32-wasip2/release/reference.wasm")
    } else {
        repository.join("plugins-wasm").join(plugin).join(format!("{plugin}.wasm"))
    }
}

/// Opens a host with these plugins. One whose name ends in `-kept` has one instance per session.
pub(crate) async fn host(home: &Path, plugins: &[&str]) -> Host {
    for plugin in plugins {
        install(&home.join("plugins").join(plugin), plugin);
    }
    open(home).await
}

/// Opens the host of this folder.
pub(crate) async fn open(home: &Path) -> Host {
    let home = home.to_str().expect("a plain path");
    let env = Env::from_pairs([("SALLYPORT_HOME", home)]);
    let settings = HostSettings::resolve(&ConfigFlags::default(), env).expect("settings");
    let options = HostOptions {
        compiler: Some(Compiler::InProcess),
        // Python takes longer than a session waits.
        compile_wait: CompileWait::Complete,
        ..HostOptions::unattended(PluginSelection::All, no_notices())
    };
    Host::open(&settings, options).await.expect("a host")
}

fn install(folder: &Path, plugin: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let file = component(plugin);
    fs::copy(&file, folder.join(format!("{plugin}.wasm")))
        .expect("a component; `cargo xtask plugins` and `cargo xtask guests` build them");
    let manifest = fs::read_to_string(file.with_file_name("plugin.toml")).unwrap_or_else(|_| {
        let instance = if plugin.ends_with("-kept") { "session" } else { "call" };
        format!(
            "name = \"{plugin}\"\nversion = \"1.0.0\"\ndescription = \"Returns a text.\"\n\
             instance = \"{instance}\"\n\n[[request.progress]]\nwhy = \"Its other tools use it.\"\n"
        )
    });
    fs::write(folder.join("plugin.toml"), manifest).expect("a manifest");
}
