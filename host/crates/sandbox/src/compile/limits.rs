//! What one compilation may cost, and which of it ran out.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// Longest compilation by the clock on the wall. It is longer than the processor time, because
/// components are compiled side by side, and a busy machine gives each of them little.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Most processor time of one compilation, over all its threads. The largest honest components, a
/// whole interpreter each, need half of it. It bounds what the worst component costs, once, since a
/// refusal is remembered. A host that was built for development compiles more slowly, and gets more.
const CPU_TIME_MAX: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 20 });

/// Most memory of one compilation. A component with a Python interpreter needs a fifth of it.
const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Largest code of one component. Native code is two to four times the size of WebAssembly, and the
/// host holds it while it is stored.
const CODE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What one compilation may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Time by the clock on the wall.
    pub time: Duration,
    /// Processor time over all threads, in whole seconds.
    pub cpu_time: Duration,
    /// Memory.
    pub memory_bytes: u64,
    /// The code that comes out.
    pub code_bytes: u64,
}

impl Limits {
    /// What a program that knows nothing better allows.
    pub const STANDARD: Self = Self {
        time: TIME_MAX,
        cpu_time: CPU_TIME_MAX,
        memory_bytes: MEMORY_BYTES_MAX,
        code_bytes: CODE_BYTES_MAX,
    };
}

/// A limit that a compilation reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Time by the clock on the wall.
    Time(Duration),
    /// Processor time.
    CpuTime(Duration),
    /// Memory, in bytes.
    Memory(u64),
    /// The stack of the compiler, which goes as deep as what it compiles is nested.
    Stack,
    /// The size of the code, in bytes.
    Code(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:?}"),
            Self::CpuTime(time) => write!(f, "{time:?} of processor time"),
            Self::Memory(bytes) => write!(f, "{} of memory", size(*bytes)),
            Self::Stack => f.write_str("the stack of the compiler"),
            Self::Code(bytes) => write!(f, "{} of native code", size(*bytes)),
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes / (1024 * 1024) {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}
