//! What a program may do in one run, and what came of it: plain values, without any decision.

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::script::Digest;

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The program's file.
    #[serde(with = "paths::one")]
    pub program: PathBuf,
    /// What the bytes of that file have to be.
    pub digest: Digest,
    /// The script's folder: it can be read, and is where the program starts.
    #[serde(with = "paths::one")]
    pub folder: PathBuf,
    /// Files and folders that can be read, and the programs in them run.
    #[serde(with = "paths::many")]
    pub reads: Vec<PathBuf>,
    /// Files and folders that can be read and changed.
    #[serde(with = "paths::many")]
    pub writes: Vec<PathBuf>,
    /// Whether there is a network.
    pub network: Network,
    /// What is done where the kernel lacks a wall.
    pub walls: Walls,
    /// How much of everything there is.
    pub limits: Limits,
    /// Variables beside the few that every program gets; they replace those of the same name.
    pub env: Vec<(String, String)>,
}

/// Whether a program has a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// It can make no socket but pairs for itself.
    None,
    /// It can make connections over IP, to anywhere.
    Open,
}

/// What is done where the kernel lacks a wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Walls {
    /// The program does not start.
    Required,
    /// It starts behind those walls that there are.
    AsAvailable,
}

/// A wall that not every kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wall {
    /// Landlock's rules for files.
    Files,
    /// Landlock's rules for signals and abstract sockets.
    Signals,
    /// seccomp.
    Calls,
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "Landlock for files (Linux 6.2 or newer)",
            Self::Signals => "Landlock for signals (Linux 6.12 or newer)",
            Self::Calls => "seccomp (Linux with seccomp filters)",
        })
    }
}

/// The longest run that nobody asked to be longer: a person still waits.
const TIME_STANDARD: Duration = Duration::from_secs(30);

/// Processor time of a program and its descendants: the whole of the time, on one processor.
const CPU_TIME_STANDARD: Duration = Duration::from_secs(30);

/// Memory of a program and its descendants: an interpreter with its data fits, several times.
const MEMORY_STANDARD_BYTES: u64 = 512 << 20;

/// Processes and threads: a pipeline of programs fits, of which some have a thread per processor.
const PROCESSES_STANDARD: u32 = 128;

/// Open files of one process: what interpreters and compilers need at most.
const OPEN_FILES_STANDARD: u32 = 256;

/// The largest file that can be written, in the private folder or a granted one.
const FILE_STANDARD_BYTES: u64 = 64 << 20;

/// The contents of the private folder, which may be memory on some systems.
const SCRATCH_STANDARD_BYTES: u64 = 128 << 20;

/// What is given on standard input: the arguments of a call.
const INPUT_STANDARD_BYTES: u64 = 4 << 20;

/// What is taken from standard output: already more than a model can read.
const OUTPUT_STANDARD_BYTES: u64 = 1 << 20;

/// What is kept of standard error: some hundred lines.
const ERRORS_STANDARD_BYTES: u64 = 64 << 10;

/// How much of everything a run may use. What is counted over several processes is counted over the
/// program and all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Time by the clock on the wall.
    pub time: Duration,
    /// Processor time, in whole seconds.
    pub cpu_time: Duration,
    /// Resident memory; what several processes share counts for each.
    pub memory_bytes: u64,
    /// Processes and their threads.
    pub processes: u32,
    /// Open files of each process.
    pub open_files: u32,
    /// Each file that is written.
    pub file_bytes: u64,
    /// All files of the private folder.
    pub scratch_bytes: u64,
    /// What is given on standard input.
    pub input_bytes: u64,
    /// What is taken from standard output.
    pub output_bytes: u64,
    /// What is kept of standard error.
    pub errors_bytes: u64,
}

impl Limits {
    /// What holds where nobody said otherwise.
    pub const STANDARD: Self = Self {
        time: TIME_STANDARD,
        cpu_time: CPU_TIME_STANDARD,
        memory_bytes: MEMORY_STANDARD_BYTES,
        processes: PROCESSES_STANDARD,
        open_files: OPEN_FILES_STANDARD,
        file_bytes: FILE_STANDARD_BYTES,
        scratch_bytes: SCRATCH_STANDARD_BYTES,
        input_bytes: INPUT_STANDARD_BYTES,
        output_bytes: OUTPUT_STANDARD_BYTES,
        errors_bytes: ERRORS_STANDARD_BYTES,
    };
}

/// A limit that a program reached, and what it was. The program was ended for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Time by the clock on the wall.
    Time(Duration),
    /// Processor time.
    CpuTime(Duration),
    /// Memory, in bytes.
    Memory(u64),
    /// Processes and threads.
    Processes(u32),
    /// The size of one file, in bytes.
    File(u64),
    /// The contents of the private folder, in bytes.
    Scratch(u64),
    /// Standard output, in bytes.
    Output(u64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time:?}"),
            Self::CpuTime(time) => write!(f, "{time:?} of processor time"),
            Self::Memory(bytes) => write!(f, "{} of memory", size(*bytes)),
            Self::Processes(count) => write!(f, "{count} processes and threads"),
            Self::File(bytes) => write!(f, "{} in one file", size(*bytes)),
            Self::Scratch(bytes) => write!(f, "{} in its private folder", size(*bytes)),
            Self::Output(bytes) => write!(f, "{} of output", size(*bytes)),
        }
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        whole if whole >= 1 << 20 && whole % (1 << 20) == 0 => format!("{} MiB", whole >> 20),
        whole if whole >= 1 << 10 && whole % (1 << 10) == 0 => format!("{} KiB", whole >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// By itself, with this code; zero says that all went well.
    Code(i32),
    /// By this signal, which nobody here sent.
    Signal(i32),
    /// It was ended because it reached a limit.
    Limit(Limit),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it ended with code {code}"),
            Self::Signal(signal) => write!(f, "it was ended by signal {signal}"),
            Self::Limit(limit) => write!(f, "it reached its limit of {limit}"),
        }
    }
}

/// What came of a run. Nothing of the program is alive any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote on standard output, at most as much as the limit.
    pub stdout: Vec<u8>,
    /// What it wrote on standard error, with a mark where it was cut. It is foreign text.
    pub stderr: String,
    /// Processor time of the program and its descendants.
    pub cpu_time: Duration,
    /// How long it took by the clock on the wall.
    pub elapsed: Duration,
}

/// Paths as the system has them: any bytes, which need not be text.
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
        let spec = Spec {
            program: odd.clone(),
            digest: Digest::of(b"x"),
            folder: odd.clone(),
            reads: vec![odd.clone()],
            writes: vec![odd],
            network: Network::None,
            walls: Walls::Required,
            limits: Limits::STANDARD,
            env: vec![("A".into(), "b".into())],
        };
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&text).unwrap(), spec);
    }

    #[test]
    fn every_end_has_words() {
        let rows = [
            (Exit::Code(3), "it ended with code 3"),
            (Exit::Signal(11), "it was ended by signal 11"),
            (Exit::Limit(Limit::Time(Duration::from_secs(2))), "it reached its limit of 2s"),
            (
                Exit::Limit(Limit::CpuTime(Duration::from_secs(2))),
                "it reached its limit of 2s of processor time",
            ),
            (Exit::Limit(Limit::Memory(3 << 20)), "it reached its limit of 3 MiB of memory"),
            (Exit::Limit(Limit::Processes(5)), "it reached its limit of 5 processes and threads"),
            (Exit::Limit(Limit::File(2048)), "it reached its limit of 2 KiB in one file"),
            (
                Exit::Limit(Limit::Scratch(1000)),
                "it reached its limit of 1000 bytes in its private folder",
            ),
            (Exit::Limit(Limit::Output(1 << 20)), "it reached its limit of 1 MiB of output"),
        ];
        for (exit, words) in rows {
            assert_eq!(exit.to_string(), words);
        }
    }
}
