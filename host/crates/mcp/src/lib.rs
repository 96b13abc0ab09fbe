//! Serves the tools of a host to clients of the Model Context Protocol (MCP).
//!
//! Every call passes the same gate as any other: policy, approvals, sandbox and audit. The crate
//! `rmcp` implements the protocol; this one maps tools, results and questions to it. It knows
//! neither a command line nor a terminal.
//!
//! - [`McpServer`]: the state that all connections share. Start reading here.
//! - [`ToolSelection`]: the tools that clients may see.
//! - [`serve_stdio`]: one connection over standard input and output.
//! - [`serve_http`]: any number of connections over HTTP.
//! - [`CallBroker`]: takes the questions of running calls to the client that made them.
//! - [`PluginWatch`]: reports when the files of the plugins have changed.

mod approval;
mod apps;
mod call_result;
mod calls;
mod connection_session;
mod handler;
mod http;
mod methods;
mod offer_requests;
mod offers;
mod progress;
mod request_span;
mod running_tasks;
mod server;
mod stdio;
mod subscriptions;
mod tasks;
mod tools;
mod transport;
mod watch;

pub use calls::CallBroker;
pub use http::{HTTP_PATH, HttpEndpoint, needs_token, serve_http};
pub use server::{McpServer, McpServerParts};
pub use stdio::{ConnectionEnd, serve_stdio};
pub use tools::{NameStyle, ToolSelection};
pub use watch::PluginWatch;
