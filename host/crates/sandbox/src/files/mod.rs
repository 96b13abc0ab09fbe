//! Files as a guest sees them: the host's side of `wasi:filesystem`.
//!
//! This replaces the implementation of wasmtime-wasi, which lacks these checks:
//!
//! 1. The current grant is asked at every access, so a grant that is revoked or narrowed takes
//!    effect immediately, also on open files ([`mount`]).
//! 2. A path is walked name by name without following links blindly, and every name on the way is
//!    compared with the patterns that the mount denies. The name that was checked is the one that
//!    is opened, even if something is swapped in the meantime ([`resolve`]).
//! 3. A refusal by policy is recorded as an effect with the line that refused it, and so is every
//!    change.
//! 4. Growth is charged to the quota of the mount ([`folder_usage`]), whether it is a folder of the
//!    host or a scratch folder of the session ([`scratch`]).
//! 5. A guest that changes something in a folder that is granted for reading waits while the user is
//!    asked ([`write_access`]), and one without any files waits when it looks for them
//!    (`imports::missing_files`).
//! 6. A guest leaves no link that leads out of its mount, because other programs would follow it
//!    ([`symlink`]).
//! 7. Only regular files and folders are opened, so nothing blocks forever ([`open`]).
//!
//! All work on the disk runs on threads that may block. Changes to one folder of the host are made
//! one after the other, so that a checked entry is the one that is changed.

mod change;
mod content;
mod convert;
mod file_handle;
mod folder_usage;
mod host;
mod listing;
mod measure;
pub(crate) mod mount;
mod open;
mod path_metadata;
mod resolve;
mod scratch;
mod stream;
mod symlink;
pub(crate) mod temp_folder;
mod write_access;

use std::sync::Arc;

use wasmtime::component::{HasData, ResourceTable};
use wasmtime_wasi::runtime::spawn_blocking;

pub(crate) use self::folder_usage::FolderUsageTable;
use self::{mount::GuestMount, scratch::ScratchFolders};

/// The state of the disk that all guests share.
#[derive(Debug, Default)]
pub(crate) struct SharedDiskState {
    pub(crate) folder_usage: FolderUsageTable,
    pub(crate) scratch_folders: ScratchFolders,
}

/// The mounts of one guest. A guest without mounts has no files.
pub(crate) struct GuestFiles {
    pub(crate) mounts: Vec<Arc<GuestMount>>,
}

impl GuestFiles {
    /// Begins another run of the same guest.
    pub(crate) fn begin_run(&self) {
        self.mounts.iter().for_each(|mount| mount.quota_account().begin_run());
    }
}

/// The part of a guest that serves its calls to `wasi:filesystem`.
pub(crate) struct FileCalls<'a> {
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) files: &'a GuestFiles,
}

/// Gives the linker the type of [`FileCalls`].
pub(crate) struct FileCallData;

impl HasData for FileCallData {
    type Data<'a> = FileCalls<'a>;
}

/// Runs work that may block on the disk. Work that has not begun is dropped with the call.
pub(crate) async fn run_blocking<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> R {
    spawn_blocking(work).await
}
