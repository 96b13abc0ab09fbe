//! The rule that each type of the host has a name of its own, so that a reader who searches for a
//! name finds one thing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Folder of the crates with this rule.
const HOST: &str = "host";

/// Folders and files of tests.
const TEST_PLACES: [&str; 3] = ["tests", "benches", "tests.rs"];

/// Names that two files declare, because only one of them is compiled for a system.
const DECLARED_PER_SYSTEM: [&str; 2] = ["ServicePipes", "ServiceProcess"];

/// The types by name, with the files that declare them.
#[derive(Default)]
pub(super) struct TypeNames(BTreeMap<String, Vec<PathBuf>>);

impl TypeNames {
    /// Adds the types that a file declares outside of its tests.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) {
        let is_test = path
            .components()
            .any(|part| TEST_PLACES.iter().any(|place| part.as_os_str() == *place));
        if is_test || !path.starts_with(HOST) {
            return;
        }
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
        for name in production.lines().filter_map(declared_type) {
            self.0.entry(name.to_owned()).or_default().push(path.to_owned());
        }
    }

    /// Lists the names that are declared more than once.
    pub(super) fn breaches(&self) -> impl Iterator<Item = String> {
        let shared = self.0.iter().filter(|(name, files)| {
            files.len() > 1 && !DECLARED_PER_SYSTEM.contains(&name.as_str())
        });
        shared.map(|(name, files)| {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            format!("{}: each declares a type {name}", files.join(", "))
        })
    }
}

/// The type that a line declares at the head of a file's own level.
fn declared_type(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest
            .strip_prefix('(')
            .map_or(rest, |rest| rest.split_once(')').map_or("", |(_, rest)| rest))
            .trim_start(),
        None => line,
    };
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_two_files_declare_is_reported() {
        let mut names = TypeNames::default();
        names.add_file(Path::new("host/src/a.rs"), "pub(crate) struct Place;\nenum Other {}\n");
        names.add_file(Path::new("host/crates/b/src/b.rs"), "pub struct Place<T>(T);\n");
        names.add_file(Path::new("host/crates/b/src/tests.rs"), "struct Other;\n");
        names.add_file(
            Path::new("host/crates/c/src/c.rs"),
            "#[cfg(test)]\nmod tests {\nstruct Other;\n}\n",
        );
        names.add_file(Path::new("sdk/rust/src/c.rs"), "struct Other;\n    type Output = u8;\n");
        let breaches: Vec<_> = names.breaches().collect();
        assert_eq!(breaches, ["host/src/a.rs, host/crates/b/src/b.rs: each declares a type Place"]);
    }
}
