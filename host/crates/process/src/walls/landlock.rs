//! Landlock: restricts a program to granted files, and its signals to its own processes.
//!
//! A path that is not listed here or granted cannot be opened, created, removed or run, by any path
//! or link. The user's home is not listed, and neither are the secrets in `/etc`.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, PathBeneath, PathFd, Ruleset, RulesetCreated, RulesetCreatedAttr,
    RulesetError,
};
use sallyport_walls::landlock::{deny_all, is_supported};

use crate::{
    error::RunError,
    spec::{MissingWallPolicy, ProcessNetwork, ProcessSpec, ProcessWall},
};

/// The required version: the first that confines signals.
const REQUIRED_ABI: ABI = ABI::V6;

/// The version that protects files: the first that covers truncation.
const FILES_ABI: ABI = ABI::V3;

/// The newest version that this module uses. An older kernel enforces the rules that it supports.
const NEWEST_ABI: ABI = ABI::V9;

/// Folders of programs, their libraries and their data, on the common distributions.
const PROGRAM_PATHS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Files that programs read to find their libraries, the time zone, user names, trusted
/// certificates and properties of the machine. `/etc/ssl` and `/etc/pki` are not listed as a whole,
/// because they contain private keys.
const SETTING_PATHS: [&str; 30] = [
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

/// Properties of this process. The links resolve to its id, so its descendants cannot read their
/// own. The whole folder is not listed, because it includes the machine's network connections.
const OWN_PROCESS_PATHS: [&str; 19] = [
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

/// Files for name lookups, and the machine's network connections.
const NETWORK_PATHS: [&str; 7] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/proc/self/net",
];

/// Devices without contents of their own.
const DEVICE_PATHS: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Returns the walls of Landlock that the kernel lacks.
pub(super) fn missing_landlock_walls() -> Vec<ProcessWall> {
    match (is_supported(FILES_ABI, false), is_supported(REQUIRED_ABI, true)) {
        (false, _) => vec![ProcessWall::Files, ProcessWall::Signals],
        (true, false) => vec![ProcessWall::Signals],
        (true, true) => Vec::new(),
    }
}

/// Restricts this process and all its descendants to the files of the specification.
pub(super) fn apply_landlock(spec: &ProcessSpec, scratch: &Path) -> Result<(), RunError> {
    let required = (spec.walls == MissingWallPolicy::Required).then_some(REQUIRED_ABI);
    let deny_tcp = spec.network == ProcessNetwork::None;
    let rules = deny_all(NEWEST_ABI, required, deny_tcp).and_then(Ruleset::create);
    let rules = rules.map_err(missing_wall_error)?;
    let rules =
        add_existing_paths(rules, &system_paths(spec.network)).map_err(missing_wall_error)?;
    let rules = granted_paths(spec, scratch).iter().try_fold(rules, add_granted_path)?;
    rules.restrict_self().map(drop).map_err(missing_wall_error)
}

type Rights = BitFlags<AccessFs>;

fn read_rights() -> Rights {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Reading implies executing, because an interpreter can run any program that it can read.
fn read_execute_rights() -> Rights {
    read_rights() | AccessFs::Execute
}

/// Excludes making devices and sockets, and executing written files directly.
fn read_write_rights() -> Rights {
    read_rights()
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

/// Returns the paths that every program can access.
fn system_paths(network: ProcessNetwork) -> Vec<(PathBuf, Rights)> {
    let with = |rights: Rights| move |path: &&str| (PathBuf::from(path), rights);
    let lookup: &[&str] = match network {
        ProcessNetwork::None => &[],
        ProcessNetwork::Open => &NETWORK_PATHS,
    };
    let read =
        SETTING_PATHS.iter().chain(&OWN_PROCESS_PATHS).chain(lookup).map(with(read_rights()));
    let run = PROGRAM_PATHS.iter().map(with(read_execute_rights()));
    let devices = DEVICE_PATHS.iter().map(with(AccessFs::ReadFile | AccessFs::WriteFile));
    read.chain(run).chain(devices).collect()
}

/// Returns the paths that this program can access.
fn granted_paths(spec: &ProcessSpec, scratch: &Path) -> Vec<(PathBuf, Rights)> {
    let allowed_paths = [&spec.program].into_iter().chain(&spec.folder).chain(&spec.reads);
    let allowed_paths = allowed_paths.map(|path| (path.clone(), read_execute_rights()));
    let writes = spec.writes.iter().map(PathBuf::as_path).chain([scratch]);
    allowed_paths.chain(writes.map(|path| (path.to_owned(), read_write_rights()))).collect()
}

/// Adds those of the system's paths that exist.
fn add_existing_paths(
    mut rules: RulesetCreated,
    paths: &[(PathBuf, Rights)],
) -> Result<RulesetCreated, RulesetError> {
    for (path, rights) in paths {
        if let Ok(opened) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(opened, rights_for_path(path, *rights)))?;
        }
    }
    Ok(rules)
}

/// Adds one path, which must exist.
fn add_granted_path(
    rules: RulesetCreated,
    (path, rights): &(PathBuf, Rights),
) -> Result<RulesetCreated, RunError> {
    let opened = PathFd::new(path).map_err(|error| RunError::Grant {
        path: path.display().to_string(),
        message: root_cause(&error),
    })?;
    rules
        .add_rule(PathBeneath::new(opened, rights_for_path(path, *rights)))
        .map_err(missing_wall_error)
}

/// Removes the rights that apply only to folders from those of a file.
fn rights_for_path(path: &Path, rights: Rights) -> Rights {
    if path.is_dir() { rights } else { rights & AccessFs::from_file(NEWEST_ABI) }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root_cause)
}

fn missing_wall_error(_: RulesetError) -> RunError {
    RunError::NoWall { missing: vec![ProcessWall::Files, ProcessWall::Signals] }
}
