//! One capability is one file of the policy: a new one does not need an arm in every other file.

use std::{fs, path::Path};

use crate::support::home::repository;

/// How the files spell the capability that is counted.
const SPELLINGS: [&str; 3] = ["open-url", "open_url", "OpenUrl"];

/// The files below a folder, without tests, that name the capability.
fn naming_files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" && name != "target" {
            naming_files(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path).unwrap();
            if SPELLINGS.iter().any(|spelling| text.contains(spelling)) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn few_files_name_one_capability() {
    // In the policy its own module, the list and the accessor, in the program an older flag.
    let rows = [
        (&["host/crates/policy/src", "host/crates/runtime/src", "host/src"][..], 4),
        (&["host", "sdk/rust/src", "xtask/src"], 14),
    ];
    for (folders, most) in rows {
        let mut found = Vec::new();
        for folder in folders {
            naming_files(&repository().join(folder), &mut found);
        }
        assert!(found.len() <= most, "{} files of {folders:?}: {found:#?}", found.len());
    }
}
