//! What a mount denies does not exist, by whichever way it is reached, and cannot be made.

use std::{
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use sallyport_contract::Effect;
use serde_json::json;

use crate::support::{Home, Watch, registry, watch};

/// A home with a folder in which something is denied.
pub(crate) fn home() -> Home {
    Home::new()
        .user_file("notes/plain.txt", "plain")
        .user_file("notes/.env", "KEY=the-secret")
        .user_file("notes/sub/inner.txt", "inner")
        .user_file("notes/sub/.env.local", "KEY=the-secret")
        .user_file("notes/.git/config", "the-secret")
        .user_file("notes/sub/.git/hooks/pre-commit", "the-secret")
        .user_file("notes/private/diary.txt", "the-secret")
        .user_file("beside/secret.txt", "the-secret")
}

/// The grant of that folder.
pub(crate) fn table(home: &Home, deny: &str) -> String {
    let path = home.user_path("notes");
    format!(
        "fs = [{{ path = {path:?}, mount = \"/notes\", access = \"read-write\", deny = [{deny}] }}]"
    )
}

pub(crate) const DENY: &str = r#""**/.git/**", "**/.env*", "private""#;

/// Each script ends with the step that is refused; the steps before it work.
#[track_caller]
pub(crate) fn check(home: &Home, rows: &[&[&str]]) {
    let watch = Watch::of(home, &table(home, DENY));
    for steps in rows {
        let report = watch.call("follows_script", &json!({ "steps": steps }));
        let told = watch::told(&report);
        let (last, first) = told.split_last().unwrap();
        assert!(last.starts_with("! "), "{steps:?}: {told:?}");
        assert!(first.iter().all(|step| !step.starts_with("! ")), "{steps:?}: {told:?}");
        assert!(!told.concat().contains("the-secret"), "{steps:?}: {told:?}");
        let refused = report.effects.iter().any(|effect| matches!(effect, Effect::Refused(_)));
        assert_eq!(refused, last == "! not-permitted", "{steps:?}: {report:?}");
    }
}

#[test]
fn what_is_denied_can_be_neither_seen_nor_touched() {
    let verbs = [
        "cat X",
        "stat X",
        "lstat X",
        "hash X",
        "ls X",
        "put X y",
        "mkdir X",
        "rmdir X",
        "rm X",
        "sym plain.txt X",
        "readlink X",
        "touch X",
        "mv X /notes/y",
        "mv /notes/plain.txt X",
        "ln X /notes/y",
        "ln /notes/plain.txt X",
        "open a X rw",
        "open a X wct",
        "open a X dn",
    ];
    let paths = [
        "/notes/.env",
        "/notes/.env.none",
        "/notes/sub/.env.local",
        "/notes/.git",
        "/notes/.git/",
        "/notes/.git/config",
        "/notes/.git/none/none",
        "/notes/sub/.git/hooks/pre-commit",
        "/notes/private",
        "/notes/private/diary.txt",
        "/notes/./.env",
        "/notes/sub//..//.env",
        "/notes/sub/../.env",
        "/notes/sub/.././sub//../.git/config",
    ];
    let home = home();
    let before = names(&home);
    for path in paths {
        let steps: Vec<String> = verbs.iter().map(|verb| verb.replace('X', path)).collect();
        let rows: Vec<[&str; 1]> = steps.iter().map(|step| [step.as_str()]).collect();
        check(&home, &rows.iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>());
    }
    assert_eq!(names(&home), before);
}

/// Every path below the folder.
fn names(home: &Home) -> Vec<PathBuf> {
    let (mut all, mut folders) = (Vec::new(), vec![home.user_path("notes")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            all.push(path);
        }
    }
    all.sort();
    all
}

#[test]
fn what_is_denied_is_not_reached_by_detours() {
    let home = home();
    let notes = home.user_path("notes");
    for (to, name) in [
        (".env", "link"),
        ("link", "chain"),
        (".git", "folder"),
        ("sub/..", "dots"),
        ("sub/../private", "round"),
        ("../private/diary.txt", "sub/up"),
        ("../beside", "out"),
    ] {
        symlink(to, notes.join(name)).unwrap();
    }
    symlink(home.user_path("beside/secret.txt"), notes.join("absolute")).unwrap();
    symlink("/plain.txt", notes.join("rooted")).unwrap();
    check(
        &home,
        &[
            &["cat /notes/link"],
            &["stat /notes/chain"],
            &["cat /notes/folder/config"],
            &["ls /notes/folder"],
            &["ls /notes/folder/"],
            &["cat /notes/dots/.env"],
            &["ls /notes/round"],
            &["cat /notes/sub/up"],
            &["put /notes/link x"],
            &["touch /notes/link"],
            &["cat /notes/out/secret.txt"],
            &["cat /notes/absolute"],
            &["cat /notes/rooted"],
            &["readlink /notes/absolute"],
            &["open sub /notes/sub d", "cat sub:.env.local"],
            &["open sub /notes/sub d", "cat sub:.git/hooks/pre-commit"],
            &["open sub /notes/sub d", "open more sub:. d", "cat more:.env.local"],
            &["sym .env /notes/mine", "cat /notes/mine"],
            &["sym sub /notes/s1", "sym s1/.git /notes/s2", "ls /notes/s2/hooks"],
            &["sym ../beside /notes/o"],
            &["sym /etc /notes/e"],
            &["cat /notes/absolute/"],
        ],
    );
}

/// The guest itself cannot follow such a link, but the user's editor, backup or web server can.
#[test]
fn a_guest_leaves_no_link_that_leads_out_of_its_folder() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, ""));
    let no = "! not-permitted";
    let rows = [
        ("sym ../beside /notes/sub/moved", "ok"),
        ("mv /notes/sub/moved /notes/moved", no),
        ("ln /notes/sub/moved /notes/linked", no),
        ("mkdir /notes/sub/other", "ok"),
        ("mv /notes/sub/moved /notes/sub/other/moved", "ok"),
        ("mv /notes/sub/other/moved /notes/sub/again", "ok"),
        // After a link, a step up leads elsewhere than its name says.
        ("sym .. /notes/sub/up", "ok"),
        ("sym up/../beside /notes/sub/round", no),
        ("sym plain/../up /notes/round", no),
        // A folder takes its links along.
        ("mkdir /notes/sub/deep", "ok"),
        ("sym ../../beside /notes/sub/deep/out", "ok"),
        ("sym ../inner.txt /notes/sub/deep/in", "ok"),
        ("mv /notes/sub/deep /notes/deep", no),
        ("rm /notes/sub/deep/out", "ok"),
        ("mv /notes/sub/deep /notes/deep", "ok"),
        // The path of an open folder is out of date after a move.
        ("mkdir /notes/sub/stale", "ok"),
        ("open s /notes/sub/stale d", "ok"),
        ("mv /notes/sub/stale /notes/stale", "ok"),
        ("sym ../../beside s:out", no),
        ("sym ../plain.txt s:in", "ok"),
        ("cat /notes/stale/in", "plain"),
    ];
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    let report = watch.call("follows_script", &json!({ "steps": steps }));
    for (told, row) in watch::told(&report).into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
    let refused = report.effects.iter().filter(|effect| matches!(effect, Effect::Refused(_)));
    assert!(refused.count() > 1, "{report:?}");
}

/// No grant says anything about such a path, so nothing is written down.
#[test]
fn h27_a_path_never_leads_above_the_folder_that_it_begins_in() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, DENY));
    let long = format!("cat /notes/{}", "x/".repeat(3000));
    let name = format!("cat /notes/{}", "x".repeat(300));
    let there_and_back = format!("cat /notes/{}plain.txt", "sub/../".repeat(520));
    let rows = [
        ("open sub /notes/sub d", "ok"),
        ("cat sub:../plain.txt", "! not-permitted"),
        ("cat sub:../sub/inner.txt", "! not-permitted"),
        ("cat sub:x/../../plain.txt", "! no-entry"),
        ("cat sub:/notes/plain.txt", "! not-permitted"),
        ("cat /notes//plain.txt", "! not-permitted"),
        ("cat /notes/../beside/secret.txt", "! not-permitted"),
        ("ls /notes/..", "! not-permitted"),
        ("cat sub:", "! no-entry"),
        ("cat sub:inner.txt\0", "! invalid"),
        (&long, "! name-too-long"),
        (&there_and_back, "! loop"),
        (&name, "! name-too-long"),
        ("put /notes/\u{202e}\u{7f}\n odd", "ok"),
        ("cat /notes/\u{202e}\u{7f}\n", "odd"),
    ];
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    let report = watch.call("follows_script", &json!({ "steps": steps }));
    for (told, row) in watch::told(&report).into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
    let refused = report.effects.iter().any(|effect| matches!(effect, Effect::Refused(_)));
    assert!(!refused, "{report:?}");
}

/// A path holds each folder on its way open: one that goes deep does not use up those of the
/// program.
#[test]
fn a_path_goes_so_deep_and_no_deeper() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, DENY));
    let mut steps = vec!["open f /notes d".to_owned()];
    for _ in 0..130 {
        steps.extend(["mkdir f:d".to_owned(), "open f f:d d".to_owned()]);
    }
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let told = watch.script(&steps);
    assert_eq!(told.iter().filter(|step| *step == "ok").count(), 1 + 2 * 128);
    assert_eq!(told.last().unwrap(), "! name-too-long");
}

#[test]
fn folders_are_renamed_only_where_nothing_changes_its_side() {
    check(
        &home(),
        &[
            &["mv /notes/private /notes/public"],
            &["mv /notes/sub /notes/private"],
            &["mkdir /notes/a", "put /notes/a/diary.txt x", "mv /notes/a /notes/private"],
            &["mkdir /notes/h", "mkdir /notes/h/hooks", "mv /notes/h /notes/.git"],
            &["mv /notes/.git /notes/git"],
            &["mkdir /notes/b", "mv /notes/b/ /notes/private/"],
        ],
    );
    let home = home();
    let deep = table(&home, r#""**/.env*", "a/keys/**""#);
    let watch = Watch::of(&home, &deep);
    let told = watch.script(&[
        "mv /notes/sub /notes/other",
        "cat /notes/other/inner.txt",
        "cat /notes/other/.env.local",
        "mkdir /notes/a",
        "mkdir /notes/b",
        "mkdir /notes/b/keys",
        "mv /notes/b /notes/a",
        "rmdir /notes/a",
        "mv /notes/b /notes/a",
        "mkdir /notes/a",
        "mv /notes/a /notes/c",
        "mv /notes/plain.txt /notes/a/plain.txt",
        "cat /notes/a/plain.txt",
    ]);
    let no = "! not-permitted";
    let want = ["ok", "inner", no, "ok", "ok", "ok", no, "ok", no, "ok", no, "ok", "plain"];
    assert_eq!(told, want);
}

#[test]
fn what_is_denied_is_not_listed_and_still_there() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, DENY));
    let told = watch.script(&[
        "ls /notes",
        "ls /notes/sub",
        "open n /notes d",
        "list n",
        "rmdir /notes/sub",
        "rm /notes/sub/inner.txt",
        "ls /notes/sub",
        "rmdir /notes/sub",
    ]);
    let want = [
        "plain.txt sub",
        "inner.txt",
        "ok",
        "plain.txt sub",
        "! not-empty",
        "ok",
        "ok",
        "! not-empty",
    ];
    assert_eq!(told, want);
    assert!(home.user_path("notes/.git/config").exists());
}

#[test]
fn a_refusal_names_the_pattern_and_its_line() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, DENY));
    let report = watch.call("reads_path", &json!({ "path": "/notes/sub/.env.local" }));
    let told = registry::told(&report);
    for words in ["denied: hostile may not read /notes/sub/.env.local", "**/.env*", "policy.toml:2"]
    {
        assert!(told.contains(words), "{words:?} is not in {told}");
    }
    assert!(!told.contains(home.folder.path().to_str().unwrap()), "{told}");
}

#[test]
fn everything_else_works_beside_what_is_denied() {
    let home = home();
    symlink("sub/inner.txt", home.user_path("notes/link")).unwrap();
    symlink("sub", home.user_path("notes/folder")).unwrap();
    let watch = Watch::of(&home, &table(&home, DENY));
    let rows = [
        ("cat /notes/link", "inner"),
        ("cat /notes/folder/inner.txt", "inner"),
        ("cat /notes/folder/../plain.txt", "plain"),
        ("ls /notes/folder/", "inner.txt"),
        ("lstat /notes/folder", "DescriptorType::SymbolicLink 3"),
        ("readlink /notes/folder", "sub"),
        ("put /notes/new.txt new", "ok"),
        ("cat /notes/new.txt", "new"),
        ("mv /notes/new.txt /notes/sub/newer.txt", "ok"),
        ("ln /notes/sub/newer.txt /notes/again.txt", "ok"),
        ("sym plain.txt /notes/slash/", "! no-entry"),
        ("sym plain.txt /notes/sub/", "! exist"),
        ("sym plain.txt /notes/plain.txt/", "! not-directory"),
        ("ln /notes/sub/inner.txt /notes/slash/", "! no-entry"),
        ("ln /notes/plain.txt/ /notes/slash", "! not-directory"),
        ("lstat /notes/slash", "! no-entry"),
        ("open r /notes/plain.txt r", "ok"),
        ("write r 0 x", "! not-permitted"),
        ("mkdir /notes/slashed/", "ok"),
        ("rmdir /notes/slashed", "ok"),
        ("sym ../plain.txt /notes/sub/back", "ok"),
        ("cat /notes/sub/back", "plain"),
        ("rm /notes/sub/newer.txt", "ok"),
        ("cat /notes/again.txt", "new"),
        ("mkdir /notes/made", "ok"),
        ("mkdir /notes/made", "! exist"),
        ("mkdir /notes", "! exist"),
        ("rmdir /notes/made/", "ok"),
        ("rm /notes/sub", "! is-directory"),
        ("rm /notes/plain.txt/", "! not-directory"),
        ("cat /notes/plain.txt/x", "! not-directory"),
        ("cat /notes/none", "! no-entry"),
        ("open x /notes/plain.txt wcx", "! exist"),
        ("open x /notes/plain.txt d", "! not-directory"),
        ("open x /notes/folder n", "! loop"),
        ("open x /notes/sub w", "! is-directory"),
        ("touch /notes/plain.txt", "ok"),
        ("ls /notes", "again.txt folder link plain.txt sub"),
    ];
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    for (told, row) in watch.script(&steps).into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
}

/// Far more than are swapped before the other side has come to its end.
const SWAPS_MAX: usize = 1_000_000;

/// While one call swaps a link between what is allowed and what is not, another follows it.
#[test]
fn h28_a_link_that_is_swapped_in_a_race_leads_nowhere() {
    let home = home();
    let notes = home.user_path("notes");
    symlink("sub", notes.join("swap")).unwrap();
    let watch = Watch::of(&home, &table(&home, DENY));
    let is_over = AtomicBool::new(false);
    let targets = ["sub", "private", "../beside", ".git", "plain.txt"];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for target in targets.iter().cycle().take(SWAPS_MAX) {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let _ = fs::remove_file(notes.join("spare"));
                symlink(target, notes.join("spare")).unwrap();
                fs::rename(notes.join("spare"), notes.join("swap")).unwrap();
            }
        });
        let steps: Vec<&str> = [
            "cat /notes/swap/diary.txt",
            "cat /notes/swap/secret.txt",
            "cat /notes/swap/config",
            "cat /notes/swap/inner.txt",
            "ls /notes/swap",
            "ls /notes/swap/",
            "put /notes/swap/config overwritten",
        ]
        .into_iter()
        .cycle()
        .take(3000)
        .collect();
        let told = watch.script(&steps);
        is_over.store(true, Ordering::Relaxed);
        assert!(told.iter().any(|step| step == "inner"), "the race was never won");
        assert!(told.iter().any(|step| step == "! not-permitted"), "the race was never lost");
        let leaks = ["the-secret", "diary.txt", "secret.txt", "hooks"];
        for step in told {
            assert!(!leaks.iter().any(|leak| step.contains(leak)), "{step}");
        }
    });
    assert_eq!(fs::read_to_string(notes.join(".git/config")).unwrap(), "the-secret");
}

/// What is a file when it is looked at is a link when it is opened.
#[test]
fn h28_a_file_that_becomes_a_link_is_not_followed() {
    let home = home();
    let notes = home.user_path("notes");
    let watch = Watch::of(&home, &table(&home, DENY));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..SWAPS_MAX {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                match n % 2 {
                    0 => symlink("private/diary.txt", notes.join("spare")).unwrap(),
                    _ => fs::write(notes.join("spare"), "fair").unwrap(),
                }
                fs::rename(notes.join("spare"), notes.join("flip")).unwrap();
            }
        });
        let steps: Vec<&str> =
            ["cat /notes/flip", "open x /notes/flip wt"].into_iter().cycle().take(10_000).collect();
        let told = watch.script(&steps);
        is_over.store(true, Ordering::Relaxed);
        assert!(told.iter().any(|step| step == "fair" || step.is_empty()), "{told:?}");
        assert!(!told.iter().any(|step| step.contains("the-secret")));
    });
    assert_eq!(fs::read_to_string(notes.join("private/diary.txt")).unwrap(), "the-secret");
}

/// Two calls of the guest itself: one swaps, one renames what it finds.
#[test]
fn h28_two_calls_at_once_find_no_way_round() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, DENY));
    let swapping: Vec<&str> = [
        "rm /notes/x",
        "mkdir /notes/x",
        "mkdir /notes/x/hooks",
        "put /notes/x/hooks/evil evil",
        "rm /notes/x/hooks/evil",
        "rmdir /notes/x/hooks",
        "rmdir /notes/x",
        "put /notes/x text",
        "rm /notes/x",
        "sym private /notes/x",
    ]
    .into_iter()
    .cycle()
    .take(2000)
    .collect();
    let renaming: Vec<&str> = [
        "mv /notes/x /notes/private",
        "mv /notes/x /notes/.git/x",
        "cat /notes/x/diary.txt",
        "mv /notes/x/diary.txt /notes/d",
        "ln /notes/x/diary.txt /notes/e",
        "ls /notes/x",
        "mv /notes/x /notes/.envs",
    ]
    .into_iter()
    .cycle()
    .take(2000)
    .collect();
    let before = names(&home);
    let one = watch.spawn("follows_script", &json!({ "steps": swapping }));
    let other = watch.spawn("follows_script", &json!({ "steps": renaming }));
    let (one, other) = watch.wait(async { (one.await.unwrap(), other.await.unwrap()) });
    for told in watch::told(&one).into_iter().chain(watch::told(&other)) {
        assert!(!told.contains("the-secret") && !told.contains("diary"), "{told}");
    }
    let _ = fs::remove_file(home.user_path("notes/x"));
    let _ = fs::remove_dir_all(home.user_path("notes/x"));
    assert_eq!(names(&home), before);
}
