//! Starts the host from a clone after all the set-up that it needs.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::{
    build,
    process::{repository_root, run_command, run_for_status},
};

/// Sets up, builds, and starts `sallyport chat`, `run` or `selftest` with this repository's
/// plugins.
pub(crate) fn start_sallyport(task: &str, args: &[String]) -> Result<ExitCode> {
    eprintln!("setting up (the first time takes some minutes: the host contains a compiler) …");
    build::build_plugins()?;
    let program = build::build_host()?;
    let mut host = Command::new(&program);
    if std::env::var_os("SALLYPORT_PLUGIN_DIR").is_none() {
        let folders =
            [repository_root().join("plugins-wasm"), repository_root().join(build::SCRIPTS)];
        let plugins = std::env::join_paths(folders)?;
        host.env("SALLYPORT_PLUGIN_DIR", &plugins);
        // The user has just built these plugins from this repository, which accepts them.
        let mut accept = Command::new(&program);
        accept.env("SALLYPORT_PLUGIN_DIR", &plugins).args(["plugin", "accept"]);
        let names = [build::plugin_names()?, build::script_names()?].concat();
        run_command(accept.args(names).stdout(Stdio::null()))?;
    }
    let status = run_for_status(host.arg(task).args(args))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
