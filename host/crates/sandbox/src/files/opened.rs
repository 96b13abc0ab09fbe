//! The file or folder of a guest's descriptor, with the path under which it was opened.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    mount::{Mount, Present, Slot},
    shelf::FileKey,
};
use crate::case::Case;

/// An open file or folder, shared by its descriptor and its streams.
pub(crate) struct Opened {
    pub(super) mount: Arc<Mount>,
    /// The path in the mount, without any link in it.
    pub(super) below: PathBuf,
    pub(super) fd: Arc<OwnedFd>,
    pub(super) kind: Kind,
    /// The run that opened it.
    pub(super) run: Weak<Case>,
    /// `None` for the root of a mount, which does not count as an open file.
    pub(super) _slot: Option<Slot>,
}

/// The kind of an open entry, and the access that it was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder.
    Folder,
    /// A regular file. `is_linked` is true if it had more than one name when it was opened.
    File { key: FileKey, reads: bool, writes: bool, is_linked: bool },
}

impl Opened {
    /// The root folder of a mount.
    pub(super) fn root(mount: &Arc<Mount>) -> Self {
        Self {
            mount: Arc::clone(mount),
            below: PathBuf::new(),
            fd: Arc::clone(mount.root()),
            kind: Kind::Folder,
            run: Weak::new(),
            _slot: None,
        }
    }

    /// The current grant for this file or folder.
    pub(super) fn present(&self) -> Result<Present, ErrorCode> {
        let present = self.mount.present(&self.below)?;
        present.may_see(&self.below, FsAccess::Read)?;
        present.may_use(&self.below, self.is_linked(), FsAccess::Read)?;
        Ok(present)
    }

    /// The current grant, for a change.
    pub(super) fn present_for_change(&self) -> Result<Present, ErrorCode> {
        let present = self.mount.present(&self.below)?;
        present.may_change(&self.below)?;
        present.may_use(&self.below, self.is_linked(), FsAccess::ReadWrite)?;
        if !present.is_of(&self.run) {
            // Only the record of an earlier run shows that the file was opened for writing.
            present.changed(&self.below);
        }
        Ok(present)
    }

    fn is_linked(&self) -> bool {
        matches!(self.kind, Kind::File { is_linked: true, .. })
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }

    /// Makes sure that this is a file opened for reading.
    pub(super) fn for_reading(&self) -> Result<(), ErrorCode> {
        match self.kind {
            Kind::File { reads: true, .. } => Ok(()),
            Kind::File { .. } => Err(ErrorCode::BadDescriptor),
            Kind::Folder => Err(ErrorCode::IsDirectory),
        }
    }

    /// Makes sure that this is a file opened for writing.
    pub(super) fn for_writing(&self) -> Result<(), ErrorCode> {
        match self.kind {
            Kind::File { writes: true, .. } => Ok(()),
            Kind::File { .. } => Err(ErrorCode::NotPermitted),
            Kind::Folder => Err(ErrorCode::BadDescriptor),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.below
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Kind::File { key, .. } = self.kind {
            self.mount.account().closed(key);
        }
    }
}
