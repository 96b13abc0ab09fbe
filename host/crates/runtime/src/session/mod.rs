//! Sessions of a host: selection, configuration, model and the session itself.
//!
//! [`Host::session`] starts a session. [`Host::prepare_session`] only assembles it, so that a front
//! end can wrap a part, such as the model with a recorder, before it starts.

mod claim;
mod config;
mod model;
mod selector;

use std::sync::Arc;

use sallyport_contract::{LOCAL_USER, mangle::ToolNameCollision};
use sallyport_model::EndpointSettingsError;
use sallyport_session::{FrontEndCommand, SessionEvent, SessionHandle, SessionParts};
use sallyport_store::StoreError;
use tokio::sync::mpsc;

use self::claim::SessionClaimGuard;
pub use self::{
    config::{SessionConfig, SessionOverrides},
    model::{ModelHandle, check_key, offline_matcher},
    selector::{OpenedSession, SessionSelector, current_folder, find_session, open_session},
};
use crate::{
    gate::user_account::GateAccount,
    host::Host,
    roles::{RoleError, guide::GuideError},
    services::Subscription,
    session_directory::DirectoryGuard,
};

/// Why a session cannot be opened or started.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store has no such session, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another program that runs has the session open.
    #[error("another program has the session {id} open")]
    OpenElsewhere {
        /// The session.
        id: String,
    },
    /// The configuration was made for another user than the one whose session it is.
    #[error("the session is of another user than its configuration")]
    OtherUser,
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
    /// The key is stored somewhere and cannot be read there.
    #[error("the key of {name} cannot be used: {problem}")]
    KeyUnreadable {
        /// The model's name.
        name: String,
        /// Why it cannot be read.
        problem: String,
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
            Self::Store(error) => error.hint(),
            Self::OpenElsewhere { id } => Some(format!(
                "end it there first, or go on with a copy: sallyport session fork {id}"
            )),
            Self::OtherUser => Some(
                "open the session and make its configuration for the same principal".to_owned(),
            ),
            Self::NothingToContinue => Some("without --continue a new one begins".to_owned()),
            Self::KeyMissing { variable, .. } => {
                Some(format!("set {variable}, or run `sallyport setup`"))
            }
            Self::KeyUnreadable { .. } => Some("`sallyport setup` stores the key again".to_owned()),
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
    /// Delivers plugin messages. `None` if the session does not receive them.
    subscription: Option<Subscription>,
    /// Keeps the session in the directory of the host. `None` if it has no host.
    directory_guard: Option<DirectoryGuard>,
    /// Keeps other programs from resuming the session, if nothing else does.
    claim: Option<SessionClaimGuard>,
}

/// The session that a front end wants.
pub struct SessionSpec<'a> {
    /// The new or resumed session.
    pub opened: OpenedSession,
    /// Its configuration.
    pub config: &'a SessionConfig,
    /// The model that answers.
    pub model: &'a ModelHandle,
    /// Whether the front end answers the questions of the gate, which then are events of the
    /// session. Otherwise [`HostOptions::consent`](crate::HostOptions::consent) answers them.
    pub answers_questions: bool,
    /// Whether the session receives the messages of plugins.
    pub receives_notices: bool,
}

/// A session that has not started.
pub struct PreparedSession {
    /// Its parts. A front end may wrap them.
    pub parts: SessionParts,
    directory_guard: DirectoryGuard,
    claim: Option<SessionClaimGuard>,
    receives_notices: bool,
}

impl Host {
    /// Starts a session. It must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// The model is a plugin that cannot be used, it could not distinguish two tools, or the
    /// configuration is that of another user.
    pub fn session(&self, spec: SessionSpec<'_>) -> Result<(HostSession, Events), SessionError> {
        self.start_session(self.prepare_session(spec)?)
    }

    /// Assembles a session.
    ///
    /// # Errors
    ///
    /// The model is a plugin that cannot be used, or the configuration is that of another user.
    pub fn prepare_session(&self, spec: SessionSpec<'_>) -> Result<PreparedSession, SessionError> {
        let SessionSpec { opened, config, model, answers_questions, receives_notices } = spec;
        let OpenedSession { user, session_id, journal, past, is_stored, claim, .. } = opened;
        let mut options = config.session_options(&session_id);
        if options.user_id.as_ref() != Some(&user) {
            return Err(SessionError::OtherUser);
        }
        let (directory_guard, approvals) =
            self.directory().add_session(&session_id, &user, answers_questions);
        // The matcher cannot write sentences, so a sentence from the tool is the better answer.
        options.spoken |= matches!(model, ModelHandle::Offline);
        if matches!(model, ModelHandle::Offline) {
            // Nor can it ask for the rest of a result.
            options.result_bytes_max = None;
        }
        let parts = SessionParts {
            model: model.model_for_session(self.roles(), &user, &session_id)?,
            toolbox: Arc::clone(self.toolbox()),
            approvals,
            journal,
            past,
            account: Some(Arc::new(GateAccount {
                gate: Arc::clone(self.registry().gate()),
                user: user.clone(),
            })),
            recall: config.session_recall(&session_id, is_stored),
            options,
        };
        Ok(PreparedSession { parts, directory_guard, claim, receives_notices })
    }

    /// Starts a session that was prepared.
    ///
    /// # Errors
    ///
    /// A model could not distinguish two tools.
    pub fn start_session(
        &self,
        prepared: PreparedSession,
    ) -> Result<(HostSession, Events), SessionError> {
        let PreparedSession { parts, directory_guard, claim, receives_notices } = prepared;
        let user = parts.options.user_id.clone().unwrap_or_else(|| LOCAL_USER.to_owned());
        let (mut session, events) = HostSession::start_detached(parts)?;
        session.directory_guard = Some(directory_guard);
        if receives_notices {
            session.subscription =
                Some(self.subscribe_session(&user, &session.session_id, &session.handle));
            // The subscription marks the session as open until it ends.
            claim.into_iter().for_each(SessionClaimGuard::hand_over);
        } else {
            session.claim = claim;
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
        let session =
            Self { session_id, handle, subscription: None, directory_guard: None, claim: None };
        Ok((session, events))
    }

    /// Stops the delivery of plugin messages, and lets other programs resume the session. The
    /// messages delivered until now are among the events.
    pub async fn stop_listening(&mut self) {
        if let Some(subscription) = self.subscription.take() {
            subscription.unsubscribe().await;
        }
        if let Some(claim) = self.claim.take() {
            claim.release().await;
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
