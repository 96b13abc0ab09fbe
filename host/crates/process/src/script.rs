//! A script: a folder with a definition and a program, as it was when it was read.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    definition::{ScriptDefinition, ScriptDefinitionFile},
    digest::{PROGRAM_BYTES_MAX, ScriptDigest},
    error::ScriptError,
    script_file::open_regular_file,
};

/// The file names of a program, in order of precedence.
const PROGRAMS: [(&str, ProgramKind); 6] = [
    ("run", ProgramKind::Native),
    ("run.sh", ProgramKind::Native),
    ("run.py", ProgramKind::Native),
    ("run.rb", ProgramKind::Native),
    ("main", ProgramKind::Native),
    ("run.wasm", ProgramKind::Component),
];

/// Executable by anyone.
const EXECUTABLE: u32 = 0o111;

/// The kind of a script's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// The system runs it, behind the walls of this crate.
    Native,
    /// A WebAssembly command, which the sandbox runs.
    Component,
}

/// The program of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptProgram {
    /// Its file.
    pub path: PathBuf,
    /// Its kind.
    pub kind: ProgramKind,
    /// The digest of its bytes when they were read.
    pub digest: ScriptDigest,
}

impl ScriptProgram {
    /// Reads a native program.
    ///
    /// # Errors
    ///
    /// It cannot be read, is not executable, or is too large.
    pub fn read_native(path: PathBuf) -> Result<Self, ScriptError> {
        read_program(path, ProgramKind::Native)
    }
}

/// A folder with a definition and a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The folder.
    pub folder: PathBuf,
    /// The definition.
    pub definition: ScriptDefinition,
    /// The program.
    pub program: ScriptProgram,
    /// The digest of definition and program together. Acceptance is bound to it.
    pub digest: ScriptDigest,
    /// Remarks for the operator. They may quote the folder's files.
    pub warnings: Vec<String>,
}

impl Script {
    /// Reads a folder.
    ///
    /// # Errors
    ///
    /// The definition or the program is missing or invalid.
    pub fn read_folder(folder: &Path) -> Result<Self, ScriptError> {
        let ScriptDefinitionFile { definition, bytes, mut warnings } =
            ScriptDefinition::read_folder(folder)?;
        let (program, skipped_programs) = find_program(folder)?;
        warnings.extend(skipped_programs);
        let digest = combined_digest(&bytes, &program);
        Ok(Self { folder: folder.to_owned(), definition, program, digest, warnings })
    }
}

/// Returns the digest of both. The length is included, so that bytes cannot move from one to the
/// other.
fn combined_digest(definition: &[u8], program: &ScriptProgram) -> ScriptDigest {
    let name = program.path.file_name().unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(definition.len() as u64).to_le_bytes());
    hasher.update(definition).update(program.digest.as_str().as_bytes());
    hasher.update(name.as_encoded_bytes());
    ScriptDigest::from_hasher(&hasher)
}

/// Finds the program of a folder, with remarks on other candidates.
///
/// # Errors
///
/// No program exists, it is not executable, or it cannot be read.
pub fn find_program(folder: &Path) -> Result<(ScriptProgram, Vec<String>), ScriptError> {
    let there = PROGRAMS.iter().filter(|(name, _)| folder.join(name).symlink_metadata().is_ok());
    let (files, others): (Vec<_>, Vec<_>) =
        there.partition(|(name, _)| folder.join(name).is_file());
    let Some(((name, kind), unused)) = files.split_first() else {
        return Err(match others.first() {
            Some((name, _)) => ScriptError::NotAFile { path: folder.join(name) },
            None => ScriptError::NoProgram { folder: folder.to_owned() },
        });
    };
    let other = others.iter().map(|(other, _)| format!("{other} is ignored: it is not a file"));
    let unused = unused.iter().map(|(unused, _)| format!("{unused} is not used: there is {name}"));
    Ok((read_program(folder.join(name), *kind)?, other.chain(unused).collect()))
}

fn read_program(path: PathBuf, kind: ProgramKind) -> Result<ScriptProgram, ScriptError> {
    let unreadable = |error| ScriptError::unreadable(&path, &error);
    let mut file = open_regular_file(&path)?;
    let mode = file.metadata().map_err(unreadable)?.mode();
    if kind == ProgramKind::Native && mode & EXECUTABLE == 0 {
        return Err(ScriptError::NotExecutable { path });
    }
    match ScriptDigest::hash_program(&mut file).map_err(unreadable)? {
        Some(digest) => Ok(ScriptProgram { path, kind, digest }),
        None => Err(ScriptError::TooLarge { path, bytes_max: PROGRAM_BYTES_MAX }),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    const DEFINITION: &str = r#"{"name": "x", "description": "X.", "parameters": {}}"#;

    /// A folder with these files, each with its mode; one whose name ends in `/` is a folder.
    fn folder(files: &[(&str, u32)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("definition.json"), DEFINITION).unwrap();
        for (name, mode) in files {
            let path = folder.path().join(name);
            match name.strip_suffix('/') {
                Some(_) => fs::create_dir(&path).unwrap(),
                None => fs::write(&path, name).unwrap(),
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        folder
    }

    #[track_caller]
    fn check(files: &[(&str, u32)], want: &str, kind: ProgramKind, warnings: &[&str]) {
        let folder = folder(files);
        let script = Script::read_folder(folder.path()).unwrap();
        assert_eq!(script.program.path, folder.path().join(want));
        assert_eq!(script.program.kind, kind);
        assert_eq!(script.program.digest, ScriptDigest::hash_bytes(want.as_bytes()));
        assert_eq!(script.warnings, warnings);
    }

    #[test]
    fn the_first_program_is_the_one() {
        use ProgramKind::{Component, Native};
        for name in ["run", "run.sh", "run.py", "run.rb", "main"] {
            check(&[(name, 0o755)], name, Native, &[]);
        }
        check(&[("run.wasm", 0o644)], "run.wasm", Component, &[]);
        check(&[("run", 0o100), ("other", 0o755)], "run", Native, &[]);
        check(
            &[("main", 0o755), ("run.py", 0o755), ("run.wasm", 0o644)],
            "run.py",
            Native,
            &["main is not used: there is run.py", "run.wasm is not used: there is run.py"],
        );
        check(
            &[("run/", 0o755), ("run.sh", 0o755)],
            "run.sh",
            Native,
            &["run is ignored: it is not a file"],
        );
    }

    #[test]
    fn what_cannot_run_is_told() {
        let read = |files: &[(&str, u32)]| Script::read_folder(folder(files).path()).unwrap_err();
        let none = read(&[("other.sh", 0o755)]);
        assert!(matches!(none, ScriptError::NoProgram { .. }) && none.hint().contains("run.py"));
        assert!(matches!(read(&[("main/", 0o755)]), ScriptError::NotAFile { .. }));
        let closed = read(&[("run.sh", 0o644), ("main", 0o755)]);
        assert!(matches!(closed, ScriptError::NotExecutable { .. }));
        assert!(closed.hint().starts_with("chmod +x /"), "{}", closed.hint());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let folder = folder(&[]);
        let pipe = folder.path().join("run");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let error = Script::read_folder(folder.path()).unwrap_err();
        assert!(matches!(error, ScriptError::NotAFile { .. }), "{error:?}");
        assert!(matches!(open_regular_file(&pipe), Err(ScriptError::NotAFile { .. })));
    }

    #[test]
    fn a_program_has_a_largest_size() {
        let folder = folder(&[("run", 0o755)]);
        let file = fs::OpenOptions::new().write(true).open(folder.path().join("run")).unwrap();
        file.set_len(PROGRAM_BYTES_MAX + 1).unwrap();
        let error = Script::read_folder(folder.path()).unwrap_err();
        assert!(matches!(error, ScriptError::TooLarge { .. }), "{error:?}");
    }

    #[test]
    fn the_digest_is_that_of_both_files() {
        let digest = |definition: &str, name: &str, program: &str| {
            let folder = folder(&[(name, 0o755)]);
            fs::write(folder.path().join("definition.json"), definition).unwrap();
            fs::write(folder.path().join(name), program).unwrap();
            Script::read_folder(folder.path()).unwrap().digest
        };
        let first = digest(DEFINITION, "run", "a");
        assert_eq!(first, digest(DEFINITION, "run", "a"));
        assert_ne!(first, digest(DEFINITION, "run", "b"));
        assert_ne!(first, digest(&format!("{DEFINITION} "), "run", "a"));
        assert_ne!(first, digest(DEFINITION, "run.sh", "a"));
        assert_eq!(first.as_str().len(), 64);
    }
}
