//! Resolves a path to an open folder and a name in it.
//!
//! The path is walked name by name. Each folder is opened relative to the one before and never
//! through a link; a link is read instead, and its target is walked in turn. So the walked names
//! are the true names of the place, and each of them was compared with the patterns that the mount
//! denies. Swapping a folder in the meantime leads nowhere else: the operation applies to one name
//! in one open folder.

use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags, openat, readlinkat},
    io::Errno,
};
use sallyport_policy::FsAccess;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{convert::to_error_code, file_handle::FileHandle, mount::GrantedMount};

/// Longest path in bytes, as on most systems.
const PATH_BYTES_MAX: usize = 4096;

/// Deepest nesting of folders, counted from the mount. No real tree is this deep. Each folder on
/// the way is held open, and the patterns of a mount are compared with all names.
pub(super) const DEPTH_MAX: usize = 128;

/// Most steps of one path, including `..` and link targets. A longer walk goes in a circle.
const STEPS_MAX: usize = 1024;

/// The flags for a folder on the way, which is only used to open the next one.
#[cfg(target_os = "linux")]
pub(super) const FOLDER_STEP_FLAGS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(super) const FOLDER_STEP_FLAGS: OFlags = OFlags::RDONLY;

/// A resolved path. The entry may not exist.
pub(super) struct ResolvedGuestPath {
    pub(super) folder: Arc<OwnedFd>,
    /// `None` if the path names the folder itself.
    pub(super) name: Option<OsString>,
    /// The path in the mount.
    pub(super) relative_path: PathBuf,
    /// Whether the path implies a folder, for example by a trailing slash.
    pub(super) is_folder: bool,
}

/// How a link at the very end of a path is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalSymlinkMode {
    /// The path names the target of the link.
    Follow,
    /// The path names the link itself.
    NoFollow,
}

/// Resolves a path relative to an open folder.
pub(super) fn resolve_path(
    granted_mount: &GrantedMount,
    from: &FileHandle,
    path: &str,
    final_symlink: FinalSymlinkMode,
    wanted: FsAccess,
) -> Result<ResolvedGuestPath, ErrorCode> {
    let mut walk = PathWalk::new(granted_mount, from);
    walk.start_path(path)?;
    while let Some(step) = walk.remaining_steps.pop() {
        walk.count_step()?;
        if step == ".." {
            walk.leave_folder()?;
            continue;
        }
        walk.relative_path.push(&step);
        granted_mount.check_access(&walk.relative_path, wanted)?;
        if !walk.remaining_steps.is_empty() {
            walk.enter_folder(step)?;
            continue;
        }
        let follows = final_symlink == FinalSymlinkMode::Follow || walk.is_folder;
        if !(follows && walk.follow_link(&step)?) {
            return Ok(walk.into_resolved_path(Some(step)));
        }
    }
    walk.is_folder = true;
    Ok(walk.into_resolved_path(None))
}

/// The state of a walk.
struct PathWalk<'a> {
    granted_mount: &'a GrantedMount,
    /// The open folders, from the first to the current one.
    folders: Vec<Arc<OwnedFd>>,
    relative_path: PathBuf,
    /// The remaining steps, last one first.
    remaining_steps: Vec<OsString>,
    /// The depth of the first folder in the mount.
    depth: usize,
    steps: usize,
    /// Whether the walk went through a link.
    has_followed_link: bool,
    is_folder: bool,
}

impl<'a> PathWalk<'a> {
    fn new(granted_mount: &'a GrantedMount, from: &FileHandle) -> Self {
        Self {
            granted_mount,
            folders: vec![Arc::clone(&from.fd)],
            relative_path: from.relative_path.clone(),
            remaining_steps: Vec::new(),
            depth: from.relative_path.components().count(),
            steps: 0,
            has_followed_link: false,
            is_folder: false,
        }
    }

    fn start_path(&mut self, path: &str) -> Result<(), ErrorCode> {
        match path {
            "" => Err(ErrorCode::NoEntry),
            _ if path.len() > PATH_BYTES_MAX => Err(ErrorCode::NameTooLong),
            _ if path.starts_with('/') => Err(ErrorCode::NotPermitted),
            _ => {
                self.prepend_steps(OsStr::new(path));
                Ok(())
            }
        }
    }

    /// Puts the steps of a path before the remaining ones.
    fn prepend_steps(&mut self, path: &OsStr) {
        let parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
        if self.remaining_steps.is_empty() {
            self.is_folder |= matches!(parts.last(), Some(&(b"" | b"." | b"..")));
        }
        let steps = parts.into_iter().rev().filter(|part| !matches!(*part, b"" | b"."));
        self.remaining_steps.extend(steps.map(|part| OsStr::from_bytes(part).to_owned()));
    }

    fn count_step(&mut self) -> Result<(), ErrorCode> {
        self.steps += 1;
        match (self.steps > STEPS_MAX, self.depth + self.folders.len() > DEPTH_MAX) {
            (true, _) => Err(ErrorCode::Loop),
            (_, true) => Err(ErrorCode::NameTooLong),
            (false, false) => Ok(()),
        }
    }

    fn current_folder(&self) -> &Arc<OwnedFd> {
        &self.folders[self.folders.len() - 1]
    }

    fn leave_folder(&mut self) -> Result<(), ErrorCode> {
        if self.folders.len() == 1 {
            // Not recorded: a guest that looks for the end of its folder has requested nothing.
            return Err(match self.has_followed_link {
                false => ErrorCode::NotPermitted,
                true => self.granted_mount.refuse_link(&self.relative_path),
            });
        }
        self.folders.pop();
        self.relative_path.pop();
        Ok(())
    }

    fn enter_folder(&mut self, step: OsString) -> Result<(), ErrorCode> {
        let flags = FOLDER_STEP_FLAGS | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(self.current_folder(), &step, flags, Mode::empty()) {
            Ok(folder) => self.folders.push(Arc::new(folder)),
            // Either error may mean that the step is a link.
            Err(Errno::NOTDIR | Errno::LOOP) if self.follow_link(&step)? => {}
            Err(Errno::LOOP) => return Err(ErrorCode::NotDirectory),
            Err(error) => return Err(to_error_code(error)),
        }
        Ok(())
    }

    /// Continues with the target of a link. Returns false if the step is not a link.
    fn follow_link(&mut self, step: &OsStr) -> Result<bool, ErrorCode> {
        let target = match readlinkat(self.current_folder(), step, Vec::new()) {
            Ok(target) => OsString::from_vec(target.into_bytes()),
            Err(Errno::INVAL | Errno::NOENT) => return Ok(false),
            Err(error) => return Err(to_error_code(error)),
        };
        self.has_followed_link = true;
        if target.as_bytes().starts_with(b"/") {
            return Err(self.granted_mount.refuse_link(&self.relative_path));
        }
        self.relative_path.pop();
        self.prepend_steps(&target);
        Ok(true)
    }

    fn into_resolved_path(self, name: Option<OsString>) -> ResolvedGuestPath {
        let Self { relative_path, is_folder, .. } = self;
        let folder = Arc::clone(&self.folders[self.folders.len() - 1]);
        ResolvedGuestPath { folder, name, relative_path, is_folder }
    }
}
