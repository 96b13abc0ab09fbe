//! Tests of the tools on a real folder, called as by the host.

use std::{fs, path::Path};

use granted_folders::ENTRIES_MAX;
use sallyport_sdk::testing;
use tempfile::TempDir;

use super::*;
use crate::reading::TEXT_BYTES_MAX;

/// A granted folder with a few files in it.
fn notes() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    testing::folders([folder.path().to_str().unwrap()]);
    fs::write(folder.path().join("todo.txt"), "buy milk\n").unwrap();
    fs::write(folder.path().join("photo.jpg"), [0xff, 0xd8, 0x00]).unwrap();
    fs::write(folder.path().join("zeros.txt"), "a\0b").unwrap();
    fs::create_dir(folder.path().join("old")).unwrap();
    fs::write(folder.path().join("old/done.txt"), "x").unwrap();
    folder
}

fn at(folder: &TempDir, name: &str) -> String {
    folder.path().join(name).to_str().unwrap().to_owned()
}

fn data<T: Tool>(arguments: Value) -> Value {
    testing::call::<T>(arguments).unwrap().data
}

#[track_caller]
fn check_error<T: Tool>(arguments: Value, kind: &str, message: &str) {
    let error = testing::call::<T>(arguments).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(message), "{error}");
}

#[test]
fn folders_are_listed_by_name() {
    let notes = notes();
    let granted = data::<list>(json!({}));
    assert_eq!(granted["entries"], json!([{ "name": notes.path(), "kind": "folder" }]));
    assert_eq!(data::<list>(json!({ "path": "/" })), granted);

    let listing = data::<list>(json!({ "path": at(&notes, "") }));
    let want = json!([
        { "name": "old", "kind": "folder" },
        { "name": "photo.jpg", "kind": "file", "bytes": 3 },
        { "name": "todo.txt", "kind": "file", "bytes": 9 },
        { "name": "zeros.txt", "kind": "file", "bytes": 3 },
    ]);
    assert_eq!(listing, json!({ "entries": want, "truncated": false }));
}

#[test]
fn a_listing_has_an_end() {
    let notes = notes();
    for i in 0..=ENTRIES_MAX {
        fs::write(notes.path().join(format!("old/{i}")), "").unwrap();
    }
    let listing = data::<list>(json!({ "path": at(&notes, "old") }));
    assert_eq!(listing["entries"].as_array().unwrap().len(), ENTRIES_MAX);
    assert_eq!(listing["truncated"], true);
}

#[test]
fn text_is_read_and_nothing_else() {
    let notes = notes();
    let large = vec![b'a'; usize::try_from(TEXT_BYTES_MAX).unwrap() + 1];
    fs::write(notes.path().join("large"), &large).unwrap();
    fs::write(notes.path().join("full"), &large[1..]).unwrap();

    let todo = at(&notes, "todo.txt");
    let want = json!({ "path": todo, "text": "buy milk\n", "bytes": 9 });
    assert_eq!(data::<read>(json!({ "path": todo })), want);
    assert_eq!(data::<read>(json!({ "path": at(&notes, "full") }))["bytes"], TEXT_BYTES_MAX);
    for (name, kind, message) in [
        ("photo.jpg", "failed", "is not a text file"),
        ("zeros.txt", "failed", "is not a text file"),
        ("large", "failed", "holds 1048577 bytes; at most 1048576 can be read"),
        ("old", "invalid-arguments", "is a folder; list it instead"),
        ("absent", "not-found", "does not exist"),
        ("todo.txt/x", "invalid-arguments", "is not in a folder"),
        ("../other", "denied", "lies outside every granted folder"),
    ] {
        check_error::<read>(json!({ "path": at(&notes, name) }), kind, message);
    }
}

#[test]
fn writing_creates_overwrites_or_appends() {
    let notes = notes();
    for (name, text, mode, want) in [
        ("new.txt", "a", None, "a"),
        ("new.txt", "bc", Some("append"), "abc"),
        ("new.txt", "d", Some("overwrite"), "d"),
        ("other.txt", "ü", Some("append"), "ü"),
        ("empty.txt", "", Some("create"), ""),
    ] {
        let path = at(&notes, name);
        let written = data::<write>(json!({ "path": path, "text": text, "mode": mode }));
        assert_eq!(written, json!({ "path": path, "bytes": want.len() }));
        assert_eq!(fs::read_to_string(path).unwrap(), want);
    }
}

#[test]
fn writing_fails_with_a_reason_and_leaves_files_alone() {
    let notes = notes();
    let too_long = "a".repeat(usize::try_from(TEXT_BYTES_MAX).unwrap() + 1);
    let invalid = "invalid-arguments";
    for (name, text, mode, kind, message) in [
        ("todo.txt", "x", "create", invalid, "exists already"),
        ("old", "x", "overwrite", invalid, "is a folder"),
        ("absent/x", "x", "create", "not-found", "does not exist"),
        ("todo.txt", &too_long, "overwrite", invalid, "at most 1048576 are written"),
        ("todo.txt", "x", "erase", invalid, "argument `mode`: unknown variant `erase`"),
        ("../x", "x", "create", "denied", "lies outside"),
    ] {
        let arguments = json!({ "path": at(&notes, name), "text": text, "mode": mode });
        check_error::<write>(arguments, kind, message);
    }
    assert_eq!(fs::read_to_string(at(&notes, "todo.txt")).unwrap(), "buy milk\n");
}

#[test]
fn folders_are_made_with_those_above() {
    let notes = notes();
    for name in ["a/b/c", "a/b/c", "old"] {
        data::<mkdir>(json!({ "path": at(&notes, name) }));
        assert!(Path::new(&at(&notes, name)).is_dir());
    }
    let invalid = "invalid-arguments";
    check_error::<mkdir>(json!({ "path": at(&notes, "todo.txt") }), invalid, "exists already");
    check_error::<mkdir>(
        json!({ "path": at(&notes, "todo.txt/x") }),
        invalid,
        "is not in a folder",
    );
}

#[test]
fn removing_takes_what_was_named_and_no_more() {
    let notes = notes();
    let invalid = "invalid-arguments";
    for (name, recursive, kind, message) in [
        ("", true, invalid, "is a granted folder"),
        (".", false, invalid, "is a granted folder"),
        ("old", false, invalid, "is not empty; use `recursive`"),
        ("absent", false, "not-found", "does not exist"),
        ("absent", true, "not-found", "does not exist"),
        ("../other", true, "denied", "lies outside"),
    ] {
        let arguments = json!({ "path": at(&notes, name), "recursive": recursive });
        check_error::<remove>(arguments, kind, message);
    }
    fs::create_dir(notes.path().join("empty")).unwrap();
    for (name, recursive) in
        [("todo.txt", false), ("zeros.txt", true), ("empty", false), ("old", true)]
    {
        data::<remove>(json!({ "path": at(&notes, name), "recursive": recursive }));
        assert!(!Path::new(&at(&notes, name)).exists(), "{name}");
    }
    assert!(notes.path().join("photo.jpg").exists());
}

#[cfg(unix)]
#[test]
fn removing_a_link_leaves_what_it_points_to() {
    let (notes, outside) = (notes(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("kept"), "").unwrap();
    std::os::unix::fs::symlink(outside.path(), notes.path().join("old/link")).unwrap();
    assert_eq!(data::<stat>(json!({ "path": at(&notes, "old/link") }))["kind"], "link");
    data::<remove>(json!({ "path": at(&notes, "old"), "recursive": true }));
    assert!(outside.path().join("kept").exists());
}

#[test]
fn a_path_is_described() {
    let notes = notes();
    let file = data::<stat>(json!({ "path": at(&notes, "todo.txt") }));
    assert_eq!((&file["kind"], &file["bytes"]), (&json!("file"), &json!(9)));
    assert!(file["modified"].as_str().unwrap().ends_with('Z'), "{file}");
    let folder = data::<stat>(json!({ "path": at(&notes, "old") }));
    assert_eq!((&folder["kind"], folder.get("bytes")), (&json!("folder"), None));
    check_error::<stat>(json!({ "path": at(&notes, "absent") }), "not-found", "does not exist");
}

#[test]
fn claims_about_the_tools_are_true() {
    for (spec, read_only, destructive) in [
        (list::spec(), Some(true), None),
        (read::spec(), Some(true), None),
        (write::spec(), None, Some(true)),
        (mkdir::spec(), None, Some(false)),
        (remove::spec(), None, Some(true)),
        (stat::spec(), Some(true), None),
    ] {
        let hints = spec.hints;
        assert_eq!((hints.read_only, hints.destructive), (read_only, destructive), "{}", spec.name);
        assert_eq!(hints.open_world, Some(false));
    }
}
