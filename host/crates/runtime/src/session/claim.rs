//! The claim of a session that existed before.

use std::sync::Arc;

use sallyport_store::{HostStore, SessionClaim, SessionPresence};

use super::SessionError;
use crate::clock::now_ms;

/// The claim of a session that is being resumed: no other program runs it. Another one may open it
/// again when this is dropped.
pub(super) struct SessionClaimGuard {
    presence: Arc<dyn SessionPresence>,
    session_id: String,
    is_held: bool,
}

impl SessionClaimGuard {
    /// Claims a session. Without the store it is not claimed: it could not be saved either, of which
    /// the user is told.
    ///
    /// # Errors
    ///
    /// Another program that runs has it open.
    pub(super) async fn claim(
        store: &HostStore,
        user: &str,
        session_id: &str,
    ) -> Result<Self, SessionError> {
        let presence = Arc::clone(&store.presence);
        let claim = presence.claim_session(user, session_id, now_ms()).await;
        let session_id = session_id.to_owned();
        match claim {
            Ok(SessionClaim::OpenElsewhere) => Err(SessionError::OpenElsewhere { id: session_id }),
            Ok(SessionClaim::Claimed) => Ok(Self { presence, session_id, is_held: true }),
            Err(_) => Ok(Self { presence, session_id, is_held: false }),
        }
    }

    /// Leaves the claim to what else marks the session as open and, at its end, as closed.
    pub(super) fn hand_over(mut self) {
        self.is_held = false;
    }

    /// Gives the claim up, and waits until another program may open the session.
    pub(super) async fn release(mut self) {
        if std::mem::take(&mut self.is_held) {
            // Without the store, the claim ends with this program.
            let _ = self.presence.mark_closed(&self.session_id).await;
        }
    }
}

impl Drop for SessionClaimGuard {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        let (presence, id) = (Arc::clone(&self.presence), std::mem::take(&mut self.session_id));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { presence.mark_closed(&id).await });
        }
    }
}
