//! The sandbox that runs the components of a registry.

use std::sync::Arc;

use sallyport_contract::HostNameResolver;
use sallyport_sandbox::{Compiler, Sandbox, SandboxOptions, Simulation};

use crate::{
    config::HostSettings,
    notice::{HostNotice, NoticeSink},
};

/// Creates the sandbox from the settings.
pub(crate) fn create_sandbox(
    settings: &HostSettings,
    compiler: Option<Compiler>,
    resolver: Arc<dyn HostNameResolver>,
    simulation: Simulation,
    notices: &NoticeSink,
) -> Arc<Sandbox> {
    let this_program = || Compiler::from_current_program(settings.compile.compile_limits());
    let options = SandboxOptions {
        cache_dir: Some(settings.paths.cache.join("compiled")),
        compiler: compiler.unwrap_or_else(this_program),
        resolver,
    };
    let (sandbox, warning) = Sandbox::with_simulation(options, simulation);
    if let Some(warning) = warning {
        notices(HostNotice::Sandbox(warning));
    }
    sandbox
}
