//! Names of files that are not what they seem: a second name of a denied file, a denied name that
//! is spelled differently, names that are not text.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use sallyport_contract::Effect;
use serde_json::json;

use crate::{
    fs_deny::{DENY, check, home, table},
    support::{Home, Watch, watch},
};

/// A second name of a denied file is a name like any other: nothing but the number of names tells.
#[test]
fn h77_a_file_with_a_second_name_is_not_read_past_a_deny() {
    let home = home();
    let notes = home.user_path("notes");
    fs::hard_link(notes.join(".env"), notes.join("x.txt")).unwrap();
    fs::hard_link(home.user_path("beside/secret.txt"), notes.join("y.txt")).unwrap();
    check(
        &home,
        &[
            &["cat /notes/x.txt"],
            &["cat /notes/y.txt"],
            &["put /notes/x.txt changed"],
            &["open x /notes/x.txt wt"],
            &["touch /notes/x.txt"],
            &["ln /notes/x.txt /notes/z.txt"],
            &["mv /notes/x.txt /notes/z.txt", "cat /notes/z.txt"],
        ],
    );
    assert_eq!(fs::read_to_string(notes.join(".env")).unwrap(), "KEY=the-secret");
    let watch = Watch::of(&home, &table(&home, DENY));
    let report = watch.call("follows_script", &json!({ "steps": ["cat /notes/z.txt"] }));
    let Some(Effect::Refused(denial)) = report.effects.first() else { panic!("{report:?}") };
    assert!(denial.reason.to_string().contains("hard link"), "{denial:?}");
    // Its name is there, and what is said of it holds no contents. Without a deny it is a file.
    let told = watch.script(&["ls /notes", "rm /notes/z.txt"]);
    assert_eq!(told, ["plain.txt sub y.txt z.txt", "ok"]);
    fs::hard_link(notes.join("plain.txt"), notes.join("again.txt")).unwrap();
    let open = Watch::of(&home, &table(&home, ""));
    assert_eq!(open.script(&["cat /notes/again.txt", "put /notes/again.txt new"]), ["plain", "ok"]);
}

/// What some file systems take for the denied name is denied on all of them.
#[test]
fn h77_a_name_that_is_spelled_differently_does_not_pass_a_deny() {
    let home = Home::new().user_file("notes/.ENV", "the-secret").user_file("notes/a.txt", "a");
    let home = home.user_file("notes/Private/diary.txt", "the-secret");
    let rows: &[&[&str]] = &[
        &["cat /notes/.ENV"],
        &["cat /notes/.Env"],
        &["cat /notes/.env."],
        &["cat /notes/.en\u{200b}v"],
        &["cat /notes/PRIVATE/diary.txt"],
        &["put /notes/.eNv x"],
    ];
    check(&home, rows);
    let watch = Watch::of(&home, &table(&home, DENY));
    assert_eq!(watch.script(&["ls /notes"]), ["a.txt"]);
}

/// A folder is listed whatever else lies in it.
#[test]
fn h78_names_that_are_not_utf8_leave_the_rest_of_the_folder_readable() {
    let home = home();
    let notes = home.user_path("notes/sub");
    let long = "n".repeat(255);
    for name in [b"bad\xff".as_slice(), b"\xc3", b"line\nbreak", b"esc\x1b[2J", long.as_bytes()] {
        fs::write(notes.join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let watch = Watch::of(&home, &table(&home, DENY));
    let report = watch.call("follows_script", &json!({ "steps": ["ls /notes/sub"] }));
    let told = watch::told(&report);
    let want = format!("esc\u{1b}[2J inner.txt line\nbreak {long}");
    assert_eq!(told, [want]);
    let logged = report.effects.iter().find_map(|effect| match effect {
        Effect::Logged { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(logged, Some("2 names in /notes/sub are not UTF-8 and were left out"));
    // They are still there: the folder is not empty, and cannot be removed as if it were.
    let told = watch.script(&["rm /notes/sub/inner.txt", "rmdir /notes/sub"]);
    assert_eq!(told, ["ok", "! not-empty"]);
}
