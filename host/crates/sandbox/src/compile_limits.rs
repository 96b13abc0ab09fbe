//! The limits of one compilation.

use std::{ffi::OsString, fmt, io, time::Duration};

use serde::{Deserialize, Serialize};

/// Longest compilation in wall-clock time. It exceeds the processor time limit: components are
/// compiled in parallel, and a busy machine gives each of them little.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Most processor time of one compilation, over all its threads. The largest honest components,
/// each a whole interpreter, need a quarter of it, and half on a slow or busy machine. A refusal is
/// remembered, so the worst component costs this much only once.
const CPU_TIME_MAX: Duration = Duration::from_secs(60);

/// Most memory of one compilation, in bytes. A component with a Python interpreter needs a fifth of
/// it.
const MEMORY_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Largest native code of one component, in bytes. Native code is two to four times the size of
/// WebAssembly, and the host keeps it in memory while storing it.
const CODE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The limits of one compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CompileLimits {
    /// Wall-clock time.
    pub time: Duration,
    /// Processor time over all threads, in whole seconds.
    pub cpu_time: Duration,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Native code, in bytes.
    pub code_bytes: u64,
}

impl CompileLimits {
    /// The default limits.
    pub const STANDARD: Self = Self {
        time: TIME_MAX,
        cpu_time: CPU_TIME_MAX,
        memory_bytes: MEMORY_BYTES_MAX,
        code_bytes: CODE_BYTES_MAX,
    };

    /// The limits as arguments of a process: bytes, bytes, milliseconds, seconds.
    pub(crate) fn to_arguments(self) -> [OsString; 4] {
        let time_ms = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX);
        [self.memory_bytes, self.code_bytes, time_ms, self.cpu_time.as_secs()]
            .map(|number| number.to_string().into())
    }

    /// Reads limits from the arguments of this process.
    pub(crate) fn from_arguments(
        arguments: &mut impl Iterator<Item = OsString>,
    ) -> io::Result<Self> {
        let mut number = || {
            let number = arguments.next().and_then(|text| text.to_str()?.parse().ok());
            number.ok_or_else(|| io::Error::other("the limits are missing"))
        };
        Ok(Self {
            memory_bytes: number()?,
            code_bytes: number()?,
            time: Duration::from_millis(number()?),
            cpu_time: Duration::from_secs(number()?),
        })
    }
}

/// A limit that a compilation reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExceededCompileLimit {
    /// Wall-clock time.
    Time(Duration),
    /// Processor time.
    CpuTime(Duration),
    /// Memory, in bytes.
    Memory(u64),
    /// The compiler's stack, whose depth follows the nesting of the component.
    Stack,
    /// Native code, in bytes.
    Code(u64),
}

impl fmt::Display for ExceededCompileLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:?}"),
            Self::CpuTime(time) => write!(f, "{time:?} of processor time"),
            Self::Memory(bytes) => write!(f, "{} of memory", format_size(*bytes)),
            Self::Stack => f.write_str("the stack of the compiler"),
            Self::Code(bytes) => write!(f, "{} of native code", format_size(*bytes)),
        }
    }
}

fn format_size(bytes: u64) -> String {
    match bytes / (1024 * 1024) {
        0 => format!("{bytes} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}
