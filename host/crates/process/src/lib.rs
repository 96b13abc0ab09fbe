//! Native scripts as tools: confined programs that read JSON from standard input and print JSON to
//! standard output.
//!
//! A *script* is a folder with a `definition.json` and a program; this crate reads both
//! ([`Script`]) and runs the program behind *walls*, which the operating system enforces. It does
//! not know policies or WebAssembly. [`ProcessSpec`] describes a run, and [`ProcessResult`] is its
//! result.
//!
//! Two processes run between the host and the program. Both are this same executable, started again
//! with a hidden argument that `main` checks before anything else ([`run_if_stage`]):
//!
//! ```text
//! host ── spec, input ──► watcher ── input, output, errors ──► starter ══ becomes ══► program
//!      ◄── one result ───  outside the walls                   raises the walls        behind them
//! ```
//!
//! A program that answers many requests is a *service* ([`start_service`]). Its watcher passes the
//! program's pipes to the host and stays beside them.
//!
//! The *watcher* feeds and reads the program and counts the resources of it and all its
//! descendants. It kills them when a limit is reached, when the program has ended, and when the
//! host is gone for any reason. No descendant can escape the watcher, which adopts orphans among
//! them. The *starter* raises every wall around itself and then becomes the program, so no
//! instruction of the program runs outside them.
//!
//! **A program can use** the system's programs and libraries, its own folder for reading, a private
//! folder as its home and for temporary files, and what it was granted. It has no terminal, cannot
//! create a session or process group, and has no named shared memory. It cannot change modes,
//! owners or attributes of files, not even of its own, and can set file times only to the present,
//! because the kernel cannot restrict these calls to a folder.
//!
//! **The walls do not prevent** the following. A program can query the existence, size and times of
//! any file, and see that it changes. It can read the contents of the system's folders. A granted
//! network is the whole network. A deleted file that is still open counts only towards the limit of
//! one file. Shared memory counts only while a process uses it; when memory runs out, the system
//! kills a program first. Resources of several processes are counted several times a second, so
//! they can exceed a limit for a moment. Processor time is not counted for processes that ended
//! between two counts and that the system discarded at their parent's request; their limit is the
//! wall-clock time. If host and watcher are killed at the same time, the private folder of that run
//! remains; the program itself dies with its watcher, and only processes that it started may
//! continue.

mod definition;
mod digest;
mod error;
mod output;
mod script;
mod script_file;
mod spec;

#[cfg(target_os = "linux")]
mod process_table;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod service;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod walls;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
mod unsupported_os;

pub use definition::{DEFINITION_FILE, ScriptDefinition, TIMEOUT_MAX, TIMEOUT_STANDARD};
pub use digest::ScriptDigest;
pub use error::{RunError, ScriptError};
pub use output::{OutputError, parse_output};
pub use script::{ProgramKind, Script, ScriptProgram, find_program};
pub use spec::{
    MissingWallPolicy, ProcessExit, ProcessLimits, ProcessNetwork, ProcessResult, ProcessSpec,
    ProcessWall, ReachedProcessLimit, ServiceExit, StageExecutable,
};

#[cfg(target_os = "linux")]
pub use {
    run::run_program,
    service::{ServicePipes, ServiceProcess, start_service},
    stage::run_if_stage,
    walls::missing_walls as walls_missing,
};

#[cfg(not(target_os = "linux"))]
pub use unsupported_os::{
    ServicePipes, ServiceProcess, run_if_stage, run_program, start_service, walls_missing,
};
