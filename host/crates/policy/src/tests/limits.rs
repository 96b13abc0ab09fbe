//! Limits: the standard, what a policy may set, and what several files make together.

use std::time::Duration;

use super::{grant, manifest, policy};
use crate::{Document, Grant, Limits, Policy, Tier, limits::StatedLimits};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The limits under an administrator's, a user's and a project's file.
fn together(limits: [&str; 3]) -> Limits {
    let tiers = [Tier::Admin, Tier::User, Tier::Project].into_iter().zip(limits);
    let files = tiers.map(|(tier, limits)| {
        let text = format!("[plugin.weather]\nlimits = {{ {limits} }}");
        Policy::parse(tier, tier.word(), &text, None).unwrap()
    });
    let policy = Policy::of(files.collect()).unwrap();
    policy.grant(&manifest(""), &serde_json::Map::new()).limits().clone()
}

fn stated(text: &str) -> StatedLimits {
    Document::read("l.toml", text, |root| root.required("limits", StatedLimits::read)).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn without_a_word_the_standard_holds() {
    let standard = Limits {
        time: seconds(30),
        cpu: None,
        memory_bytes: 256 * MIB,
        output_bytes: MIB,
        log_bytes: 256 * KIB,
        host_call_bytes: 2 * MIB,
        handles: 512,
        files: 64,
        concurrent_calls: 8,
        queue_time: seconds(30),
        calls_per_minute: None,
        http_requests: 50,
        http_body_bytes: 16 * MIB,
        http_total_bytes: 64 * MIB,
        http_redirects: 0,
        http_time: seconds(60),
        approval_time: seconds(300),
        idle: seconds(600),
    };
    assert_eq!(Limits::standard(), standard);
    assert_eq!(Grant::none("x".parse().unwrap()).limits(), &standard);
    assert_eq!(grant("[plugin.weather]\nlimits = {}", "").limits(), &standard);
}

#[test]
fn each_limit_can_be_set_by_itself() {
    let usual = Limits::standard();
    let rows = [
        ("time = '1500ms'", Limits { time: Duration::from_millis(1500), ..usual.clone() }),
        ("cpu = '5s'", Limits { cpu: Some(seconds(5)), ..usual.clone() }),
        ("memory = '128MiB'", Limits { memory_bytes: 128 * MIB, ..usual.clone() }),
        ("output = 7", Limits { output_bytes: 7, ..usual.clone() }),
        ("log = 0", Limits { log_bytes: 0, ..usual.clone() }),
        ("host-call = '4KiB'", Limits { host_call_bytes: 4 * KIB, ..usual.clone() }),
        ("handles = 16", Limits { handles: 16, ..usual.clone() }),
        ("files = 0", Limits { files: 0, ..usual.clone() }),
        ("concurrent-calls = 1", Limits { concurrent_calls: 1, ..usual.clone() }),
        ("queue-time = '0ms'", Limits { queue_time: seconds(0), ..usual.clone() }),
        ("calls-per-minute = 60", Limits { calls_per_minute: Some(60), ..usual.clone() }),
        ("http-requests = 0", Limits { http_requests: 0, ..usual.clone() }),
        ("http-body = '1KiB'", Limits { http_body_bytes: KIB, ..usual.clone() }),
        ("http-total = '1GiB'", Limits { http_total_bytes: 1024 * MIB, ..usual.clone() }),
        ("http-redirects = 20", Limits { http_redirects: 20, ..usual.clone() }),
        ("http-time = '2m'", Limits { http_time: seconds(120), ..usual.clone() }),
        ("approval-time = '1h'", Limits { approval_time: seconds(3600), ..usual.clone() }),
        ("idle = '20m'", Limits { idle: seconds(1200), ..usual.clone() }),
    ];
    for (limit, want) in rows {
        let text = format!("[plugin.weather]\nlimits = {{ {limit} }}");
        assert_eq!(grant(&text, "").limits(), &want, "{limit}");
        // Written out and read again it is the same.
        let again = stated(&format!("limits = {{ {limit} }}"));
        let again = stated(&format!("limits = {again}"));
        assert_eq!(Limits::of(&again), want, "{again}");
    }
    policy("[plugin.weather]\nlimits = { time = '24h', memory = '4GiB', http-total = '1024GiB' }");
}

#[test]
fn what_is_handed_over_at_once_has_room_unless_the_policy_says_otherwise() {
    let rows = [
        ("output = '8MiB'", 8 * MIB),
        ("log = '3MiB', output = '1KiB'", 3 * MIB),
        ("output = '8MiB', host-call = '1MiB'", MIB),
    ];
    for (limits, want) in rows {
        let text = format!("[plugin.weather]\nlimits = {{ {limits} }}");
        assert_eq!(grant(&text, "").limits().host_call_bytes, want, "{limits}");
    }
}

#[test]
fn of_several_files_the_least_counts_and_a_project_only_tightens() {
    let time = |limits: &Limits| limits.time.as_secs();
    let rows = [
        (["", "", ""], 30),
        (["time = '1h'", "", ""], 3600),
        (["time = '1h'", "time = '2h'", ""], 3600),
        (["time = '2h'", "time = '1h'", ""], 3600),
        (["time = '1h'", "", "time = '5s'"], 5),
        (["time = '1h'", "", "time = '10m'"], 600),
        (["time = '1h'", "", "time = '2h'"], 3600),
        // Where nobody else says anything, the standard holds.
        (["", "", "time = '5s'"], 5),
        (["", "", "time = '2h'"], 30),
    ];
    for (files, want) in rows {
        assert_eq!(time(&together(files)), want, "{files:?}");
    }
}

#[test]
fn a_project_limits_what_is_unlimited_otherwise() {
    let limits = together(["", "", "cpu = '2s', calls-per-minute = 9, http-redirects = 5"]);
    assert_eq!((limits.cpu, limits.calls_per_minute), (Some(seconds(2)), Some(9)));
    assert_eq!(limits.http_redirects, 0);
    // What a longer output brings along is tightened too.
    let limits = together(["", "output = '8MiB'", "host-call = '3MiB'"]);
    assert_eq!(limits.host_call_bytes, 3 * MIB);
    assert_eq!(together(["", "", "host-call = '3MiB', output = '8MiB'"]), Limits::standard());
}
