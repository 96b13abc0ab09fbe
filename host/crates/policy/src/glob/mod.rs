//! Globs over file paths: the files of a granted folder that are denied.
//!
//! A pattern is compared with a path segment by segment: `*` matches any text within one segment,
//! `?` one character, `[abc]`, `[a-z]` and `[!a-z]` one of some characters, and `**`, as a whole
//! segment, any number of segments. A pattern that matches a folder denies everything in it, so
//! `**/.git` and `**/.git/**` mean the same. Letters match regardless of case; the `name` module
//! lists the other spellings that count as equal.
//!
//! A path that cannot be compared reliably is denied: a name that is not UTF-8, a detour over `..`,
//! an absolute path, a path that is too long.

mod name;

use std::{
    fmt,
    path::{Component, Path, PathBuf},
    str::FromStr,
};

use self::name::{Name, NamePattern};
use crate::{
    document::Item,
    fix::{toml_list, toml_string},
    source::{Mistake, SourceError, quoted},
};

/// Longest pattern, in bytes: far longer than anyone can review at a glance.
const GLOB_BYTES_MAX: usize = 256;

/// Most segments of a pattern: each position in it is one bit of a `u64`.
const SEGMENTS_MAX: usize = 32;

/// Most patterns of one folder: few enough that checking a file costs no noticeable time.
const GLOBS_MAX: usize = 64;

/// Longest path that is compared, in bytes: the longest that operating systems accept. A longer
/// path is denied.
const PATH_BYTES_MAX: usize = 4096;

/// The patterns of files that a mount denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globs {
    globs: Vec<Glob>,
}

/// One pattern, and the location of the folder that it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob {
    text: String,
    segments: Vec<Segment>,
    anchor: Anchor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of segments, including none.
    AnyDepth,
    /// One segment.
    Name(NamePattern),
}

/// The location of a pattern's folder, relative to the folder in which the paths begin.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Anchor {
    /// The same folder.
    Here,
    /// A parent folder; the path leads down from it.
    Above(PathBuf),
    /// A subfolder; the path leads down to it.
    Below(PathBuf),
}

/// The state of a pattern after the segments of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The pattern matches nothing at or below the path.
    Over,
    /// The pattern's folder is below the path.
    Ahead,
    /// One bit for each segment that may come next. The bit after the last segment means that the
    /// pattern has matched.
    At(u64),
}

/// Why a text is not a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {} cannot match: {reason}", quoted(pattern))]
pub struct GlobError {
    pattern: String,
    reason: &'static str,
    hint: &'static str,
}

impl Mistake for GlobError {
    fn hint(&self) -> Option<String> {
        Some(self.hint.to_owned())
    }
}

impl Globs {
    /// Returns the patterns that deny nothing.
    pub fn none() -> Self {
        Self { globs: Vec::new() }
    }

    /// Parses patterns.
    ///
    /// # Errors
    ///
    /// The first text that is not a pattern.
    pub fn parse<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, GlobError> {
        let globs = patterns.into_iter().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { globs })
    }

    pub(crate) fn read(item: Item<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        let globs = item.list(Item::parsed)?;
        match globs.len() > GLOBS_MAX {
            true => Err(place.error(format!("a folder can deny {GLOBS_MAX} patterns at most"))),
            false => Ok(Self { globs }),
        }
    }

    /// Whether nothing is denied.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Returns the pattern that denies a path, which is relative to the mount.
    ///
    /// A path is denied if a pattern matches it or one of its parent folders. A path that cannot be
    /// compared is denied by the first pattern.
    pub fn denies(&self, below: &Path) -> Option<&str> {
        // Without patterns, the path need not be split into names.
        let names = self.globs.first().and_then(|_| names(below));
        let denying = self.globs.iter().find(|glob| glob.denies(names.as_deref()));
        denying.map(|glob| glob.text.as_str())
    }

    /// Returns the first pattern that would deny less after a move.
    ///
    /// The file or folder at `from` would move to `to`, in a mount with the patterns `there`. A
    /// pattern is lost if it no longer denies everything at or below the new path that it denied at
    /// or below the old one. A folder may move only if no pattern is lost: `**/.env` denies
    /// `a/.env` under any new name of `a`, but `a/.env` denies it under this name only.
    pub fn lost_by_move(&self, from: &Path, there: &Self, to: &Path) -> Option<&str> {
        let is_kept = |glob: &Glob| there.globs.iter().any(|other| other.goes_on(to, glob, from));
        let lost = self.globs.iter().find(|glob| glob.bears_on(from) && !is_kept(glob));
        lost.map(|glob| glob.text.as_str())
    }

    /// Adds the patterns of another folder that apply to this one.
    ///
    /// Both are folders of the host. They share patterns because a file that one of them denies
    /// must stay denied through the other.
    pub(crate) fn inherit(&mut self, own: &Path, other: &Self, others: &Path) {
        let anchor = match (own.strip_prefix(others), others.strip_prefix(own)) {
            (Ok(down), _) => Anchor::Above(down.to_owned()),
            (_, Ok(down)) => Anchor::Below(down.to_owned()),
            (Err(_), Err(_)) => return,
        };
        let moved = |glob: &Glob| Glob { anchor: anchor.clone(), ..glob.clone() };
        self.globs
            .extend(other.globs.iter().map(moved).filter(|glob| glob.bears_on(Path::new(""))));
    }
}

impl Glob {
    fn denies(&self, names: Option<&[Name]>) -> bool {
        match self.after_names(names) {
            Some(Progress::At(states)) => states & self.end() != 0,
            Some(Progress::Over | Progress::Ahead) => false,
            None => true,
        }
    }

    /// Whether the pattern denies the path, or may deny something below it.
    fn bears_on(&self, path: &Path) -> bool {
        self.after(path) != Some(Progress::Over)
    }

    /// Whether the pattern denies below `path` everything that `other` denies below `others`.
    fn goes_on(&self, path: &Path, other: &Self, others: &Path) -> bool {
        match (self.after(path), other.after(others)) {
            (Some(Progress::At(own)), Some(Progress::At(theirs))) => {
                self.segments == other.segments && theirs & !own == 0
            }
            _ => false,
        }
    }

    /// The state of the pattern after a path; `None` if the path cannot be compared.
    fn after(&self, path: &Path) -> Option<Progress> {
        self.after_names(names(path).as_deref())
    }

    fn after_names(&self, names: Option<&[Name]>) -> Option<Progress> {
        let names = names?;
        match &self.anchor {
            Anchor::Here => Some(self.along(names)),
            Anchor::Above(down) => {
                let down = self::names(down)?;
                Some(self.along(down.iter().chain(names)))
            }
            Anchor::Below(down) => {
                let down = self::names(down)?;
                match names.strip_prefix(down.as_slice()) {
                    Some(rest) => Some(self.along(rest)),
                    None if down.starts_with(names) => Some(Progress::Ahead),
                    None => Some(Progress::Over),
                }
            }
        }
    }

    fn along<'n>(&self, names: impl IntoIterator<Item = &'n Name>) -> Progress {
        let start = self.with_skips(1);
        match names.into_iter().fold(start, |states, name| self.step(states, name)) {
            0 => Progress::Over,
            states => Progress::At(states),
        }
    }

    /// The positions after one more segment of the path.
    fn step(&self, states: u64, name: &Name) -> u64 {
        // Everything below a match is denied too.
        let mut next = states & self.end();
        for (index, segment) in self.segments.iter().enumerate() {
            let state = 1 << index;
            if states & state != 0 {
                next |= match segment {
                    Segment::AnyDepth => state,
                    Segment::Name(pattern) if pattern.matches(name) => state << 1,
                    Segment::Name(_) => 0,
                };
            }
        }
        self.with_skips(next)
    }

    /// Adds the position after each `**`, which may match nothing.
    fn with_skips(&self, mut states: u64) -> u64 {
        for (index, segment) in self.segments.iter().enumerate() {
            if *segment == Segment::AnyDepth {
                states |= (states & (1 << index)) << 1;
            }
        }
        states
    }

    fn end(&self) -> u64 {
        1 << self.segments.len()
    }
}

/// The names along a relative path; `None` if the path cannot be compared with a pattern.
fn names(path: &Path) -> Option<Vec<Name>> {
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return None;
    }
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_str().map(Name::of)),
        Component::CurDir => None,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => Some(None),
    };
    path.components().filter_map(name).collect()
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        let refused = |(reason, hint)| GlobError { pattern: text.to_owned(), reason, hint };
        if let Some(fault) = fault(text) {
            return Err(refused(fault));
        }
        let segments = text.split('/').map(Segment::parse).collect::<Result<Vec<_>, _>>();
        let mut segments = segments.map_err(refused)?;
        // Everything below a match is denied anyway.
        while segments.last() == Some(&Segment::AnyDepth) {
            segments.pop();
        }
        Ok(Self { text: text.to_owned(), segments, anchor: Anchor::Here })
    }
}

/// The reason why a pattern is invalid, and a hint how to write it.
type Fault = (&'static str, &'static str);

fn fault(text: &str) -> Option<Fault> {
    let mut segments = text.split('/');
    match () {
        () if text.len() > GLOB_BYTES_MAX || text.matches('/').count() >= SEGMENTS_MAX => {
            Some(("it is too long", "write a shorter one"))
        }
        () if text.is_empty() => Some(("it is empty", "write a pattern such as **/.env")),
        () if text.starts_with('/') => Some((
            "it begins with a slash",
            "leave the slash out: patterns are relative to the folder",
        )),
        () if text.ends_with('/') => Some((
            "it ends with a slash",
            "leave the slash out: what is in a folder is denied with it",
        )),
        () if segments.any(|segment| matches!(segment, "" | "." | "..")) => {
            Some(("it makes a detour", "write the path without empty segments and dots"))
        }
        () => None,
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, Fault> {
        match text {
            "**" => Ok(Self::AnyDepth),
            _ if text.contains("**") => {
                Err(("`**` has to be a whole segment", "write **/ before a name, or a single *"))
            }
            _ => NamePattern::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for Globs {
    /// The patterns as a TOML list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&toml_list(self.globs.iter().map(|glob| toml_string(&glob.text))))
    }
}
