//! Translates the grant of a plugin into the specification of a run.

use std::{path::PathBuf, time::Duration};

use sallyport_policy::{FsAccess, Grant, ProcessGrant};
use sallyport_process::{MissingWallPolicy, ProcessLimits, ProcessNetwork, ProcessSpec, Script};
use sallyport_sandbox::HostCallAuthorizer;

/// Minimum processor time. It is counted in whole seconds, so zero would stop every program.
const CPU_TIME_MIN: Duration = Duration::from_secs(1);

/// Returns the specification of a run of the plugin's script.
pub(super) fn build_spec(
    script: &Script,
    grant: &Grant,
    process: &ProcessGrant,
    authorizer: &dyn HostCallAuthorizer,
) -> ProcessSpec {
    ProcessSpec {
        program: script.program.path.clone(),
        digest: script.program.digest.clone(),
        arguments: Vec::new(),
        folder: Some(script.folder.clone()),
        reads: granted_paths(grant, FsAccess::Read),
        writes: granted_paths(grant, FsAccess::ReadWrite),
        network: granted_network(process),
        walls: missing_wall_policy(process),
        limits: process_limits(script, grant),
        env: granted_variables(grant, authorizer),
    }
}

/// The network of a program that may run with this grant.
pub(crate) fn granted_network(process: &ProcessGrant) -> ProcessNetwork {
    if process.network { ProcessNetwork::Open } else { ProcessNetwork::None }
}

/// What happens to a program with this grant where a wall is missing.
pub(crate) fn missing_wall_policy(process: &ProcessGrant) -> MissingWallPolicy {
    if process.unsandboxed { MissingWallPolicy::AsAvailable } else { MissingWallPolicy::Required }
}

/// The folders that a grant gives with exactly this access.
pub(crate) fn granted_paths(grant: &Grant, access: FsAccess) -> Vec<PathBuf> {
    let mounts = grant.fs().iter().filter(|mount| mount.access == access);
    mounts.map(|mount| mount.host.clone()).collect()
}

/// Returns the granted variables that are set.
fn granted_variables(grant: &Grant, authorizer: &dyn HostCallAuthorizer) -> Vec<(String, String)> {
    let variables = grant
        .env()
        .iter()
        .filter_map(|name| Some((name.clone(), authorizer.environment_variable(name)?)));
    variables.collect()
}

/// Returns the limits of the policy, with the script's own timeout if that is shorter. Limits that
/// the policy does not have, such as the number of processes, are [`ProcessLimits::STANDARD`].
fn process_limits(script: &Script, grant: &Grant) -> ProcessLimits {
    let limits = grant.limits();
    let time = script.definition.timeout.min(limits.time);
    ProcessLimits {
        time,
        cpu_time: limits.cpu.unwrap_or(time).max(CPU_TIME_MIN),
        memory_bytes: limits.memory_bytes,
        open_files: limits.handles,
        output_bytes: limits.output_bytes,
        errors_bytes: limits.log_bytes,
        ..ProcessLimits::STANDARD
    }
}
