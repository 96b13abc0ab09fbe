//! The cache of compiled plugins: a second start compiles nothing, and nothing doubtful is ever
//! run.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    thread,
    time::Duration,
};

use sallyport_contract::{FailureKind, Outcome};
use sallyport_policy::Manifest;
use sallyport_sandbox::ComponentFile;
use serde_json::json;

use crate::support::{
    Home, Ran, Tools,
    home::{finish, guest, manifest, plugin_component},
    patience, watch,
};

const CALL: [&str; 2] = ["call", "clock.get_time"];

fn home() -> Home {
    Home::with_own_cache().plugins(&["clock"])
}

/// How many plugins came from the cache, and how many were compiled, as the doctor tells.
#[track_caller]
fn check(home: &Home, from_cache: usize, compiled: usize) -> Ran {
    let ran = home.run(&["doctor", "--output", "json"]).ended(0);
    let want = format!("{from_cache} plugins came from it, {compiled} were compiled");
    let singular = want.replace("1 plugins came", "1 plugin came").replace("1 were", "1 was");
    let told = ran.stdout.contains(&want) || ran.stdout.contains(&singular);
    assert!(told, "{want:?} is not in {ran:?}");
    ran
}

/// The files of the cache with one ending.
fn cached(home: &Home, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path("cache/compiled")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|own| own == ending)).collect()
}

/// What is done to a cache, and how.
type Damage = (&'static str, fn(&Home));

fn artefact(home: &Home) -> PathBuf {
    cached(home, "cwasm").pop().expect("a compiled plugin")
}

#[test]
fn a_second_start_compiles_nothing() {
    let home = home().plugins(&["files", "weather"]);
    let entries = home.run(&["doctor", "-v"]).ended(0);
    assert!(entries.stdout.contains("cache"), "{entries:?}");
    check(&home, 3, 0);
    home.run(&["call", "clock.get_time"]).ended(0);
    check(&home, 3, 0);
}

#[test]
fn the_folder_is_private() {
    let home = home();
    home.run(&CALL).ended(0);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(home.path("cache/compiled")), 0o700);
    assert_eq!(mode(artefact(&home)) & 0o022, 0);
}

#[test]
fn h25_an_artefact_that_is_not_whole_is_made_again() {
    let damage: [Damage; 7] = [
        ("cut short", |home| {
            let bytes = fs::read(artefact(home)).unwrap();
            fs::write(artefact(home), &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("empty", |home| fs::write(artefact(home), "").unwrap()),
        ("changed", |home| {
            let mut bytes = fs::read(artefact(home)).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(artefact(home), bytes).unwrap();
        }),
        ("without its sum", |home| fs::remove_file(artefact(home).with_extension("sum")).unwrap()),
        ("with another sum", |home| {
            fs::write(artefact(home).with_extension("sum"), "0".repeat(64)).unwrap();
        }),
        ("a link", |home| {
            let aside = home.path("aside.cwasm");
            fs::rename(artefact(home), &aside).unwrap();
            let name = cached(home, "sum").pop().unwrap().with_extension("cwasm");
            symlink(aside, name).unwrap();
        }),
        ("writable by others", |home| {
            fs::set_permissions(artefact(home), fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, damage) in damage {
        let home = home();
        home.run(&CALL).ended(0);
        check(&home, 1, 0);
        damage(&home);
        let ran = home.run(&CALL);
        assert_eq!(ran.code, 0, "{what}: {ran:?}");
        check(&home, 1, 0);
        assert!(!artefact(&home).is_symlink(), "{what}");
    }
}

/// Its hash is right and its compiler was another: one of its settings is unknown here.
/// Code that was compared once is trusted by its stamp, which shows also a change that keeps the
/// size and restores the time of the last modification.
#[test]
fn h25_code_that_changes_after_it_was_compared_is_not_run() {
    let home = home();
    home.run(&CALL).ended(0);
    let code = artefact(&home);
    patience::until_so("a stamp that is kept", || {
        home.run(&CALL).ended(0);
        fs::read_to_string(code.with_extension("sum")).unwrap().contains("inode")
    });
    check(&home, 1, 0);
    let (modified, mut bytes) = (fs::metadata(&code).unwrap().modified(), fs::read(&code).unwrap());
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xcc);
    fs::write(&code, bytes).unwrap();
    let file = fs::File::options().write(true).open(&code).unwrap();
    file.set_modified(modified.unwrap()).unwrap();
    check(&home, 0, 1);
    home.run(&CALL).ended(0);
}

#[test]
fn h25_an_artefact_for_other_settings_is_made_again() {
    const SETTING: &[u8] = b"regalloc_algorithm";
    let home = home();
    home.run(&CALL).ended(0);
    let mut code = fs::read(artefact(&home)).unwrap();
    let write = |code: &[u8]| {
        fs::write(artefact(&home), code).unwrap();
        let sum = json!({ "hash": blake3::hash(code).to_hex().to_string() }).to_string();
        fs::write(artefact(&home).with_extension("sum"), sum).unwrap();
    };
    write(&code);
    check(&home, 1, 0);
    let place = code.windows(SETTING.len()).position(|bytes| bytes == SETTING).unwrap();
    code[place] = b'R';
    write(&code);
    check(&home, 0, 1);
    check(&home, 1, 0);
}

/// The artefact of one plugin under the name of another: its hash is right, its place is not.
#[test]
fn h25_an_artefact_of_another_plugin_is_not_run() {
    let home = home().plugins(&["system-info"]);
    home.run(&CALL).ended(0);
    let clock = artefact(&home);
    home.run(&["doctor"]).ended(0);
    let other = cached(&home, "cwasm").into_iter().find(|path| *path != clock).unwrap();
    fs::copy(&other, &clock).unwrap();
    let ran = home.run(&CALL).ended(0);
    assert!(ran.stdout.contains("timezone"), "{ran:?}");
}

#[test]
fn h25_a_folder_that_others_can_write_to_is_not_used() {
    let home = home();
    home.run(&CALL).ended(0);
    let folder = home.path("cache/compiled");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    home.run(&CALL).ended(0).remarks(&["warning:", "not kept", "private"]);
    check(&home, 0, 1);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(&folder, home.path("elsewhere")).unwrap();
    symlink(home.path("elsewhere"), &folder).unwrap();
    home.run(&CALL).ended(0).remarks(&["warning:", "not kept"]);
}

#[test]
fn h25_a_cache_that_cannot_be_made_costs_time_only() {
    let home = home().file("cache", "not a folder");
    home.run(&CALL).ended(0).remarks(&["warning:", "not kept"]);
}

#[test]
fn h25_metadata_that_was_tampered_with_is_asked_for_again() {
    for text in [
        "",
        "{",
        "null",
        "{\"format\":1}",
        "{\"format\":99,\"digest\":\"x\",\"tools\":[],\"managed\":false}",
    ] {
        let home = home();
        home.run(&CALL).ended(0);
        let metadata = cached(&home, "json").pop().unwrap();
        fs::write(&metadata, text).unwrap();
        home.run(&["tool", "list"]).ended(0).answers(&["clock.get_time"]);
    }
}

#[test]
fn a_plugin_that_changed_is_compiled_and_listed_anew() {
    let home = home().component("one", &manifest("one", ""), &plugin_component("clock"));
    home.run(&["tool", "list"]).ended(0).answers(&["one.get_time"]);
    let home = home.component("one", &manifest("one", ""), &plugin_component("system-info"));
    home.run(&["tool", "list"]).ended(0).answers(&["one.get_system_info"]).hides(&["one.get_time"]);
    let home = home.component("one", &manifest("renamed", ""), &plugin_component("system-info"));
    home.run(&["tool", "list"]).ended(0).answers(&["renamed.get_system_info"]).hides(&["one."]);
}

#[test]
fn h26_processes_that_fill_the_cache_at_once_leave_it_whole() {
    let home = home();
    let started: Vec<_> = (0..4).map(|_| home.start(&CALL)).collect();
    for child in started {
        assert_eq!(finish(child, &CALL).code, 0);
    }
    check(&home, 1, 0);
}

#[test]
fn h26_a_process_that_is_killed_leaves_nothing_torn() {
    let home = home();
    for milliseconds in [5, 20, 40, 60, 80, 120, 200] {
        let mut child = home.start(&CALL);
        thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        home.run(&CALL).ended(0);
        check(&home, 1, 0);
        fs::remove_dir_all(home.path("cache")).unwrap();
    }
}

#[test]
fn h65_a_file_that_is_swapped_after_it_was_read_does_not_run() {
    let home = Home::with_own_cache().plugins(&["clock"]);
    let (path, honest) = (home.path("plugins/clock/clock.wasm"), plugin_component("clock"));
    let manifest = Manifest::parse("plugin.toml", &manifest("clock", "")).unwrap();
    let file = ComponentFile::read(&path).unwrap();
    fs::write(&path, guest("hostile")).unwrap();
    let sandbox = watch::sandbox(&home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let metadata = patience::run(&runtime, sandbox.inspect_component(&file, &manifest)).unwrap();
    assert_eq!(metadata.tools.len(), 1, "the tools of the bytes that were hashed");
    assert_eq!(metadata.digest, ComponentFile::new(&path, honest).unwrap().digest());
}

#[test]
fn h65_a_plugin_whose_file_is_swapped_before_its_first_call_is_not_called() {
    let home = Home::new().plugins(&["clock"]);
    let tools = Tools::of(&home);
    fs::write(home.path("plugins/clock/clock.wasm"), guest("hostile")).unwrap();
    let report = tools.call("clock.get_time", &json!({}));
    let Outcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("has changed on disk"), "{failure:?}");
}
