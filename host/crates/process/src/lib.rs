//! Native scripts as tools: a program that takes JSON on its standard input and answers with JSON on
//! its standard output, inside walls that the operating system keeps.
//!
//! A *script* is a folder with a `definition.json` and a program; this crate reads both ([`Script`])
//! and knows nothing of policies or WebAssembly. What a call may do is a plain description
//! ([`Spec`]), what came of it a plain result ([`Finished`]).
//!
//! Two processes stand between the host and the program, both this very program, started again with
//! a hidden argument that `main` looks at before anything else ([`as_stage`]):
//!
//! ```text
//! host ── spec, input ──► watcher ── input, output, errors ──► starter ══ becomes ══► program
//!      ◄── one result ───  outside the walls                   raises the walls        behind them
//! ```
//!
//! The *watcher* feeds and reads the program, counts what it and all its descendants use, and ends
//! them: when a limit is reached, when the program has ended, and when the host is gone, however it
//! went. No descendant can leave the watcher, which adopts the orphans among them. The *starter*
//! puts every wall up around itself and then becomes the program, so that no instruction of it runs
//! outside them.
//!
//! **What a program has:** the system's programs and libraries, its own folder to read, a private
//! folder that is its home and its temporary one, and what it was granted. It has no terminal, no
//! session and no group of its own to make, and no memory that is shared by name. Modes, owners and
//! attributes of files it cannot change, not even of its own, nor their times to anything but now: the
//! kernel has no rule for these that would stop at a folder.
//!
//! **What the walls leave:** whether a file is there, its size and its times can be asked for
//! anywhere, and that it changes; the contents of the system's folders can be read; a granted
//! network is the whole network. A file that was deleted while it is open counts towards no limit
//! but that of one file, and memory that processes share counts only while one of them uses it; the
//! system ends a program first when memory runs out. What is counted over processes is counted
//! several times a second, so for a moment there may be more. Processor time of processes that ended
//! between two counts, and that their parent has told the system to forget, counts nowhere; the time
//! by the clock is their limit. Whoever kills host and watcher at once leaves the private folder of
//! that run behind; the program itself dies with its watcher, and only what it has started may go
//! on.

mod definition;
mod error;
mod output;
mod script;
mod spec;

#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod walls;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
mod elsewhere;

pub use definition::{DEFINITION_FILE, Definition, TIMEOUT_MAX, TIMEOUT_STANDARD};
pub use error::{RunError, ScriptError};
pub use output::{OutputError, parse_output};
pub use script::{Digest, Program, ProgramKind, Script, find_program};
pub use spec::{Exit, Finished, Limit, Limits, Network, Spec, Wall, Walls};

#[cfg(target_os = "linux")]
pub use {run::Stage, run::run, stage::as_stage, walls::missing as walls_missing};

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Stage, as_stage, run, walls_missing};
