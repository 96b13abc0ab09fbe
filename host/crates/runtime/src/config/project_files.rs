//! Finds the files of a project and decides which of them count.
//!
//! A project's file is in the project's own folder: the working folder or the nearest one above it.
//! A file or folder that belongs to another user than root, or that other users can write, is
//! skipped: in the system's temporary folder, any user could place a file for all folders below.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use sallyport_untrusted_file::{ForeignOwner, foreign_owner};

/// A project's file that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFile {
    /// The file.
    pub file: PathBuf,
    /// The file itself, or a folder that contains it.
    pub location: PathBuf,
    /// The owner of that place.
    pub owner: ForeignOwner,
}

impl ForeignFile {
    /// Returns why a file of a project is ignored. Of the project's folder, those below it and the
    /// file itself, the outermost foreign one counts.
    pub(crate) fn find(project: &Path, file: &Path) -> Option<Self> {
        let mut locations: Vec<&Path> =
            file.ancestors().take_while(|location| location.starts_with(project)).collect();
        locations.reverse();
        // A place that is gone now cannot be opened later either.
        let owner = |location: &Path| foreign_owner(location).ok()?;
        let (location, owner) =
            locations.into_iter().find_map(|location| Some((location, owner(location)?)))?;
        Some(Self { file: file.to_owned(), location: location.to_owned(), owner })
    }
}

impl fmt::Display for ForeignFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, location, owner } = self;
        let (file, location) = (file.display(), location.display());
        write!(formatter, "{file} is ignored, because {location} {owner}")
    }
}

/// Returns the nearest file of this name in or above a folder, and the nearer ones that are
/// ignored. Paths for which `is_none` returns true are skipped without a report.
pub(super) fn find_project_file(
    folder: &Path,
    name: &str,
    is_excluded: impl Fn(&Path) -> bool,
) -> (Option<PathBuf>, Vec<ForeignFile>) {
    let mut foreign = Vec::new();
    for above in folder.ancestors() {
        let file = above.join(name);
        // Existence is enough here. Opening the file shows what kind it is.
        if fs::metadata(&file).is_err() || is_excluded(&file) {
            continue;
        }
        match ForeignFile::find(above, &file) {
            None => return (Some(file), foreign),
            Some(ignored) => foreign.push(ignored),
        }
    }
    (None, foreign)
}

/// Whether a folder may become a project: only the user and root can write to it.
pub(super) fn can_be_project(folder: &Path) -> bool {
    foreign_owner(folder).is_ok_and(|owner| owner.is_none())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NAME: &str = ".sallyport/policy.toml";

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_anybody_could_have_put_there_is_passed_over_and_named() {
        let root = tempfile::tempdir().unwrap();
        let (outer, inner) = (root.path().join("outer"), root.path().join("outer/inner"));
        for folder in [&outer, &inner] {
            fs::create_dir_all(folder.join(".sallyport")).unwrap();
            fs::write(folder.join(NAME), "").unwrap();
        }
        let below = inner.join("a/b");
        let find = || find_project_file(&below, NAME, |_| false);
        assert_eq!(find(), (Some(inner.join(NAME)), Vec::new()));
        for (location, usual) in
            [(inner.clone(), 0o755), (inner.join(".sallyport"), 0o755), (inner.join(NAME), 0o644)]
        {
            for open in [0o777, 0o1777, 0o666] {
                // Without x, only root finds anything below a folder.
                if open == 0o666 && location.is_dir() {
                    continue;
                }
                mode(&location, open);
                let owner = ForeignOwner::Everybody;
                let foreign =
                    ForeignFile { file: inner.join(NAME), location: location.clone(), owner };
                assert_eq!(find(), (Some(outer.join(NAME)), vec![foreign]), "{location:?}");
                mode(&location, usual);
            }
        }
        // A group of which others can be members; only root can set it.
        if std::os::unix::fs::chown(&inner, None, Some(65_534)).is_ok() {
            mode(&inner, 0o775);
            assert_eq!(find().0, Some(outer.join(NAME)));
            mode(&inner, 0o755);
            assert_eq!(find().0, Some(inner.join(NAME)));
        }
    }
}
