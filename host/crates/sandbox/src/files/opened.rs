//! What a descriptor of the guest stands for: an open file or folder, under the name by which it was
//! opened.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use sallyport_policy::Access;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    mount::{Mount, Present, Slot},
    shelf::FileKey,
};
use crate::case::Case;

/// An open file or folder. Streams of it share it with its descriptor.
pub(crate) struct Opened {
    pub(super) mount: Arc<Mount>,
    /// Its path in the mount, without any link in it.
    pub(super) below: PathBuf,
    pub(super) fd: Arc<OwnedFd>,
    pub(super) kind: Kind,
    /// The run that opened it.
    pub(super) run: Weak<Case>,
    /// A mount itself is none of the guest's open files.
    pub(super) _slot: Option<Slot>,
}

/// What is open, and for what it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder.
    Folder,
    /// A regular file. `is_linked` says that it had more names than one when it was opened.
    File { key: FileKey, reads: bool, writes: bool, is_linked: bool },
}

impl Opened {
    /// The folder of a mount.
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

    /// What the grant says about it at this moment.
    pub(super) fn present(&self) -> Result<Present, ErrorCode> {
        let present = self.mount.present(&self.below)?;
        present.may_see(&self.below, Access::Read)?;
        present.may_use(&self.below, self.is_linked(), Access::Read)?;
        Ok(present)
    }

    /// The same, for a change.
    pub(super) fn present_for_change(&self) -> Result<Present, ErrorCode> {
        let present = self.mount.present(&self.below)?;
        present.may_change(&self.below)?;
        present.may_use(&self.below, self.is_linked(), Access::ReadWrite)?;
        if !present.is_of(&self.run) {
            // That it was opened for writing stands on the record of an earlier run alone.
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

    /// Makes sure that it is a file which was opened for reading.
    pub(super) fn for_reading(&self) -> Result<(), ErrorCode> {
        match self.kind {
            Kind::File { reads: true, .. } => Ok(()),
            Kind::File { .. } => Err(ErrorCode::BadDescriptor),
            Kind::Folder => Err(ErrorCode::IsDirectory),
        }
    }

    /// Makes sure that it is a file which was opened for writing.
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
