//! Landlock: which files there are for a program, and that it signals nobody but its own.
//!
//! What is not named here or granted cannot be opened, made, removed or run, by whatever path or
//! link. The home of the user is not named, and neither is what is secret below `/etc`.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use crate::{
    error::RunError,
    spec::{Network, Spec, Wall, Walls},
};

/// The version that a wall needs: the first that keeps signals in.
const REQUIRED: ABI = ABI::V6;

/// The version that keeps files: the first that also sees a file cut short.
const FILES: ABI = ABI::V3;

/// The newest version whose rules are known here. An older kernel keeps those that it knows.
const NEWEST: ABI = ABI::V9;

/// Where programs, their libraries and what they need of both are, on the systems that there are.
const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// What programs read to find their libraries, the time zone, the names of users, and whom they may
/// trust; and what the machine is like. Of `/etc/ssl` and `/etc/pki` not the whole: keys lie there.
const SETTINGS: [&str; 30] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// What this process is like; its descendants cannot look at themselves, since they have other
/// numbers. Not the whole folder: beside it lies what the machine is connected to.
const ITSELF: [&str; 19] = [
    "/proc/self/auxv",
    "/proc/self/cgroup",
    "/proc/self/cmdline",
    "/proc/self/comm",
    "/proc/self/cpuset",
    "/proc/self/environ",
    "/proc/self/fd",
    "/proc/self/fdinfo",
    "/proc/self/io",
    "/proc/self/limits",
    "/proc/self/maps",
    "/proc/self/mountinfo",
    "/proc/self/mounts",
    "/proc/self/oom_score_adj",
    "/proc/self/smaps",
    "/proc/self/smaps_rollup",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
];

/// What names and addresses are looked up with, and what the machine is connected to.
const NETWORK: [&str; 7] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/proc/self/net",
];

/// Devices that are no more than files without contents.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Returns those of its walls that the kernel does not have.
pub(super) fn missing() -> Vec<Wall> {
    let lacks = |abi: ABI, scope: bool| required(abi, scope).and_then(Ruleset::create).is_err();
    match (lacks(FILES, false), lacks(REQUIRED, true)) {
        (true, _) => vec![Wall::Files, Wall::Signals],
        (false, true) => vec![Wall::Signals],
        (false, false) => Vec::new(),
    }
}

/// Leaves this process, and all that it starts, the files of the description.
pub(super) fn raise(spec: &Spec, scratch: &Path) -> Result<(), RunError> {
    let rules = ruleset(spec).and_then(Ruleset::create).map_err(no_wall)?;
    let rules = add(rules, &system(spec.network)).map_err(no_wall)?;
    let rules = granted(spec, scratch).iter().try_fold(rules, grant)?;
    rules.restrict_self().map(drop).map_err(no_wall)
}

/// Rules of a version that the kernel has to have.
fn required(abi: ABI, scope: bool) -> Result<Ruleset, RulesetError> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules.handle_access(AccessFs::from_all(abi))?;
    if scope { rules.scope(Scope::from_all(abi)) } else { Ok(rules) }
}

/// All kinds of access that are shut out where no rule allows them.
fn ruleset(spec: &Spec) -> Result<Ruleset, RulesetError> {
    let rules = match spec.walls {
        Walls::Required => required(REQUIRED, true)?,
        Walls::AsAvailable => Ruleset::default(),
    };
    let rules = rules.set_compatibility(CompatLevel::BestEffort);
    let rules = rules.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    match spec.network {
        Network::None => rules.handle_access(AccessNet::from_all(NEWEST)),
        Network::Open => Ok(rules),
    }
}

type Rights = BitFlags<AccessFs>;

fn look() -> Rights {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Whoever can read a program can run it, with an interpreter if need be; so both go together.
fn look_and_run() -> Rights {
    look() | AccessFs::Execute
}

/// Neither devices nor sockets are made, and what was written is not run.
fn change() -> Rights {
    look()
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::MakeFifo
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer
}

/// What every program has.
fn system(network: Network) -> Vec<(PathBuf, Rights)> {
    let with = |rights: Rights| move |path: &&str| (PathBuf::from(path), rights);
    let lookup: &[&str] = match network {
        Network::None => &[],
        Network::Open => &NETWORK,
    };
    let read = SETTINGS.iter().chain(&ITSELF).chain(lookup).map(with(look()));
    let run = PROGRAMS.iter().map(with(look_and_run()));
    let devices = DEVICES.iter().map(with(AccessFs::ReadFile | AccessFs::WriteFile));
    read.chain(run).chain(devices).collect()
}

/// What this program has.
fn granted(spec: &Spec, scratch: &Path) -> Vec<(PathBuf, Rights)> {
    let own = [&spec.folder, &spec.program].into_iter().chain(&spec.reads);
    let own = own.map(|path| (path.clone(), look_and_run()));
    let writes = spec.writes.iter().map(PathBuf::as_path).chain([scratch]);
    own.chain(writes.map(|path| (path.to_owned(), change()))).collect()
}

/// Adds what is there of the system's.
fn add(
    mut rules: RulesetCreated,
    paths: &[(PathBuf, Rights)],
) -> Result<RulesetCreated, RulesetError> {
    for (path, rights) in paths {
        if let Ok(opened) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(opened, fitting(path, *rights)))?;
        }
    }
    Ok(rules)
}

/// Adds one path that has to be there.
fn grant(
    rules: RulesetCreated,
    (path, rights): &(PathBuf, Rights),
) -> Result<RulesetCreated, RunError> {
    let opened = PathFd::new(path).map_err(|error| RunError::Grant {
        path: path.display().to_string(),
        message: root_cause(&error),
    })?;
    rules.add_rule(PathBeneath::new(opened, fitting(path, *rights))).map_err(no_wall)
}

/// A file has no rights of a folder.
fn fitting(path: &Path, rights: Rights) -> Rights {
    if path.is_dir() { rights } else { rights & AccessFs::from_file(NEWEST) }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root_cause)
}

fn no_wall(_: RulesetError) -> RunError {
    RunError::NoWall { missing: vec![Wall::Files, Wall::Signals] }
}
