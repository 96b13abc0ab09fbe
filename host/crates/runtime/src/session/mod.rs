//! Sessions of a host: which one is meant, how it is held, who answers, and the session itself.
//!
//! [`Host::session_parts`] puts a session together, and [`Host::begin`] starts it. Between the two a
//! front end may put something of its own around a part, such as a tape around the model.

mod config;
mod model;
mod selector;

use std::sync::Arc;

use sallyport_contract::mangle::Collision;
use sallyport_model::SettingsError;
use sallyport_session::{Approvals, Command, Event, Handle, Parts};
use sallyport_store::StoreError;
use tokio::sync::mpsc;

pub use self::{
    config::{SessionConfig, SessionOverrides},
    model::{ModelHandle, check_key, offline},
    selector::{OpenedSession, SessionSelector, find, folder, kept, open},
};
use crate::{
    host::Host,
    roles::{RoleError, guide::GuideError},
    services::Attendance,
};

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store cannot be opened.
    #[error(transparent)]
    NoStore(StoreError),
    /// The store has no such session, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no earlier session.
    #[error("there is no session to go on with")]
    NothingToContinue,
    /// A public server answers nobody without a key.
    #[error("{name} needs a key, and {variable} is not set")]
    KeyMissing {
        /// The model.
        name: String,
        /// The variable that would hold the key.
        variable: String,
    },
    /// The settings of the model cannot work.
    #[error(transparent)]
    Model(#[from] SettingsError),
    /// A plugin cannot play its role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The guide cannot be used.
    #[error(transparent)]
    Guide(#[from] GuideError),
    /// A model could not tell two tools apart.
    #[error("{0}")]
    Collision(Collision),
}

impl SessionError {
    /// What to do about it, where something can be said.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Store(StoreError::NoSession { .. }) => {
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

/// The events of a session, in order. They end when the session has ended.
pub type Events = mpsc::Receiver<Event>;

/// A session that takes commands; what happens in it comes by its [`Events`].
pub struct HostSession {
    /// Names it for ever: what was accepted for this session holds when it is resumed.
    pub session_id: String,
    /// Sends commands.
    pub handle: Handle,
    /// What plugins say comes in by it, unless the session does not listen.
    attendance: Option<Attendance>,
}

impl Host {
    /// Puts a session together: `opened` under `config`, answered by `model`, with questions of the
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
        approvals: Approvals,
    ) -> Result<Parts, SessionError> {
        let OpenedSession { session_id, journal, past, is_kept } = opened;
        let mut options = config.options(&session_id);
        // The matcher has no words of its own: a sentence that the tool gives is the better answer.
        options.spoken |= matches!(model, ModelHandle::Offline);
        Ok(Parts {
            model: model.in_session(self.roles(), &session_id)?,
            toolbox: Arc::clone(self.toolbox()),
            approvals,
            journal,
            past,
            recall: config.recall(&session_id, is_kept),
            options,
        })
    }

    /// Starts a session; `listens` says whether messages of plugins reach it.
    ///
    /// # Errors
    ///
    /// A model could not tell two tools apart.
    pub fn begin(
        &self,
        parts: Parts,
        listens: bool,
    ) -> Result<(HostSession, Events), SessionError> {
        let (mut session, events) = HostSession::detached(parts)?;
        if listens {
            session.attendance = Some(self.attend(&session.session_id, &session.handle));
        }
        Ok((session, events))
    }
}

impl HostSession {
    /// Starts a session without a host: one that is played from a tape.
    ///
    /// # Errors
    ///
    /// A model could not tell two tools apart.
    pub fn detached(parts: Parts) -> Result<(Self, Events), SessionError> {
        let session_id = parts.options.session_id.clone();
        let (handle, events) = sallyport_session::spawn(parts).map_err(SessionError::Collision)?;
        Ok((Self { session_id, handle, attendance: None }, events))
    }

    /// Hears plugins no longer. Their messages until now are among the events.
    pub async fn stop_listening(&mut self) {
        if let Some(attendance) = self.attendance.take() {
            attendance.leave().await;
        }
    }

    /// Ends the session and waits until it has done what it still owes.
    pub async fn close(mut self, mut events: Events) {
        self.stop_listening().await;
        // When it has ended already there is nothing to end.
        let _ = self.handle.send(Command::Close).await;
        while events.recv().await.is_some() {}
    }
}
