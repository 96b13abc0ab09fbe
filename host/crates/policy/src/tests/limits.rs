//! Limits: the defaults, the values that a policy may state, and several files.

use std::time::Duration;

use super::{grant, manifest, policy};
use crate::{
    GlobalLimits, Grant, PluginLimits, Policy, PolicyTier, TomlDocument,
    limits::{KEYS, StatedLimits},
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The limits under an administrator's, a user's and a project's file.
fn together(limits: [&str; 3]) -> PluginLimits {
    let tiers = [PolicyTier::Admin, PolicyTier::User, PolicyTier::Project].into_iter().zip(limits);
    let files = tiers.map(|(tier, limits)| {
        let text = format!("[plugin.weather]\nlimits = {{ {limits} }}");
        Policy::parse_file(tier, tier.as_str(), &text, None).unwrap()
    });
    let policy = Policy::from_files(files.collect()).unwrap();
    policy.effective_grant(&manifest(""), &serde_json::Map::new()).limits().clone()
}

fn stated(text: &str) -> StatedLimits {
    TomlDocument::read_with("l.toml", text, |root| {
        root.read_required("limits", StatedLimits::from_toml)
    })
    .unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn without_a_word_the_standard_holds() {
    let standard = PluginLimits {
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
        prepared_instances: 0,
    };
    assert_eq!(PluginLimits::with_defaults(), standard);
    assert_eq!(Grant::empty("x".parse().unwrap()).limits(), &standard);
    assert_eq!(grant("[plugin.weather]\nlimits = {}", "").limits(), &standard);
}

#[test]
fn each_limit_can_be_set_by_itself() {
    let usual = PluginLimits::with_defaults();
    let rows = [
        ("time = '1500ms'", PluginLimits { time: Duration::from_millis(1500), ..usual.clone() }),
        ("cpu = '5s'", PluginLimits { cpu: Some(seconds(5)), ..usual.clone() }),
        ("memory = '128MiB'", PluginLimits { memory_bytes: 128 * MIB, ..usual.clone() }),
        ("output = 7", PluginLimits { output_bytes: 7, ..usual.clone() }),
        ("log = 0", PluginLimits { log_bytes: 0, ..usual.clone() }),
        ("host-call = '4KiB'", PluginLimits { host_call_bytes: 4 * KIB, ..usual.clone() }),
        ("handles = 16", PluginLimits { handles: 16, ..usual.clone() }),
        ("files = 0", PluginLimits { files: 0, ..usual.clone() }),
        ("concurrent-calls = 1", PluginLimits { concurrent_calls: 1, ..usual.clone() }),
        ("queue-time = '0ms'", PluginLimits { queue_time: seconds(0), ..usual.clone() }),
        ("calls-per-minute = 60", PluginLimits { calls_per_minute: Some(60), ..usual.clone() }),
        ("http-requests = 0", PluginLimits { http_requests: 0, ..usual.clone() }),
        ("http-body = '1KiB'", PluginLimits { http_body_bytes: KIB, ..usual.clone() }),
        ("http-total = '1GiB'", PluginLimits { http_total_bytes: 1024 * MIB, ..usual.clone() }),
        ("http-redirects = 20", PluginLimits { http_redirects: 20, ..usual.clone() }),
        ("http-time = '2m'", PluginLimits { http_time: seconds(120), ..usual.clone() }),
        ("approval-time = '1h'", PluginLimits { approval_time: seconds(3600), ..usual.clone() }),
        ("idle = '20m'", PluginLimits { idle: seconds(1200), ..usual.clone() }),
    ];
    for (limit, want) in rows {
        let text = format!("[plugin.weather]\nlimits = {{ {limit} }}");
        assert_eq!(grant(&text, "").limits(), &want, "{limit}");
        // The written form parses to the same limits.
        let again = stated(&format!("limits = {{ {limit} }}"));
        let again = stated(&format!("limits = {again}"));
        assert_eq!(PluginLimits::from_stated(&again), want, "{again}");
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
    let time = |limits: &PluginLimits| limits.time.as_secs();
    let rows = [
        (["", "", ""], 30),
        (["time = '1h'", "", ""], 3600),
        (["time = '1h'", "time = '2h'", ""], 3600),
        (["time = '2h'", "time = '1h'", ""], 3600),
        (["time = '1h'", "", "time = '5s'"], 5),
        (["time = '1h'", "", "time = '10m'"], 600),
        (["time = '1h'", "", "time = '2h'"], 3600),
        // If no other file states the limit, the default applies.
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
    // The limit that a longer output raises is tightened too.
    let limits = together(["", "output = '8MiB'", "host-call = '3MiB'"]);
    assert_eq!(limits.host_call_bytes, 3 * MIB);
    assert_eq!(
        together(["", "", "host-call = '3MiB', output = '8MiB'"]),
        PluginLimits::with_defaults()
    );
}

/// A limit that some files state for the plugin, or for all plugins.
fn stated_by(files: &[(PolicyTier, bool, &str)]) -> (PluginLimits, GlobalLimits) {
    let files = files.iter().map(|(tier, is_for_all, limit)| {
        let text = match is_for_all {
            true => format!("[limits]\n{limit}"),
            false => format!("[plugin.weather]\nlimits = {{ {limit} }}"),
        };
        Policy::parse_file(*tier, tier.as_str(), &text, None).unwrap()
    });
    let policy = Policy::from_files(files.collect()).unwrap();
    let limits = policy.effective_grant(&manifest(""), &serde_json::Map::new()).limits().clone();
    (limits, policy.shared_limits())
}

/// Whether no limit on all plugins together exceeds the other's.
fn shared_within(one: GlobalLimits, other: GlobalLimits) -> bool {
    let least = |limit: Option<u32>| limit.unwrap_or(u32::MAX);
    least(one.calls_per_minute) <= least(other.calls_per_minute)
        && least(one.concurrent_calls) <= least(other.concurrent_calls)
}

/// Every limit, in every tier, for one plugin and for all: an untrusted file never raises it.
#[test]
fn no_projects_limit_raises_the_one_that_holds_without_it() {
    for (_, key, span, of) in &KEYS {
        let (low, high) = span.examples();
        let [low, high] = [low, high].map(|value| format!("{key} = {}", span.format_value(value)));
        for granting in [PolicyTier::Admin, PolicyTier::User] {
            for (own, projects) in [(false, false), (false, true), (true, false), (true, true)] {
                let without = [(granting, own, low.as_str())];
                let (limits, shared) = stated_by(&without);
                let with = [without[0], (PolicyTier::Project, projects, &high)];
                let (raised, raised_shared) = stated_by(&with);
                assert!(of(&raised) <= of(&limits), "{with:?}");
                assert!(shared_within(raised_shared, shared), "{with:?}");
                let without = [(granting, own, high.as_str())];
                let (limits, _) = stated_by(&without);
                let with = [without[0], (PolicyTier::Project, projects, &low)];
                let (lowered, lowered_shared) = stated_by(&with);
                let counts = of(&lowered) < of(&limits) || lowered_shared.is_stated();
                assert!(counts, "{with:?}");
            }
        }
        // If no other file states the limit, the default applies, or no limit if there is no
        // default.
        let (limits, _) = stated_by(&[(PolicyTier::Project, true, &high)]);
        assert!(of(&limits) <= of(&PluginLimits::with_defaults()), "{high}");
    }
}

#[test]
fn limits_for_all_plugins_hold_also_for_those_that_no_file_mentions() {
    let policy = policy("[limits]\ntime = '5s'\nconcurrent-calls = 2\n[plugin.mail]\nenv = ['TZ']");
    let limits = |name: &str| {
        let text = format!("name = '{name}'\nversion = '1.0.0'\ndescription = 'd'");
        let manifest = crate::Manifest::parse("plugin.toml", &text).unwrap();
        policy.effective_grant(&manifest, &serde_json::Map::new()).limits().clone()
    };
    for name in ["mail", "weather"] {
        assert_eq!(
            limits(name),
            PluginLimits { time: seconds(5), ..PluginLimits::with_defaults() },
            "{name}"
        );
    }
    let shared = GlobalLimits { calls_per_minute: None, concurrent_calls: Some(2) };
    assert_eq!(policy.shared_limits(), shared);
    // The lower of the values for one plugin and for all applies.
    let text = "[limits]\ntime = '1m'\n[plugin.weather]\nlimits = { time = '2m' }";
    assert_eq!(grant(text, "").limits().time, seconds(60));
    let text = "[limits]\ntime = '2m'\n[plugin.weather]\nlimits = { time = '1m' }";
    assert_eq!(grant(text, "").limits().time, seconds(60));
}
