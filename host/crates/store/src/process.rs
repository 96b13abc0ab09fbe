//! The identity of a process that holds a claim, so that another process can take over the claim as
//! soon as this one is gone.
//!
//! A process id is not enough: ids are reused over time, and after a reboot. If the process cannot
//! be inspected, as between two containers that share a folder, nothing is known about it, and the
//! caller has to go by the time that has passed.

use std::{fmt, fs, str::FromStr, sync::LazyLock};

use rustix::process::{Pid, getpid, test_kill_process};

/// Contains the id of the current boot.
const BOOT_ID_PATH: &str = "/proc/sys/kernel/random/boot_id";

/// Names the namespace of process ids.
const PID_NAMESPACE_PATH: &str = "/proc/self/ns/pid";

/// Used for a value that the system does not provide.
const UNKNOWN_VALUE: &str = "-";

/// The index of the start time in `/proc/PID/stat`, counted from the field after the name.
const START_TIME_INDEX: usize = 19;

/// The identity of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessIdentity {
    boot_id: String,
    pid_namespace: String,
    pid: i32,
    /// In the system's clock ticks since boot.
    start_time: String,
}

/// Whether a process is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessLiveness {
    Running,
    Ended,
    Unknown,
}

impl ProcessIdentity {
    /// The current process.
    pub(crate) fn current_process() -> &'static Self {
        static CURRENT_PROCESS: LazyLock<ProcessIdentity> = LazyLock::new(|| {
            let number = getpid().as_raw_nonzero().get();
            let started = read_start_time(number).unwrap_or_else(|| UNKNOWN_VALUE.to_owned());
            ProcessIdentity {
                boot_id: read_boot_id(),
                pid_namespace: read_pid_namespace(),
                pid: number,
                start_time: started,
            }
        });
        &CURRENT_PROCESS
    }

    /// Returns whether the process is still running, as far as this process can see.
    pub(crate) fn liveness(&self) -> ProcessLiveness {
        self.liveness_here().unwrap_or(ProcessLiveness::Ended)
    }

    /// Returns whether the process is still running; `None` if it ran on another machine, or on this
    /// one before it was started again.
    pub(crate) fn liveness_here(&self) -> Option<ProcessLiveness> {
        let own = Self::current_process();
        if self.boot_id != own.boot_id {
            return None;
        }
        if self.pid_namespace != own.pid_namespace {
            return Some(ProcessLiveness::Unknown);
        }
        let is_running = match read_start_time(self.pid) {
            Some(started) => started == self.start_time,
            // If the system provides no start time, not even for this process, the id alone
            // decides.
            None => own.start_time == UNKNOWN_VALUE && process_exists(self.pid),
        };
        Some(if is_running { ProcessLiveness::Running } else { ProcessLiveness::Ended })
    }
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.boot_id, self.pid_namespace, self.pid, self.start_time)
    }
}

impl FromStr for ProcessIdentity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [boot, pid_namespace, number, started] = parts[..] else { return Err(()) };
        Ok(Self {
            boot_id: boot.to_owned(),
            pid_namespace: pid_namespace.to_owned(),
            pid: number.parse().map_err(drop)?,
            start_time: started.to_owned(),
        })
    }
}

/// Returns whether the process with this name is still running; `Unknown` for an invalid name.
pub(crate) fn liveness_by_name(name: &str) -> ProcessLiveness {
    name.parse().map_or(ProcessLiveness::Unknown, |process: ProcessIdentity| process.liveness())
}

fn read_boot_id() -> String {
    let boot = fs::read_to_string(BOOT_ID_PATH).ok().map(|text| text.trim().to_owned());
    boot.filter(|boot| is_word(boot)).unwrap_or_else(|| UNKNOWN_VALUE.to_owned())
}

fn read_pid_namespace() -> String {
    let pid_namespace = fs::read_link(PID_NAMESPACE_PATH)
        .ok()
        .and_then(|path| path.into_os_string().into_string().ok());
    pid_namespace
        .filter(|pid_namespace| is_word(pid_namespace))
        .unwrap_or_else(|| UNKNOWN_VALUE.to_owned())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Returns the start time of a process; `None` if it has ended, or the system does not provide one.
///
/// A process that has ended stays listed until its parent has waited for it.
fn read_start_time(number: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name is in parentheses and may contain anything.
    let (_, behind) = text.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace();
    let ended = matches!(fields.clone().next(), Some("Z" | "X" | "x") | None);
    fields.nth(START_TIME_INDEX).filter(|_| !ended).map(str::to_owned)
}

fn process_exists(number: i32) -> bool {
    Pid::from_raw(number).is_some_and(|pid| test_kill_process(pid).is_ok())
}
