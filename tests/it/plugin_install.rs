//! `plugin add` and `plugin remove`: what is shown is what is installed, and nothing is left half
//! done.

use std::{fs, path::PathBuf};

use crate::support::{
    Home,
    home::{guest, plugin_component, repository},
};

/// A plugin's folder as somebody would hand it on, outside of the plugin folder of the home.
pub(crate) struct Package {
    folder: tempfile::TempDir,
}

impl Package {
    pub(crate) fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join(name);
        fs::create_dir(&package).unwrap();
        for (file, bytes) in files {
            fs::write(package.join(file), bytes).unwrap();
        }
        Self { folder }
    }

    /// The plugin `clock` in a version.
    pub(crate) fn clock(version: &str, rest: &str) -> Self {
        let manifest = fs::read_to_string(repository().join("plugins-wasm/clock/plugin.toml"));
        let manifest =
            manifest.unwrap().replace("version = \"0.1.0\"", &format!("version = \"{version}\""));
        let manifest = format!("{manifest}{rest}");
        let wasm = plugin_component("clock");
        Self::new(
            "clock",
            &[("plugin.toml", manifest.as_bytes()), ("clock.wasm", &wasm), ("notes.txt", b"n")],
        )
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

fn installed(home: &Home) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(home.path("plugins")).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

#[test]
fn a_plugin_is_installed_shown_replaced_and_removed() {
    let home = Home::new();
    let first = Package::clock("0.1.0", "");
    let add = |package: &Package| home.run(&["plugin", "add", &package.path("clock"), "--yes"]);
    add(&first)
        .ended(0)
        .answers(&["clock 0.1.0", "get_time", "the variable TZ", "Installed clock."])
        .hides(&["staging"])
        .remarks(&["sallyport policy grant clock --requested"]);
    assert_eq!(installed(&home), [home.path("plugins/clock")]);
    assert!(!home.path("plugins/clock/notes.txt").exists(), "only what a plugin needs");
    home.run(&["call", "clock.get_time", "{\"timezone\": \"Asia/Tokyo\"}"]).ended(0);

    add(&first).ended(0).remarks(&["clock is installed already; this replaces it."]);
    let wants_more =
        "\n[[request.net]]\nallow = \"GET https://time.example/now\"\nwhy = \"asks\"\n";
    add(&Package::clock("0.2.0", wants_more))
        .ended(0)
        .answers(&["+ GET https://time.example/now", "The new version asks for more"])
        .remarks(&[
            "it replaces clock, which is installed. What differs:",
            "sallyport policy grant clock --requested",
        ]);
    // Whoever installs it accepts it.
    home.run(&["call", "clock.get_time", "{\"timezone\": \"Asia/Tokyo\"}"]).ended(0);
    home.run(&["audit", "show"]).answers(&["installed and accepted"]);

    home.run(&["plugin", "remove", "clock", "--yes"]).ended(0).answers(&["Removed clock."]);
    assert!(installed(&home).is_empty());
    assert!(!fs::read_to_string(home.path("sallyport.lock")).unwrap().contains("clock"));
    home.run(&["plugin", "remove", "clock", "--yes"]).ended(2).remarks(&["clock"]);
}

#[test]
fn nothing_is_installed_or_removed_without_a_yes() {
    let home = Home::new().plugins(&["weather"]);
    let clock = Package::clock("0.1.0", "");
    home.run(&["plugin", "add", &clock.path("clock")]).ended(6).remarks(&["--yes"]);
    home.run(&["plugin", "remove", "weather"]).ended(6).remarks(&["--yes"]);
    assert_eq!(installed(&home), [home.path("plugins/weather")]);
}

#[test]
fn what_cannot_be_installed_changes_nothing() {
    let home = Home::new();
    let (clock, broken) = (plugin_component("clock"), &b"\0asm broken"[..]);
    let rows = [
        (Package::new("x", &[("lib.rs", b"")]), "x", 9, "contains no .wasm file"),
        (Package::new("x", &[("x.wasm", broken)]), "x", 9, "x.wasm"),
        (Package::new("x", &[("a.wasm", &clock), ("b.wasm", &clock)]), "x", 9, "2 .wasm files"),
        (Package::new("Not A Name", &[("x.wasm", &clock)]), "Not A Name", 9, "Not A Name"),
        (Package::new("x", &[("plugin.toml", b"nmae = 1"), ("x.wasm", &clock)]), "x", 9, "line 1"),
        (Package::new("x", &[]), "missing", 1, "cannot read"),
    ];
    for (package, name, code, message) in rows {
        home.run(&["plugin", "add", &package.path(name), "--yes"]).ended(code).remarks(&[message]);
        assert!(installed(&home).is_empty(), "{message}");
    }
    home.run(&["plugin", "remove", "reminder", "--yes"]).ended(2).remarks(&["built into"]);
    home.run(&["plugin", "remove", "nothing", "--yes"]).ended(2).remarks(&["nothing"]);
}

#[test]
fn a_bare_component_is_installed_under_its_own_name() {
    let home = Home::new();
    let package = Package::new("p", &[("typed.wasm", &guest("typed"))]);
    home.run(&["plugin", "add", &package.path("p/typed.wasm"), "--yes"])
        .ended(0)
        .answers(&["Installed typed."]);
    assert_eq!(installed(&home), [home.path("plugins/typed")]);
}

#[test]
fn a_broken_plugin_can_be_removed_and_another_place_is_not_overruled() {
    let home = Home::new();
    fs::create_dir(home.path("plugins/broken")).unwrap();
    fs::write(home.path("plugins/broken/broken.wasm"), "no").unwrap();
    home.run(&["plugin", "remove", "broken", "--yes"]).ended(0).answers(&["Removed broken."]);
    fs::write(home.path("plugins/clock.wasm"), plugin_component("clock")).unwrap();
    let clock = Package::clock("0.1.0", "");
    home.run(&["plugin", "add", &clock.path("clock"), "--yes"])
        .ended(1)
        .remarks(&["is installed in another place", "plugin remove clock"]);
    assert_eq!(installed(&home), [home.path("plugins/clock.wasm")]);
}
