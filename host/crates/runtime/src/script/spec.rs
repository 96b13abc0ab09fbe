//! What a script may do in one run: the grant of its plugin in the words of the walls.

use std::{path::PathBuf, time::Duration};

use sallyport_policy::{Access, Grant, ProcessGrant};
use sallyport_process::{Limits, Network, Script, Spec, Walls};
use sallyport_sandbox::Warden;

/// Processor time is counted in whole seconds, and there has to be some.
const CPU_TIME_MIN: Duration = Duration::from_secs(1);

/// Returns what the script of a plugin may do.
pub(super) fn of(
    script: &Script,
    grant: &Grant,
    process: &ProcessGrant,
    warden: &dyn Warden,
) -> Spec {
    Spec {
        program: script.program.path.clone(),
        digest: script.program.digest.clone(),
        folder: script.folder.clone(),
        reads: paths(grant, Access::Read),
        writes: paths(grant, Access::ReadWrite),
        network: if process.network { Network::Open } else { Network::None },
        walls: if process.unwalled { Walls::AsAvailable } else { Walls::Required },
        limits: limits(script, grant),
        env: variables(grant, warden),
    }
}

fn paths(grant: &Grant, access: Access) -> Vec<PathBuf> {
    let mounts = grant.fs().iter().filter(|mount| mount.access == access);
    mounts.map(|mount| mount.host.clone()).collect()
}

/// Variables that are granted and set.
fn variables(grant: &Grant, warden: &dyn Warden) -> Vec<(String, String)> {
    let set = grant.env().iter().filter_map(|name| Some((name.clone(), warden.variable(name)?)));
    set.collect()
}

/// The limits of the policy, and the script's own time where that is shorter. What only a program of
/// the machine can use up, such as processes, no policy states: the standards hold.
fn limits(script: &Script, grant: &Grant) -> Limits {
    let limits = grant.limits();
    let time = script.definition.timeout.min(limits.time);
    Limits {
        time,
        cpu_time: limits.cpu.unwrap_or(time).max(CPU_TIME_MIN),
        memory_bytes: limits.memory_bytes,
        open_files: limits.handles,
        output_bytes: limits.output_bytes,
        errors_bytes: limits.log_bytes,
        ..Limits::STANDARD
    }
}
