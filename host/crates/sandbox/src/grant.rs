//! Opens the sandbox: turns an effective grant into a WASI context and the mounts of a guest.
//!
//! This is the only place that builds WASI contexts and opens granted folders. Everything starts
//! closed: no standard input, no arguments except a program's own name, no environment, no folders,
//! no sockets, no name lookup. Time and randomness are always available.
//!
//! - A folder is opened and mounted at its guest path. Each host call checks the current grant; see
//!   `files`.
//! - A scratch folder belongs to the session. It is created when it is first used and mounted in
//!   the same way.
//! - A single file is copied at the start of each call into a folder that is mounted as `/` and is
//!   read-only. The folder around the original is never opened.
//! - An environment variable is set if both the manifest and the policy name it.

use std::{
    fs, io,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rustix::fs::OFlags;
use sallyport_policy::{FsAccess, FsMount, Grant, ScratchGrant};
use sallyport_untrusted_file as untrusted_file;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use crate::{
    capability::stdio::GuestOutput,
    current_run::CurrentRun,
    files::{
        GuestFiles, SharedDiskState,
        mount::{GuestMount, MountGrantEntry, OpenFileCounter},
        temp_folder::ProcessTempFolder,
    },
    limits::RANDOM_BYTES_MAX,
    run_context::RunContext,
    simulation::StoppedClock,
};

/// Largest single file that is copied for a guest, in bytes. Folders have no such limit.
const FILE_COPY_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A granted path cannot be opened. The message names host paths, so it is for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{path} is granted as {guest} but cannot be opened: {source}", path = path.display())]
pub(crate) struct GrantOpenError {
    path: PathBuf,
    pub(crate) guest: String,
    source: io::Error,
}

/// The WASI context and files of a guest, with the folder of file copies that is removed with it.
pub(crate) struct GuestResources {
    pub(crate) wasi: WasiCtx,
    pub(crate) files: GuestFiles,
    pub(crate) file_copies: Option<ProcessTempFolder>,
}

/// The part of a grant that is fixed for as long as a guest lives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FixedGrantParts {
    folders: Vec<(PathBuf, String)>,
    scratch_folders: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    memory_bytes: u64,
    handles: u32,
    host_call_bytes: u64,
}

impl FixedGrantParts {
    /// The fixed part of this run's grant.
    pub(crate) fn from_run_context(run_context: &RunContext) -> Self {
        let granted = run_context.initial_grant();
        Self::new(granted, run_context.environment_variables(granted))
    }

    /// The fixed part of a grant that gives this environment.
    pub(crate) fn new(granted: &Grant, environment: Vec<(String, String)>) -> Self {
        let limits = granted.limits();
        let folder = |mount: &FsMount| (mount.host.clone(), mount.guest.clone());
        let scratch = |scratch_grant: &ScratchGrant| {
            (scratch_grant.name.clone(), scratch_grant.mount.clone())
        };
        Self {
            folders: granted.fs().iter().map(folder).collect(),
            scratch_folders: granted.scratch().iter().map(scratch).collect(),
            environment,
            memory_bytes: limits.memory_bytes,
            handles: limits.handles,
            host_call_bytes: limits.host_call_bytes,
        }
    }

    /// The environment of the guest.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Whether it opens folders or files.
    pub(crate) fn has_folders(&self) -> bool {
        !self.folders.is_empty() || !self.scratch_folders.is_empty()
    }
}

/// Opens exactly what the grant of a run contains.
///
/// # Errors
///
/// A granted folder or file is missing or cannot be opened.
pub(crate) fn open_guest_resources(
    current_run: &Arc<CurrentRun>,
    output: &[GuestOutput; 2],
    env: &[(String, String)],
    disk: &SharedDiskState,
    simulated_now: Option<SystemTime>,
) -> Result<GuestResources, GrantOpenError> {
    let run_context = current_run.context();
    let (files, file_copies) = open_granted_files(current_run, run_context.initial_grant(), disk)?;
    let wasi = build_wasi_context(&run_context, output, env, simulated_now);
    Ok(GuestResources { wasi, files, file_copies })
}

/// Opens the folders and files of a grant, with the folder of file copies.
///
/// # Errors
///
/// A granted folder or file is missing or cannot be opened.
pub(crate) fn open_granted_files(
    current_run: &Arc<CurrentRun>,
    grant: &Grant,
    disk: &SharedDiskState,
) -> Result<(GuestFiles, Option<ProcessTempFolder>), GrantOpenError> {
    let open_files = Arc::new(OpenFileCounter::default());
    let (mut mounts, mut copies, mut scratch) = (Vec::new(), Vec::new(), None);
    for granted in grant.fs() {
        let failed = |source| GrantOpenError {
            path: granted.host.clone(),
            guest: granted.guest.clone(),
            source,
        };
        let entry = MountGrantEntry::from_mount(granted);
        if fs::metadata(&granted.host).map_err(failed)?.is_dir() {
            let root = open_folder(&granted.host).map_err(failed)?;
            let usage = disk.folder_usage.folder_usage(&root).map_err(failed)?;
            mounts.push(GuestMount::from_folder(current_run, &open_files, entry, root, usage));
        } else {
            copy_file(granted, &mut scratch).map_err(failed)?;
            copies.push(entry);
        }
    }
    mounts.extend(open_scratch_folders(current_run, grant, &open_files, disk)?);
    if let Some(folder) = &scratch {
        let (path, guest) = (folder.path().to_owned(), "/".to_owned());
        let root = open_folder(&path).map_err(|source| GrantOpenError { path, guest, source })?;
        mounts.push(GuestMount::from_file_copies(current_run, &open_files, copies, root));
    }
    Ok((GuestFiles { mounts }, scratch))
}

/// Opens the scratch folders of the run's session.
fn open_scratch_folders(
    current_run: &Arc<CurrentRun>,
    grant: &Grant,
    open_files: &Arc<OpenFileCounter>,
    disk: &SharedDiskState,
) -> Result<Vec<Arc<GuestMount>>, GrantOpenError> {
    let run_context = current_run.context();
    let Some(call) = run_context.call() else { return Ok(Vec::new()) };
    let open = |granted: &ScratchGrant| {
        let opened = disk.scratch_folders.open_folder(
            &call.context().session_id,
            &granted.name,
            &disk.folder_usage,
        );
        let (root, usage) = opened.map_err(|source| GrantOpenError {
            path: granted.name.clone().into(),
            guest: granted.mount.clone(),
            source,
        })?;
        Ok(GuestMount::from_scratch_folder(current_run, open_files, granted, root, usage))
    };
    grant.scratch().iter().map(open).collect()
}

/// A context without any folder. Files have an implementation of their own; see `files`.
#[expect(clippy::disallowed_methods, reason = "this is the one place where a sandbox is opened")]
fn build_wasi_context(
    run_context: &RunContext,
    [stdout, stderr]: &[GuestOutput; 2],
    env: &[(String, String)],
    simulated_now: Option<SystemTime>,
) -> WasiCtx {
    let mut context = WasiCtxBuilder::new();
    match &run_context.role_links.program {
        None => context.stdout(stdout.clone()).stderr(stderr.clone()),
        Some(program) => {
            let stderr = program.stderr(stderr);
            // Many programs read their own name before they look for arguments.
            context.arg(run_context.initial_grant().plugin().as_str());
            context.stdin(program.stdin()).stdout(program.stdout()).stderr(stderr)
        }
    };
    if let Some(now) = simulated_now {
        context.wall_clock(StoppedClock(now));
    }
    context
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .max_random_size(RANDOM_BYTES_MAX)
        .envs(env)
        .build()
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let only_a_folder = OFlags::DIRECTORY.bits().cast_signed();
    let folder = fs::OpenOptions::new().read(true).custom_flags(only_a_folder).open(path)?;
    Ok(folder.into())
}

/// Copies one granted file to its guest path in the folder of copies.
fn copy_file(mount: &FsMount, scratch: &mut Option<ProcessTempFolder>) -> io::Result<()> {
    let bytes = read_file(mount)?;
    let folder = match scratch {
        Some(folder) => folder,
        None => scratch.insert(ProcessTempFolder::create()?),
    };
    let target = folder.path().join(mount.guest.trim_start_matches('/'));
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(target, bytes)
}

fn read_file(mount: &FsMount) -> io::Result<Vec<u8>> {
    if mount.access == FsAccess::ReadWrite {
        return Err(io::Error::other(
            "a single file can only be granted for reading; grant its folder",
        ));
    }
    untrusted_file::read_bytes(&mount.host, FILE_COPY_BYTES_MAX).map_err(|error| {
        match error.kind() {
            io::ErrorKind::FileTooLarge => {
                io::Error::other("a single file may have 4 MiB at most; grant its folder")
            }
            io::ErrorKind::InvalidInput => io::Error::other("neither a folder nor a regular file"),
            _ => error,
        }
    })
}
