//! A mount of one run: a folder of the host that is held open, and its current grant.

use std::{
    ffi::OsStr,
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

use super::folder_usage::{FolderUsage, FolderWriteGuard, QuotaAccount};
use crate::{
    current_run::CurrentRun,
    run_context::RunContext,
    undo::{self, recorder::ChangingPath},
};

/// A folder as one run sees it.
pub(crate) struct GuestMount {
    current_run: Arc<CurrentRun>,
    source: MountSource,
    guest: String,
    root: Arc<OwnedFd>,
    open_files: Arc<OpenFileCounter>,
    quota_account: QuotaAccount,
}

/// The source of a mount.
enum MountSource {
    /// A folder of the host, at this path.
    Folder(PathBuf),
    /// The scratch folder of this name.
    Scratch(String),
    /// Copies of single files, each granted by one of these entries.
    Copies(Vec<MountGrantEntry>),
}

/// The entry of the grant that created a mount. The mount is valid while the grant has the entry.
#[derive(Debug, Clone)]
pub(crate) struct MountGrantEntry {
    host: PathBuf,
    guest: String,
}

/// Counts the files that one run holds open.
#[derive(Debug, Default)]
pub(crate) struct OpenFileCounter(AtomicU32);

/// One open file of a run, counted until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenFileSlot(Arc<OpenFileCounter>);

/// A mount with its current grant. Every host call begins with one.
pub(crate) struct GrantedMount {
    pub(crate) mount: Arc<GuestMount>,
    run_context: Arc<RunContext>,
    grant: Arc<Grant>,
    /// The index among the folders and files of the grant, or among its scratch folders.
    entry_index: usize,
}

impl MountGrantEntry {
    pub(crate) fn from_mount(mount: &FsMount) -> Self {
        Self { host: mount.host.clone(), guest: mount.guest.clone() }
    }

    fn is_same_mount(&self, mount: &FsMount) -> bool {
        self.guest == mount.guest && self.host.as_os_str() == mount.host.as_os_str()
    }
}

impl GuestMount {
    /// A folder that is granted directly.
    pub(crate) fn from_folder(
        current_run: &Arc<CurrentRun>,
        open_files: &Arc<OpenFileCounter>,
        entry: MountGrantEntry,
        root: OwnedFd,
        usage: Arc<FolderUsage>,
    ) -> Arc<Self> {
        // An idle guest can have kept what it measured, and the user may have changed the folder.
        usage.forget_size();
        let source = MountSource::Folder(entry.host);
        Arc::new(Self::new(current_run, open_files, source, entry.guest, root, usage))
    }

    /// A scratch folder of the session.
    pub(crate) fn from_scratch_folder(
        current_run: &Arc<CurrentRun>,
        open_files: &Arc<OpenFileCounter>,
        granted: &ScratchGrant,
        root: OwnedFd,
        usage: Arc<FolderUsage>,
    ) -> Arc<Self> {
        let source = MountSource::Scratch(granted.name.clone());
        Arc::new(Self::new(current_run, open_files, source, granted.mount.clone(), root, usage))
    }

    /// The folder of copies, mounted as `/`.
    pub(crate) fn from_file_copies(
        current_run: &Arc<CurrentRun>,
        open_files: &Arc<OpenFileCounter>,
        entries: Vec<MountGrantEntry>,
        root: OwnedFd,
    ) -> Arc<Self> {
        let source = MountSource::Copies(entries);
        Arc::new(Self::new(current_run, open_files, source, "/".to_owned(), root, Arc::default()))
    }

    fn new(
        current_run: &Arc<CurrentRun>,
        open_files: &Arc<OpenFileCounter>,
        source: MountSource,
        guest: String,
        root: OwnedFd,
        usage: Arc<FolderUsage>,
    ) -> Self {
        let (current_run, open_files, root) =
            (Arc::clone(current_run), Arc::clone(open_files), Arc::new(root));
        Self {
            current_run,
            source,
            guest,
            root,
            open_files,
            quota_account: QuotaAccount::new(usage),
        }
    }

    pub(crate) fn mount_path(&self) -> &str {
        &self.guest
    }

    pub(crate) fn root_folder(&self) -> &Arc<OwnedFd> {
        &self.root
    }

    pub(crate) fn quota_account(&self) -> &QuotaAccount {
        &self.quota_account
    }

    /// Makes sure that the current grant has the mount. `below` is the path in the mount that is
    /// accessed.
    pub(crate) fn check_grant(
        self: &Arc<Self>,
        relative_path: &Path,
    ) -> Result<GrantedMount, ErrorCode> {
        let run_context = self.current_run.context();
        let grant = run_context.current_grant();
        match self.find_grant_entry(&grant, relative_path) {
            Some(entry) => {
                Ok(GrantedMount { mount: Arc::clone(self), run_context, grant, entry_index: entry })
            }
            None => Err(self.record_refusal(&run_context, &grant, relative_path, FsAccess::Read)),
        }
    }

    /// The index of the grant's entry for a path.
    fn find_grant_entry(&self, grant: &Grant, relative_path: &Path) -> Option<usize> {
        match &self.source {
            MountSource::Folder(host) => grant.fs().iter().position(|mount| {
                mount.guest == self.guest && mount.host.as_os_str() == host.as_os_str()
            }),
            MountSource::Scratch(name) => {
                let is = |scratch_grant: &ScratchGrant| {
                    scratch_grant.name == *name && scratch_grant.mount == self.guest
                };
                grant.scratch().iter().position(is)
            }
            MountSource::Copies(entries) => {
                let path = Path::new("/").join(relative_path);
                let mut there = entries.iter().filter(|e| Path::new(&e.guest).starts_with(&path));
                there.find_map(|entry| {
                    grant.fs().iter().position(|mount| entry.is_same_mount(mount))
                })
            }
        }
    }

    fn record_refusal(
        &self,
        run_context: &RunContext,
        grant: &Grant,
        relative_path: &Path,
        wanted: FsAccess,
    ) -> ErrorCode {
        let path = self.to_guest_path(relative_path);
        run_context.effect_log.record_refusal(match self.source {
            MountSource::Scratch(_) => {
                grant.deny_capability(Capability::Scratch, &format!("use {path}"))
            }
            MountSource::Folder(_) | MountSource::Copies(_) => grant.deny_path(&path, wanted),
        });
        ErrorCode::NotPermitted
    }

    fn to_guest_path(&self, relative_path: &Path) -> String {
        Path::new(&self.guest).join(relative_path).to_string_lossy().into_owned()
    }
}

impl GrantedMount {
    /// The run that makes the host call.
    pub(crate) fn run_context(&self) -> Weak<RunContext> {
        Arc::downgrade(&self.run_context)
    }

    pub(crate) fn is_same_run(&self, run: &Weak<RunContext>) -> bool {
        std::ptr::eq(run.as_ptr(), Arc::as_ptr(&self.run_context))
    }

    /// Makes sure that a path may be accessed at all.
    pub(crate) fn check_access(
        &self,
        relative_path: &Path,
        wanted: FsAccess,
    ) -> Result<(), ErrorCode> {
        match self.is_visible(relative_path) {
            true => Ok(()),
            false => Err(self.mount.record_refusal(
                &self.run_context,
                &self.grant,
                relative_path,
                wanted,
            )),
        }
    }

    /// Makes sure that a path may be changed.
    pub(crate) fn check_change(&self, relative_path: &Path) -> Result<(), ErrorCode> {
        match self.is_writable() {
            true => self.check_access(relative_path, FsAccess::ReadWrite),
            false => Err(self.mount.record_refusal(
                &self.run_context,
                &self.grant,
                relative_path,
                FsAccess::ReadWrite,
            )),
        }
    }

    /// The run, and the refusal of a change that only the access of the folder forbids.
    pub(crate) fn missing_write_access(
        &self,
        relative_path: &Path,
    ) -> Option<(Arc<RunContext>, Denial)> {
        let is_folder = matches!(self.mount.source, MountSource::Folder(_));
        (is_folder && !self.is_writable()).then(|| {
            let path = self.mount.to_guest_path(relative_path);
            let denial = self.grant.deny_path(&path, FsAccess::ReadWrite);
            (Arc::clone(&self.run_context), denial)
        })
    }

    /// Whether a path exists for the guest.
    pub(crate) fn is_visible(&self, relative_path: &Path) -> bool {
        match self.mount.source {
            MountSource::Scratch(_) => true,
            MountSource::Folder(_) => {
                self.granted_folder().deny.find_denying_pattern(relative_path).is_none()
            }
            MountSource::Copies(_) => {
                self.mount.find_grant_entry(&self.grant, relative_path).is_some()
            }
        }
    }

    pub(crate) fn is_writable(&self) -> bool {
        match self.mount.source {
            MountSource::Scratch(_) => true,
            MountSource::Folder(_) => self.granted_folder().access == FsAccess::ReadWrite,
            MountSource::Copies(_) => false,
        }
    }

    /// Refuses to follow a link out of the guest's folder. No grant would allow that.
    pub(crate) fn refuse_link(&self, relative_path: &Path) -> ErrorCode {
        let path = self.mount.to_guest_path(relative_path);
        self.record_denial(format!("follow {path}"), "the link leads out of its folder".to_owned())
    }

    /// Makes sure that moving a folder takes nothing out from under a denied pattern and puts
    /// nothing under one. The check covers any possible contents of the folder.
    pub(crate) fn check_folder_move(&self, from: &Path, to: &Path) -> Result<(), ErrorCode> {
        if matches!(self.mount.source, MountSource::Scratch(_)) {
            return Ok(());
        }
        let deny = &self.granted_folder().deny;
        let lost = deny
            .pattern_lost_by_move(from, deny, to)
            .or_else(|| deny.pattern_lost_by_move(to, deny, from));
        let Some(pattern) = lost else { return Ok(()) };
        let why = format!("the folder would move what {pattern:?} denies, or into its place");
        Err(self.record_denial(self.describe_rename(from, to), why))
    }

    /// Refuses to move a folder with links that lead out of the mount at the new place.
    pub(super) fn refuse_folder_links(&self, from: &Path, to: &Path) -> ErrorCode {
        let why = "a link in the folder would lead out of the mount there, or the folder is too \
                   large to search for such links";
        self.record_denial(self.describe_rename(from, to), why.to_owned())
    }

    fn describe_rename(&self, from: &Path, to: &Path) -> String {
        let (from, to) = (self.mount.to_guest_path(from), self.mount.to_guest_path(to));
        format!("rename {from} to {to}")
    }

    /// Makes sure that a file has only one name if the folder denies some names, because its other
    /// names are unknown and one of them may be denied. The pattern for a project's own files does
    /// not count here, see `GlobSet::is_empty`.
    pub(crate) fn check_hard_links(
        &self,
        relative_path: &Path,
        has_more_names: bool,
        wanted: FsAccess,
    ) -> Result<(), ErrorCode> {
        let denies = match self.mount.source {
            MountSource::Folder(_) => &self.granted_folder().deny,
            // Nothing is denied in the host's own folders.
            MountSource::Scratch(_) | MountSource::Copies(_) => return Ok(()),
        };
        if !has_more_names || denies.is_empty() {
            return Ok(());
        }
        let verb = match wanted {
            FsAccess::Read => "read",
            FsAccess::ReadWrite => "change",
        };
        let act = format!("{verb} {}", self.mount.to_guest_path(relative_path));
        let why = format!("the file has another name (a hard link), which {denies} may deny");
        Err(self.record_denial(act, why))
    }

    fn record_denial(&self, act: String, why: String) -> ErrorCode {
        let denial = Denial::new(format!("{} may not {act}", self.grant.plugin()), why);
        self.run_context.effect_log.record_refusal(denial);
        ErrorCode::NotPermitted
    }

    /// Records that a path was changed.
    pub(crate) fn record_change(&self, relative_path: &Path) {
        self.run_context
            .effect_log
            .record_effect(Effect::Changed { path: self.mount.to_guest_path(relative_path) });
    }

    /// Keeps what is at a path for undo, before it is changed. Scratch folders are not the user's.
    pub(super) fn keep_before_change(
        &self,
        folder: &OwnedFd,
        name: &OsStr,
        relative_path: &Path,
        is_moved_folder: bool,
    ) {
        let MountSource::Folder(host) = &self.mount.source else { return };
        self.run_context.keep_before_change(&ChangingPath {
            root: &self.mount.root,
            host,
            relative: relative_path,
            guest: self.mount.to_guest_path(relative_path),
            folder,
            name,
            is_moved_folder,
        });
    }

    /// Does the same for a file that an earlier run opened.
    pub(super) fn keep_open_file(&self, relative_path: &Path) {
        if let Ok((folder, name)) = undo::open_parent(&self.mount.root, relative_path) {
            self.keep_before_change(&folder, &name, relative_path, false);
        }
    }

    /// Logs how many names of a folder could not be passed to the guest.
    pub(crate) fn log_omitted_names(&self, relative_path: &Path, names: usize) {
        if names > 0 {
            let path = self.mount.to_guest_path(relative_path);
            let text = format!("{names} names in {path} are not UTF-8 and were left out");
            self.run_context.effect_log.log_line(LogLevel::Warn, &text);
        }
    }

    /// Counts one more open file.
    pub(crate) fn take_open_file_slot(&self) -> Result<OpenFileSlot, ErrorCode> {
        let slot = OpenFileSlot(Arc::clone(&self.mount.open_files));
        let files_max = self.grant.limits().files;
        if slot.0.0.fetch_add(1, Ordering::Relaxed) < files_max {
            return Ok(slot);
        }
        self.run_context.effect_log.record_limit(format!("{files_max} open files (limits.files)"));
        Err(ErrorCode::InsufficientMemory)
    }

    /// Prevents other changes to the folder until the turn is dropped.
    pub(crate) fn lock_for_write(&self) -> FolderWriteGuard<'_> {
        self.mount.quota_account.lock_for_write()
    }

    /// Charges growth, in bytes.
    pub(crate) fn charge_growth(
        &self,
        write_guard: &FolderWriteGuard<'_>,
        bytes: u64,
    ) -> Result<(), ErrorCode> {
        let quota_bytes = match self.mount.source {
            MountSource::Scratch(_) => Some(self.grant.scratch()[self.entry_index].quota_bytes),
            MountSource::Folder(_) | MountSource::Copies(_) => self.granted_folder().quota_bytes,
        };
        let charged = self.mount.quota_account.charge_bytes(
            write_guard,
            bytes,
            quota_bytes,
            self.mount.root_folder(),
        );
        charged.map_err(|full| {
            let (size, guest) = (ByteSize(full.limit_bytes), &self.mount.guest);
            self.run_context.effect_log.record_limit(format!("{size} in {guest} (quota)"));
            ErrorCode::InsufficientSpace
        })
    }

    /// Refunds charged bytes.
    pub(crate) fn refund_bytes(&self, write_guard: &FolderWriteGuard<'_>, bytes: u64) {
        self.mount.quota_account.refund_bytes(write_guard, bytes);
    }

    /// The folder or file of the grant. Not for scratch folders.
    fn granted_folder(&self) -> &FsMount {
        &self.grant.fs()[self.entry_index]
    }
}

impl Drop for OpenFileSlot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
