//! Describes the machine in one spoken sentence.

use crate::SystemInfo;

const GIB: u64 = 1 << 30;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns a sentence with the known values.
pub(crate) fn about(info: &SystemInfo) -> String {
    let facts: Vec<_> = [
        info.operating_system.as_ref().map(|name| format!("runs {name}")),
        info.processors.as_ref().map(|all| format!("has {}", counted(all.count, "processor"))),
        info.memory.as_ref().map(|memory| {
            let all = format!("has {} of memory", gib(memory.total_bytes));
            let part = |bytes| format!(" with {} available", gib(bytes));
            all + &memory.available_bytes.map(part).unwrap_or_default()
        }),
        info.uptime_seconds.map(|seconds| format!("has been up for {}", duration(seconds))),
    ]
    .into_iter()
    .flatten()
    .collect();
    match facts.as_slice() {
        [] => "Little is known about this machine.".to_owned(),
        [only] => format!("This machine {only}."),
        [first, second] => format!("This machine {first} and {second}."),
        [rest @ .., last] => format!("This machine {}, and {last}.", rest.join(", ")),
    }
}

fn gib(bytes: u64) -> String {
    let tenths = (u128::from(bytes) * 10 + u128::from(GIB) / 2) / u128::from(GIB);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

fn duration(seconds: u64) -> String {
    let (count, unit) = match seconds {
        DAY.. => (seconds / DAY, "day"),
        HOUR.. => (seconds / HOUR, "hour"),
        MINUTE.. => (seconds / MINUTE, "minute"),
        _ => (seconds, "second"),
    };
    counted(count, unit)
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Memory, Processors};

    #[track_caller]
    fn check(info: SystemInfo, want: &str) {
        assert_eq!(about(&info), want);
    }

    fn up(seconds: u64) -> SystemInfo {
        SystemInfo { uptime_seconds: Some(seconds), ..SystemInfo::default() }
    }

    #[test]
    fn the_sentence_holds_what_is_known() {
        let one = Processors { count: 1, model: None };
        let memory = |available_bytes| Memory { total_bytes: 2 * GIB, available_bytes };
        check(SystemInfo::default(), "Little is known about this machine.");
        check(up(0), "This machine has been up for 0 seconds.");
        check(up(61), "This machine has been up for 1 minute.");
        check(up(2 * HOUR), "This machine has been up for 2 hours.");
        check(up(u64::MAX), "This machine has been up for 213503982334601 days.");
        check(
            SystemInfo { processors: Some(one), ..up(DAY) },
            "This machine has 1 processor and has been up for 1 day.",
        );
        check(
            SystemInfo { memory: Some(memory(Some(GIB / 2))), ..SystemInfo::default() },
            "This machine has 2.0 GiB of memory with 0.5 GiB available.",
        );
        check(
            SystemInfo { memory: Some(memory(None)), ..up(DAY) },
            "This machine has 2.0 GiB of memory and has been up for 1 day.",
        );
    }
}
