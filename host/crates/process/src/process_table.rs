//! The system's process table: the descendants of this process, and the resources that they use.

use std::{collections::BTreeMap, fs, io, os::unix::fs::MetadataExt, time::Duration};

use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Pid, Uid, getpid},
};

/// The folder in which Linux lists processes.
const PROCESSES: &str = "/proc";

/// One process in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: i32,
    pub(crate) is_zombie: bool,
    parent: i32,
    threads: u32,
    ticks: u64,
    children_ticks: u64,
    pages: u64,
}

/// The resources that a set of processes uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// Number of processes and threads.
    pub(crate) tasks: u64,
    /// Resident memory, in bytes. Shared memory counts once per process.
    pub(crate) memory_bytes: u64,
    /// Processor time, including that of reaped children.
    pub(crate) cpu_time: Duration,
}

impl ProcessEntry {
    /// Parses a line of the table. A program chooses its own name, which may contain any bytes, so
    /// parsing starts after the last bracket.
    fn parse(line: &str) -> Option<Self> {
        let (head, tail) = line.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(Self {
            pid: head.split(' ').next()?.parse().ok()?,
            is_zombie: *fields.first()? == "Z",
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(11)?.saturating_add(number(12)?),
            children_ticks: number(13)?.saturating_add(number(14)?),
            threads: fields.get(17)?.parse().ok()?,
            pages: number(21)?,
        })
    }

    /// Reads the line of one process, which may be gone.
    fn read_from_proc(pid: &str) -> Option<Self> {
        // A name need not be UTF-8.
        let line = fs::read(format!("{PROCESSES}/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&line))
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }

    /// Whether this process is its parent, or has adopted it.
    pub(crate) fn is_child(&self) -> bool {
        self.parent == getpid().as_raw_pid()
    }
}

/// Returns all descendants of this process.
pub(crate) fn list_descendants() -> io::Result<Vec<ProcessEntry>> {
    let mut by_parent: BTreeMap<i32, Vec<ProcessEntry>> = BTreeMap::new();
    for process in list_process_ids()?.iter().filter_map(|pid| ProcessEntry::read_from_proc(pid)) {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found = by_parent.remove(&getpid().as_raw_pid()).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        found.extend(by_parent.remove(&process.pid).unwrap_or_default());
        next += 1;
    }
    Ok(found)
}

/// Returns the resources of these processes, including the processor time of this process's reaped
/// children.
pub(crate) fn total_usage(processes: &[ProcessEntry]) -> ProcessUsage {
    let ticks = processes.iter().map(|process| process.ticks + process.children_ticks);
    ProcessUsage {
        tasks: processes.iter().map(|process| u64::from(process.threads.max(1))).sum(),
        memory_bytes: processes.iter().map(|process| process.pages * page_size() as u64).sum(),
        cpu_time: ticks_to_duration(ticks.sum::<u64>() + reaped_ticks()),
    }
}

/// Returns the processor time of all descendants that were reaped.
pub(crate) fn reaped_cpu_time() -> Duration {
    ticks_to_duration(reaped_ticks())
}

/// Returns the number of processes and threads of a user.
pub(crate) fn count_user_tasks(user: Uid) -> io::Result<u64> {
    let is_of_user = |pid: &&String| {
        fs::metadata(format!("{PROCESSES}/{pid}")).is_ok_and(|about| about.uid() == user.as_raw())
    };
    let pids = list_process_ids()?;
    let user_processes =
        pids.iter().filter(is_of_user).filter_map(|pid| ProcessEntry::read_from_proc(pid));
    Ok(user_processes.map(|process| u64::from(process.threads)).sum())
}

/// Returns the number of processes and threads of the whole system. The system's counter wraps at
/// 16 bits.
pub(crate) fn count_system_tasks() -> u16 {
    rustix::system::sysinfo().procs
}

fn reaped_ticks() -> u64 {
    ProcessEntry::read_from_proc("self").map_or(0, |this| this.children_ticks)
}

fn ticks_to_duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000) / clock_ticks_per_second().max(1))
}

/// Returns the process ids, as the names of their folders.
fn list_process_ids() -> io::Result<Vec<String>> {
    let names =
        fs::read_dir(PROCESSES)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_program_calls_itself() {
        for name in ["sh", "a b", "x) Z 1 2 (", "", "))))", "\u{fffd}"] {
            let line = format!(
                "77 ({name}) S 5 77 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 9 0 1 1000 321 99 1 1"
            );
            let want = ProcessEntry {
                pid: 77,
                is_zombie: false,
                parent: 5,
                threads: 9,
                ticks: 30,
                children_ticks: 70,
                pages: 321,
            };
            assert_eq!(ProcessEntry::parse(&line), Some(want), "{name:?}");
        }
        for line in ["", "77", "77 (sh)", "77 (sh) S 5", "x (sh) S 5 7"] {
            assert_eq!(ProcessEntry::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn this_process_is_in_the_table_with_its_threads() {
        let this = ProcessEntry::read_from_proc("self").unwrap();
        assert_eq!(this.pid, getpid().as_raw_pid());
        assert!(this.threads >= 1 && this.pages > 0, "{this:?}");
        assert!(count_user_tasks(rustix::process::getuid()).unwrap() >= u64::from(this.threads));
    }
}
