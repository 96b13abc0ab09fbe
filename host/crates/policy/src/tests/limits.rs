//! Limits: the standard, and what a policy may set.

use std::time::Duration;

use super::{grant, policy};
use crate::{Grant, Limits};

#[test]
fn without_a_word_the_standard_holds() {
    let standard = Limits {
        time: Duration::from_secs(30),
        memory_bytes: 256 << 20,
        output_bytes: 1 << 20,
        log_bytes: 256 << 10,
        concurrent_calls: 8,
        calls_per_minute: None,
        http_requests: 50,
        http_body_bytes: 16 << 20,
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
        ("memory = '128MiB'", Limits { memory_bytes: 128 << 20, ..usual.clone() }),
        ("output = 7", Limits { output_bytes: 7, ..usual.clone() }),
        ("log = 0", Limits { log_bytes: 0, ..usual.clone() }),
        ("calls-per-minute = 60", Limits { calls_per_minute: Some(60), ..usual.clone() }),
        ("concurrent-calls = 1", Limits { concurrent_calls: 1, ..usual.clone() }),
        ("http-requests = 0", Limits { http_requests: 0, ..usual.clone() }),
        ("http-body = '1KiB'", Limits { http_body_bytes: 1024, ..usual.clone() }),
    ];
    for (limit, want) in rows {
        let text = format!("[plugin.weather]\nlimits = {{ {limit} }}");
        assert_eq!(grant(&text, "").limits(), &want, "{limit}");
        // Written out and read again it is the same.
        let again = format!("[plugin.weather]\nlimits = {want}");
        assert_eq!(grant(&again, "").limits(), &want, "{again}");
    }
    policy("[plugin.weather]\nlimits = { time = '24h', memory = '4GiB' }");
}
