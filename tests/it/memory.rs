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

/// What the process may hold while it reads the types of a component: the schemas of as many types
/// as a component may have take 60 MiB.
const INSPECTION_BYTES_MAX: u64 = 80 << 20;

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
        // On a busy machine, a short run can be over before it is looked at a second time.
        let mut peaks = (0..3).map(|_| peak_bytes(&home, &args).1);
        let peak = peaks.find(|peak| *peak > 1 << 20);
        let peak = peak.unwrap_or_else(|| panic!("{tool}: nothing was measured"));
        let mib = peak >> 20;
        assert!(peak <= HOST_BYTES_MAX + GUEST_BYTES, "{tool}: {mib} MiB");
    }
}

/// A component whose functions can be written as `(func (export NAME) (result TYPE))`, because each
/// result that has more than one part is returned as an address.
fn component(parts: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $module
                (memory (export "memory") 1)
                (func (export "f") (result i32) i32.const 16))
            (core instance $core (instantiate $module))
            (alias core export $core "memory" (core memory $memory))
            (alias core export $core "f" (core func $f))
            (func $alone (result u32) (canon lift (core func $f)))
            (export "alone" (func $alone))
            {parts})"#
    );
    wat::parse_str(text).unwrap()
}

/// Functions that each return the same type.
fn functions(count: usize, result: &str) -> String {
    let function = |index: usize| {
        format!(
            r#"(func $f{index} (result {result}) (canon lift (core func $f) (memory $memory)))
            (export "f{index}" (func $f{index}))"#
        )
    };
    (0..count).map(function).collect()
}

fn tuple(count: usize, part: &str) -> String {
    format!("(tuple{})", format!(" {part}").repeat(count))
}

/// An interface in many versions, with functions that are the same tools in each.
fn versions(count: usize, functions: usize) -> String {
    let version = |index: usize| format!(r#"(export "a:b/x@1.0.{index}" (instance $x))"#);
    let function = |index: usize| format!(r#"(export "f{index}" (func $alone))"#);
    let functions: String = (0..functions).map(function).collect();
    let versions: String = (0..count).map(version).collect();
    format!("(instance $x {functions}) {versions}")
}

/// A record with a field of a long name, which each use of it repeats.
fn long_name(functions_of: impl Fn(&str) -> String) -> String {
    let name = "x".repeat(99_000);
    let record = format!(r#"(type $own (record (field "{name}" bool)))"#);
    format!(r#"{record} (export $long "long" (type $own)) {}"#, functions_of("$long"))
}

/// A type with a long name of its own, which each signature repeats.
fn long_type_name() -> String {
    let name = "x".repeat(60_000);
    let parts = functions(100, &tuple(1500, "$long"));
    format!(r#"(type $own (record (field "a" bool))) (export $long "{name}" (type $own)) {parts}"#)
}

/// Documentation of functions that is as long as it may be, in many interfaces that share it.
fn long_docs() -> String {
    let docs =
        format!(r#"{{"interfaces":{{"x":{{"funcs":{{"f0":"{}"}}}}}}}}"#, "y".repeat(1_000_000));
    let section = docs.replace('"', "\\\"");
    format!(r#"{} (@custom "package-docs" "\01{section}")"#, versions(900, 1))
}

#[test]
fn reading_the_types_of_a_component_stays_within_its_bound() {
    let too_many = "it exports more than 256 functions";
    for (name, parts, code, words) in [
        (
            "long-name",
            long_name(|long| functions(100, &tuple(1000, long))),
            0,
            "names in its types",
        ),
        ("wide", functions(200, &tuple(1900, "u64")), 0, "is not a tool: the output schema"),
        ("many", functions(250, &tuple(300, "u64")), 9, "have more than 2097152 bytes"),
        ("functions", functions(2000, "u32"), 9, too_many),
        ("types", functions(250, &tuple(1900, "bool")), 0, "are as large as those of one"),
        ("versions", versions(900, 10), 0, "its name is that of another function"),
        ("exports", versions(900, 20), 9, "it exports more than 10000"),
        ("long-type-name", long_type_name(), 0, "alone"),
        ("long-docs", long_docs(), 0, "alone"),
    ] {
        let home = Home::with_own_cache().user_file("odd.wasm", component(&parts));
        let (ran, peak) = peak_bytes(&home, &["plugin", "show", "./odd.wasm"]);
        let text = format!("{}{}", ran.stdout, ran.stderr);
        let start: String = text.chars().take(2000).collect();
        assert_eq!(ran.code, code, "{name}: {start}");
        assert!(text.contains(words), "{name}: {start}");
        assert!(peak <= INSPECTION_BYTES_MAX, "{name}: {} MiB", peak >> 20);
    }
}
