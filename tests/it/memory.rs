//! The memory of the host: whatever a guest does with its own, the process stays within a stated
//! bound.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    limits::NET,
    support::{
        Home,
        home::{amount, finish},
    },
};

/// The memory of the guests of these tests.
const GUEST_BYTES: u64 = 64 << 20;

/// What the process may hold beside its guest: the program and its engine, the compiled component,
/// and what is on its way between guest and host.
const HOST_BYTES_MAX: u64 = 56 << 20;

/// How often a running program is looked at; its peak only grows.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The most memory that the program ever held during a call.
fn peak_bytes(home: &Home, tool: &str, arguments: &Value) -> u64 {
    let args = ["call", tool, &arguments.to_string()];
    let child = home.start(&args);
    let status = format!("/proc/{}/status", child.id());
    thread::scope(|scope| {
        let run = scope.spawn(|| finish(child, &args));
        let mut peak = 0;
        while !run.is_finished() {
            // Whoever has ended has no memory.
            peak = peak.max(high_water(&status).unwrap_or_default());
            thread::sleep(LOOK_EVERY);
        }
        run.join().unwrap();
        peak
    })
}

fn high_water(status: &str) -> Option<u64> {
    let status = fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

#[test]
fn the_process_stays_within_its_bound_whatever_a_guest_does() {
    let home = Home::new()
        .guest("hostile", NET)
        .policy("[plugin.hostile]\nlimits = { memory = \"64MiB\", time = \"20s\" }\n");
    let rows = [
        ("echo", json!({ "text": "here" })),
        ("eats_memory", json!({})),
        ("grows_memory", amount(4000)),
        ("huge_output", amount(20 << 20)),
        ("many_content_parts", amount(500_000)),
        ("deep_json", amount(1_000_000)),
        ("long_log_line", amount(30 << 20)),
        ("many_line_breaks", amount(200 << 20)),
        ("endless_stdout", amount(200_000)),
        ("endless_log", amount(200_000)),
        ("random_bytes", amount(1 << 40)),
        ("leaks_headers", amount(1_000_000)),
        ("leaks_pollables", amount(1_000_000)),
        ("many_headers", amount(100_000)),
        ("recurses_into_the_host", json!({})),
    ];
    for (tool, arguments) in rows {
        let peak = peak_bytes(&home, &format!("hostile.{tool}"), &arguments);
        let mib = peak >> 20;
        assert!(peak > 1 << 20, "{tool}: nothing was measured");
        assert!(peak <= HOST_BYTES_MAX + GUEST_BYTES, "{tool}: {mib} MiB");
    }
}
