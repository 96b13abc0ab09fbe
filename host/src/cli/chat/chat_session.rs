//! Sessions that follow one another, and their shared parts.

use std::sync::Arc;

use sallyport_model::ChatModel;
use sallyport_runtime::{
    Host, HostSession,
    config::HostSettings,
    history,
    registry::Registry,
    session::{Events, ModelHandle, SessionConfig, SessionSelector},
};

use super::{
    approval_router::ApprovalRouter,
    copying_journal::{CopyingJournal, SharedRecords},
};
use crate::cli::{args::ChatArgs, exit::CommandFailure, output::CliOutput, setup};

/// The parts that all sessions of the program share.
pub(super) struct ChatContext<'a> {
    pub(super) args: &'a ChatArgs,
    pub(super) settings: &'a HostSettings,
    pub(super) host: &'a Host,
    pub(super) session_config: &'a SessionConfig,
    pub(super) approval_router: Arc<ApprovalRouter>,
    pub(super) out: &'a CliOutput,
}

/// One session.
pub(super) struct ChatSession {
    pub(super) session: HostSession,
    /// The model at the start of the session.
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) records: SharedRecords,
    /// Whether it can be resumed.
    pub(super) is_resumable: bool,
}

impl ChatContext<'_> {
    /// Starts or resumes a session.
    ///
    /// # Errors
    ///
    /// There is no such session, the store cannot be used, or two tools have the same name for a
    /// model.
    pub(super) fn begin_session(
        &self,
        selector: &SessionSelector,
        model_handle: &ModelHandle,
    ) -> Result<(ChatSession, Events), CommandFailure> {
        let opened = setup::open_session(self.settings, selector, self.out)?;
        let is_resumable = opened.is_stored;
        let records = self.load_records(selector, &opened.session_id)?;
        let approvals = self.approval_router.redirect_questions();
        let mut parts =
            self.host.session_parts(opened, self.session_config, model_handle, approvals)?;
        parts.journal = Box::new(CopyingJournal {
            inner: parts.journal,
            records: records.clone(),
            failed_count: 0,
        });
        let model = Arc::clone(&parts.model);
        let (session, events) = self.host.begin_session(parts, true)?;
        Ok((ChatSession { session, model, records, is_resumable }, events))
    }

    /// Returns the earlier records of a resumed session.
    fn load_records(
        &self,
        selector: &SessionSelector,
        session_id: &str,
    ) -> Result<SharedRecords, CommandFailure> {
        match selector {
            SessionSelector::New | SessionSelector::Ephemeral => Ok(SharedRecords::default()),
            SessionSelector::Latest | SessionSelector::Named(_) => {
                let store = setup::open_store(self.settings)?;
                Ok(SharedRecords::from_records(history::read_records(&store, session_id)?))
            }
        }
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
    }
}
