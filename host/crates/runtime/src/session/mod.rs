//! Sessions of a host: selection, configuration, model and the session itself.
//!
//! [`Host::session_parts`] assembles a session, and [`Host::begin_session`] starts it. Between the
//! two, a front end can wrap a part, such as the model with a recorder.

mod config;
mod model;
mod selector;

use std::sync::Arc;

use sallyport_contract::mangle::ToolNameCollision;
use sallyport_model::EndpointSettingsError;
use sallyport_session::{
    FrontEndCommand, PendingApprovals, SessionEvent, SessionHandle, SessionParts,
};
use sallyport_store::StoreError;
use tokio::sync::mpsc;

pub use self::{
    config::{SessionConfig, SessionOverrides},
    model::{ModelHandle, check_key, offline_matcher},
    selector::{
        OpenedSession, SessionSelector, current_folder, find_session, find_stored_session,
        open_session,
    },
};
use crate::{
    host::Host,
    roles::{RoleError, guide::GuideError},
    services::Subscription,
};

/// Why a session cannot be opened or started.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store cannot be opened.
    #[error(transparent)]
    NoStore(StoreError),
    /// The store has no such session, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No earlier session exists.
    #[error("there is no session to go on with")]
    NothingToContinue,
    /// The provider requires a key, and none is set.
    #[error("{name} needs a key, and {variable} is not set")]
    KeyMissing {
        /// The model's name.
        name: String,
        /// The variable for the key.
        variable: String,
    },
    /// The settings of the model are invalid.
    #[error(transparent)]
    Model(#[from] EndpointSettingsError),
    /// A plugin cannot play its role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The guide cannot be used.
    #[error(transparent)]
    Guide(#[from] GuideError),
    /// A model could not distinguish two tools.
    #[error("{0}")]
    Collision(ToolNameCollision),
}

impl SessionError {
    /// Returns how to fix it, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(StoreError::SessionNotFound { .. }) => {
                Some("`sallyport session list` shows which there are".to_owned())
            }
            Self::Store(error) | Self::NoStore(error) => error.hint(),
            Self::NothingToContinue => Some("without --continue a new one begins".to_owned()),
            Self::KeyMissing { variable, .. } => {
                Some(format!("set {variable}, or `key` in its [model.NAME] table"))
            }
            Self::Model(error) => Some(error.hint().to_owned()),
            Self::Role(_) | Self::Guide(_) | Self::Collision(_) => None,
        }
    }
}

/// The events of a session, in order. The channel closes when the session has ended.
pub type Events = mpsc::Receiver<SessionEvent>;

/// A session that accepts commands. It reports through its [`Events`].
pub struct HostSession {
    /// The permanent id. Approvals for this session apply again when it is resumed.
    pub session_id: String,
    /// Sends commands.
    pub handle: SessionHandle,
    /// Delivers plugin messages. `None` if the session does not listen.
    subscription: Option<Subscription>,
}

impl Host {
    /// Assembles a session: `opened` under `config`, answered by `model`, with the questions of the
    /// gate arriving at `approvals`.
    ///
    /// # Errors
    ///
    /// The model is a plugin that cannot be used.
    pub fn session_parts(
        &self,
        opened: OpenedSession,
        config: &SessionConfig,
        model: &ModelHandle,
        approvals: PendingApprovals,
    ) -> Result<SessionParts, SessionError> {
        let OpenedSession { session_id, journal, past, is_stored } = opened;
        let mut options = config.session_options(&session_id);
        // The matcher cannot write sentences, so a sentence from the tool is the better answer.
        options.spoken |= matches!(model, ModelHandle::Offline);
        Ok(SessionParts {
            model: model.model_for_session(self.roles(), &session_id)?,
            toolbox: Arc::clone(self.toolbox()),
            approvals,
            journal,
            past,
            recall: config.session_recall(&session_id, is_stored),
            options,
        })
    }

    /// Starts a session. `listens` is whether it receives plugin messages.
    ///
    /// # Errors
    ///
    /// A model could not distinguish two tools.
    pub fn begin_session(
        &self,
        parts: SessionParts,
        listens: bool,
    ) -> Result<(HostSession, Events), SessionError> {
        let (mut session, events) = HostSession::start_detached(parts)?;
        if listens {
            session.subscription =
                Some(self.subscribe_session(&session.session_id, &session.handle));
        }
        Ok((session, events))
    }
}

impl HostSession {
    /// Starts a session without a host, such as one that is replayed from a recording.
    ///
    /// # Errors
    ///
    /// A model could not distinguish two tools.
    pub fn start_detached(parts: SessionParts) -> Result<(Self, Events), SessionError> {
        let session_id = parts.options.session_id.clone();
        let (handle, events) =
            sallyport_session::spawn_session(parts).map_err(SessionError::Collision)?;
        Ok((Self { session_id, handle, subscription: None }, events))
    }

    /// Stops the delivery of plugin messages. Those delivered until now are among the events.
    pub async fn stop_listening(&mut self) {
        if let Some(subscription) = self.subscription.take() {
            subscription.unsubscribe().await;
        }
    }

    /// Ends the session and waits until it has finished its pending work.
    pub async fn close(mut self, mut events: Events) {
        self.stop_listening().await;
        // An error means that the session has already ended.
        let _ = self.handle.send(FrontEndCommand::Close).await;
        while events.recv().await.is_some() {}
    }
}
