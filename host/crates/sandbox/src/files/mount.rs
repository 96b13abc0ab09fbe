//! A mount of one run: a folder of the host that is held open, and its current grant.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use sallyport_contract::{Denial, Effect, LogLevel};
use sallyport_policy::{ByteSize, Capability, FsAccess, FsMount, Grant, ScratchGrant};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::shelf::{Account, Shelf, Turn};
use crate::{case::Case, docket::Docket};

/// A folder as one run sees it.
pub(crate) struct Mount {
    docket: Arc<Docket>,
    kind: Kind,
    guest: String,
    root: Arc<OwnedFd>,
    slots: Arc<Slots>,
    account: Account,
}

/// The source of a mount.
enum Kind {
    /// A folder of the host, at this path.
    Folder(PathBuf),
    /// The scratch folder of this name.
    Scratch(String),
    /// Copies of single files, each granted by one of these entries.
    Copies(Vec<Entry>),
}

/// The entry of the grant that created a mount. The mount is valid while the grant has the entry.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    host: PathBuf,
    guest: String,
}

/// Counts the files that one run holds open.
#[derive(Debug, Default)]
pub(crate) struct Slots(AtomicU32);

/// One open file of a run, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

/// A mount with its current grant. Every host call begins with one.
pub(crate) struct Present {
    pub(crate) mount: Arc<Mount>,
    case: Arc<Case>,
    grant: Arc<Grant>,
    /// The index among the folders and files of the grant, or among its scratch folders.
    entry: usize,
}

impl Entry {
    pub(crate) fn of(mount: &FsMount) -> Self {
        Self { host: mount.host.clone(), guest: mount.guest.clone() }
    }

    fn is(&self, mount: &FsMount) -> bool {
        self.guest == mount.guest && self.host.as_os_str() == mount.host.as_os_str()
    }
}

impl Mount {
    /// A folder that is granted directly.
    pub(crate) fn folder(
        docket: &Arc<Docket>,
        slots: &Arc<Slots>,
        entry: Entry,
        root: OwnedFd,
        shelf: Arc<Shelf>,
    ) -> Arc<Self> {
        let kind = Kind::Folder(entry.host);
        Arc::new(Self::new(docket, slots, kind, entry.guest, root, shelf))
    }

    /// A scratch folder of the session.
    pub(crate) fn scratch(
        docket: &Arc<Docket>,
        slots: &Arc<Slots>,
        granted: &ScratchGrant,
        root: OwnedFd,
        shelf: Arc<Shelf>,
    ) -> Arc<Self> {
        let kind = Kind::Scratch(granted.name.clone());
        Arc::new(Self::new(docket, slots, kind, granted.mount.clone(), root, shelf))
    }

    /// The folder of copies, mounted as `/`.
    pub(crate) fn copies(
        docket: &Arc<Docket>,
        slots: &Arc<Slots>,
        entries: Vec<Entry>,
        root: OwnedFd,
    ) -> Arc<Self> {
        let kind = Kind::Copies(entries);
        Arc::new(Self::new(docket, slots, kind, "/".to_owned(), root, Arc::default()))
    }

    fn new(
        docket: &Arc<Docket>,
        slots: &Arc<Slots>,
        kind: Kind,
        guest: String,
        root: OwnedFd,
        shelf: Arc<Shelf>,
    ) -> Self {
        let (docket, slots, root) = (Arc::clone(docket), Arc::clone(slots), Arc::new(root));
        Self { docket, kind, guest, root, slots, account: Account::on(shelf) }
    }

    pub(crate) fn guest(&self) -> &str {
        &self.guest
    }

    pub(crate) fn root(&self) -> &Arc<OwnedFd> {
        &self.root
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Makes sure that the current grant has the mount. `below` is the path in the mount that is
    /// accessed.
    pub(crate) fn present(self: &Arc<Self>, below: &Path) -> Result<Present, ErrorCode> {
        let case = self.docket.case();
        let grant = case.grant();
        match self.entry(&grant, below) {
            Some(entry) => Ok(Present { mount: Arc::clone(self), case, grant, entry }),
            None => Err(self.refuse(&case, &grant, below, FsAccess::Read)),
        }
    }

    /// The index of the grant's entry for a path.
    fn entry(&self, grant: &Grant, below: &Path) -> Option<usize> {
        match &self.kind {
            Kind::Folder(host) => grant.fs().iter().position(|mount| {
                mount.guest == self.guest && mount.host.as_os_str() == host.as_os_str()
            }),
            Kind::Scratch(name) => {
                let is = |held: &ScratchGrant| held.name == *name && held.mount == self.guest;
                grant.scratch().iter().position(is)
            }
            Kind::Copies(entries) => {
                let path = Path::new("/").join(below);
                let mut there = entries.iter().filter(|e| Path::new(&e.guest).starts_with(&path));
                there.find_map(|entry| grant.fs().iter().position(|mount| entry.is(mount)))
            }
        }
    }

    fn refuse(&self, case: &Case, grant: &Grant, below: &Path, wanted: FsAccess) -> ErrorCode {
        let path = self.guest_path(below);
        case.ledger.refused(match self.kind {
            Kind::Scratch(_) => grant.deny_capability(Capability::Scratch, &format!("use {path}")),
            Kind::Folder(_) | Kind::Copies(_) => grant.deny_path(&path, wanted),
        });
        ErrorCode::NotPermitted
    }

    fn guest_path(&self, below: &Path) -> String {
        Path::new(&self.guest).join(below).to_string_lossy().into_owned()
    }
}

impl Present {
    /// The run that makes the host call.
    pub(crate) fn run(&self) -> Weak<Case> {
        Arc::downgrade(&self.case)
    }

    pub(crate) fn is_of(&self, run: &Weak<Case>) -> bool {
        std::ptr::eq(run.as_ptr(), Arc::as_ptr(&self.case))
    }

    /// Makes sure that a path may be accessed at all.
    pub(crate) fn may_see(&self, below: &Path, wanted: FsAccess) -> Result<(), ErrorCode> {
        match self.shows(below) {
            true => Ok(()),
            false => Err(self.mount.refuse(&self.case, &self.grant, below, wanted)),
        }
    }

    /// Makes sure that a path may be changed.
    pub(crate) fn may_change(&self, below: &Path) -> Result<(), ErrorCode> {
        match self.is_writable() {
            true => self.may_see(below, FsAccess::ReadWrite),
            false => Err(self.mount.refuse(&self.case, &self.grant, below, FsAccess::ReadWrite)),
        }
    }

    /// Whether a path exists for the guest.
    pub(crate) fn shows(&self, below: &Path) -> bool {
        match self.mount.kind {
            Kind::Scratch(_) => true,
            Kind::Folder(_) => self.folder().deny.find_denying_pattern(below).is_none(),
            Kind::Copies(_) => self.mount.entry(&self.grant, below).is_some(),
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        match self.mount.kind {
            Kind::Scratch(_) => true,
            Kind::Folder(_) => self.folder().access == FsAccess::ReadWrite,
            Kind::Copies(_) => false,
        }
    }

    /// Refuses to follow a link out of the guest's folder. No grant would allow that.
    pub(crate) fn refuse_link(&self, below: &Path) -> ErrorCode {
        let path = self.mount.guest_path(below);
        self.refuse_for(format!("follow {path}"), "the link leads out of its folder".to_owned())
    }

    /// Makes sure that moving a folder takes nothing out from under a denied pattern and puts
    /// nothing under one. The check covers any possible contents of the folder.
    pub(crate) fn may_move_folder(&self, from: &Path, to: &Path) -> Result<(), ErrorCode> {
        if matches!(self.mount.kind, Kind::Scratch(_)) {
            return Ok(());
        }
        let deny = &self.folder().deny;
        let lost = deny
            .pattern_lost_by_move(from, deny, to)
            .or_else(|| deny.pattern_lost_by_move(to, deny, from));
        let Some(pattern) = lost else { return Ok(()) };
        let act =
            format!("rename {} to {}", self.mount.guest_path(from), self.mount.guest_path(to));
        let why = format!("the folder would move what {pattern:?} denies, or into its place");
        Err(self.refuse_for(act, why))
    }

    /// Makes sure that a file has only one name if the folder denies some names, because its other
    /// names are unknown and one of them may be denied.
    pub(crate) fn may_use(
        &self,
        below: &Path,
        has_more_names: bool,
        wanted: FsAccess,
    ) -> Result<(), ErrorCode> {
        let denies = match self.mount.kind {
            Kind::Folder(_) => &self.folder().deny,
            // Nothing is denied in the host's own folders.
            Kind::Scratch(_) | Kind::Copies(_) => return Ok(()),
        };
        if !has_more_names || denies.is_empty() {
            return Ok(());
        }
        let verb = match wanted {
            FsAccess::Read => "read",
            FsAccess::ReadWrite => "change",
        };
        let act = format!("{verb} {}", self.mount.guest_path(below));
        let why = format!("the file has another name (a hard link), which {denies} may deny");
        Err(self.refuse_for(act, why))
    }

    fn refuse_for(&self, act: String, why: String) -> ErrorCode {
        let what = format!("{} may not {act}", self.grant.plugin());
        let denial = Denial { what, why, fix: None, nobody_to_ask: false };
        self.case.ledger.refused(denial);
        ErrorCode::NotPermitted
    }

    /// Records that a path was changed.
    pub(crate) fn changed(&self, below: &Path) {
        self.case.ledger.note(Effect::Changed { path: self.mount.guest_path(below) });
    }

    /// Logs how many names of a folder could not be passed to the guest.
    pub(crate) fn left_out(&self, below: &Path, names: usize) {
        if names > 0 {
            let path = self.mount.guest_path(below);
            let text = format!("{names} names in {path} are not UTF-8 and were left out");
            self.case.ledger.log(LogLevel::Warn, &text);
        }
    }

    /// Counts one more open file.
    pub(crate) fn slot(&self) -> Result<Slot, ErrorCode> {
        let slot = Slot(Arc::clone(&self.mount.slots));
        let files_max = self.grant.limits().files;
        if slot.0.0.fetch_add(1, Ordering::Relaxed) < files_max {
            return Ok(slot);
        }
        self.case.ledger.limit_reached(format!("{files_max} open files (limits.files)"));
        Err(ErrorCode::InsufficientMemory)
    }

    /// Prevents other changes to the folder until the turn is dropped.
    pub(crate) fn turn(&self) -> Turn<'_> {
        self.mount.account.turn()
    }

    /// Charges growth, in bytes.
    pub(crate) fn grow(&self, turn: &Turn<'_>, bytes: u64) -> Result<(), ErrorCode> {
        let quota_bytes = match self.mount.kind {
            Kind::Scratch(_) => Some(self.grant.scratch()[self.entry].quota_bytes),
            Kind::Folder(_) | Kind::Copies(_) => self.folder().quota_bytes,
        };
        let charged = self.mount.account.charge(turn, bytes, quota_bytes, self.mount.root());
        charged.map_err(|full| {
            let (size, guest) = (ByteSize(full.limit_bytes), &self.mount.guest);
            self.case.ledger.limit_reached(format!("{size} in {guest} (quota)"));
            ErrorCode::InsufficientSpace
        })
    }

    /// Refunds charged bytes.
    pub(crate) fn shrink(&self, turn: &Turn<'_>, bytes: u64) {
        self.mount.account.refund(turn, bytes);
    }

    /// The folder or file of the grant. Not for scratch folders.
    fn folder(&self) -> &FsMount {
        &self.grant.fs()[self.entry]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
