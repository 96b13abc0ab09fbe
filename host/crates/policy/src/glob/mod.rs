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

use self::name::{FileNamePattern, FoldedFileName};
use crate::{
    document::TomlItem,
    source::{HintedError, SourceError, quoted},
    toml_text::{toml_list, toml_string},
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

/// The folder of a project's own policy and configuration. No plugin may use it through a folder
/// around it: the policy in it applies to that plugin.
const PROJECT_FILES: &str = "**/.sallyport";

/// The patterns of files that a mount denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobSet {
    /// The patterns that the policy states.
    globs: Vec<GlobPattern>,
    /// The patterns that apply to each granted folder.
    implied_globs: Vec<GlobPattern>,
}

/// One pattern, and the location of the folder that it applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GlobPattern {
    text: String,
    segments: Vec<GlobSegment>,
    anchor: GlobAnchor,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobSegment {
    /// `**`: any number of segments, including none.
    AnyDepth,
    /// One segment.
    Name(FileNamePattern),
}

/// The location of a pattern's folder, relative to the folder in which the paths begin.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobAnchor {
    /// The same folder.
    SameFolder,
    /// A parent folder; the path leads down from it.
    Ancestor(PathBuf),
    /// A subfolder; the path leads down to it.
    Descendant(PathBuf),
}

/// The state of a pattern after the segments of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobMatchState {
    /// The pattern matches nothing at or below the path.
    NoMatch,
    /// The pattern's folder is below the path.
    BeforeAnchor,
    /// One bit for each segment that may come next. The bit after the last segment means that the
    /// pattern has matched.
    Positions(u64),
}

/// Why a text is not a glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {} cannot match: {reason}", quoted(pattern))]
pub struct GlobError {
    pattern: String,
    reason: &'static str,
    hint: &'static str,
}

impl HintedError for GlobError {
    fn hint(&self) -> Option<String> {
        Some(self.hint.to_owned())
    }
}

impl GlobSet {
    /// Returns the patterns that deny nothing.
    pub fn empty() -> Self {
        Self { globs: Vec::new(), implied_globs: Vec::new() }
    }

    /// Returns the patterns that apply to each granted folder.
    pub(crate) fn project_files() -> Self {
        let glob = PROJECT_FILES.parse().expect("it is a pattern");
        Self { globs: Vec::new(), implied_globs: vec![glob] }
    }

    /// Adds the patterns that apply to each granted folder.
    pub(crate) fn deny_project_files(&mut self) {
        self.implied_globs = Self::project_files().implied_globs;
    }

    /// Parses patterns.
    ///
    /// # Errors
    ///
    /// The first text that is not a pattern.
    pub fn parse<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<Self, GlobError> {
        let globs = patterns.into_iter().map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { globs, ..Self::empty() })
    }

    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        let globs = item.read_list(TomlItem::read_parsed)?;
        match globs.len() > GLOBS_MAX {
            true => {
                Err(place.into_error(format!("a folder can deny {GLOBS_MAX} patterns at most")))
            }
            false => Ok(Self { globs, ..Self::empty() }),
        }
    }

    /// Whether the policy denies nothing. The pattern for a project's own files, which every folder
    /// has, does not count: hard links are common in package stores, and refusing all of them in
    /// every folder would cost more than it protects, because a plugin cannot make such a link.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Returns the pattern that denies a path, which is relative to the mount.
    ///
    /// A path is denied if a pattern matches it or one of its parent folders. A path that cannot be
    /// compared is denied by the first pattern.
    pub fn find_denying_pattern(&self, below: &Path) -> Option<&str> {
        // Without patterns, the path need not be split into names.
        let names = self.all_globs().next().and_then(|_| path_names(below));
        let denying = self.all_globs().find(|glob| glob.denies_path(names.as_deref()));
        denying.map(|glob| glob.text.as_str())
    }

    /// Returns the first pattern that would deny less after a move.
    ///
    /// The file or folder at `from` would move to `to`, in a mount with the patterns `there`. A
    /// pattern is lost if it no longer denies everything at or below the new path that it denied at
    /// or below the old one. A folder may move only if no pattern is lost: `**/.env` denies
    /// `a/.env` under any new name of `a`, but `a/.env` denies it under this name only.
    pub fn pattern_lost_by_move(&self, from: &Path, there: &Self, to: &Path) -> Option<&str> {
        let is_kept = |glob: &GlobPattern| {
            there.all_globs().any(|other| other.denies_as_much_as(to, glob, from))
        };
        let lost = self.all_globs().find(|glob| glob.can_deny_below(from) && !is_kept(glob));
        lost.map(|glob| glob.text.as_str())
    }

    fn all_globs(&self) -> impl Iterator<Item = &GlobPattern> {
        self.globs.iter().chain(&self.implied_globs)
    }

    /// Adds the patterns of another folder that apply to this one.
    ///
    /// Both are folders of the host. They share patterns because a file that one of them denies
    /// must stay denied through the other.
    pub(crate) fn inherit_from(&mut self, own: &Path, other: &Self, others: &Path) {
        let anchor = match (own.strip_prefix(others), others.strip_prefix(own)) {
            (Ok(relative_path), _) => GlobAnchor::Ancestor(relative_path.to_owned()),
            (_, Ok(relative_path)) => GlobAnchor::Descendant(relative_path.to_owned()),
            (Err(_), Err(_)) => return,
        };
        let moved = |glob: &GlobPattern| GlobPattern { anchor: anchor.clone(), ..glob.clone() };
        self.globs.extend(
            other.globs.iter().map(moved).filter(|glob| glob.can_deny_below(Path::new(""))),
        );
    }
}

impl GlobPattern {
    fn denies_path(&self, names: Option<&[FoldedFileName]>) -> bool {
        match self.state_after_names(names) {
            Some(GlobMatchState::Positions(states)) => states & self.accepting_state() != 0,
            Some(GlobMatchState::NoMatch | GlobMatchState::BeforeAnchor) => false,
            None => true,
        }
    }

    /// Whether the pattern denies the path, or may deny something below it.
    fn can_deny_below(&self, path: &Path) -> bool {
        self.state_after(path) != Some(GlobMatchState::NoMatch)
    }

    /// Whether the pattern denies below `path` everything that `other` denies below `others`.
    fn denies_as_much_as(&self, path: &Path, other: &Self, others: &Path) -> bool {
        match (self.state_after(path), other.state_after(others)) {
            (Some(GlobMatchState::Positions(own)), Some(GlobMatchState::Positions(theirs))) => {
                self.segments == other.segments && theirs & !own == 0
            }
            _ => false,
        }
    }

    /// The state of the pattern after a path; `None` if the path cannot be compared.
    fn state_after(&self, path: &Path) -> Option<GlobMatchState> {
        self.state_after_names(path_names(path).as_deref())
    }

    fn state_after_names(&self, names: Option<&[FoldedFileName]>) -> Option<GlobMatchState> {
        let names = names?;
        match &self.anchor {
            GlobAnchor::SameFolder => Some(self.match_names(names)),
            GlobAnchor::Ancestor(relative_path) => {
                let relative_path = self::path_names(relative_path)?;
                Some(self.match_names(relative_path.iter().chain(names)))
            }
            GlobAnchor::Descendant(relative_path) => {
                let relative_path = self::path_names(relative_path)?;
                match names.strip_prefix(relative_path.as_slice()) {
                    Some(rest) => Some(self.match_names(rest)),
                    None if relative_path.starts_with(names) => Some(GlobMatchState::BeforeAnchor),
                    None => Some(GlobMatchState::NoMatch),
                }
            }
        }
    }

    fn match_names<'n>(
        &self,
        names: impl IntoIterator<Item = &'n FoldedFileName>,
    ) -> GlobMatchState {
        let start = self.skip_any_depth(1);
        match names.into_iter().fold(start, |states, name| self.advance_states(states, name)) {
            0 => GlobMatchState::NoMatch,
            states => GlobMatchState::Positions(states),
        }
    }

    /// The positions after one more segment of the path.
    fn advance_states(&self, states: u64, name: &FoldedFileName) -> u64 {
        // Everything below a match is denied too.
        let mut next = states & self.accepting_state();
        for (index, segment) in self.segments.iter().enumerate() {
            let state = 1 << index;
            if states & state != 0 {
                next |= match segment {
                    GlobSegment::AnyDepth => state,
                    GlobSegment::Name(pattern) if pattern.matches(name) => state << 1,
                    GlobSegment::Name(_) => 0,
                };
            }
        }
        self.skip_any_depth(next)
    }

    /// Adds the position after each `**`, which may match nothing.
    fn skip_any_depth(&self, mut states: u64) -> u64 {
        for (index, segment) in self.segments.iter().enumerate() {
            if *segment == GlobSegment::AnyDepth {
                states |= (states & (1 << index)) << 1;
            }
        }
        states
    }

    fn accepting_state(&self) -> u64 {
        1 << self.segments.len()
    }
}

/// The names along a relative path; `None` if the path cannot be compared with a pattern.
fn path_names(path: &Path) -> Option<Vec<FoldedFileName>> {
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return None;
    }
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_str().map(FoldedFileName::from_text)),
        Component::CurDir => None,
        Component::Prefix(_) | Component::RootDir | Component::ParentDir => Some(None),
    };
    path.components().filter_map(name).collect()
}

impl FromStr for GlobPattern {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        let refused = |(reason, hint)| GlobError { pattern: text.to_owned(), reason, hint };
        if let Some(fault) = find_glob_fault(text) {
            return Err(refused(fault));
        }
        let segments = text.split('/').map(GlobSegment::parse).collect::<Result<Vec<_>, _>>();
        let mut segments = segments.map_err(refused)?;
        // Everything below a match is denied anyway.
        while segments.last() == Some(&GlobSegment::AnyDepth) {
            segments.pop();
        }
        Ok(Self { text: text.to_owned(), segments, anchor: GlobAnchor::SameFolder })
    }
}

/// The reason why a pattern is invalid, and a hint how to write it.
type Fault = (&'static str, &'static str);

fn find_glob_fault(text: &str) -> Option<Fault> {
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

impl GlobSegment {
    fn parse(text: &str) -> Result<Self, Fault> {
        match text {
            "**" => Ok(Self::AnyDepth),
            _ if text.contains("**") => {
                Err(("`**` has to be a whole segment", "write **/ before a name, or a single *"))
            }
            _ => FileNamePattern::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for GlobSet {
    /// The patterns as a TOML list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&toml_list(self.globs.iter().map(|glob| toml_string(&glob.text))))
    }
}
