//! Starting the host from a clone: everything that a newcomer would otherwise have to do first.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::{
    build,
    process::{root, run, status},
};

/// Sets up, builds, and starts `sallyport chat` or `sallyport run` with this repository's plugins.
pub(crate) fn start(task: &str, args: &[String]) -> Result<ExitCode> {
    eprintln!("setting up (the first time takes some minutes: the host contains a compiler) …");
    build::plugins()?;
    let program = build::host()?;
    let mut host = Command::new(&program);
    if std::env::var_os("SALLYPORT_PLUGIN_DIR").is_none() {
        let plugins = root().join("plugins-wasm");
        host.env("SALLYPORT_PLUGIN_DIR", &plugins);
        // What was just built from this repository is what whoever builds it agrees to.
        let mut accept = Command::new(&program);
        accept.env("SALLYPORT_PLUGIN_DIR", &plugins).args(["plugin", "accept"]);
        run(accept.args(build::plugin_names()?).stdout(Stdio::null()))?;
    }
    let status = status(host.arg(task).args(args))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
