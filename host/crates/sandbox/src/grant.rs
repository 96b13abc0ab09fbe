//! Opens the sandbox: turns an effective grant into a WASI context.
//!
//! This is the one place where WASI contexts are built and folders are opened (a lint keeps it so).
//! Everything starts closed: no standard input, no arguments, no environment, no folder, no socket,
//! no name look-up. Time and randomness are not powers and are always there.
//!
//! - A folder is opened with the access of its mount and mounted under its guest path.
//! - A single file is copied, at the start of each call, into a read-only scratch folder that is
//!   mounted as `/`. The folder around it is never opened.
//! - An environment entry is there when both manifest and policy name it.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use sallyport_contract::LogLevel;
use sallyport_policy::{Access, FsMount, Grant};
use tempfile::TempDir;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use crate::{capability::stdio::GuestOutput, ledger::Ledger, limits::RANDOM_BYTES_MAX};

/// Largest single file that is copied for a guest; folders have no such limit.
const FILE_COPY_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Why a granted thing cannot be opened; for the person, since it names host paths.
#[derive(Debug, thiserror::Error)]
#[error("{path} is granted as {guest} but cannot be opened: {source}", path = path.display())]
pub(crate) struct OpenError {
    path: PathBuf,
    pub(crate) guest: String,
    source: io::Error,
}

/// A WASI context, and the folder of file copies that lives as long as it.
pub(crate) struct Opened {
    pub(crate) wasi: WasiCtx,
    pub(crate) scratch: Option<TempDir>,
}

/// Opens exactly what the grant holds.
///
/// # Errors
///
/// A granted folder or file is missing or cannot be opened.
#[expect(clippy::disallowed_methods, reason = "this is the one place where a sandbox is opened")]
pub(crate) fn open(
    grant: &Grant,
    env: &[(String, String)],
    ledger: &Ledger,
) -> Result<Opened, OpenError> {
    let output = |level| GuestOutput { ledger: ledger.clone(), level };
    let mut builder = WasiCtxBuilder::new();
    builder
        .stdout(output(LogLevel::Info))
        .stderr(output(LogLevel::Warn))
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .max_random_size(RANDOM_BYTES_MAX)
        .envs(env);
    let mut scratch = None;
    for mount in grant.fs() {
        let failed =
            |source| OpenError { path: mount.host.clone(), guest: mount.guest.clone(), source };
        if fs::metadata(&mount.host).map_err(failed)?.is_dir() {
            builder
                .preopened_dir(&mount.host, &mount.guest, permissions(mount.access))
                .map_err(|e| failed(io::Error::other(e.to_string())))?;
        } else {
            copy_file(mount, &mut scratch).map_err(failed)?;
        }
    }
    if let Some(folder) = &scratch {
        let folder: &TempDir = folder;
        builder.preopened_dir(folder.path(), "/", FsPerms::ReadOnly).map_err(|e| OpenError {
            path: folder.path().to_owned(),
            guest: "/".to_owned(),
            source: io::Error::other(e.to_string()),
        })?;
    }
    Ok(Opened { wasi: builder.build(), scratch })
}

fn permissions(access: Access) -> FsPerms {
    match access {
        Access::Read => FsPerms::ReadOnly,
        Access::ReadWrite => FsPerms::ReadWrite,
    }
}

/// Copies one granted file to its guest path below the scratch folder.
fn copy_file(mount: &FsMount, scratch: &mut Option<TempDir>) -> io::Result<()> {
    let bytes = read_file(mount)?;
    let folder = match scratch {
        Some(folder) => folder,
        None => scratch.insert(tempfile::Builder::new().prefix("sallyport-").tempdir()?),
    };
    let target = folder.path().join(mount.guest.trim_start_matches('/'));
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(target, bytes)
}

fn read_file(mount: &FsMount) -> io::Result<Vec<u8>> {
    if mount.access == Access::ReadWrite {
        return Err(io::Error::other(
            "a single file can only be granted for reading; grant its folder",
        ));
    }
    let file = open_regular(&mount.host)?;
    let mut bytes = Vec::new();
    file.take(FILE_COPY_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_COPY_BYTES_MAX {
        return Err(io::Error::other("a single file may have 4 MiB at most; grant its folder"));
    }
    Ok(bytes)
}

/// A pipe or a device could block for ever or never end.
fn open_regular(path: &Path) -> io::Result<fs::File> {
    if fs::metadata(path)?.is_file() {
        fs::File::open(path)
    } else {
        Err(io::Error::other("neither a folder nor a regular file"))
    }
}
