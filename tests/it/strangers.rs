//! Files that a stranger can place: no command waits for one, and a project's file counts only
//! where nobody else can put it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use rustix::fs::{CWD, FileType, mknodat};

use crate::support::{
    Home, Ran,
    home::{finish, manifest},
};

fn pipe(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// Runs the program in a folder. One that waits fails the test.
#[track_caller]
fn run_in(home: &Home, folder: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sallyport"));
    command.args(args).env_clear().envs(home.environment()).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().unwrap(), args)
}

#[test]
fn no_command_waits_for_a_named_pipe_in_the_place_of_a_file() {
    let call: &[&str] = &["call", "clock.get_time", "{}"];
    let rows: [(&str, &[&str]); 16] = [
        (".sallyport/policy.toml", &["doctor"]),
        (".sallyport/policy.toml", call),
        (".sallyport/policy.toml", &["policy", "check"]),
        (".sallyport/sallyport.toml", &["tool", "list"]),
        (".sallyport/sallyport.toml", &["trust"]),
        ("sallyport/policy.toml", call),
        (
            "sallyport/policy.toml",
            &["policy", "grant", "clock", "--net", "GET https://a.example/**", "--yes"],
        ),
        ("sallyport/sallyport.toml", &["config", "show"]),
        ("sallyport/sallyport.lock", call),
        ("sallyport/state/trusted.json", &["tool", "list"]),
        ("sallyport/plugins/own/plugin.toml", &["plugin", "list"]),
        ("sallyport/plugins/own/own.wasm", &["doctor"]),
        ("sallyport/plugins/own/definition.json", &["plugin", "list"]),
        ("tape.jsonl", &["run", "--replay", "tape.jsonl"]),
        ("list.toml", &["selftest", "--file", "list.toml"]),
        ("picture.png", &["run", "--attach", "picture.png", "hello"]),
    ];
    for (file, args) in rows {
        let home = Home::new().plugins(&["clock"]);
        if file.ends_with("trusted.json") {
            let project = home.user_path(".sallyport/sallyport.toml");
            fs::create_dir_all(project.parent().unwrap()).unwrap();
            fs::write(project, "").unwrap();
            fs::create_dir_all(home.path("state")).unwrap();
            fs::set_permissions(home.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
        }
        if file.ends_with("own.wasm") {
            let text = manifest("own", "");
            fs::create_dir_all(home.path("plugins/own")).unwrap();
            fs::write(home.path("plugins/own/plugin.toml"), text).unwrap();
        }
        pipe(&home.user_path(file));
        let below = home.user_path("a/b");
        fs::create_dir_all(&below).unwrap();
        for folder in [home.folder.path(), &below] {
            // Files that are named are those of the folder itself.
            if folder == below && args.contains(&file) {
                continue;
            }
            let ran = run_in(&home, folder, args);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            let is_named = said.contains("named pipe") || said.contains("regular file");
            assert!(is_named, "{file} with {args:?}: {ran:#?}");
        }
    }
}

#[test]
fn a_projects_file_counts_only_where_nobody_else_can_put_one() {
    let home = Home::new().plugins(&["clock"]);
    let project = home.user_path("shared");
    let denies = "[[rule]]\ntool = \"clock.*\"\ndecision = \"deny\"\nmessage = \"never\"\n";
    fs::create_dir_all(project.join(".sallyport")).unwrap();
    fs::create_dir_all(project.join("a/b")).unwrap();
    fs::write(project.join(".sallyport/policy.toml"), denies).unwrap();
    fs::write(project.join(".sallyport/sallyport.toml"), "plugin_dir = \"x\"\n").unwrap();
    let call = ["call", "clock.get_time", "{}"];
    let mode = |path: &str, mode: u32| {
        fs::set_permissions(project.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    let below = project.join("a/b");
    run_in(&home, &below, &call).ended(3).remarks(&["may not set \"plugin_dir\""]);
    fs::remove_file(project.join(".sallyport/sallyport.toml")).unwrap();
    run_in(&home, &below, &call).ended(3).remarks(&["never"]);
    for (place, open, usual) in [
        ("", 0o1777, 0o755),
        ("", 0o777, 0o755),
        (".sallyport", 0o777, 0o755),
        (".sallyport/policy.toml", 0o666, 0o644),
    ] {
        mode(place, open);
        let ran = run_in(&home, &below, &call).ended(0);
        let said = ran.stderr.matches("is ignored, because").count();
        assert_eq!(said, 1, "{place} {open:o}: {ran:#?}");
        assert!(ran.stderr.contains("can be written by everybody"), "{ran:#?}");
        mode(place, usual);
    }
    run_in(&home, &below, &call).ended(3).remarks(&["never"]);
}

#[test]
fn a_file_that_is_no_tape_is_not_read_to_its_end() {
    let home = Home::new();
    for begin in ["x", "{", "{\"line\":\"tape\",\"version\":\""] {
        let file = home.user_path("tape.jsonl");
        fs::write(&file, begin).unwrap();
        // A hole of a terabyte: whoever reads on would not come to an end.
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
        home.run(&["run", "--replay", "tape.jsonl"]).ended(1).remarks(&["this is not a tape"]);
    }
}
