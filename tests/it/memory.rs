//! The memory of the host: whatever a guest does with its own, what the process holds for itself
//! stays within a stated bound.
//!
//! The pages of the program and of compiled components are not part of it. They are mapped from
//! files, the system shares them between processes and drops them when it needs memory, and their
//! number follows the size of the program, which is several times larger in a debug build.

use std::{fs, thread, time::Duration};

use serde_json::json;

use crate::{
    limits::NET,
    support::{
        Home,
        home::{Ran, amount, finish},
    },
};

/// The memory of the guests of these tests.
const GUEST_BYTES: u64 = 64 << 20;

/// What the process may hold next to its guest: its heap, its stacks, and what is on its way
/// between guest and host.
const HOST_BYTES_MAX: u64 = 16 << 20;

/// How often a running program is looked at; its peak only grows.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The most memory of its own that the program ever held during a run.
///
/// The system reports the peak of all memory, and mapped pages as they are now. Because the latter
/// hardly grow once the program has started, their largest number so far is taken off.
fn peak_bytes(home: &Home, args: &[&str]) -> (Ran, u64) {
    let child = home.start(args);
    let status = format!("/proc/{}/status", child.id());
    thread::scope(|scope| {
        let run = scope.spawn(|| finish(child, args));
        let (mut peak, mut mapped) = (0, 0);
        while !run.is_finished() {
            // A program that has ended has no memory.
            if let Some((all, files)) = memory_bytes(&status) {
                mapped = files.max(mapped);
                peak = all.saturating_sub(mapped).max(peak);
            }
            thread::sleep(LOOK_EVERY);
        }
        (run.join().unwrap(), peak)
    })
}

/// The peak of all memory of a process, and its pages of files now.
fn memory_bytes(status: &str) -> Option<(u64, u64)> {
    let status = fs::read_to_string(status).ok()?;
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    };
    Some((field("VmHWM:")?, field("RssFile:")?))
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
        let args = ["call", &format!("hostile.{tool}"), &arguments.to_string()];
        let (_, peak) = peak_bytes(&home, &args);
        let mib = peak >> 20;
        assert!(peak > 1 << 20, "{tool}: nothing was measured");
        assert!(peak <= HOST_BYTES_MAX + GUEST_BYTES, "{tool}: {mib} MiB");
    }
}
