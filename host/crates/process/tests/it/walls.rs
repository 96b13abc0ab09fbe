//! Tests of system calls that the walls deny.

use std::collections::BTreeMap;

use sallyport_process::{ProcessNetwork, parse_output, walls_missing};
use serde_json::Value;

use crate::{HOSTILE, Tool};

/// The error numbers for "not permitted" and "permission denied".
const REFUSED: [i64; 2] = [libc::EPERM as i64, libc::EACCES as i64];

fn tried(act: &str, network: ProcessNetwork) -> BTreeMap<String, Value> {
    let printed = Tool::act(act).with(|spec| spec.network = network).prints();
    let Ok(Value::Object(tried)) = parse_output(printed.as_bytes()) else { panic!("{printed}") };
    tried.into_iter().collect()
}

#[track_caller]
fn check_refused(tried: &BTreeMap<String, Value>) {
    for (what, result) in tried {
        assert!(result.as_i64().is_some_and(|errno| REFUSED.contains(&errno)), "{what}: {result}");
    }
}

#[test]
fn this_kernel_has_them_all() {
    assert_eq!(walls_missing(), [], "these tests need Linux 6.12 or newer");
}

#[test]
fn h69_what_reaches_past_the_walls_is_refused() {
    let tried = tried("attempts", ProcessNetwork::None);
    assert_eq!(tried.len(), 42);
    check_refused(&tried);
}

#[test]
fn h69_there_are_no_sockets() {
    let tried = tried("sockets", ProcessNetwork::None);
    assert_eq!(tried.len(), 8);
    check_refused(&tried);
}

#[test]
fn a_granted_network_is_ip_and_nothing_else() {
    let mut tried = tried("sockets", ProcessNetwork::Open);
    let refused = i64::from(libc::ECONNREFUSED);
    assert_eq!(tried.remove("tcp connect").unwrap(), refused, "the network was reached");
    assert_eq!(tried.remove("tcp listen").unwrap(), "done");
    assert_eq!(tried.remove("udp").unwrap(), "done");
    assert_eq!(tried.len(), 5);
    check_refused(&tried);
}

#[test]
fn no_right_of_the_superuser_is_left_and_none_is_gained() {
    let status = "while read -r line; do echo \"$line\"; done < /proc/self/status";
    let printed = Tool::script(status).prints();
    let value = |key: &str| {
        let line = printed.lines().find(|line| line.starts_with(key)).expect(key);
        line.split_once(':').unwrap().1.trim().to_owned()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    // If this process had the right to drop them, they are dropped.
    let bounds = value("CapBnd");
    assert!(bounds == "0000000000000000" || !rustix::process::getuid().is_root(), "{bounds}");
    assert_eq!(value("NoNewPrivs"), "1");
    assert_eq!(value("Seccomp"), "2");
}

#[test]
fn ordinary_programs_notice_nothing() {
    let rows = [
        ("echo 3 | tr 3 4", "4\n"),
        ("cat <<END\ntext\nEND", "text\n"),
        ("sleep 60 & kill $!; wait $!; echo $?", "143\n"),
        ("kill -0 0 && echo yes", "yes\n"),
        ("(exit 3) || echo $?", "3\n"),
        ("echo x > /dev/null && head -c 2 /dev/zero | wc -c", "2\n"),
        ("d=$(mktemp -d) && echo y > $d/f && touch $d/g && ls $d && rm -r $d", "f\ng\n"),
        ("timeout 5 echo in time", "in time\n"),
        ("timeout 0.1 sleep 60; echo $?", "124\n"),
        (
            "echo z > $TMPDIR/f && cp $TMPDIR/f $TMPDIR/g && mv $TMPDIR/g $TMPDIR/h && cat $TMPDIR/h",
            "z\n",
        ),
        ("date -d @0 -u +%Y", "1970\n"),
        ("read -r line < /proc/self/maps && test -e /proc/self/fd/1 && echo itself", "itself\n"),
    ];
    for (body, want) in rows {
        assert_eq!(Tool::script(body).prints(), want, "{body}");
    }
}

#[test]
fn the_stage_is_no_program_of_ones_own() {
    // Without orders, a stage does nothing, regardless of its parent.
    for stage in ["watcher", "starter", "other"] {
        let ended = started(stage);
        assert!(!ended.status.success() && ended.stdout.is_empty(), "{stage}: {ended:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a stage that nobody ordered")]
fn started(stage: &str) -> std::process::Output {
    std::process::Command::new(HOSTILE).args(["__script-stage", stage]).output().unwrap()
}
