//! Tests on a real folder.

use std::{fs, io::ErrorKind, path::Path};

use sallyport_sdk::prelude::*;
use tempfile::TempDir;

use super::*;

pub(crate) static WORDING: Wording = Wording { top: "the top", explain };

fn explain(path: &str, action: &str, kind: ErrorKind) -> Option<ToolError> {
    let message = || format!("{path} is locked and cannot be {action}");
    (kind == ErrorKind::PermissionDenied).then(|| ToolError::Denied(message()))
}

fn inside(top: &TempDir, name: &str) -> Inside {
    let top = top.path().to_str().unwrap().to_owned();
    Inside::find(&normal(&format!("{top}/{name}")), &[top], &WORDING).unwrap()
}

#[track_caller]
fn check_done(path: &Inside, done: Result<Done, ToolError>, want: &str) {
    let done = serde_json::to_value(done.unwrap()).unwrap();
    assert_eq!(done, json!({ "path": path.text(), "done": want }));
}

#[track_caller]
fn check_error<T>(done: Result<T, ToolError>, message: &str) {
    let error = done.err().expect("it fails");
    assert!(error.message().ends_with(message), "{error}");
}

#[test]
fn a_listing_is_sorted_and_has_an_end() {
    let top = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..ENTRIES_MAX).map(|i| format!("{i:04}")).collect();
    for name in &names {
        fs::write(top.path().join(name), "").unwrap();
    }
    let entries = inside(&top, "").entries().unwrap();
    let listed: Vec<_> = entries.listed.iter().map(fs::DirEntry::file_name).collect();
    assert_eq!((listed, entries.truncated), (names.iter().map(Into::into).collect(), false));

    fs::write(top.path().join("more"), "").unwrap();
    let entries = inside(&top, "").entries().unwrap();
    assert_eq!((entries.listed.len(), entries.truncated), (ENTRIES_MAX, true));
    check_error(inside(&top, "more").entries(), "is not in a folder, or is not a folder itself");
    check_error(inside(&top, "absent").entries(), "does not exist");
}

#[test]
fn a_written_file_is_as_large_as_it_is_now() {
    let top = tempfile::tempdir().unwrap();
    let path = inside(&top, "a");
    for (text, bytes) in [("abc", 3), ("", 3), ("ü", 5)] {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path.path()).unwrap();
        let written = path.write(&mut file, text.as_bytes()).unwrap();
        let written = serde_json::to_value(written).unwrap();
        assert_eq!(written, json!({ "path": path.text(), "bytes": bytes }));
    }
}

#[test]
fn folders_are_made_and_removed() {
    let top = tempfile::tempdir().unwrap();
    let (above, folder) = (inside(&top, "a"), inside(&top, "a/b"));
    check_done(&folder, folder.make_folder(), "made");
    check_done(&folder, folder.make_folder(), "made");
    check_error(above.remove(), "is not empty; use `recursive` to remove it");
    check_done(&folder, folder.remove(), "removed");
    check_done(&folder, folder.make_folder(), "made");
    check_done(&above, above.remove_all(), "removed with everything in it");
    check_error(above.remove(), "does not exist");
    check_error(above.remove_all(), "does not exist");

    let file = inside(&top, "file");
    fs::write(file.path(), "").unwrap();
    check_error(file.make_folder(), "exists already");
    check_done(&file, file.remove_all(), "removed");
}

#[test]
fn the_top_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let top = inside(&folder, ".");
    check_error(top.remove(), "is the top and cannot be removed");
    check_error(top.remove_all(), "is the top and cannot be removed");
    assert!(Path::new(top.text()).is_dir());
}

#[cfg(unix)]
#[test]
fn removing_a_link_leaves_what_it_points_to() {
    let (top, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("kept"), "").unwrap();
    let (folder, link) = (inside(&top, "a"), inside(&top, "link"));
    folder.make_folder().unwrap();
    for path in [link.path(), &folder.path().join("link")] {
        std::os::unix::fs::symlink(outside.path(), path).unwrap();
    }
    check_done(&link, link.remove_all(), "removed");
    check_done(&folder, folder.remove_all(), "removed with everything in it");
    assert!(outside.path().join("kept").exists());
}
