//! A process that has something in hand, told from every other, so that another can take it over as
//! soon as that process is gone.
//!
//! A number alone would not do: it is given to another process in time, and after a start of the
//! machine. Where one cannot look, as between two containers on one folder, nothing is known, and
//! whoever asks has to go by the time that has passed.

use std::{fmt, fs, str::FromStr, sync::LazyLock};

use rustix::process::{Pid, getpid, test_kill_process};

/// Names the present start of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Names the space in which numbers of processes mean something.
const SPACE: &str = "/proc/self/ns/pid";

/// What stands in place of what the system does not tell.
const UNTOLD: &str = "-";

/// Where the moment of its start stands among what the system tells of a process, behind its name.
const STARTED_AT: usize = 19;

/// A process of some machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    boot: String,
    space: String,
    number: i32,
    /// In the system's own ticks.
    started: String,
}

/// Whether a process still lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Lives,
    Gone,
    Unknown,
}

impl Process {
    /// This one.
    pub(crate) fn own() -> &'static Self {
        static OWN: LazyLock<Process> = LazyLock::new(|| {
            let number = getpid().as_raw_nonzero().get();
            let started = started(number).unwrap_or_else(|| UNTOLD.to_owned());
            Process { boot: boot(), space: space(), number, started }
        });
        &OWN
    }

    /// Whether it lives, as far as this process can tell.
    pub(crate) fn life(&self) -> Life {
        let own = Self::own();
        if self.boot != own.boot {
            return Life::Gone;
        }
        if self.space != own.space {
            return Life::Unknown;
        }
        let lives = match started(self.number) {
            Some(started) => started == self.started,
            // Where the system tells nothing, not even of this process, the number has to do.
            None => own.started == UNTOLD && exists(self.number),
        };
        if lives { Life::Lives } else { Life::Gone }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.boot, self.space, self.number, self.started)
    }
}

impl FromStr for Process {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [boot, space, number, started] = parts[..] else { return Err(()) };
        Ok(Self {
            boot: boot.to_owned(),
            space: space.to_owned(),
            number: number.parse().map_err(drop)?,
            started: started.to_owned(),
        })
    }
}

/// Whether the process of this name lives. Of a name that is none, nothing is known.
pub(crate) fn life(name: &str) -> Life {
    name.parse().map_or(Life::Unknown, |process: Process| process.life())
}

fn boot() -> String {
    let boot = fs::read_to_string(BOOT).ok().map(|text| text.trim().to_owned());
    boot.filter(|boot| is_word(boot)).unwrap_or_else(|| UNTOLD.to_owned())
}

fn space() -> String {
    let space = fs::read_link(SPACE).ok().and_then(|path| path.into_os_string().into_string().ok());
    space.filter(|space| is_word(space)).unwrap_or_else(|| UNTOLD.to_owned())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// When a process started; `None` when it has ended, or the system does not tell.
///
/// A process that has ended is listed until its parent has asked how.
fn started(number: i32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // Its name stands in parentheses and may hold anything.
    let (_, behind) = text.rsplit_once(')')?;
    let mut fields = behind.split_ascii_whitespace();
    let ended = matches!(fields.clone().next(), Some("Z" | "X" | "x") | None);
    fields.nth(STARTED_AT).filter(|_| !ended).map(str::to_owned)
}

fn exists(number: i32) -> bool {
    Pid::from_raw(number).is_some_and(|pid| test_kill_process(pid).is_ok())
}
