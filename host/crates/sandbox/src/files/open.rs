//! Opens files and folders. This is the only way from a path to a descriptor.

use std::{ffi::OsStr, os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, ftruncate, openat, statat},
    io::Errno,
};
use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

use super::{
    convert::{file_identity, file_type_of, has_hard_links, to_error_code},
    file_handle::{FileHandle, FileHandleKind},
    folder_usage::{ENTRY_BYTES, FolderWriteGuard, quota_cost},
    measure::entry_cost,
    mount::{GrantedMount, OpenFileSlot},
    resolve::{FinalSymlinkMode, ResolvedGuestPath, resolve_path},
};

/// Flags of every open: the last name is never followed as a link, a pipe does not wait for its
/// other end, and a terminal does not become ours.
const COMMON_OPEN_FLAGS: OFlags =
    OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The mode of a new file, which the process's umask narrows.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// The flags of a guest's request to open a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathOpenRequest {
    pub(super) final_symlink: FinalSymlinkMode,
    pub(super) open_flags: OpenFlags,
    pub(super) flags: DescriptorFlags,
}

impl PathOpenRequest {
    fn can_read(self) -> bool {
        self.flags.contains(DescriptorFlags::READ) || !self.can_write()
    }

    fn can_write(self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
    }

    fn has_flag(self, flag: OpenFlags) -> bool {
        self.open_flags.contains(flag)
    }

    fn is_change(self) -> bool {
        self.can_write() || self.has_flag(OpenFlags::CREATE) || self.has_flag(OpenFlags::TRUNCATE)
    }

    fn required_access(self) -> FsAccess {
        if self.is_change() { FsAccess::ReadWrite } else { FsAccess::Read }
    }

    /// Rejects synchronous I/O, which is not supported, and contradictory flags.
    fn check_flags(self) -> Result<(), ErrorCode> {
        let synchronous = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if self.flags.intersects(synchronous) {
            return Err(ErrorCode::Unsupported);
        }
        let for_files = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        match self.has_flag(OpenFlags::DIRECTORY) && self.open_flags.intersects(for_files) {
            true => Err(ErrorCode::Invalid),
            false => Ok(()),
        }
    }

    /// The access mode for the system. A file is truncated through its descriptor, which then has
    /// to be writable.
    fn system_access_mode(self) -> OFlags {
        match (self.can_read(), self.can_write() || self.has_flag(OpenFlags::TRUNCATE)) {
            (_, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
        }
    }
}

/// Opens a path.
pub(super) fn open_path(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
    request: PathOpenRequest,
) -> Result<FileHandle, ErrorCode> {
    request.check_flags()?;
    let resolved =
        resolve_path(granted_mount, from, path, request.final_symlink, request.required_access())?;
    if request.is_change() {
        granted_mount.check_change(&resolved.relative_path)?;
    }
    // A folder that cannot be changed needs no turn.
    let write_guard = granted_mount.is_writable().then(|| granted_mount.lock_for_write());
    let opener = PathOpener { granted_mount, resolved: &resolved, request, write_guard };
    let Some(name) = &resolved.name else {
        return opener.open_folder(".".as_ref());
    };
    match statat(&resolved.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) if request.has_flag(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => {
            Err(ErrorCode::Exist)
        }
        Ok(stat) => match file_type_of(&stat) {
            FileType::Directory => opener.open_folder(name),
            FileType::RegularFile => opener.open_file(name),
            FileType::Symlink => Err(ErrorCode::Loop),
            _ => Err(ErrorCode::Unsupported),
        },
        Err(Errno::NOENT) if request.has_flag(OpenFlags::CREATE) => opener.create_file(name),
        Err(error) => Err(to_error_code(error)),
    }
}

/// A resolved path and the request to open it.
struct PathOpener<'a> {
    granted_mount: &'a GrantedMount,
    resolved: &'a ResolvedGuestPath,
    request: PathOpenRequest,
    write_guard: Option<FolderWriteGuard<'a>>,
}

impl PathOpener<'_> {
    fn open_folder(&self, name: &OsStr) -> Result<FileHandle, ErrorCode> {
        if self.request.is_change() {
            return Err(ErrorCode::IsDirectory);
        }
        let slot = self.granted_mount.take_open_file_slot()?;
        let folder = self.open_descriptor(name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.build_handle(folder, FileHandleKind::Folder, slot))
    }

    fn create_file(&self, name: &OsStr) -> Result<FileHandle, ErrorCode> {
        if self.resolved.is_folder {
            return Err(ErrorCode::IsDirectory);
        }
        let (slot, write_guard) = (self.granted_mount.take_open_file_slot()?, self.write_guard()?);
        self.granted_mount.charge_growth(write_guard, ENTRY_BYTES)?;
        self.keep_before_change(name);
        let flags = self.request.system_access_mode() | OFlags::CREATE | OFlags::EXCL;
        let opened =
            self.open_descriptor(name, flags).and_then(|file| self.accept_file(file, slot));
        if opened.is_err() {
            self.granted_mount.refund_bytes(write_guard, ENTRY_BYTES);
        }
        opened
    }

    fn open_file(&self, name: &OsStr) -> Result<FileHandle, ErrorCode> {
        if self.resolved.is_folder || self.request.has_flag(OpenFlags::DIRECTORY) {
            return Err(ErrorCode::NotDirectory);
        }
        let slot = self.granted_mount.take_open_file_slot()?;
        if self.request.is_change() {
            self.keep_before_change(name);
        }
        self.accept_file(self.open_descriptor(name, self.request.system_access_mode())?, slot)
    }

    fn keep_before_change(&self, name: &OsStr) {
        let ResolvedGuestPath { folder, relative_path, .. } = self.resolved;
        self.granted_mount.keep_before_change(folder, name, relative_path, false);
    }

    fn open_descriptor(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd, ErrorCode> {
        openat(&self.resolved.folder, name, COMMON_OPEN_FLAGS | flags, NEW_FILE_MODE)
            .map_err(to_error_code)
    }

    /// Accepts a file that was just opened. It is checked again: it may not be the one that was
    /// looked at before.
    fn accept_file(&self, file: OwnedFd, slot: OpenFileSlot) -> Result<FileHandle, ErrorCode> {
        let stat = fstat(&file).map_err(to_error_code)?;
        if file_type_of(&stat) != FileType::RegularFile {
            return Err(ErrorCode::Unsupported);
        }
        let is_linked = has_hard_links(&stat);
        self.granted_mount.check_hard_links(
            &self.resolved.relative_path,
            is_linked,
            self.request.required_access(),
        )?;
        if self.request.has_flag(OpenFlags::TRUNCATE) {
            ftruncate(&file, 0).map_err(to_error_code)?;
            self.granted_mount.refund_bytes(self.write_guard()?, entry_cost(&stat) - quota_cost(0));
        }
        if self.request.is_change() {
            self.granted_mount.record_change(&self.resolved.relative_path);
        }
        let (identity, reads, writes) =
            (file_identity(&stat), self.request.can_read(), self.request.can_write());
        self.granted_mount.mount.quota_account().add_open_file(identity);
        Ok(self.build_handle(
            file,
            FileHandleKind::File { identity, reads, writes, is_linked },
            slot,
        ))
    }

    fn build_handle(&self, fd: OwnedFd, kind: FileHandleKind, slot: OpenFileSlot) -> FileHandle {
        let (mount, relative_path) =
            (Arc::clone(&self.granted_mount.mount), self.resolved.relative_path.clone());
        let run = self.granted_mount.run_context();
        FileHandle { mount, relative_path, fd: Arc::new(fd), kind, run, _slot: Some(slot) }
    }

    /// The turn, which exists if the folder may be changed.
    fn write_guard(&self) -> Result<&FolderWriteGuard<'_>, ErrorCode> {
        self.write_guard.as_ref().ok_or(ErrorCode::NotPermitted)
    }
}
