//! Serves sessions of a host to clients of the Agent Client Protocol (ACP), version 1.
//!
//! An editor starts the program and talks to it over standard input and output. Every call passes
//! the same gate as any other: policy, approvals, sandbox and audit. The crate knows neither a
//! command line nor a terminal.
//!
//! The messages are written down here, because the protocol's library makes `serde_json` keep the
//! order of keys in the whole program, and with it the hash of every accepted plugin would change.
//!
//! - [`AcpServer`]: the sessions of a client. Start reading here.
//! - [`serve_stdio`]: the client at standard input and output.
//! - `rpc`: the messages of JSON-RPC. `output`: what is sent. `connection`: what is received.
//! - `requests`: the requests of a client. `session_params`: what some of them say. `prompt`: the
//!   input of a turn.
//! - `session_queue`: the requests that open and close one session, one after the other.
//! - `session`: one session. `new_session`: starts it. `event_feed`: its events, as updates.
//!   `permission`: its questions.
//! - `updates`: the updates themselves. `replay`: those of earlier turns.

mod client_servers;
mod connection;
mod event_feed;
mod file_writes;
mod form_permission;
mod new_session;
mod output;
mod permission;
mod prompt;
mod replay;
mod requests;
mod rpc;
mod server;
mod session;
mod session_config;
mod session_params;
mod session_queue;
mod stdio;
mod updates;

pub use server::{AcpServer, AcpServerParts, SettingsReader};
pub use stdio::{ClientEnd, serve_stdio};
