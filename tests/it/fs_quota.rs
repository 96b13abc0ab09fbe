//! A quota bounds what lies in a folder, whichever way a guest makes it grow.

use std::fs;

use serde_json::json;

use crate::support::{Home, Watch, registry, watch};

const FULL: &str = "! insufficient-space";

/// A home with a folder of three files: 4096, 4096 and 10,000 bytes of its quota.
fn home() -> Home {
    Home::new()
        .user_file("data/empty", "")
        .user_file("data/small", "small")
        .user_file("data/large", [b'x'; 10_000])
}

/// What is used at the start.
const USED_BYTES: u64 = 4096 + 4096 + 10_000;

fn table(home: &Home, quota: &str) -> String {
    let path = home.user_path("data");
    format!("fs = [{{ path = {path:?}, mount = \"/data\", access = \"read-write\"{quota} }}]")
}

/// The guest with so many bytes left.
fn watch(home: &Home, left_bytes: u64) -> Watch {
    Watch::of(home, &table(home, &format!(", quota = {}", USED_BYTES + left_bytes)))
}

/// Follows a script with so many bytes left.
#[track_caller]
fn check(left_bytes: u64, rows: &[(&str, &str)]) {
    let home = home();
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    for (told, row) in watch(&home, left_bytes).script(&steps).into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
}

#[test]
fn h33_every_way_to_grow_is_counted() {
    let name = "put /data/new x";
    let rows: [(u64, &[&str], &str); 14] = [
        (4096, &[], name),
        (4096, &[], "mkdir /data/folder"),
        (4096, &[], "sym small /data/link"),
        (4096, &[], "ln /data/large /data/hard"),
        (4096, &[], "open n /data/new wc"),
        (1000, &["open a /data/large w"], "size a 11000"),
        (1000, &["open a /data/large w"], "write a 10996 four"),
        (0, &["open a /data/large w"], "write a 9996 four"),
        (904, &["open a /data/empty w"], "size a 5000"),
        (0, &["open a /data/empty w"], "size a 4096"),
        (1, &["open a /data/large w", "output a append"], "push a 1"),
        (1, &["open a /data/large w", "output a 9999"], "push a 12"),
        (1 << 40, &["open a /data/large w"], "size a 1099511637776"),
        (4096 + 4096, &["mkdir /data/f", "open f /data/f d"], "put f:x y"),
    ];
    for (needed, before, step) in rows {
        for (left, fits) in [(needed, true), (needed.wrapping_sub(1), false)] {
            if needed == 0 && !fits {
                continue;
            }
            let home = home();
            let told = watch(&home, left).script(&[before, &[step]].concat());
            assert_eq!(told.last().unwrap() != FULL, fits, "{left} {step}: {told:?}");
        }
    }
}

#[test]
fn h33_what_is_given_back_can_be_used_again() {
    check(
        5904,
        &[
            ("open a /data/large rw", "ok"),
            ("size a 15904", "ok"),
            ("put /data/new x", FULL),
            ("size a 11808", "ok"),
            ("put /data/new x", "ok"),
            ("put /data/more x", FULL),
            ("mv /data/new /data/small", "ok"),
            ("put /data/more x", "ok"),
            ("mkdir /data/folder", FULL),
            ("rm /data/more", "ok"),
            ("mkdir /data/folder", "ok"),
            ("put /data/more x", FULL),
            ("rmdir /data/folder", "ok"),
            ("put /data/more x", "ok"),
            ("open t /data/large wt", "ok"),
            ("fill t 11808", "11808"),
            ("write t 11808 x", FULL),
            ("write t 99999999999 x", FULL),
            ("write t 18446744073709551615 x", "! file-too-large"),
        ],
    );
}

#[test]
fn h33_failures_cost_nothing() {
    check(
        4096,
        &[
            ("mkdir /data/small", "! exist"),
            ("sym x /data/small", "! exist"),
            ("ln /data/large /data/small", "! exist"),
            ("mkdir /data/none/folder", "! no-entry"),
            ("ln /data/none /data/other", "! no-entry"),
            ("mkdir /data/folder", "ok"),
        ],
    );
}

#[test]
fn h33_links_and_open_files_give_no_room_that_is_not_there() {
    check(
        4096,
        &[
            ("ln /data/large /data/hard", "ok"),
            ("rm /data/large", "ok"),
            ("put /data/new x", "ok"),
            ("put /data/more x", FULL),
            ("rm /data/new", "ok"),
            ("open h /data/hard r", "ok"),
            ("rm /data/hard", "ok"),
            ("open b /data/big wc", "ok"),
            ("fill b 4096", "4096"),
            ("write b 4096 x", FULL),
        ],
    );
}

#[test]
fn h33_a_million_empty_files_come_to_an_end() {
    check(100 * 4096, &[("many 1000000 /data/n", "100 insufficient-space")]);
}

#[test]
fn h33_the_outcome_names_the_quota() {
    let home = home();
    let watch = watch(&home, 0);
    let told = registry::told(&watch.call("creates_path", &json!({ "path": "/data/new" })));
    assert!(told.contains("failed") && told.contains("in /data (quota) is reached"), "{told}");
    fs::remove_file(home.user_path("data/large")).unwrap();
    assert_eq!(watch.script(&["put /data/new x"]), ["ok"], "it is measured anew for each call");
}

/// Whatever two calls do at once, they have one room.
#[test]
fn h33_calls_at_once_share_one_room() {
    let home = home();
    let watch = watch(&home, 1 << 20);
    let steps = |name: &str| {
        let open = format!("open a /data/{name} wc");
        json!({ "steps": [open, "fill a 1000000"] })
    };
    let calls: Vec<_> =
        ["a", "b", "c", "d"].map(|name| watch.spawn("follows_script", &steps(name))).into();
    watch.wait(async {
        for call in calls {
            watch::told(&call.await.unwrap());
        }
    });
    let all = length(&home);
    assert!(all <= USED_BYTES + (1 << 20), "{all}");
    assert!(all > (1 << 20), "{all}");
}

/// One takes a file's length away while the other gives and takes it; what is taken twice must not
/// be given back twice.
#[test]
fn h33_a_race_for_one_file_makes_no_room() {
    let bulk_bytes = 20 << 20;
    let home = home().user_file("data/bulk", vec![b'x'; bulk_bytes]);
    let left_bytes = bulk_bytes as u64 + (1 << 20);
    let watch = watch(&home, left_bytes);
    let steps = |race: &[&'static str], rest: &[&'static str]| {
        let race = race.iter().copied().cycle().take(20_000);
        let steps: Vec<&str> =
            ["open r /data/large rw"].into_iter().chain(race).chain(rest.iter().copied()).collect();
        json!({ "steps": steps })
    };
    let takes = steps(&["size r 0"], &[]);
    let gives = steps(&["size r 900000", "size r 0"], &["open a /data/a wc", "fill a 3000000"]);
    let calls = [&takes, &takes, &takes, &gives];
    for call in calls.map(|steps| watch.spawn("follows_script", steps)) {
        watch::told(&watch.wait(call).unwrap());
    }
    assert!(length(&home) <= USED_BYTES + left_bytes, "{}", length(&home));
}

/// What lies in the folder, as the quota counts it.
fn length(home: &Home) -> u64 {
    let entries = fs::read_dir(home.user_path("data")).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len().max(4096)).sum()
}

#[test]
fn h33_without_a_quota_a_call_adds_a_gibibyte_at_most() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, ""));
    let rows = [
        ("open a /data/new wc", "ok"),
        ("size a 1073741824", "ok"),
        ("size a 1073741825", FULL),
        ("put /data/more x", FULL),
        ("size a 1073737728", "ok"),
        ("put /data/more x", "ok"),
    ];
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    for (told, row) in watch.script(&steps).into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
    assert_eq!(watch.script(&["open b /data/b wc", "size b 1000000000"]), ["ok", "ok"]);
    let told = registry::told(&watch.call("creates_path", &json!({ "path": "/data/c" })));
    assert!(told.starts_with("completed"), "{told}");
}
