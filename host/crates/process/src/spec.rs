//! The specification and the result of a run, as plain values.

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::digest::ScriptDigest;

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpec {
    /// The program's file.
    #[serde(with = "paths::one")]
    pub program: PathBuf,
    /// The expected digest of that file.
    pub digest: ScriptDigest,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The folder that the program can read and starts in. Without one, it starts in its private
    /// folder.
    #[serde(with = "paths::optional")]
    pub folder: Option<PathBuf>,
    /// Files and folders that can be read, and whose programs can be run.
    #[serde(with = "paths::many")]
    pub reads: Vec<PathBuf>,
    /// Files and folders that can be read and changed.
    #[serde(with = "paths::many")]
    pub writes: Vec<PathBuf>,
    /// Whether the program has a network.
    pub network: ProcessNetwork,
    /// How to treat a missing wall.
    pub walls: MissingWallPolicy,
    /// The resource limits.
    pub limits: ProcessLimits,
    /// Additional environment variables. They replace default variables of the same name.
    pub env: Vec<(String, String)>,
}

/// Whether a program has a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessNetwork {
    /// It can create only socket pairs.
    None,
    /// It can connect over IP to any address.
    Open,
}

/// The executable that runs as the stages between the host and a script. Its `main` has to begin
/// with [`run_if_stage`](crate::run_if_stage).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageExecutable(pub(crate) PathBuf);

impl StageExecutable {
    /// Uses the running executable.
    pub fn this_program() -> Self {
        // A link, on Linux. It leads to the running executable, even after another version replaced
        // its file.
        Self("/proc/self/exe".into())
    }

    /// Uses another executable.
    pub fn from_path(program: PathBuf) -> Self {
        Self(program)
    }
}

/// How to treat a wall that the kernel lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MissingWallPolicy {
    /// The program does not start.
    Required,
    /// The program starts behind the walls that exist.
    AsAvailable,
}

/// A wall that not every kernel provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessWall {
    /// Landlock's rules for files.
    Files,
    /// Landlock's rules for signals and abstract sockets.
    Signals,
    /// seccomp.
    Calls,
}

impl fmt::Display for ProcessWall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "Landlock for files (Linux 6.2 or newer)",
            Self::Signals => "Landlock for signals (Linux 6.12 or newer)",
            Self::Calls => "seccomp (Linux with seccomp filters)",
        })
    }
}

/// Resource limits of a run. Limits on several processes apply to the program and all its
/// descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Wall-clock time.
    pub time: Duration,
    /// Processor time, in whole seconds.
    pub cpu_time: Duration,
    /// Resident memory, in bytes. Shared memory counts once per process.
    pub memory_bytes: u64,
    /// Number of processes and threads.
    pub processes: u32,
    /// Number of open files of each process.
    pub open_files: u32,
    /// Size of each written file, in bytes.
    pub file_bytes: u64,
    /// Total size of the private folder, in bytes.
    pub scratch_bytes: u64,
    /// Size of standard input, in bytes.
    pub input_bytes: u64,
    /// Size of standard output, in bytes.
    pub output_bytes: u64,
    /// Size of standard error that is kept, in bytes.
    pub errors_bytes: u64,
}

impl ProcessLimits {
    /// The default limits.
    pub const STANDARD: Self = Self {
        // As long as a user waits for an answer.
        time: Duration::from_secs(30),
        // The whole time limit, on one processor.
        cpu_time: Duration::from_secs(30),
        // An interpreter with its data fits several times.
        memory_bytes: 512 << 20,
        // A pipeline in which some programs have a thread per processor.
        processes: 128,
        // As many as interpreters and compilers need at most.
        open_files: 256,
        file_bytes: 64 << 20,
        // The folder is in memory on some systems.
        scratch_bytes: 128 << 20,
        // The arguments of a call.
        input_bytes: 4 << 20,
        // A model cannot read even this much.
        output_bytes: 1 << 20,
        // A few hundred lines.
        errors_bytes: 64 << 10,
    };
}

/// A limit that a program reached, with its value. The program was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReachedProcessLimit {
    /// Wall-clock time.
    Time(Duration),
    /// Processor time.
    CpuTime(Duration),
    /// Memory, in bytes.
    Memory(u64),
    /// Number of processes and threads.
    Processes(u32),
    /// The size of one file, in bytes.
    File(u64),
    /// The size of the private folder, in bytes.
    Scratch(u64),
    /// Standard output, in bytes.
    Output(u64),
}

impl fmt::Display for ReachedProcessLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:?}"),
            Self::CpuTime(time) => write!(f, "{time:?} of processor time"),
            Self::Memory(bytes) => write!(f, "{} of memory", format_size(*bytes)),
            Self::Processes(count) => write!(f, "{count} processes and threads"),
            Self::File(bytes) => write!(f, "{} in one file", format_size(*bytes)),
            Self::Scratch(bytes) => write!(f, "{} in its private folder", format_size(*bytes)),
            Self::Output(bytes) => write!(f, "{} of output", format_size(*bytes)),
        }
    }
}

fn format_size(bytes: u64) -> String {
    match bytes {
        whole if whole >= 1 << 20 && whole % (1 << 20) == 0 => format!("{} MiB", whole >> 20),
        whole if whole >= 1 << 10 && whole % (1 << 10) == 0 => format!("{} KiB", whole >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessExit {
    /// It exited with this code; zero means success.
    Code(i32),
    /// It was killed by this signal, which the host did not send.
    Signal(i32),
    /// It was killed for reaching a limit.
    Limit(ReachedProcessLimit),
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it ended with code {code}"),
            Self::Signal(signal) => write!(f, "it was ended by signal {signal}"),
            Self::Limit(limit) => write!(f, "it reached its limit of {limit}"),
        }
    }
}

/// The result of a run. No process of the program is alive any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessResult {
    /// How it ended.
    pub exit: ProcessExit,
    /// Standard output, cut at the limit.
    pub stdout: Vec<u8>,
    /// Standard error, with a mark where it was cut. It is untrusted text.
    pub stderr: String,
    /// Processor time of the program and its descendants.
    pub cpu_time: Duration,
    /// Wall-clock time of the run.
    pub elapsed: Duration,
}

/// How a service ended. No process of it is alive any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceExit {
    /// How it ended. One that was killed because its host let go of it has ended by a signal.
    pub exit: ProcessExit,
    /// The end of its standard error. It is untrusted text.
    pub stderr: String,
}

/// Serializes paths as the system stores them: any bytes, not necessarily text.
pub(crate) mod paths {
    pub(crate) mod one {
        use std::{
            ffi::OsString,
            path::{Path, PathBuf},
        };

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
            path.as_os_str().serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
            OsString::deserialize(from).map(PathBuf::from)
        }
    }

    pub(crate) mod optional {
        use std::{ffi::OsString, path::PathBuf};

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        pub(crate) fn serialize<S: Serializer>(
            path: &Option<PathBuf>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            path.as_ref().map(|path| path.as_os_str()).serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<PathBuf>, D::Error> {
            Ok(Option::<OsString>::deserialize(from)?.map(PathBuf::from))
        }
    }

    pub(crate) mod many {
        use std::{ffi::OsString, path::PathBuf};

        use serde::{Deserialize, Deserializer, Serializer};

        pub(crate) fn serialize<S: Serializer>(
            paths: &[PathBuf],
            to: S,
        ) -> Result<S::Ok, S::Error> {
            to.collect_seq(paths.iter().map(|path| path.as_os_str()))
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Vec<PathBuf>, D::Error> {
            Ok(Vec::<OsString>::deserialize(from)?.into_iter().map(PathBuf::from).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};

    use super::*;

    #[test]
    fn a_path_need_not_be_text() {
        let odd = PathBuf::from(OsString::from_vec(b"/tmp/\xff\x01".to_vec()));
        let spec = ProcessSpec {
            program: odd.clone(),
            digest: ScriptDigest::hash_bytes(b"x"),
            arguments: vec!["-v".into()],
            folder: Some(odd.clone()),
            reads: vec![odd.clone()],
            writes: vec![odd],
            network: ProcessNetwork::None,
            walls: MissingWallPolicy::Required,
            limits: ProcessLimits::STANDARD,
            env: vec![("A".into(), "b".into())],
        };
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<ProcessSpec>(&text).unwrap(), spec);
    }

    #[test]
    fn every_end_has_words() {
        let rows = [
            (ProcessExit::Code(3), "it ended with code 3"),
            (ProcessExit::Signal(11), "it was ended by signal 11"),
            (
                ProcessExit::Limit(ReachedProcessLimit::Time(Duration::from_secs(2))),
                "it reached its limit of 2s",
            ),
            (
                ProcessExit::Limit(ReachedProcessLimit::CpuTime(Duration::from_secs(2))),
                "it reached its limit of 2s of processor time",
            ),
            (
                ProcessExit::Limit(ReachedProcessLimit::Memory(3 << 20)),
                "it reached its limit of 3 MiB of memory",
            ),
            (
                ProcessExit::Limit(ReachedProcessLimit::Processes(5)),
                "it reached its limit of 5 processes and threads",
            ),
            (
                ProcessExit::Limit(ReachedProcessLimit::File(2048)),
                "it reached its limit of 2 KiB in one file",
            ),
            (
                ProcessExit::Limit(ReachedProcessLimit::Scratch(1000)),
                "it reached its limit of 1000 bytes in its private folder",
            ),
            (
                ProcessExit::Limit(ReachedProcessLimit::Output(1 << 20)),
                "it reached its limit of 1 MiB of output",
            ),
        ];
        for (exit, words) in rows {
            assert_eq!(exit.to_string(), words);
        }
    }
}
