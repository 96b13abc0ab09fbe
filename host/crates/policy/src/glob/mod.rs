//! Globs over the paths of files: what lies in a granted folder and is denied all the same.
//!
//! A pattern is compared with a path segment by segment: `*` is any text within one, `?` one
//! character, `[abc]`, `[a-z]` and `[!a-z]` one of some characters, and `**`, as a whole segment, any
//! number of segments. A pattern that matches a folder denies everything in it, so `**/.git` and
//! `**/.git/**` mean the same. Letters are compared as they are, case and all.
//!
//! Where a path cannot be compared for certain, it is denied: a name that is not UTF-8, a detour
//! over `..`, an absolute path.

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

/// Longest pattern, in bytes: far above what a person can review at a glance.
const GLOB_BYTES_MAX: usize = 256;

/// Most segments of a pattern: a position in it is a bit of a number.
const SEGMENTS_MAX: usize = 32;

/// Most patterns of one folder, so that a look at a file costs no noticeable time.
const GLOBS_MAX: usize = 64;

/// Longest path that is compared, in bytes: the most that systems accept. A longer one is denied.
const PATH_BYTES_MAX: usize = 4096;

/// Patterns of files that a mount denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Globs {
    globs: Vec<Glob>,
}

/// One pattern, and where the folder lies that it speaks about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob {
    text: String,
    segments: Vec<Segment>,
    anchor: Anchor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of segments, also none.
    AnyDepth,
    /// One segment.
    Name(NamePattern),
}

/// Where the folder of a pattern lies, seen from the folder in which the paths begin.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Anchor {
    /// It is that folder.
    Here,
    /// Further up; the path leads down from it.
    Above(PathBuf),
    /// Further down; the path leads to it.
    Below(PathBuf),
}

/// How far a pattern has come along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It matches nothing at or below the path.
    Over,
    /// The folder it speaks about is still further down.
    Ahead,
    /// A bit for each segment that may come next; the one after the last says that it has matched.
    At(u64),
}

/// Why a text is not a pattern of files.
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
    /// A path is denied if a pattern matches it or a folder that it lies in. Where that cannot be
    /// told, the first pattern is named.
    pub fn denies(&self, below: &Path) -> Option<&str> {
        // Often there is none, and then nothing has to be compared.
        let names = self.globs.first().and_then(|_| names(below));
        let denying = self.globs.iter().find(|glob| glob.denies(names.as_deref()));
        denying.map(|glob| glob.text.as_str())
    }

    /// Returns the pattern that would no longer deny all that it denies at or below `from`, if what
    /// is there were moved to `to` in a mount with the patterns `there`.
    ///
    /// A folder can be moved only where there is none: `a/.env` is denied under any name of `a` by
    /// `**/.env`, but by `a/.env` under this name alone.
    pub fn lost_by_move(&self, from: &Path, there: &Self, to: &Path) -> Option<&str> {
        let is_kept = |glob: &Glob| there.globs.iter().any(|other| other.goes_on(to, glob, from));
        let lost = self.globs.iter().find(|glob| glob.bears_on(from) && !is_kept(glob));
        lost.map(|glob| glob.text.as_str())
    }

    /// Adds the patterns of another folder, as far as they bear on this one: both are folders of the
    /// host, and what one of them denies is denied by whichever way it is reached.
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

    /// Whether it denies the path, or may deny something below it.
    fn bears_on(&self, path: &Path) -> bool {
        self.after(path) != Some(Progress::Over)
    }

    /// Whether it denies below `path` whatever `other` denies below `others`.
    fn goes_on(&self, path: &Path, other: &Self, others: &Path) -> bool {
        match (self.after(path), other.after(others)) {
            (Some(Progress::At(own)), Some(Progress::At(theirs))) => {
                self.segments == other.segments && theirs & !own == 0
            }
            _ => false,
        }
    }

    /// How far the pattern comes along a path; `None` where that cannot be told.
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

    /// The positions after one more segment of a path.
    fn step(&self, states: u64, name: &Name) -> u64 {
        // Whatever lies below a match is denied with it.
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

    /// Adds the positions behind each `**`, which may stand for nothing.
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

/// The names along a relative path; `None` if it cannot be compared with a pattern.
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
        // What is below a match is denied anyway.
        while segments.last() == Some(&Segment::AnyDepth) {
            segments.pop();
        }
        Ok(Self { text: text.to_owned(), segments, anchor: Anchor::Here })
    }
}

/// What is wrong with a pattern, and how to write it instead.
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
    /// The patterns as a list of TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&toml_list(self.globs.iter().map(|glob| toml_string(&glob.text))))
    }
}
