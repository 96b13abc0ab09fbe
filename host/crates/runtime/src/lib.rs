//! The host as a library: reads the configuration, finds the plugins, talks to the model, runs
//! sessions. It knows neither a command line nor a terminal, and prints nothing.
//!
//! - [`host`]: loads plugins and puts everything together; begin to read there.
//! - [`notice`]: what a host reports about itself.
//! - [`observer`]: who sees every call.
//! - [`policy_change`]: changes of the policy, recorded before they are made.
//! - [`config`]: flags, environment and files become one value, once.
//! - [`gate`]: decides, asks, remembers and writes down.
//! - [`secrets`]: where the values of secrets come from.
//! - [`history`]: sessions as they are kept.
//! - [`lock`]: which plugins were accepted, and as what.
//! - [`internal`]: tools that are compiled in.
//! - [`script`]: tools that are programs of this machine.
//! - [`registry`]: finds and loads plugins, and sends every call through the gate.
//! - [`recall`]: earlier turns, found by what they mean.
//! - [`roles`]: what plugins do in a session besides tools.
//! - [`session`]: which session is meant, how it is held, and the session itself.
//! - [`services`]: what plugins keep, plan and say beyond a call.
//! - [`timekeeper`]: lets timers fire while the program runs.
//! - [`whole_file`]: files that are replaced whole.

pub mod config;
pub mod gate;
pub mod history;
pub mod host;
pub mod internal;
pub mod lock;
pub mod notice;
pub mod observer;
pub mod policy_change;
pub mod recall;
pub mod registry;
pub mod roles;
pub mod script;
pub mod secrets;
pub mod services;
pub mod session;
pub mod timekeeper;
pub mod whole_file;

pub use host::{Host, HostEnd, HostError, HostOptions};
pub use notice::{HostNotice, NoticeSink};
pub use observer::RunObserver;
pub use session::HostSession;
