//! Opens files and folders. This is the only way from a path to a descriptor.

use std::{ffi::OsStr, os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, ftruncate, openat, statat},
    io::Errno,
};
use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

use super::{
    convert::{code, file_key, has_more_names, kind},
    measure::entry_cost,
    mount::{Present, Slot},
    opened::{Kind, Opened},
    resolve::{LastLink, Spot, resolve},
    shelf::{ENTRY_BYTES, Turn, cost},
};

/// Flags of every open: the last name is never followed as a link, a pipe does not wait for its
/// other end, and a terminal does not become ours.
const ALWAYS: OFlags =
    OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The mode of a new file, which the process's umask narrows.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

/// The flags of a guest's request to open a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub(super) last_link: LastLink,
    pub(super) open: OpenFlags,
    pub(super) flags: DescriptorFlags,
}

impl Wish {
    fn reads(self) -> bool {
        self.flags.contains(DescriptorFlags::READ) || !self.writes()
    }

    fn writes(self) -> bool {
        self.flags.contains(DescriptorFlags::WRITE)
    }

    fn has(self, flag: OpenFlags) -> bool {
        self.open.contains(flag)
    }

    fn changes(self) -> bool {
        self.writes() || self.has(OpenFlags::CREATE) || self.has(OpenFlags::TRUNCATE)
    }

    fn wanted(self) -> FsAccess {
        if self.changes() { FsAccess::ReadWrite } else { FsAccess::Read }
    }

    /// Rejects synchronous I/O, which is not supported, and contradictory flags.
    fn check(self) -> Result<(), ErrorCode> {
        let synchronous = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if self.flags.intersects(synchronous) {
            return Err(ErrorCode::Unsupported);
        }
        let for_files = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        match self.has(OpenFlags::DIRECTORY) && self.open.intersects(for_files) {
            true => Err(ErrorCode::Invalid),
            false => Ok(()),
        }
    }

    /// The access mode for the system. A file is truncated through its descriptor, which then has
    /// to be writable.
    fn access_mode(self) -> OFlags {
        match (self.reads(), self.writes() || self.has(OpenFlags::TRUNCATE)) {
            (_, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
        }
    }
}

/// Opens a path.
pub(super) fn open(
    present: &Present,
    from: &Opened,
    path: &str,
    wish: Wish,
) -> Result<Opened, ErrorCode> {
    wish.check()?;
    let spot = resolve(present, from, path, wish.last_link, wish.wanted())?;
    if wish.changes() {
        present.may_change(&spot.below)?;
    }
    // A folder that cannot be changed needs no turn.
    let turn = present.is_writable().then(|| present.turn());
    let door = Door { present, spot: &spot, wish, turn };
    let Some(name) = &spot.name else {
        return door.open_folder(".".as_ref());
    };
    match statat(&spot.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) if wish.has(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => Err(ErrorCode::Exist),
        Ok(stat) => match kind(&stat) {
            FileType::Directory => door.open_folder(name),
            FileType::RegularFile => door.open_file(name),
            FileType::Symlink => Err(ErrorCode::Loop),
            _ => Err(ErrorCode::Unsupported),
        },
        Err(Errno::NOENT) if wish.has(OpenFlags::CREATE) => door.create_file(name),
        Err(error) => Err(code(error)),
    }
}

/// A resolved path and the request to open it.
struct Door<'a> {
    present: &'a Present,
    spot: &'a Spot,
    wish: Wish,
    turn: Option<Turn<'a>>,
}

impl Door<'_> {
    fn open_folder(&self, name: &OsStr) -> Result<Opened, ErrorCode> {
        if self.wish.changes() {
            return Err(ErrorCode::IsDirectory);
        }
        let slot = self.present.slot()?;
        let folder = self.open(name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.held(folder, Kind::Folder, slot))
    }

    fn create_file(&self, name: &OsStr) -> Result<Opened, ErrorCode> {
        if self.spot.is_folder {
            return Err(ErrorCode::IsDirectory);
        }
        let (slot, turn) = (self.present.slot()?, self.turn()?);
        self.present.grow(turn, ENTRY_BYTES)?;
        let flags = self.wish.access_mode() | OFlags::CREATE | OFlags::EXCL;
        let opened = self.open(name, flags).and_then(|file| self.hold_file(file, slot));
        if opened.is_err() {
            self.present.shrink(turn, ENTRY_BYTES);
        }
        opened
    }

    fn open_file(&self, name: &OsStr) -> Result<Opened, ErrorCode> {
        if self.spot.is_folder || self.wish.has(OpenFlags::DIRECTORY) {
            return Err(ErrorCode::NotDirectory);
        }
        let slot = self.present.slot()?;
        self.hold_file(self.open(name, self.wish.access_mode())?, slot)
    }

    fn open(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd, ErrorCode> {
        openat(&self.spot.folder, name, ALWAYS | flags, NEW_FILE).map_err(code)
    }

    /// Accepts a file that was just opened. It is checked again: it may not be the one that was
    /// looked at before.
    fn hold_file(&self, file: OwnedFd, slot: Slot) -> Result<Opened, ErrorCode> {
        let stat = fstat(&file).map_err(code)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(ErrorCode::Unsupported);
        }
        let is_linked = has_more_names(&stat);
        self.present.may_use(&self.spot.below, is_linked, self.wish.wanted())?;
        if self.wish.has(OpenFlags::TRUNCATE) {
            ftruncate(&file, 0).map_err(code)?;
            self.present.shrink(self.turn()?, entry_cost(&stat) - cost(0));
        }
        if self.wish.changes() {
            self.present.changed(&self.spot.below);
        }
        let (key, reads, writes) = (file_key(&stat), self.wish.reads(), self.wish.writes());
        self.present.mount.account().opened(key);
        Ok(self.held(file, Kind::File { key, reads, writes, is_linked }, slot))
    }

    fn held(&self, fd: OwnedFd, kind: Kind, slot: Slot) -> Opened {
        let (mount, below) = (Arc::clone(&self.present.mount), self.spot.below.clone());
        let run = self.present.run();
        Opened { mount, below, fd: Arc::new(fd), kind, run, _slot: Some(slot) }
    }

    /// The turn, which exists if the folder may be changed.
    fn turn(&self) -> Result<&Turn<'_>, ErrorCode> {
        self.turn.as_ref().ok_or(ErrorCode::NotPermitted)
    }
}
