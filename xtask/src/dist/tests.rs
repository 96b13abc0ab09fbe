//! Tests of the installer and of the packed forms, with a small program in place of the real one.

use std::{env, io::Read, path::Path, process::Output};

use super::*;

const TIME: u64 = 1_700_000_000;

fn small_tree(plugins: &[&str]) -> FileTree {
    let mut tree = FileTree::default();
    tree.add_program("bin/sallyport", b"#!/bin/sh\necho sallyport 0.1.0 # GLIBC_2.34\n".to_vec());
    for name in plugins {
        tree.add_file(&format!("{PLUGINS}/{name}/plugin.toml"), name.as_bytes().to_vec());
    }
    tree
}

/// Unpacks an archive and returns the folder with the installer.
fn unpack(folder: &Path, tree: &FileTree) -> PathBuf {
    let archive = tree.with_installer(INSTALLER).to_archive("release", TIME).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
    archive.unpack(folder).unwrap();
    folder.join("release")
}

fn install(release: &Path, home: &Path, args: &[&str]) -> Output {
    let mut installer = Command::new("sh");
    installer
        .arg(release.join("install.sh"))
        .args(args)
        .env("HOME", home)
        .env_remove("XDG_DATA_HOME");
    installer.stdin(Stdio::null()).output().unwrap()
}

fn text_of(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap()
}

fn paths_below(folder: &Path) -> Vec<String> {
    let mut tree = FileTree::default();
    tree.add_folder("", folder).unwrap();
    tree.paths().map(|path| path.trim_start_matches('/').to_owned()).collect()
}

#[test]
fn what_was_installed_can_be_replaced_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a home");
    fs::create_dir(&home).unwrap();
    let old = unpack(&folder.path().join("old"), &small_tree(&["clock", "gone"]));
    let new = unpack(&folder.path().join("new"), &small_tree(&["clock", "added"]));
    let prefix = home.join("its prefix");
    let prefix_text = prefix.to_str().unwrap();
    let to_prefix = ["--prefix", prefix_text];
    let installed = install(&old, &home, &to_prefix);
    assert!(installed.status.success(), "{}", text_of(&installed));
    let plugin = |name: &str| format!("{PLUGINS}/{name}/plugin.toml");
    let checksums = tree::CHECKSUMS.to_owned();
    let expected = ["bin/sallyport".to_owned(), checksums, plugin("clock"), plugin("gone")];
    assert_eq!(paths_below(&prefix), expected);

    let own = prefix.join("share/sallyport/mine");
    fs::write(&own, "kept").unwrap();
    let replaced = install(&new, &home, &to_prefix);
    assert!(replaced.status.success(), "{}", text_of(&replaced));
    assert!(!prefix.join(PLUGINS).join("gone").exists(), "{:?}", paths_below(&prefix));
    assert!(prefix.join(plugin("added")).exists());
    assert!(text_of(&replaced).contains("Add "), "{}", text_of(&replaced));

    let removed = install(&new, &home, &["--uninstall", "--prefix", prefix_text]);
    assert!(removed.status.success(), "{}", text_of(&removed));
    assert_eq!(paths_below(&prefix), ["share/sallyport/mine"]);
    let again = install(&new, &home, &["--uninstall", "--prefix", prefix_text]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text_of(&again).contains("not installed"), "{}", text_of(&again));
}

#[test]
fn nothing_is_installed_from_a_damaged_archive_or_into_a_place_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let check = |release: &Path, args: &[&str], expected: &str| {
        let refused = install(release, home, args);
        assert_eq!(refused.status.code(), Some(1), "{}", text_of(&refused));
        assert!(text_of(&refused).contains(expected), "{}", text_of(&refused));
        assert!(!home.join(".local").exists() && !home.join("p").exists());
    };
    let prefix = home.join("p");
    let to_prefix = ["--prefix", prefix.to_str().unwrap()];
    let whole = unpack(&home.join("whole"), &small_tree(&["clock"]));
    check(&whole, &["--prefix"], "needs a folder");
    check(&whole, &["--prefix="], "needs a folder");
    check(&whole, &["--frefix"], "unknown argument");
    check(&whole, &["--prefix", whole.join("install.sh").to_str().unwrap()], "cannot write");
    let damaged = unpack(&home.join("damaged"), &small_tree(&["clock"]));
    fs::write(damaged.join(PLUGINS).join("clock/plugin.toml"), "other").unwrap();
    check(&damaged, &to_prefix, "damaged");
    let mut other = small_tree(&[]);
    other.add_program("bin/sallyport", b"#!/bin/sh\nexit 1\n".to_vec());
    let other = unpack(&home.join("other"), &other);
    check(&other, &to_prefix, "does not run on this machine");
}

/// Such a machine once installed an archive unchecked.
#[test]
fn an_archive_that_cannot_be_checked_is_not_installed() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let programs = home.join("programs");
    fs::create_dir(&programs).unwrap();
    for program in ["dirname", "id", "sh"] {
        let path = env::split_paths(&env::var_os("PATH").unwrap())
            .map(|folder| folder.join(program))
            .find(|path| path.exists());
        std::os::unix::fs::symlink(path.unwrap(), programs.join(program)).unwrap();
    }
    let release = unpack(&home.join("whole"), &small_tree(&["clock"]));
    let refused = Command::new(programs.join("sh"))
        .arg(release.join("install.sh"))
        .args(["--prefix", home.join("p").to_str().unwrap()])
        .env("PATH", &programs)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{}", text_of(&refused));
    assert!(text_of(&refused).contains("neither sha256sum nor shasum"), "{}", text_of(&refused));
    assert!(!home.join("p").exists());
}

#[test]
fn equal_files_have_equal_archives_in_which_folders_come_first() {
    let archive = small_tree(&["b", "a"]).to_archive("usr", TIME).unwrap();
    assert_eq!(archive, small_tree(&["a", "b"]).to_archive("usr", TIME).unwrap());
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&archive[..]).read_to_end(&mut bytes).unwrap();
    let mut archive = tar::Archive::new(&bytes[..]);
    let mut seen = vec!["".to_owned()];
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().trim_end_matches('/').to_owned();
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        assert!(seen.iter().any(|folder| folder == above), "{path} before its folder");
        assert_eq!(entry.header().mtime().unwrap(), TIME);
        seen.push(path);
    }
}

#[test]
fn dpkg_reads_the_package() {
    let tree = small_tree(&["clock"]);
    let package =
        DebianPackage::new("0.1.0", b"x GLIBC_2.4 GLIBC_2.34 GLIBC_2.9", tree, TIME).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(package.file_name());
    fs::write(&path, package.to_bytes().unwrap()).unwrap();
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        eprintln!("skipped: dpkg-deb is not installed");
        return;
    }
    let ask = |what: &str| run_for_output(Command::new("dpkg-deb").arg(what).arg(&path)).unwrap();
    assert!(ask("--info").contains("Depends: libc6 (>= 2.34), libgcc-s1"), "{}", ask("--info"));
    let files = ask("--contents");
    assert!(files.contains("-rwxr-xr-x root/root") || files.contains("-rwxr-xr-x 0/0"), "{files}");
    assert!(files.contains("usr/share/sallyport/plugins/clock/plugin.toml"), "{files}");
    assert!(DebianPackage::new("0.1.0", b"none", FileTree::default(), TIME).is_err());
}

#[test]
fn packages_of_an_earlier_version_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("dist/packages");
    for _ in 0..2 {
        make_empty_folder(&packages).unwrap();
        assert!(paths_below(&packages).is_empty());
        fs::create_dir(packages.join("sallyport-0.0.9")).unwrap();
        fs::write(packages.join("sallyport-0.0.9/install.sh"), "").unwrap();
    }
}
