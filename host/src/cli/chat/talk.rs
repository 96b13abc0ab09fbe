//! One session after another, and what each of them shares.

use std::sync::Arc;

use sallyport_model::ChatModel;
use sallyport_session::{self as session, Command, Event, Handle, Parts};
use tokio::sync::mpsc;

use super::{
    copied::{Copied, Records},
    desk::Reception,
};
use crate::{
    cli::{
        args::ChatArgs,
        compose::{self, Tools},
        conversation::{self, Which},
        exit::Failure,
        manner::Manner,
        output::Output,
        run,
        voice::Voice,
    },
    config::Settings,
    history,
    registry::Registry,
    services::Attendance,
};

/// What every session of the program is made with.
pub(super) struct Stage<'a> {
    pub(super) args: &'a ChatArgs,
    pub(super) settings: &'a Settings,
    pub(super) tools: &'a Tools,
    pub(super) manner: &'a Manner,
    pub(super) reception: Arc<Reception>,
    pub(super) out: &'a Output,
}

/// One session.
pub(super) struct Talk {
    pub(super) handle: Handle,
    pub(super) session_id: String,
    /// What plugins say comes in by it.
    attendance: Attendance,
    /// Who answered when it began.
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) records: Records,
    /// Whether somebody can come back to it.
    pub(super) is_kept: bool,
}

impl Stage<'_> {
    /// Begins a session, or goes on with one.
    ///
    /// # Errors
    ///
    /// There is no such session, the store cannot be used, or two tools have the same name for a
    /// model.
    pub(super) fn begin(
        &self,
        which: &Which,
        voice: &Voice,
    ) -> Result<(Talk, mpsc::Receiver<Event>), Failure> {
        let opened = conversation::open(self.settings, which, self.out)?;
        let session_id = opened.session_id;
        let model = voice.in_session(&self.tools.roles, &session_id)?;
        let records = self.said(which, &session_id)?;
        let journal = Copied { inner: opened.journal, records: records.clone(), failed: 0 };
        let (handle, events) = session::spawn(Parts {
            model: Arc::clone(&model),
            toolbox: Arc::clone(&self.tools.toolbox),
            approvals: self.reception.redirect(),
            journal: Box::new(journal),
            past: opened.past,
            recall: self.manner.recall(&session_id, opened.is_kept),
            options: self.manner.options(&session_id),
        })
        .map_err(run::collision)?;
        let attendance = self.tools.attend(&session_id, &handle);
        let is_kept = opened.is_kept;
        Ok((Talk { handle, session_id, attendance, model, records, is_kept }, events))
    }

    /// What was said before.
    fn said(&self, which: &Which, session_id: &str) -> Result<Records, Failure> {
        match which {
            Which::New | Which::Ephemeral => Ok(Records::default()),
            Which::Latest | Which::Named(_) => {
                let store = compose::store(self.settings)?;
                Ok(Records::of(history::records(&store, session_id)?))
            }
        }
    }
}

impl Talk {
    /// The kind of session that follows this one.
    pub(super) fn another(&self) -> Which {
        if self.is_kept { Which::New } else { Which::Ephemeral }
    }

    /// Ends the session with what plugins keep for it, and waits until its last record is written.
    pub(super) async fn close(self, mut events: mpsc::Receiver<Event>, registry: &Registry) {
        self.attendance.leave().await;
        // When it has ended already there is nothing to end.
        let _ = self.handle.send(Command::Close).await;
        while events.recv().await.is_some() {}
        registry.end_session(&self.session_id).await;
    }
}
