//! The host as a library: reads the configuration, loads the plugins, talks to the model and runs
//! sessions.
//!
//! It knows neither a command line nor a terminal, and it prints nothing.
//!
//! - [`host`]: loads plugins and connects all parts. Start reading here.
//! - [`notice`]: reports of the host about itself.
//! - [`observer`]: observes every call.
//! - [`permissions`]: what each plugin may do, at a glance.
//! - [`policy_change`]: records changes of the policy before it makes them.
//! - [`config`]: merges flags, environment and files into one value.
//! - [`environment`]: the environment, read once.
//! - `executor`: what runs the tools of a plugin.
//! - [`gate`]: decides, asks and remembers.
//! - [`secrets`]: finds the values of secrets.
//! - [`history`]: stores sessions.
//! - [`lock`]: the accepted plugins and their digests.
//! - [`mcp`]: tools of MCP servers.
//! - [`internal`]: tools that are compiled in.
//! - [`script`]: tools that are native programs.
//! - [`registry`]: finds and loads plugins, sends every call through the gate, and audits it.
//! - [`recall`]: finds earlier turns by their meaning.
//! - [`roles`]: the roles of plugins in a session besides tools.
//! - [`session`]: selects, configures and runs sessions.
//! - `session_directory`: the open sessions, and who answers their questions.
//! - [`services`]: state, timers, messages and packages for plugins.
//! - [`timekeeper`]: fires timers while the program runs.
//! - [`question_text`]: the whole text of a question to the user.
//! - [`undo`]: copies of files that calls changed.
//! - [`atomic_file`]: replaces files atomically.
//! - [`clock`]: the time of this moment.
//! - [`session_id`]: new ids, of sessions and of what is told apart like them.
//! - [`bounded_lines`]: reads the messages of a client, one per line.
//! - [`file_write`]: what a call would write into a file, for the user.

mod actions;
pub mod atomic_file;
pub mod clock;
pub mod config;
pub mod connections;
pub mod environment;
mod executor;
pub mod file_write;
pub mod gate;
pub mod history;
pub mod host;
pub mod installation;
pub mod internal;
mod load_reports;
pub mod lock;
pub mod mcp;
pub mod notice;
pub mod observer;
pub mod permissions;
pub mod plugin_diff;
pub mod plugin_download;
pub mod policy_change;
pub mod question_text;
pub mod recall;
pub mod registry;
pub mod roles;
pub mod script;
pub mod secrets;
pub mod services;
pub mod session;
mod session_directory;
pub mod session_id;
pub mod timekeeper;
pub mod undo;

pub use host::{Host, HostError, HostOptions, HostShutdownReport};
pub use notice::{HostNotice, NoticeSink};
pub use observer::RunObserver;
pub use sallyport_mcp_client::lines as bounded_lines;
pub use sallyport_sandbox::{RunLeftovers, collect_leftovers};
pub use session::HostSession;
