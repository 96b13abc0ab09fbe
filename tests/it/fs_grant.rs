//! The grant is asked at every host call, and what was done is written down.

use std::{fs, os::unix::net::UnixListener, path::Path, process::Command, time::Duration};

use sallyport_contract::{CallReport, Effect};
use serde_json::json;

use crate::support::{Home, Watch, patience::until_so, registry, watch};

const NO: &str = "! not-permitted";

fn home() -> Home {
    Home::new()
        .user_file("data/plain.txt", "plain")
        .user_file("data/other.txt", "other")
        .user_file("data/sub/inner.txt", "inner")
        .user_file("sync/here", "")
        .user_file("one.txt", "one")
        .user_file("two.txt", "two")
}

/// Grants of folders: `data` with this access and more, and one in which test and guest meet.
fn table(home: &Home, data: &str) -> String {
    let path = |name: &str| home.user_path(name).display().to_string();
    let data = match data {
        "" => String::new(),
        data => format!("{{ path = {:?}, mount = \"/data\", {data} }}, ", path("data")),
    };
    let sync = path("sync");
    format!(
        "fs = [{data}{{ path = {sync:?}, mount = \"/sync\", access = \"read-write\", quota = \"1MiB\" }}]"
    )
}

const READ: &str = "access = \"read\"";
const WRITE: &str = "access = \"read-write\", quota = \"1MiB\"";

/// Runs a script whose policy changes after its first half.
fn halves(before: &str, first: &[&str], after: &str, second: &[&str]) -> (Vec<String>, CallReport) {
    let home = home();
    let watch = Watch::of(&home, &table(&home, before));
    let steps = [first, &["put /sync/ready x", "wait /sync/go"], second].concat();
    let call = watch.spawn("follows_script", &json!({ "steps": steps }));
    // One that has ended is not ready, and says why below.
    until_so("the first half", || home.user_path("sync/ready").exists() || call.is_finished());
    watch.policy(&home, &table(&home, after));
    fs::write(home.user_path("sync/go"), "").unwrap();
    let report = watch.wait(call).unwrap();
    let told = watch::told(&report);
    assert!(told[..first.len()].iter().all(|step| !step.starts_with('!')), "{told:?}");
    (told[first.len() + 2..].to_vec(), report)
}

/// All that can be done with what was opened before.
const OPENED: [&str; 8] = [
    "open a /data/plain.txt rw",
    "open f /data d",
    "input a s",
    "output a 0",
    "pull a 1",
    "push a x",
    "list f",
    "read a 1",
];

#[test]
fn h67_what_is_revoked_ends_at_the_next_host_call() {
    let after = [
        "read a 5",
        "write a 0 x",
        "size a 0",
        "pull a 5",
        "push a y",
        "list f",
        "fstat a",
        "flags f",
        "cat f:plain.txt",
        "cat /data/plain.txt",
        "stat /data/plain.txt",
        "ls /data",
        "put /data/new x",
        "rm /data/other.txt",
        "mv /data/other.txt /data/o",
        "sync a",
    ];
    let (told, report) = halves(WRITE, &OPENED, "", &after);
    for (step, told) in after.iter().zip(told) {
        assert_eq!(told, NO, "{step}");
    }
    let refused = report.effects.iter().any(|effect| {
        matches!(effect, Effect::Refused(denial) if denial.to_string().contains("/data/plain.txt"))
    });
    assert!(refused, "{report:?}");
}

#[test]
fn h67_what_is_narrowed_to_reading_can_still_be_read() {
    let rows = [
        ("read a 5", "xlain"),
        ("pull a 5", "lain"),
        ("write a 0 y", NO),
        ("push a y", NO),
        ("size a 0", NO),
        ("put /data/new x", NO),
        ("cat f:other.txt", "other"),
        ("touch /data/other.txt", NO),
        ("open b /data/plain.txt w", NO),
    ];
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    let (told, _) = halves(WRITE, &OPENED, READ, &steps);
    for (told, row) in told.into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
}

#[test]
fn h67_what_is_denied_since_is_denied_where_it_is_open() {
    let rows = [
        ("read a 5", NO),
        ("pull a 5", NO),
        ("push a x", NO),
        ("cat f:plain.txt", NO),
        ("cat f:other.txt", "other"),
        ("ls f:.", "other.txt sub"),
    ];
    let steps: Vec<&str> = rows.iter().map(|(step, _)| *step).collect();
    let narrowed = format!("{WRITE}, deny = [\"plain.*\"]");
    let (told, _) = halves(WRITE, &OPENED, &narrowed, &steps);
    for (told, row) in told.into_iter().zip(rows) {
        assert_eq!(told, row.1, "{}", row.0);
    }
}

/// A folder is listed a handful of names at a time: some are known already when they are denied.
#[test]
fn h67_a_listing_that_has_begun_ends_or_leaves_out_what_is_denied_since() {
    let first = ["enter l /data", "next l"];
    let (told, _) = halves(READ, &first, "", &["next l"]);
    assert_eq!(told, [NO]);
    let narrowed = format!("{READ}, deny = [\"*\"]");
    let (told, _) = halves(READ, &first, &narrowed, &["next l"]);
    assert_eq!(told, ["end"]);
}

#[test]
fn h67_a_grant_that_grows_acts_at_once_too() {
    let steps = ["put /data/new.txt new", "cat /data/new.txt"];
    let (told, _) = halves(READ, &["open f /data d"], WRITE, &steps);
    assert_eq!(told, ["ok", "new"]);
}

#[test]
fn h67_a_single_file_is_revoked_like_a_folder() {
    let home = home();
    let one = home.user_path("one.txt");
    let file = format!("{{ path = {one:?}, mount = \"/in/one.txt\", access = \"read\" }}, ");
    let both = table(&home, "").replace("fs = [", &format!("fs = [{file}"));
    let watch = Watch::of(&home, &both);
    let steps = json!({ "steps": [
        "cat /in/one.txt", "open f /in d", "open a /in/one.txt r", "put /sync/ready x",
        "wait /sync/go", "cat /in/one.txt", "list f", "read a 3", "ls /in", "ls /",
    ] });
    let call = watch.spawn("follows_script", &steps);
    // One that has ended is not ready, and says why below.
    until_so("the first half", || home.user_path("sync/ready").exists() || call.is_finished());
    watch.policy(&home, &table(&home, ""));
    fs::write(home.user_path("sync/go"), "").unwrap();
    let told = watch::told(&watch.wait(call).unwrap());
    assert_eq!(told, ["one", "ok", "ok", "ok", "ok", NO, NO, NO, NO, NO]);
}

#[test]
fn what_is_changed_is_written_down_once() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, WRITE));
    let steps = json!({ "steps": [
        "cat /data/plain.txt", "ls /data", "stat /data/sub", "open r /data/other.txt r",
        "put /data/new x", "put /data/new y", "open a /data/plain.txt w", "write a 0 x", "write a 0 y",
        "mkdir /data/folder", "mv /data/other.txt /data/folder/moved.txt", "rm /data/sub/inner.txt",
        "rmdir /data/sub", "sym plain.txt /data/link", "ln /data/plain.txt /data/hard",
        "touch /data/hard", "put /data/none/x y", "mkdir /data/folder", "rm /data/none",
    ] });
    let report = watch.call("follows_script", &steps);
    let changed: Vec<&str> = report
        .effects
        .iter()
        .map(|effect| match effect {
            Effect::Changed { path } => path.strip_prefix("/data/").unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    let want = [
        "new",
        "plain.txt",
        "folder",
        "other.txt",
        "folder/moved.txt",
        "sub/inner.txt",
        "sub",
        "link",
        "hard",
    ];
    assert_eq!(changed, want);
}

#[test]
fn h30_nothing_is_carried_from_one_grant_to_another() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, WRITE));
    let told = watch.script(&[
        "mv /data/plain.txt /sync/plain.txt",
        "ln /data/plain.txt /sync/plain.txt",
        "mv /data/sub /sync/sub",
        "open s /sync d",
        "mv /data/plain.txt s:plain.txt",
        "sym ../data/plain.txt /sync/link",
        "ls /sync",
        "cat /data/plain.txt",
    ]);
    let cross = "! cross-device";
    assert_eq!(told, [cross, cross, cross, "ok", cross, NO, "here", "plain"]);
    fs::write(home.user_path("sync/go"), "").unwrap();
    let watch = Watch::of(&home, &table(&home, READ));
    let told = watch.script(&[
        "mv /sync/go /data/go",
        "ln /sync/go /data/go",
        "mv /data/plain.txt /sync/plain.txt",
        "ln /data/plain.txt /sync/plain.txt",
        "mv /data/plain.txt /data/p",
    ]);
    assert_eq!(told, [cross, cross, cross, cross, NO]);
}

#[test]
fn h32_pipes_devices_and_sockets_are_not_opened() {
    let home = home();
    let data = home.user_path("data");
    let made = Command::new("mkfifo").arg(data.join("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(data.join("socket")).unwrap();
    std::os::unix::fs::symlink("pipe", data.join("link")).unwrap();
    let watch = Watch::of(&home, &table(&home, WRITE));
    let told = watch.script(&[
        "cat /data/pipe",
        "open p /data/pipe rw",
        "open p /data/pipe w",
        "open p /data/pipe wct",
        "cat /data/link",
        "cat /data/socket",
        "open s /data/socket rw",
        "ls /data/pipe",
        "stat /data/pipe",
        "stat /data/socket",
        "rm /data/pipe",
    ]);
    let no = "! unsupported";
    let (pipe, socket) = ("DescriptorType::Fifo 0", "DescriptorType::Socket 0");
    assert_eq!(told, [no, no, no, no, no, no, no, no, pipe, socket, "ok"]);
}

#[test]
fn h32_giants_with_holes_are_read_like_others() {
    let home = home();
    let giant = home.user_path("data/giant");
    fs::File::create(&giant).unwrap().set_len(1 << 42).unwrap();
    let watch = Watch::of(&home, &table(&home, READ));
    let told = watch.script(&[
        "stat /data/giant",
        "open g /data/giant r",
        "read g 4",
        "input g x",
        "pull g 1000000",
    ]);
    assert_eq!(told[0], format!("DescriptorType::RegularFile {}", 1_u64 << 42));
    assert_eq!((told[2].len(), told[4].len()), (4, 64 << 10));
    let report = watch.call("reads_path", &json!({ "path": "/data/giant" }));
    assert_ne!(report.outcome.as_str(), "completed", "{report:?}");
}

#[test]
fn h33_open_files_are_counted_up_to_the_limit() {
    let home = home();
    let limits = |files: u32| format!("{}\nlimits = {{ files = {files} }}", table(&home, READ));
    let watch = Watch::of(&home, &limits(3));
    let steps = [
        "open a /data/plain.txt r",
        "open b /data/plain.txt r",
        "open c /data/sub d",
        "open d /data/plain.txt r",
        "list c",
        "close a",
        "open d /data/plain.txt r",
        "input d x",
        "open a /data/plain.txt r",
        "close b",
        "list c",
        "cat /data/plain.txt",
    ];
    let full = "! insufficient-memory";
    let want = ["ok", "ok", "ok", full, full, "ok", "ok", "ok", full, "ok", "inner.txt", "plain"];
    assert_eq!(watch.script(&steps), want);
    let report = watch.call("opens_many", &json!({ "path": "/data/plain.txt" }));
    let told = registry::told(&report);
    assert!(told.contains("3 are open") && told.contains("(limits.files)"), "{told}");
    assert_eq!(watch.script(&["cat /data/plain.txt"]), ["plain"]);
}

/// Two plugins that are granted the same folder see each other's files there, since they were given
/// it; what the host copies for one of them the other never sees.
#[test]
fn h34_two_plugins_in_one_folder_share_that_folder_alone() {
    let home = home();
    let sandbox = watch::sandbox(&home);
    let single = |name: &str| {
        let path = home.user_path(name);
        let file =
            format!("fs = [{{ path = {path:?}, mount = \"/in/f.txt\", access = \"read\" }}, ");
        table(&home, WRITE).replace("fs = [", &file)
    };
    let one = Watch::in_sandbox(&sandbox, &home, &single("one.txt"));
    let two = Watch::in_sandbox(&sandbox, &home, &single("two.txt"));
    assert_eq!(one.script(&["put /data/shared hello", "cat /in/f.txt"]), ["ok", "one"]);
    assert_eq!(
        two.script(&["cat /data/shared", "cat /in/f.txt", "ls /in"]),
        ["hello", "two", "f.txt"]
    );
    assert_eq!(one.script(&["put /in/g.txt x", "ls /in"]), [NO, "f.txt"]);
}

/// Whatever is cut off at the disk lets go of it.
#[test]
fn h20_ten_thousand_calls_that_are_cancelled_leave_nothing_behind() {
    let home = home();
    let watch = Watch::of(&home, &table(&home, WRITE));
    let steps = ["open f /data d", "cat /data/plain.txt", "wait /data/never"];
    let steps = json!({ "steps": steps });
    for n in 0..10_000_u32 {
        let call = watch.begin("follows_script", &steps);
        let pause = Duration::from_micros(u64::from(n % 500));
        let cut = async { tokio::time::timeout(pause, call).await };
        assert!(watch.wait(cut).is_err(), "it came to an end");
    }
    watch.wait(async {
        let tasks = tokio::runtime::Handle::current().metrics();
        // What ran when its call was cancelled still has to notice.
        while tasks.num_alive_tasks() > 0 || open_below(home.folder.path()) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert_eq!(watch.script(&["cat /data/plain.txt"]), ["plain"]);
}

/// How many files of this process lie below a folder.
fn open_below(folder: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    let files = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    files.filter(|file| file.starts_with(folder)).count()
}
