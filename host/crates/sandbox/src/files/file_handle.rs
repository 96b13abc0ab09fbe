//! The file or folder of a guest's descriptor, with the path under which it was opened.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    folder_usage::FileIdentity,
    mount::{GrantedMount, GuestMount, OpenFileSlot},
};
use crate::run_context::RunContext;

/// An open file or folder, shared by its descriptor and its streams.
pub(crate) struct FileHandle {
    pub(super) mount: Arc<GuestMount>,
    /// The path in the mount, without any link in it.
    pub(super) relative_path: PathBuf,
    pub(super) fd: Arc<OwnedFd>,
    pub(super) kind: FileHandleKind,
    /// The run that opened it.
    pub(super) run: Weak<RunContext>,
    /// `None` for the root of a mount, which does not count as an open file.
    pub(super) _slot: Option<OpenFileSlot>,
}

/// The kind of an open entry, and the access that it was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileHandleKind {
    /// A folder.
    Folder,
    /// A regular file. `is_linked` is true if it had more than one name when it was opened.
    File { identity: FileIdentity, reads: bool, writes: bool, is_linked: bool },
}

impl FileHandle {
    /// The root folder of a mount.
    pub(super) fn from_mount_root(mount: &Arc<GuestMount>) -> Self {
        Self {
            mount: Arc::clone(mount),
            relative_path: PathBuf::new(),
            fd: Arc::clone(mount.root_folder()),
            kind: FileHandleKind::Folder,
            run: Weak::new(),
            _slot: None,
        }
    }

    /// The current grant for this file or folder.
    pub(super) fn check_grant(&self) -> Result<GrantedMount, ErrorCode> {
        let granted_mount = self.mount.check_grant(&self.relative_path)?;
        granted_mount.check_access(&self.relative_path, FsAccess::Read)?;
        granted_mount.check_hard_links(&self.relative_path, self.is_linked(), FsAccess::Read)?;
        Ok(granted_mount)
    }

    /// The current grant, for a change.
    pub(super) fn check_change_grant(&self) -> Result<GrantedMount, ErrorCode> {
        let granted_mount = self.mount.check_grant(&self.relative_path)?;
        granted_mount.check_change(&self.relative_path)?;
        granted_mount.check_hard_links(
            &self.relative_path,
            self.is_linked(),
            FsAccess::ReadWrite,
        )?;
        if !granted_mount.is_same_run(&self.run) {
            // Only the record of an earlier run shows that the file was opened for writing.
            granted_mount.record_change(&self.relative_path);
        }
        Ok(granted_mount)
    }

    fn is_linked(&self) -> bool {
        matches!(self.kind, FileHandleKind::File { is_linked: true, .. })
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind == FileHandleKind::Folder
    }

    /// Makes sure that this is a file opened for reading.
    pub(super) fn check_readable(&self) -> Result<(), ErrorCode> {
        match self.kind {
            FileHandleKind::File { reads: true, .. } => Ok(()),
            FileHandleKind::File { .. } => Err(ErrorCode::BadDescriptor),
            FileHandleKind::Folder => Err(ErrorCode::IsDirectory),
        }
    }

    /// Makes sure that this is a file opened for writing.
    pub(super) fn check_writable(&self) -> Result<(), ErrorCode> {
        match self.kind {
            FileHandleKind::File { writes: true, .. } => Ok(()),
            FileHandleKind::File { .. } => Err(ErrorCode::NotPermitted),
            FileHandleKind::Folder => Err(ErrorCode::BadDescriptor),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.relative_path
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        if let FileHandleKind::File { identity, .. } = self.kind {
            self.mount.quota_account().remove_open_file(identity);
        }
    }
}
