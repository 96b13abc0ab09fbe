//! Tests of the policy in force: which changes of its files take effect, and when.

use std::{fs, time::Instant};

use super::*;

/// How soon a revoked grant is gone, as `docs/policy.md` promises.
const PROMISED: Duration = Duration::from_millis(500);

/// Longest wait of a test. A loaded machine need not keep the promise.
const PATIENCE: Duration = Duration::from_secs(60);

const GRANT: &str = "[plugin.a]\nenv = ['TZ']\n";

fn standing(folder: &Path, is_named: bool) -> Result<PolicyStore, PolicyLoadError> {
    opened(folder, is_named, Box::new(|_| {}))
}

fn opened(
    folder: &Path,
    is_named: bool,
    on_change: OnChange,
) -> Result<PolicyStore, PolicyLoadError> {
    let path = folder.join("policy.toml");
    let files = vec![PolicyPath { tier: PolicyTier::User, path, is_named }];
    let files = PolicyFiles { files, host_files: Vec::new(), home: None, foreign: Vec::new() };
    PolicyStore::open(files, on_change)
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn plugins(standing: &PolicyStore) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let checked = runtime.block_on(standing.check_files());
    assert_eq!(checked.revision, standing.current().revision);
    checked.policy.plugin_names().count()
}

#[test]
fn a_revoked_grant_is_gone_within_half_a_second_though_nobody_asks() {
    const { assert!(CHECK_INTERVAL.as_millis() * 2 < PROMISED.as_millis()) };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later/policy.toml");
    let standing = standing(&folder.path().join("later"), false).unwrap();
    let waits_for = |count: usize| {
        wait_until("the change", || standing.current().policy.plugin_names().count() == count);
    };
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, GRANT).unwrap();
    waits_for(1);
    let replacement = folder.path().join("new");
    fs::write(&replacement, "").unwrap();
    fs::rename(&replacement, &path).unwrap();
    waits_for(0);
}

#[test]
fn the_watcher_ends_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let standing = standing(folder.path(), false).unwrap();
    let shared = Arc::downgrade(&standing.shared);
    drop(standing);
    wait_until("the watcher has ended", || shared.strong_count() == 0);
}

/// A running guest kept a revoked grant for ever.
#[test]
fn a_receiver_that_panics_does_not_end_the_watcher() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let standing = opened(folder.path(), false, Box::new(|_| panic!("a test"))).unwrap();
    for (text, count) in [(GRANT, 1), ("", 0), (GRANT, 1)] {
        fs::write(&path, text).unwrap();
        wait_until("the change", || standing.current().policy.plugin_names().count() == count);
        assert_eq!(plugins(&standing), count);
    }
}

#[test]
fn a_change_is_seen_and_a_broken_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.toml");
    let standing = standing(folder.path(), false).unwrap();
    assert_eq!(plugins(&standing), 0, "no file grants nothing");
    fs::write(&path, GRANT).unwrap();
    assert_eq!(plugins(&standing), 1);
    fs::write(&path, "[plugin.a\n").unwrap();
    assert_eq!(plugins(&standing), 1, "the old one stays");
    fs::write(&path, "").unwrap();
    assert_eq!(plugins(&standing), 0);
    fs::write(&path, GRANT).unwrap();
    assert_eq!(plugins(&standing), 1);
    fs::remove_file(&path).unwrap();
    assert_eq!(plugins(&standing), 0, "a file that is gone grants nothing");
}

#[test]
fn a_named_file_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(standing(folder.path(), true), Err(PolicyLoadError::Unreadable { .. })));
}

#[test]
fn links_of_a_path_are_followed_as_far_as_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    fs::create_dir(base.join("target")).unwrap();
    std::os::unix::fs::symlink("target", base.join("link")).unwrap();
    assert_eq!(resolve_links(&base.join("link/new/file")), base.join("target/new/file"));
    assert_eq!(resolve_links(&base.join("link")), base.join("target"));
    assert!(resolve_links(Path::new("relative")).is_absolute());
}
