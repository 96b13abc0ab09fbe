//! Tests of installing and removing plugins.

use super::*;

fn plugin_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn source(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn only_the_files_of_a_plugin_are_copied() {
    let check = |files: &[(&str, &str)], copied: &[&str]| {
        let (source, plugins) = (source(files), plugin_dir());
        let staged = StagedPlugin::copy_plugin(source.path(), plugins.path()).unwrap();
        assert_eq!(names(staged.folder()), copied);
        drop(staged);
        assert!(names(plugins.path()).is_empty(), "what was not installed is gone");
    };
    check(
        &[("plugin.toml", "m"), ("x.wasm", "w"), ("README.md", "r"), ("src/a.rs", "a")],
        &["README.md", "plugin.toml", "x.wasm"],
    );
    check(
        &[("definition.json", "{}"), ("run.sh", "s"), ("data/a.txt", "a")],
        &["data", "definition.json", "run.sh"],
    );
}

#[test]
fn what_is_no_plugin_is_refused_and_leaves_nothing() {
    let link = source(&[("definition.json", "{}")]);
    std::os::unix::fs::symlink("/etc/passwd", link.path().join("run")).unwrap();
    let deep_name = "d/".repeat(DEPTH_MAX + 1) + "x";
    let deep = source(&[("definition.json", "{}"), (&deep_name, "")]);
    let rows = [
        (source(&[("src/lib.rs", "")]), "contains no .wasm file; build it first"),
        (link, "is not a file"),
        (deep, "too deep"),
    ];
    for (source, message) in rows {
        let plugins = plugin_dir();
        let error = StagedPlugin::copy_plugin(source.path(), plugins.path()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(names(plugins.path()).is_empty());
    }
    let missing = StagedPlugin::copy_plugin(Path::new("/nowhere/x"), plugin_dir().path());
    assert!(missing.unwrap_err().to_string().starts_with("cannot read /nowhere/x"));
}

#[test]
fn an_installed_plugin_is_replaced_as_a_whole() {
    let (plugins, name) = (plugin_dir(), "x".parse().unwrap());
    for files in [
        &[("x.wasm", "old"), ("README.md", "old")][..],
        &[("x.wasm", "new"), ("plugin.toml", "new")][..],
    ] {
        let source = source(files);
        let staged = StagedPlugin::copy_plugin(source.path(), plugins.path()).unwrap();
        let target = staged.install(&name, || Ok(())).unwrap();
        assert_eq!(target, plugins.path().join("x"));
        assert_eq!(names(plugins.path()), ["x"]);
        assert_eq!(fs::read_to_string(target.join("x.wasm")).unwrap(), files[0].1);
    }
    assert_eq!(names(&plugins.path().join("x")), ["plugin.toml", "x.wasm"]);
}

fn refuse() -> Result<(), LockError> {
    let source = io::ErrorKind::StorageFull.into();
    Err(LockError::File { path: "sallyport.lock".into(), source })
}

/// It was replaced all the same, and did not run any more.
#[test]
fn a_plugin_whose_acceptance_cannot_be_written_stays_as_it_was() {
    let (plugins, name) = (plugin_dir(), "x".parse().unwrap());
    let stage = |text: &str| {
        let source = source(&[("x.wasm", text)]);
        StagedPlugin::copy_plugin(source.path(), plugins.path()).unwrap()
    };
    let check = |result: Result<(), InstallationError>, left: &[&str]| {
        assert!(matches!(result, Err(InstallationError::Lock(_))), "{result:?}");
        assert_eq!(names(plugins.path()), left);
    };
    check(stage("old").install(&name, refuse).map(drop), &[]);
    stage("old").install(&name, || Ok(())).unwrap();
    check(stage("new").install(&name, refuse).map(drop), &["x"]);
    check(remove_plugin_files(&plugins.path().join("x"), refuse), &["x"]);
    assert_eq!(fs::read_to_string(plugins.path().join("x/x.wasm")).unwrap(), "old");
}

/// It was removed for good with the folder that it had been moved into.
#[test]
fn a_plugin_that_cannot_be_put_back_is_kept_and_its_place_is_named() {
    let plugins = source(&[("x/x.wasm", "old"), ("y.wasm", "old")]);
    // A folder with something in it cannot be replaced, and a file not by a folder.
    let get_in_the_way = |path: &Path| {
        fs::create_dir(path).unwrap();
        fs::write(path.join("other"), "").unwrap();
        refuse()
    };
    let check = |error: InstallationError, inside: &[&str]| {
        let message = error.to_string();
        let InstallationError::NotUndone { kept: Some(kept), .. } = error else {
            panic!("{message}");
        };
        assert!(message.ends_with(&format!("is kept in {}", kept.display())), "{message}");
        remove_old_staging(plugins.path(), u64::MAX);
        let file = inside.iter().fold(kept, |path, name| path.join(name));
        assert_eq!(fs::read_to_string(file).unwrap(), "old");
    };
    let rows: [(&str, &[&str]); 2] = [("x", &["removed", "x.wasm"]), ("y.wasm", &[])];
    for (name, inside) in rows {
        let installed = plugins.path().join(name);
        let error = remove_plugin_files(&installed, || get_in_the_way(&installed)).unwrap_err();
        check(error, inside);
    }
    let (target, new) = (plugins.path().join("z"), source(&[("z.wasm", "new")]));
    fs::create_dir(&target).unwrap();
    fs::write(target.join("z.wasm"), "old").unwrap();
    let staged = StagedPlugin::copy_plugin(new.path(), plugins.path()).unwrap();
    let folder = staged.folder().to_owned();
    let lose_the_new = || {
        fs::remove_dir_all(&target).unwrap();
        refuse()
    };
    let error = staged.install(&"z".parse().unwrap(), lose_the_new).unwrap_err();
    check(error, &[folder.file_name().unwrap().to_str().unwrap(), "z.wasm"]);
}

/// A full disk kept the file that was to be removed from it.
#[test]
fn a_file_is_removed_without_a_folder_beside_it() {
    let plugins = source(&[("y.wasm", "w")]);
    let look = || {
        assert_eq!(names(plugins.path()), [".sallyport-staging-y.wasm.removed"]);
        Ok(())
    };
    remove_plugin_files(&plugins.path().join("y.wasm"), look).unwrap();
    assert!(names(plugins.path()).is_empty());
}

/// The plugin was out of its place, and the command had failed all the same.
#[test]
fn what_is_left_of_a_removed_plugin_is_no_failure() {
    let plugins = source(&[("x/x.wasm", "w")]);
    let take_away = || {
        let mut left = names(plugins.path());
        fs::remove_dir_all(plugins.path().join(left.remove(0))).unwrap();
        Ok(())
    };
    remove_plugin_files(&plugins.path().join("x"), take_away).unwrap();
}

#[test]
fn removing_a_link_leaves_what_it_leads_to() {
    let (kept, plugins) = (source(&[("x.wasm", "w")]), plugin_dir());
    let (folder, file) = (plugins.path().join("x"), plugins.path().join("y.wasm"));
    std::os::unix::fs::symlink(kept.path(), &folder).unwrap();
    fs::write(&file, "w").unwrap();
    for (path, inside) in [(&folder, folder.join("x.wasm")), (&file, file.clone())] {
        let dirs = [PathBuf::from("/elsewhere"), plugins.path().to_owned()];
        assert_eq!(installed_entry(&inside, &dirs).as_ref(), Some(path));
        remove_plugin_files(path, || Ok(())).unwrap();
    }
    assert!(names(plugins.path()).is_empty());
    assert_eq!(names(kept.path()), ["x.wasm"]);
    assert_eq!(installed_entry(Path::new("/other/x.wasm"), &[]), None);
}

#[test]
fn a_plugin_that_cannot_be_removed_stays_whole() {
    let plugins = source(&[("x/x.wasm", "w"), ("x/data/a", "a")]);
    let missing = remove_plugin_files(&plugins.path().join("z"), || Ok(())).unwrap_err();
    assert!(missing.to_string().starts_with("cannot remove"), "{missing}");
    remove_plugin_files(&plugins.path().join("x"), || Ok(())).unwrap();
    assert!(names(plugins.path()).is_empty());
}

/// They stayed for good.
#[test]
fn what_killed_installations_left_is_removed_after_a_day() {
    let (day_ms, staged) = (STAGING_AGE_MAX_MS, ".sallyport-staging-a");
    let plugins = source(&[
        (".sallyport-staging-a/x/x.wasm", "w"),
        (".sallyport-staging-y.wasm.removed", "w"),
        (".sallyport-kept-b/x/x.wasm", "w"),
        ("x/x.wasm", "w"),
    ]);
    remove_old_staging(plugins.path(), now_ms() + day_ms / 2);
    assert!(names(plugins.path()).contains(&staged.to_owned()), "somebody may still use it");
    remove_old_staging(plugins.path(), now_ms() + day_ms + 10_000);
    assert_eq!(names(plugins.path()), [".sallyport-kept-b", "x"]);
}
