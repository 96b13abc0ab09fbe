//! Sessions that follow one another, and their shared parts.

use std::sync::Arc;

use sallyport_model::ChatModel;
use sallyport_runtime::{
    Host, HostSession,
    config::HostSettings,
    registry::Registry,
    session::{Events, ModelHandle, SessionConfig, SessionSelector, SessionSpec},
    undo::UndoHistory,
};

use super::connect::ChatSignIn;
use crate::cli::{args::ChatArgs, exit::CommandFailure, output::CliOutput, setup};

/// The parts that all sessions of the program share.
pub(super) struct ChatContext<'a> {
    pub(super) args: &'a ChatArgs,
    pub(super) settings: &'a HostSettings,
    pub(super) host: &'a Host,
    pub(super) session_config: &'a SessionConfig,
    pub(super) sign_in: Arc<ChatSignIn>,
    pub(super) out: &'a CliOutput,
}

/// One session.
pub(super) struct ChatSession {
    pub(super) session: HostSession,
    /// The model at the start of the session.
    pub(super) model: Arc<dyn ChatModel>,
    /// Whether it can be resumed.
    pub(super) is_resumable: bool,
    /// The changes of files that can be undone.
    pub(super) undo_history: Option<UndoHistory>,
}

impl ChatContext<'_> {
    /// Starts or resumes a session.
    ///
    /// # Errors
    ///
    /// There is no such session, the store cannot be used, or two tools have the same name for a
    /// model.
    pub(super) async fn begin_session(
        &self,
        selector: &SessionSelector,
        model_handle: &ModelHandle,
    ) -> Result<(ChatSession, Events), CommandFailure> {
        let opened = setup::open_session(self.settings, selector, self.out).await?;
        let is_resumable = opened.is_stored;
        let prepared = self.host.prepare_session(SessionSpec {
            opened,
            config: self.session_config,
            model: model_handle,
            answers_questions: true,
            receives_notices: true,
        })?;
        let model = Arc::clone(&prepared.parts.model);
        let (session, events) = self.host.start_session(prepared)?;
        let undo_history = self.host.keep_file_copies(&session.session_id);
        Ok((ChatSession { session, model, is_resumable, undo_history }, events))
    }
}

impl ChatSession {
    /// Selects the kind of session that follows this one.
    pub(super) fn next_selector(&self) -> SessionSelector {
        if self.is_resumable { SessionSelector::New } else { SessionSelector::Ephemeral }
    }

    /// Ends the session once its last record is written, and then the plugins' instances for it.
    pub(super) async fn close(self, events: Events, registry: &Registry) {
        let session_id = self.session.session_id.clone();
        self.session.close(events).await;
        registry.end_session(&session_id).await;
        if !self.is_resumable {
            self.undo_history.iter().for_each(UndoHistory::remove);
        }
    }
}
