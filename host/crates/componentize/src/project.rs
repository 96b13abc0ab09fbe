//! The files that a build writes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::BuildError;

/// The folder of a project that a build writes to. Its files can be removed at any time.
pub(crate) const BUILD_FOLDER: &str = ".build";

/// Replaces a file as a whole, so that no half of one is left if the program ends in between.
pub(crate) fn replace_file(path: &Path, contents: &[u8]) -> Result<(), BuildError> {
    create_parent(path)?;
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    fs::write(&unfinished, contents).map_err(BuildError::at(&unfinished))?;
    fs::rename(&unfinished, path).map_err(BuildError::at(path))
}

/// Writes a file unless it has these contents already, because compilers compare times.
pub(crate) fn update_file(path: &Path, contents: &[u8]) -> Result<(), BuildError> {
    match fs::read(path) {
        Ok(present) if present == contents => Ok(()),
        _ => replace_file(path, contents),
    }
}

/// Copies the files of a folder and its subfolders. A folder whose name `is_left_out` is skipped.
pub(crate) fn copy_folder(
    from: &Path,
    to: &Path,
    is_left_out: &dyn Fn(&str) -> bool,
) -> Result<(), BuildError> {
    for entry in fs::read_dir(from).map_err(BuildError::at(from))? {
        let entry = entry.map_err(BuildError::at(from))?;
        let (path, name) = (entry.path(), entry.file_name());
        match path.is_dir() {
            true if is_left_out(&name.to_string_lossy()) => {}
            true => copy_folder(&path, &to.join(name), is_left_out)?,
            false => {
                let contents = fs::read(&path).map_err(BuildError::at(&path))?;
                update_file(&to.join(name), &contents)?;
            }
        }
    }
    Ok(())
}

fn create_parent(path: &Path) -> Result<(), BuildError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            fs::create_dir_all(folder).map_err(BuildError::at(folder))
        }
        _ => Ok(()),
    }
}
