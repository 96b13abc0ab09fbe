//! Tests of the tools on a real folder, called as by the host.

use std::{fs, path::Path};

use granted_folders::ENTRIES_MAX;
use sallyport_sdk::testing;
use tempfile::TempDir;

use super::*;
use crate::{
    reading::{READ_BYTES_MAX, READ_STANDARD_BYTES},
    writing::WRITE_BYTES_MAX,
};

/// A session's file system with a few files in it.
fn work() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    testing::folders([folder.path().to_str().unwrap()]);
    fs::write(folder.path().join("data.csv"), "a,b\n1,ü\n").unwrap();
    fs::write(folder.path().join("image.png"), [0xff, 0xd8, 0x00]).unwrap();
    fs::write(folder.path().join("zeros.txt"), "a\0b").unwrap();
    fs::create_dir(folder.path().join("old")).unwrap();
    fs::write(folder.path().join("old/done.txt"), "x").unwrap();
    folder
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
    let work = work();
    let want = json!([
        { "name": "data.csv", "kind": "file", "bytes": 9 },
        { "name": "image.png", "kind": "file", "bytes": 3 },
        { "name": "old", "kind": "folder" },
        { "name": "zeros.txt", "kind": "file", "bytes": 3 },
    ]);
    let whole = json!({ "path": work.path(), "entries": want, "truncated": false });
    for arguments in [json!({}), json!({ "path": "." }), json!({ "path": work.path() })] {
        assert_eq!(data::<list>(arguments), whole);
    }
    assert_eq!(data::<list>(json!({ "path": "old" }))["entries"][0]["name"], "done.txt");
    check_error::<list>(json!({ "path": "absent" }), "not-found", "does not exist");
    check_error::<list>(
        json!({ "path": "data.csv" }),
        "invalid-arguments",
        "is not in a folder, or is not a folder itself",
    );
    check_error::<list>(json!({ "path": "/etc" }), "denied", "outside the session's file system");
}

#[test]
fn a_listing_has_an_end() {
    let work = work();
    for i in 0..=ENTRIES_MAX {
        fs::write(work.path().join(format!("old/{i}")), "").unwrap();
    }
    let listing = data::<list>(json!({ "path": "old" }));
    assert_eq!(listing["entries"].as_array().unwrap().len(), ENTRIES_MAX);
    assert_eq!(listing["truncated"], true);
}

#[test]
fn files_are_read_whole_or_in_parts() {
    let _work = work();
    for (file, encoding, offset, limit, content, next) in [
        ("data.csv", None, None, None, "a,b\n1,ü\n", None),
        ("data.csv", Some("utf-8"), Some(4), None, "1,ü\n", None),
        ("data.csv", None, None, Some(4), "a,b\n", Some(4)),
        // A character that the range cuts is left for the next part.
        ("data.csv", None, None, Some(7), "a,b\n1,", Some(6)),
        ("data.csv", None, Some(6), Some(3), "ü\n", None),
        ("data.csv", None, Some(9), None, "", None),
        ("data.csv", None, Some(u64::from(u32::MAX)), None, "", None),
        ("image.png", Some("base64"), None, None, "/9gA", None),
        ("image.png", Some("base64"), Some(1), Some(1), "2A==", Some(2)),
    ] {
        let read = data::<read>(json!({
            "path": file, "encoding": encoding, "offset": offset, "limit": limit,
        }));
        assert_eq!(read["content"], content, "{file} {offset:?} {limit:?}");
        assert_eq!(read.get("next").and_then(Value::as_u64), next, "{file} {offset:?} {limit:?}");
        assert_eq!(read["encoding"], encoding.unwrap_or("utf-8"));
    }
}

#[test]
fn a_part_is_bounded_and_the_parts_make_the_whole() {
    let work = work();
    let text = "äö".repeat(usize::try_from(READ_STANDARD_BYTES).unwrap());
    fs::write(work.path().join("long"), &text).unwrap();
    let (mut whole, mut next) = (String::new(), Some(0));
    while let Some(offset) = next {
        let read = data::<read>(json!({ "path": "long", "offset": offset, "limit": 65_535 }));
        whole += read["content"].as_str().unwrap();
        next = read["next"].as_u64();
    }
    assert_eq!(whole, text);
    let standard = data::<read>(json!({ "path": "long" }));
    assert_eq!(standard["next"], READ_STANDARD_BYTES);
    let largest = data::<read>(json!({ "path": "long", "limit": READ_BYTES_MAX }));
    assert_eq!(largest["bytes"], text.len());
}

#[test]
fn reading_fails_with_a_reason() {
    let _work = work();
    let invalid = "invalid-arguments";
    for (path, rest, kind, message) in [
        ("image.png", json!({}), "failed", "use the encoding \"base64\""),
        ("zeros.txt", json!({}), "failed", "is not text"),
        // In the middle of a character.
        ("data.csv", json!({ "offset": 7 }), "failed", "is not text (UTF-8) at this place"),
        ("data.csv", json!({ "offset": 6, "limit": 1 }), "failed", "is not text"),
        ("data.csv", json!({ "limit": 0 }), invalid, "from 1 to 262144 bytes"),
        ("data.csv", json!({ "limit": READ_BYTES_MAX + 1 }), invalid, "argument `limit`"),
        ("data.csv", json!({ "encoding": "hex" }), invalid, "argument `encoding`"),
        ("data.csv", json!({ "offset": -1 }), invalid, "argument `offset`"),
        ("old", json!({}), invalid, "is a folder; list it instead"),
        ("absent", json!({}), "not-found", "does not exist"),
        ("data.csv/x", json!({}), invalid, "is not in a folder"),
        ("../other", json!({}), "denied", "lies outside"),
    ] {
        let mut arguments = rest;
        arguments["path"] = json!(path);
        check_error::<read>(arguments, kind, message);
    }
}

#[test]
fn writing_creates_replaces_or_appends() {
    let work = work();
    for (path, content, encoding, append, want) in [
        ("new.txt", "abc", None, None, &b"abc"[..]),
        ("new.txt", "d", Some("utf-8"), Some(true), b"abcd"),
        ("new.txt", "ü", None, Some(false), "ü".as_bytes()),
        ("new.txt", "", None, None, b""),
        ("new.bin", "/9gA", Some("base64"), None, &[0xff, 0xd8, 0x00]),
        ("new.bin", "AQ==", Some("base64"), Some(true), &[0xff, 0xd8, 0x00, 0x01]),
        ("old/x", "y", None, Some(true), b"y"),
    ] {
        let written = data::<write>(json!({
            "path": path, "content": content, "encoding": encoding, "append": append,
        }));
        let full = work.path().join(path);
        assert_eq!(written, json!({ "path": full, "bytes": want.len() }));
        assert_eq!(fs::read(full).unwrap(), want);
    }
}

#[test]
fn writing_fails_with_a_reason_and_leaves_files_alone() {
    let work = work();
    let too_long = "a".repeat(WRITE_BYTES_MAX + 1);
    let invalid = "invalid-arguments";
    for (path, content, encoding, kind, message) in [
        ("data.csv", too_long.as_str(), "utf-8", invalid, "at most 1048576 are written at once"),
        ("data.csv", "a", "base64", invalid, "is not base64"),
        ("data.csv", "x", "latin-1", invalid, "argument `encoding`"),
        ("old", "x", "utf-8", invalid, "is a folder"),
        ("absent/x", "x", "utf-8", "not-found", "the folder of"),
        ("../x", "x", "utf-8", "denied", "lies outside"),
    ] {
        let arguments = json!({ "path": path, "content": content, "encoding": encoding });
        check_error::<write>(arguments, kind, message);
    }
    assert_eq!(fs::read_to_string(work.path().join("data.csv")).unwrap(), "a,b\n1,ü\n");
}

#[test]
fn folders_are_made_with_those_above() {
    let work = work();
    for path in ["a/b/c", "a/b/c", "old", "."] {
        data::<mkdir>(json!({ "path": path }));
        assert!(work.path().join(path).is_dir());
    }
    let invalid = "invalid-arguments";
    check_error::<mkdir>(json!({ "path": "data.csv" }), invalid, "exists already");
    check_error::<mkdir>(json!({ "path": "data.csv/x" }), invalid, "is not in a folder");
}

#[test]
fn removing_takes_what_was_named_and_no_more() {
    let work = work();
    let invalid = "invalid-arguments";
    for (path, recursive, kind, message) in [
        (".", true, invalid, "cannot be removed"),
        ("old/..", false, invalid, "cannot be removed"),
        ("old", false, invalid, "is not empty; use `recursive`"),
        ("absent", false, "not-found", "does not exist"),
        ("absent", true, "not-found", "does not exist"),
        ("../other", true, "denied", "lies outside"),
    ] {
        check_error::<remove>(json!({ "path": path, "recursive": recursive }), kind, message);
    }
    fs::create_dir(work.path().join("empty")).unwrap();
    for (path, recursive) in
        [("data.csv", false), ("zeros.txt", true), ("empty", false), ("old", true)]
    {
        data::<remove>(json!({ "path": path, "recursive": recursive }));
        assert!(!Path::new(&work.path().join(path)).exists(), "{path}");
    }
    assert!(work.path().join("image.png").exists());
}

#[cfg(unix)]
#[test]
fn removing_a_link_leaves_what_it_points_to() {
    let (work, outside) = (work(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("kept"), "").unwrap();
    std::os::unix::fs::symlink(outside.path(), work.path().join("old/link")).unwrap();
    assert_eq!(data::<list>(json!({ "path": "old" }))["entries"][1]["kind"], "link");
    data::<remove>(json!({ "path": "old", "recursive": true }));
    assert!(outside.path().join("kept").exists());
}

#[test]
fn claims_about_the_tools_are_true() {
    for (spec, read_only, destructive) in [
        (list::spec(), Some(true), None),
        (read::spec(), Some(true), None),
        (write::spec(), None, Some(true)),
        (mkdir::spec(), None, Some(false)),
        (remove::spec(), None, Some(true)),
    ] {
        let hints = spec.hints;
        assert_eq!((hints.read_only, hints.destructive), (read_only, destructive), "{}", spec.name);
        assert_eq!(hints.open_world, Some(false));
    }
}
