//! From a path to the place that it names: a folder that is held open, and a name in it.
//!
//! The path is walked name by name, each opened below the one before and never through a link. A
//! link is read instead, and what it says is walked in turn. So the names that were walked are the
//! true names of the place, every one of them was compared with what the mount denies, and nothing
//! that is swapped meanwhile leads elsewhere: what is done then, is done to one name in one open
//! folder.

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
use sallyport_policy::Access;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{convert::code, mount::Present, opened::Opened};

/// Longest path, as most systems have it.
const PATH_BYTES_MAX: usize = 4096;

/// Folders inside folders, counted from the mount: deeper than any tree that people keep. Each that
/// is on the way is held open, and the patterns of a mount are compared with the names of all.
pub(super) const DEPTH_MAX: usize = 128;

/// Steps of one path, there and back and over links. More of them go in a circle.
const STEPS_MAX: usize = 1024;

/// How a folder on the way is opened: to go on from there, and for nothing else.
#[cfg(target_os = "linux")]
const STEP: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const STEP: OFlags = OFlags::RDONLY;

/// A place that a path names. Nothing may be there.
pub(super) struct Spot {
    pub(super) folder: Arc<OwnedFd>,
    /// `None` if the path names the folder itself.
    pub(super) name: Option<OsString>,
    /// The path of the place in the mount.
    pub(super) below: PathBuf,
    /// The path says that a folder is there.
    pub(super) is_folder: bool,
}

/// What is done about a link at the very end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    /// The place is where the link leads.
    Followed,
    /// The place is the link.
    Meant,
}

/// Finds the place that a path names, from an open folder on.
pub(super) fn resolve(
    present: &Present,
    from: &Opened,
    path: &str,
    last_link: LastLink,
    wanted: Access,
) -> Result<Spot, ErrorCode> {
    let mut way = Way::from(present, from);
    way.begin(path)?;
    while let Some(step) = way.ahead.pop() {
        way.count_step()?;
        if step == ".." {
            way.back()?;
            continue;
        }
        way.below.push(&step);
        present.may_see(&way.below, wanted)?;
        if !way.ahead.is_empty() {
            way.enter(step)?;
            continue;
        }
        let follows = last_link == LastLink::Followed || way.is_folder;
        if !(follows && way.turn_off(&step)?) {
            return Ok(way.spot(Some(step)));
        }
    }
    way.is_folder = true;
    Ok(way.spot(None))
}

/// How far a path was walked.
struct Way<'a> {
    present: &'a Present,
    /// The folders from the first to the present one.
    folders: Vec<Arc<OwnedFd>>,
    below: PathBuf,
    /// What is still to be walked, last step first.
    ahead: Vec<OsString>,
    /// How deep the first folder lies.
    depth: usize,
    steps: usize,
    /// Whether a link has led here.
    is_linked: bool,
    is_folder: bool,
}

impl<'a> Way<'a> {
    fn from(present: &'a Present, from: &Opened) -> Self {
        Self {
            present,
            folders: vec![Arc::clone(&from.fd)],
            below: from.below.clone(),
            ahead: Vec::new(),
            depth: from.below.components().count(),
            steps: 0,
            is_linked: false,
            is_folder: false,
        }
    }

    fn begin(&mut self, path: &str) -> Result<(), ErrorCode> {
        match path {
            "" => Err(ErrorCode::NoEntry),
            _ if path.len() > PATH_BYTES_MAX => Err(ErrorCode::NameTooLong),
            _ if path.starts_with('/') => Err(ErrorCode::NotPermitted),
            _ => {
                self.go_on_with(OsStr::new(path));
                Ok(())
            }
        }
    }

    /// Puts the steps of a path before what is still ahead.
    fn go_on_with(&mut self, path: &OsStr) {
        let parts: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
        if self.ahead.is_empty() {
            self.is_folder |= matches!(parts.last(), Some(&(b"" | b"." | b"..")));
        }
        let steps = parts.into_iter().rev().filter(|part| !matches!(*part, b"" | b"."));
        self.ahead.extend(steps.map(|part| OsStr::from_bytes(part).to_owned()));
    }

    fn count_step(&mut self) -> Result<(), ErrorCode> {
        self.steps += 1;
        match (self.steps > STEPS_MAX, self.depth + self.folders.len() > DEPTH_MAX) {
            (true, _) => Err(ErrorCode::Loop),
            (_, true) => Err(ErrorCode::NameTooLong),
            (false, false) => Ok(()),
        }
    }

    fn here(&self) -> &Arc<OwnedFd> {
        &self.folders[self.folders.len() - 1]
    }

    fn back(&mut self) -> Result<(), ErrorCode> {
        if self.folders.len() == 1 {
            // A guest that tries where its folder ends has asked for nothing.
            return Err(match self.is_linked {
                false => ErrorCode::NotPermitted,
                true => self.present.refuse_link(&self.below),
            });
        }
        self.folders.pop();
        self.below.pop();
        Ok(())
    }

    fn enter(&mut self, step: OsString) -> Result<(), ErrorCode> {
        let flags = STEP | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(self.here(), &step, flags, Mode::empty()) {
            Ok(folder) => self.folders.push(Arc::new(folder)),
            // Either word may mean that a link is there.
            Err(Errno::NOTDIR | Errno::LOOP) if self.turn_off(&step)? => {}
            Err(Errno::LOOP) => return Err(ErrorCode::NotDirectory),
            Err(error) => return Err(code(error)),
        }
        Ok(())
    }

    /// Takes the way that a link points to; false if there is no link.
    fn turn_off(&mut self, step: &OsStr) -> Result<bool, ErrorCode> {
        let target = match readlinkat(self.here(), step, Vec::new()) {
            Ok(target) => OsString::from_vec(target.into_bytes()),
            Err(Errno::INVAL | Errno::NOENT) => return Ok(false),
            Err(error) => return Err(code(error)),
        };
        self.is_linked = true;
        if target.as_bytes().starts_with(b"/") {
            return Err(self.present.refuse_link(&self.below));
        }
        self.below.pop();
        self.go_on_with(&target);
        Ok(true)
    }

    fn spot(self, name: Option<OsString>) -> Spot {
        let Self { below, is_folder, .. } = self;
        let folder = Arc::clone(&self.folders[self.folders.len() - 1]);
        Spot { folder, name, below, is_folder }
    }
}
