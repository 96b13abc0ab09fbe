//! The session of a connection's calls.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use sallyport_contract::{Principal, ToolCallContext};
use sallyport_runtime::session_id::new_session_id;

use crate::server::McpServer;

/// The session of a connection's calls. A task that goes on holds it open.
pub(crate) struct ConnectionSession {
    server: Arc<McpServer>,
    id: String,
    principal: Principal,
    /// How many calls there were.
    calls: AtomicU64,
    /// Whether it ends when nobody has it any more, because there are others.
    ends_itself: bool,
}

impl ConnectionSession {
    /// A session of the local user, which is a conversation of its own.
    pub(crate) fn new(server: Arc<McpServer>, ends_itself: bool) -> Self {
        let id = new_session_id();
        let principal = Principal::local().in_conversation(&id);
        Self { server, id, principal, calls: AtomicU64::new(0), ends_itself }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The context of the next call.
    pub(crate) fn new_context(&self) -> ToolCallContext {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.principal.call_context(format!("call-{number}"), &self.id)
    }

    /// The user of the connection.
    pub(crate) fn user(&self) -> &str {
        &self.principal.user
    }

    /// What all connections share.
    pub(crate) fn server(&self) -> &Arc<McpServer> {
        &self.server
    }
}

impl Drop for ConnectionSession {
    fn drop(&mut self) {
        if !self.ends_itself {
            return;
        }
        let (server, id) = (Arc::clone(&self.server), std::mem::take(&mut self.id));
        // Without a runtime, the program ends, and all sessions with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { server.host().registry().end_session(&id).await });
        }
    }
}
