//! Files: nothing outside a granted folder is there, and a folder for reading stays as it is.

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    limits::NET,
    support::{Home, Tools, registry},
};

/// The request of a guest for any folder, beside the one for the network.
fn requests(access: &str) -> String {
    format!("{NET}\n[[request.fs]]\naccess = \"{access}\"\nwhy = \"tests\"\n")
}

/// A home with a granted folder, a folder beside it, and a secret in it.
fn home(access: &str) -> Home {
    let home = Home::new()
        .guest("hostile", &requests("read-write"))
        .plugins(&["files"])
        .user_file("granted/plain.txt", "plain")
        .user_file("granted/sub/inner.txt", "inner")
        .user_file("beside/secret.txt", "the-secret");
    let path = home.user_path("granted");
    let grant = format!("fs = [{{ path = {path:?}, mount = \"/data\", access = \"{access}\" }}]\n");
    let rules = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n\
                 [[rule]]\ntool = \"files.*\"\ndecision = \"allow\"\n";
    home.policy(format!("[plugin.hostile]\n{grant}[plugin.files]\n{grant}{rules}"))
}

fn path(path: &str) -> Value {
    json!({ "path": path })
}

fn from_to(from: &str, to: &str) -> Value {
    json!({ "from": from, "to": to })
}

/// Every file below a folder with its bytes, kind, times and links.
fn snapshot(folder: &Path) -> BTreeMap<String, (Vec<u8>, bool, Option<SystemTime>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let info = path.symlink_metadata().unwrap();
            let bytes = fs::read(&path).unwrap_or_default();
            let modified = info.modified().ok();
            all.insert(path.display().to_string(), (bytes, info.is_symlink(), modified));
            if info.is_dir() {
                folders.push(path);
            }
        }
    }
    all
}

#[test]
fn h27_paths_that_lead_out_lead_nowhere() {
    let home = home("read-write");
    let secret = home.user_path("beside/secret.txt");
    let long = format!("/data/{}", "x".repeat(5000));
    let rows = [
        "/data/../beside/secret.txt",
        "/data/sub/../../beside/secret.txt",
        "/data/./../beside/secret.txt",
        "/data//../beside/secret.txt",
        "../beside/secret.txt",
        "beside/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "/data/plain.txt/../../beside/secret.txt",
        "/data/plain.txt\0/../../beside/secret.txt",
        "/data/%2e%2e/beside/secret.txt",
        "/data/..\\beside\\secret.txt",
        "/data\u{2215}..\u{2215}beside",
        "",
        "/",
        &long,
        secret.to_str().unwrap(),
    ];
    let tools = Tools::of(&home);
    for row in rows {
        for tool in ["hostile.reads_path", "files.read"] {
            let told = registry::told(&tools.call(tool, &path(row)));
            let refused = !told.starts_with("completed") && !told.starts_with("timed-out");
            assert!(refused && !told.contains("the-secret"), "{tool} {row:?}: {told}");
        }
    }
}

#[test]
fn h28_links_that_lead_out_lead_nowhere() {
    let home = home("read-write");
    let granted = home.user_path("granted");
    for (to, name) in [
        (home.user_path("beside/secret.txt"), "absolute"),
        ("../beside/secret.txt".into(), "relative"),
        (home.user_path("beside"), "folder"),
        ("absolute".into(), "chain"),
        ("chain".into(), "longer"),
        ("../../beside/secret.txt".into(), "sub/deep"),
        ("/".into(), "root"),
        ("loop".into(), "loop"),
    ] {
        symlink(to, granted.join(name)).unwrap();
    }
    let rows = [
        "absolute",
        "relative",
        "folder/secret.txt",
        "folder/",
        "chain",
        "longer",
        "sub/deep",
        "root/etc/passwd",
        "loop",
        "absolute/",
        "sub/../relative",
    ];
    let tools = Tools::of(&home);
    for row in rows {
        let guest = format!("/data/{row}");
        for tool in ["hostile.reads_path", "hostile.lists_path", "files.read", "files.list"] {
            let told = registry::told(&tools.call(tool, &path(&guest)));
            let refused = !told.starts_with("completed") && !told.starts_with("timed-out");
            assert!(refused && !told.contains("the-secret"), "{tool} {guest}: {told}");
        }
        let told = registry::told(&tools.call("hostile.writes_path", &path(&guest)));
        assert!(!told.starts_with("completed"), "{guest}: {told}");
    }
    assert_eq!(fs::read_to_string(home.user_path("beside/secret.txt")).unwrap(), "the-secret");
}

#[test]
fn h28_a_link_made_by_the_guest_leads_nowhere() {
    let home = home("read-write");
    let tools = Tools::of(&home);
    for to in ["../beside/secret.txt", home.user_path("beside/secret.txt").to_str().unwrap()] {
        tools.call("hostile.symlinks_path", &from_to(to, "/data/out"));
        let told = registry::told(&tools.call("hostile.reads_path", &path("/data/out")));
        assert!(told.starts_with("failed"), "{to}: {told}");
        assert!(!home.user_path("granted/out").is_symlink(), "{to}");
    }
}

#[test]
fn h29_a_folder_for_reading_stays_as_it_is() {
    let home = home("read");
    symlink("plain.txt", home.user_path("granted/link")).unwrap();
    let before = snapshot(&home.user_path("granted"));
    let plain = path("/data/plain.txt");
    let rows = [
        ("hostile.writes_path", plain.clone()),
        ("hostile.writes_path", path("/data/link")),
        ("hostile.truncates_path", plain.clone()),
        ("hostile.creates_path", path("/data/new.txt")),
        ("hostile.creates_path", plain.clone()),
        ("hostile.makes_folder", path("/data/new")),
        ("hostile.removes_path", plain.clone()),
        ("hostile.removes_path", path("/data/sub")),
        ("hostile.renames_path", from_to("/data/plain.txt", "/data/other.txt")),
        ("hostile.renames_path", from_to("/data/plain.txt", "/data/sub/plain.txt")),
        ("hostile.links_path", from_to("/data/plain.txt", "/data/hard.txt")),
        ("hostile.symlinks_path", from_to("plain.txt", "/data/soft.txt")),
        ("hostile.sets_times", plain),
        ("files.write", json!({ "path": "/data/plain.txt", "text": "x", "mode": "overwrite" })),
        ("files.write", json!({ "path": "/data/plain.txt", "text": "x", "mode": "append" })),
        ("files.write", json!({ "path": "/data/new.txt", "text": "x" })),
        ("files.mkdir", path("/data/new")),
        ("files.remove", json!({ "path": "/data/sub", "recursive": true })),
        ("files.remove", path("/data/plain.txt")),
    ];
    let tools = Tools::of(&home);
    for (tool, arguments) in rows {
        let report = tools.call(tool, &arguments);
        let word = report.outcome.as_str();
        assert!(matches!(word, "failed" | "denied"), "{tool} {arguments}: {report:?}");
        assert_eq!(snapshot(&home.user_path("granted")), before, "{tool} {arguments}");
    }
    let read = tools.call("files.read", &path("/data/plain.txt"));
    assert_eq!(registry::data(&read)["text"], "plain");
}

#[test]
fn h29_the_refusal_of_a_write_says_how_to_allow_it() {
    let ran = home("read").run(&["call", "files.write", r#"{"path":"/data/a","text":"x"}"#]);
    ran.ended(3).remarks(&["policy grant files --write /", "--mount /data"]);
}

#[test]
fn a_folder_for_reading_and_writing_can_be_worked_in() {
    let home = home("read-write");
    let tools = Tools::of(&home);
    let rows = [
        ("files.mkdir", path("/data/a/b")),
        ("files.write", json!({ "path": "/data/a/b/c.txt", "text": "one\n" })),
        ("files.write", json!({ "path": "/data/a/b/c.txt", "text": "two\n", "mode": "append" })),
        ("hostile.renames_path", from_to("/data/a/b/c.txt", "/data/a/d.txt")),
        ("hostile.links_path", from_to("/data/a/d.txt", "/data/a/e.txt")),
        ("hostile.truncates_path", path("/data/plain.txt")),
        ("files.remove", path("/data/sub/inner.txt")),
        ("files.stat", path("/data/a/d.txt")),
    ];
    for (tool, arguments) in rows {
        registry::data(&tools.call(tool, &arguments));
    }
    assert_eq!(fs::read_to_string(home.user_path("granted/a/e.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(home.user_path("granted/plain.txt")).unwrap(), "");
    assert!(!home.user_path("granted/sub/inner.txt").exists());
    let listed = tools.call("files.list", &path("/data/a"));
    assert!(registry::data(&listed).to_string().contains("e.txt"), "{listed:?}");
}

#[test]
fn a_manifest_that_asks_to_read_gets_no_more_than_that() {
    let home = home("read-write").guest("hostile", &requests("read"));
    let tools = Tools::of(&home);
    let told = registry::told(&tools.call("hostile.creates_path", &path("/data/new.txt")));
    assert!(told.contains("its manifest requests to read it only"), "{told}");
    assert!(!home.user_path("granted/new.txt").exists());
}

#[test]
fn a_folder_that_is_not_there_is_named_to_the_person_and_not_to_the_model() {
    let home = home("read");
    fs::remove_dir_all(home.user_path("granted")).unwrap();
    let folder = home.user_path("granted").display().to_string();
    // It was named only with -v.
    for flags in [&["-v"][..], &[]] {
        let call = ["call", "files.read", r#"{"path":"/data/plain.txt"}"#];
        let ran = home.run(&[flags, &call].concat()).ended(7);
        ran.remarks(&["/data is not there, though it is granted", &folder]);
    }
    // It was found out by a call only.
    let missing = format!("files is granted {folder}, which does not exist");
    home.run(&["policy", "check"]).ended(0).remarks(&[&missing]);
    let report = home.run(&["policy", "check", "--output", "json"]).ended(0).json();
    assert!(report["plugins"].to_string().contains(&folder), "{report}");
    let checks = home.run(&["doctor", "--output", "json"]).json();
    assert!(checks.to_string().contains(&missing), "{checks}");
    let grant = ["policy", "grant", "files", "--read", "/nope/dir", "--yes"];
    home.run(&grant).ended(0).remarks(&["/nope/dir does not exist at the moment"]);
    let (told, _) = home.call("files.read", &path("/data/plain.txt"));
    assert!(!told.to_string().contains("granted/"), "{told}");
}

#[test]
fn single_files_are_granted_without_the_folder_around_them() {
    let files = [
        "/etc/os-release",
        "/proc/sys/kernel/osrelease",
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/uptime",
    ];
    let there = files.iter().filter(|file| Path::new(file).is_file());
    let grants: Vec<String> = there
        .map(|file| format!("{{ path = \"{file}\", mount = \"{file}\", access = \"read\" }}"))
        .collect();
    let policy = format!("[plugin.system-info]\nfs = [{}]\n", grants.join(", "));
    let home = Home::new().plugins(&["system-info"]).policy(policy);
    let told = home.run(&["call", "system-info.get_system_info"]).ended(0).json();
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(
        told.to_string().contains(&(total * 1024).to_string())
            || told.to_string().contains(&total.to_string()),
        "{told}"
    );
}

#[test]
fn a_single_file_brings_nothing_of_its_folder_and_cannot_be_changed() {
    let home = Home::new()
        .guest("hostile", &requests("read"))
        .user_file("one/a.txt", "a")
        .user_file("one/b.txt", "b");
    let file = home.user_path("one/a.txt");
    let home = home.policy(format!(
        "[plugin.hostile]\nfs = [{{ path = {file:?}, mount = \"/in/a.txt\", access = \"read\" }}]\n"
    ));
    let tools = Tools::of(&home);
    assert_eq!(registry::data(&tools.call("hostile.reads_path", &path("/in/a.txt"))), "a");
    assert_eq!(registry::data(&tools.call("hostile.lists_path", &path("/in"))), &json!(["a.txt"]));
    assert_eq!(registry::data(&tools.call("hostile.lists_path", &path("/"))), &json!(["in"]));
    for tool in ["hostile.writes_path", "hostile.removes_path", "hostile.truncates_path"] {
        let told = registry::told(&tools.call(tool, &path("/in/a.txt")));
        assert!(told.starts_with("denied"), "{tool}: {told}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "a");
}

#[test]
fn h32_a_pipe_without_a_writer_is_refused_at_once() {
    let home = home("read-write");
    let pipe = home.user_path("granted/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for tool in ["hostile.reads_path", "hostile.writes_path", "files.read"] {
        let (told, code) = home.call(tool, &path("/data/pipe"));
        let outcome = told["outcome"].as_str().unwrap();
        assert!(matches!(outcome, "failed" | "invalid-arguments") && code == 7, "{told}");
    }
}

#[test]
fn h33_open_files_are_counted() {
    let tools = Tools::of(&home("read"));
    let told = registry::told(&tools.call("hostile.opens_many", &path("/data/plain.txt")));
    assert!(told.contains("64 are open") && told.contains("(limits.files) is reached"), "{told}");
    let after = tools.call("hostile.reads_path", &path("/data/plain.txt"));
    assert_eq!(registry::data(&after), "plain");
}

/// `~` is the home of the program here: its policy, its cache and its plugins lie in it.
#[test]
fn h31_folders_that_hold_too_much_are_refused() {
    for folder in [
        "/",
        "/proc",
        "/sys",
        "/dev",
        "~",
        "~/.ssh",
        "~/sallyport",
        "~/sallyport/cache/compiled",
        "~/sallyport/plugins",
    ] {
        let grant = format!("{{ path = \"{folder}\", mount = \"/x\", access = \"read-write\" }}");
        let home = Home::new().guest("hostile", &requests("read-write"));
        let home = home.policy(format!("[plugin.hostile]\nfs = [{grant}]\n"));
        let ran = home.run(&["policy", "check"]);
        assert_eq!(ran.code, 3, "{folder}: {ran:?}");
    }
}
