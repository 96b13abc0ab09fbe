//! Tests of the policy in force: which changes of its files take effect, and when.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::Mutex,
    time::Instant,
};

use super::*;
use crate::config::{ConfigFlags, Env, HostSettings};

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

/// Only the place that the links lead to was guarded.
#[test]
fn a_plugin_could_replace_a_link_to_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
    for path in ["real/config", "links", "home/.config", "home/notes"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    symlink("../../links/sallyport", at("home/.config/sallyport")).unwrap();
    symlink(at("real/config"), at("links/sallyport")).unwrap();
    let rows = [("home/.config", true), ("links", true), ("real", true), ("home/notes", false)];
    for (granted, is_refused) in rows {
        let granted = at(granted);
        let granted = granted.display();
        let entry = format!("{{ path = '{granted}', mount = '/x', access = 'read-write' }}");
        fs::write(at("policy.toml"), format!("[plugin.a]\nfs = [{entry}]\n")).unwrap();
        let user = PolicyPath { tier: PolicyTier::User, path: at("policy.toml"), is_named: false };
        let files = PolicyFiles {
            files: vec![user],
            host_files: vec![at("home/.config/sallyport/policy.toml")],
            home: None,
            foreign: Vec::new(),
        };
        let opened = PolicyStore::open(files, Box::new(|_| {}));
        assert_eq!(opened.is_err(), is_refused, "{granted}");
    }
}

/// The flags may name links, and a folder may contain the administrator's policy.
#[test]
fn what_the_flags_name_and_the_administrators_folder_are_guarded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
    for path in ["policy-link", "policy-real", "plugins-link", "plugins-real", "notes"] {
        fs::create_dir(at(path)).unwrap();
    }
    symlink(at("policy-real/own.toml"), at("policy-link/own.toml")).unwrap();
    symlink(at("plugins-real"), at("plugins-link/plugins")).unwrap();
    let flags = ConfigFlags {
        policy: Some(at("policy-link/own.toml")),
        plugin_dirs: vec![at("plugins-link/plugins")],
        folder: Some(at("notes")),
        ..ConfigFlags::default()
    };
    let home = at("home");
    let rows = [
        (at("policy-link"), true),
        (at("policy-real"), true),
        (at("plugins-link"), true),
        (at("plugins-real"), true),
        (at("plugins-link/plugins/a"), true),
        ("/etc".into(), true),
        ("/etc/sallyport".into(), true),
        (at("notes"), false),
    ];
    for (granted, is_refused) in rows {
        let path = granted.display();
        let entry = format!("{{ path = '{path}', mount = '/x', access = 'read' }}");
        fs::write(at("policy-real/own.toml"), format!("[plugin.a]\nfs = [{entry}]\n")).unwrap();
        let env = Env::from_pairs([("HOME", home.to_str().unwrap())]);
        let mut files = HostSettings::resolve(&flags, env).unwrap().policy;
        // The administrator of the machine may have a policy.
        files.files.retain(|file| file.tier == PolicyTier::User);
        let message = PolicyStore::open(files, Box::new(|_| {})).err().map(|e| e.to_string());
        assert_eq!(message.is_some(), is_refused, "{path}: {message:?}");
        assert!(message.is_none_or(|text| text.contains("reaches the guarded folder")), "{path}");
    }
}

/// Opens the policy of a user and a project, whose file may be there already. It keeps what it
/// reports.
fn opened_with_project(folder: &Path) -> (PolicyStore, PathBuf, Arc<Mutex<Vec<String>>>) {
    let project = folder.join(".sallyport/policy.toml");
    let sallyport_folder = folder.join(".sallyport");
    fs::create_dir_all(&sallyport_folder).unwrap();
    fs::set_permissions(&sallyport_folder, fs::Permissions::from_mode(0o700)).unwrap();
    let file = |tier, path: PathBuf| PolicyPath { tier, path, is_named: false };
    let files = vec![
        file(PolicyTier::User, folder.join("policy.toml")),
        file(PolicyTier::Project, project.clone()),
    ];
    let files = PolicyFiles { files, host_files: Vec::new(), home: None, foreign: Vec::new() };
    let reports = Arc::new(Mutex::new(Vec::new()));
    let known = Arc::clone(&reports);
    let on_change: OnChange =
        Box::new(move |change| known.lock().unwrap().push(change.to_string()));
    (PolicyStore::open(files, on_change).unwrap(), project, reports)
}

/// Replaces a file at once: the watcher would take a file that is half written for a change.
fn replace_with_mode(path: &Path, text: &str, mode: u32) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(&new, path).unwrap();
}

const TIGHTENED: &str = "[plugin.b]\nstate = false\n";

/// It was said to be ignored, and stopped every command.
#[test]
fn a_project_file_that_others_can_write_stopped_the_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policy.toml"), GRANT).unwrap();
    let project = folder.path().join(".sallyport/policy.toml");
    fs::create_dir(folder.path().join(".sallyport")).unwrap();
    replace_with_mode(&project, TIGHTENED, 0o666);
    let (standing, ..) = opened_with_project(folder.path());
    assert_eq!(plugins(&standing), 1);
}

/// A project's file with a mistake kept the whole policy, with the grants that the user revoked.
#[test]
fn a_broken_project_file_does_not_keep_what_the_user_revokes() {
    for previous in ["", TIGHTENED] {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("policy.toml");
        fs::write(&user, GRANT).unwrap();
        let (standing, project, reports) = opened_with_project(folder.path());
        assert_eq!(plugins(&standing), 1);
        replace_with_mode(&project, previous, 0o600);
        let of_project = usize::from(!previous.is_empty());
        assert_eq!(plugins(&standing), 1 + of_project);
        let revision = standing.revision();
        replace_with_mode(&project, "x = 1", 0o600);
        assert_eq!(plugins(&standing), 1 + of_project, "its previous text stays");
        assert_eq!(standing.revision(), revision);
        replace_with_mode(&user, "", 0o600);
        assert_eq!(plugins(&standing), of_project, "the user has revoked the grant");
        wait_until("the report", || {
            let reports = reports.lock().unwrap();
            reports.iter().any(|text| text.contains("unknown key") && text.contains("not reloaded"))
        });
    }
}

/// A project's file that everybody can write kept the whole policy, with revoked grants.
#[test]
fn a_foreign_project_file_that_appears_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("policy.toml");
    fs::write(&user, GRANT).unwrap();
    let (standing, project, reports) = opened_with_project(folder.path());
    replace_with_mode(&project, TIGHTENED, 0o666);
    replace_with_mode(&user, "", 0o600);
    assert_eq!(plugins(&standing), 0);
    wait_until("the report", || {
        reports.lock().unwrap().iter().any(|text| text.contains("is ignored, because"))
    });
    replace_with_mode(&project, TIGHTENED, 0o600);
    assert_eq!(plugins(&standing), 1);
}

/// Files that were valid alone and not together kept what another file tightened out.
#[test]
fn a_mistake_of_the_files_together_does_not_keep_a_restriction_out() {
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("policy.toml");
    fs::write(&user, GRANT).unwrap();
    let (standing, project, _) = opened_with_project(folder.path());
    let secret = "[plugin.c]\nsecrets = [{ name = 'k', reveal = true }]\n";
    replace_with_mode(&user, secret, 0o600);
    replace_with_mode(&project, TIGHTENED, 0o600);
    assert_eq!(plugins(&standing), 2);
    let policy = standing.current().policy;
    let names: Vec<_> = policy.plugin_names().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "b"], "no file says where the secret is");
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
