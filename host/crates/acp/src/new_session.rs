//! Starts a session of a client, with the feed of its events.

use std::sync::{Arc, atomic::AtomicBool};

use sallyport_runtime::{
    Host,
    session::{PreparedSession, SessionError},
};
use tokio::sync::watch;

use crate::{
    event_feed::EventFeed, file_writes::FileWrites, output::ClientOutput, session::AcpSession,
};

/// The parts of a session that does not run yet.
pub(crate) struct NewAcpSession {
    pub(crate) host: Arc<Host>,
    pub(crate) output: Arc<ClientOutput>,
    /// Whether the client shows notices.
    pub(crate) shows_notices: Arc<AtomicBool>,
    /// The folder that the client works in.
    pub(crate) folder: String,
    pub(crate) model_name: String,
    pub(crate) context_tokens: Option<u64>,
}

impl NewAcpSession {
    /// Starts the session.
    pub(crate) fn start(
        self,
        mut prepared: PreparedSession,
    ) -> Result<Arc<AcpSession>, SessionError> {
        let inner = Arc::clone(&prepared.parts.toolbox);
        let writes = Arc::new(FileWrites::new(Arc::clone(&self.host), inner));
        prepared.parts.toolbox = Arc::clone(&writes) as _;
        let (host_session, events) = self.host.start_session(prepared)?;
        let (ended, has_ended) = watch::channel(false);
        let session = Arc::new(AcpSession::new(
            &host_session,
            self.folder,
            self.model_name,
            self.context_tokens,
            has_ended,
        ));
        let feed = EventFeed::new(
            Arc::clone(&session),
            self.host,
            self.output,
            writes,
            self.shows_notices,
        );
        tokio::spawn(async move {
            feed.run(host_session, events).await;
            // Nobody may be waiting.
            let _ = ended.send(true);
        });
        Ok(session)
    }
}
