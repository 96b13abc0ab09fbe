//! The conversations that are open in this program, and how messages of plugins reach them.
//!
//! Every message is kept first and then taken by a conversation that shows it, in this process or in
//! another one: so none is lost when a process ends, and a message to a conversation that is closed
//! waits until it goes on. Each open conversation has a courier, a task that takes what is for it
//! when it is told, and now and then for the sake of what other processes have kept.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use sallyport_contract::{
    CallContext, ToolId,
    services::{Audience, Delivery, Notice, NoticeError, Notices, Progress},
};
use sallyport_session::Handle;
use sallyport_store::{Store, StoreError};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use super::{USER, courier::Courier};
use crate::gate::{Tell, now_ms};

/// Words for a courier that wait. Of progress, more is dropped: only the last word counts.
const WORDS_WAITING_MAX: usize = 64;

/// Longest wait for a courier to come to its end; its session may have stopped listening.
const LEAVE_TIME_MAX: Duration = Duration::from_secs(2);

/// The conversations that are open in this program.
pub struct Conversations {
    store: Store,
    tell: Tell,
    open: Mutex<Vec<Open>>,
}

struct Open {
    session_id: String,
    words: mpsc::Sender<Word>,
}

/// What a courier is told.
pub(super) enum Word {
    /// Something may be there for its conversation.
    Look,
    /// A call of its conversation has come further.
    Progress { call_id: String, progress: Progress },
}

impl Conversations {
    pub(super) fn new(store: Store, tell: Tell) -> Self {
        Self { store, tell, open: Mutex::default() }
    }

    /// Brings messages to a session from here on, what was kept for it first. To be called within a
    /// tokio runtime.
    pub fn attend(self: &Arc<Self>, session_id: &str, handle: Handle) -> Attendance {
        let (words, inbox) = mpsc::channel(WORDS_WAITING_MAX);
        let (store, tell) = (self.store.clone(), Arc::clone(&self.tell));
        let session_id = session_id.to_owned();
        let carried = session_id.clone();
        let (handed, told) = (AtomicU64::new(0), OnceLock::new());
        let courier = Courier { session_id: carried, store, handle, tell, handed, told };
        let courier = tokio::spawn(courier.carry(inbox));
        self.open().push(Open { session_id: session_id.clone(), words });
        Attendance { conversations: Arc::clone(self), session_id, courier }
    }

    /// Keeps a message and has the couriers look for it. It may block.
    ///
    /// # Errors
    ///
    /// The message cannot be kept, or there is no room for another one in what is gathered.
    pub fn post(&self, notice: &Notice, delivery: Delivery) -> Result<(), NoticeError> {
        let unkept = |error: StoreError| NoticeError::Unavailable(error.to_string());
        let notice = Notice { audience: self.audience(notice).map_err(unkept)?, ..notice.clone() };
        let kept = self.store.notices();
        match delivery {
            Delivery::AtOnce => kept.keep(USER, &notice).map_err(unkept)?,
            Delivery::Gathered(after) => {
                let is_kept = kept.gather(USER, &notice, now_ms(), after).map_err(unkept)?;
                // The couriers look when its time has come.
                return if is_kept { Ok(()) } else { Err(NoticeError::Full) };
            }
        }
        for open in self.open().iter() {
            // A courier with so much to do looks soon anyway.
            let _ = open.words.try_send(Word::Look);
        }
        Ok(())
    }

    /// Whom a message is for. A conversation that is not open and was not kept never goes on, so that
    /// what is for it would be shown to nobody.
    fn audience(&self, notice: &Notice) -> Result<Audience, StoreError> {
        let id = &notice.session_id;
        if self.store.presence().is_open(id, now_ms())? {
            return Ok(notice.audience);
        }
        match self.store.sessions().find(id) {
            Ok(session) if session.id == *id => Ok(notice.audience),
            Ok(_) | Err(StoreError::NoSession { .. } | StoreError::SessionUnclear { .. }) => {
                Ok(Audience::User)
            }
            Err(error) => Err(error),
        }
    }

    fn open(&self) -> MutexGuard<'_, Vec<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notices for Conversations {
    fn notify(&self, notice: Notice, delivery: Delivery) -> Result<(), NoticeError> {
        self.post(&notice, delivery)
    }

    fn progress(&self, call: &CallContext, _: &ToolId, progress: Progress) {
        let open = self.open();
        let of_call = open.iter().find(|open| open.session_id == call.session_id);
        let word = Word::Progress { call_id: call.call_id.clone(), progress };
        if let Some(open) = of_call {
            // What does not fit is followed by a newer word.
            let _ = open.words.try_send(word);
        }
    }
}

/// A session that messages are brought to.
pub struct Attendance {
    conversations: Arc<Conversations>,
    session_id: String,
    courier: JoinHandle<()>,
}

impl Attendance {
    /// Brings nothing any more: what comes from here on waits until the session goes on. To be called
    /// before the session is closed, so that it still writes down what was brought.
    pub async fn leave(mut self) {
        // Without a sender the courier hears that it is over.
        self.conversations.open().retain(|open| open.session_id != self.session_id);
        let _ = timeout(LEAVE_TIME_MAX, &mut self.courier).await;
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.courier.abort();
    }
}
