//! What a client says when it opens or lists sessions.

use std::path::PathBuf;

use serde::Deserialize;

use crate::client_servers::ClientMcpServer;

/// The parameters of a request that opens a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenParams {
    /// The session; absent for a new one.
    pub(crate) session_id: Option<String>,
    /// The folder that the client works in.
    pub(crate) cwd: PathBuf,
    /// The MCP servers of the client.
    #[serde(default)]
    pub(crate) mcp_servers: Vec<ClientMcpServer>,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenKind {
    New,
    /// An earlier one, whose history is sent first.
    Load,
    /// An earlier one, whose history the client has.
    Resume,
}

/// The parameters of `session/list`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListParams {
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) cursor: Option<String>,
}
