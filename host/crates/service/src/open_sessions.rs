//! The sessions that are open, with their events.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use sallyport_contract::{CallReport, Outcome};
use sallyport_runtime::HostSession;
use sallyport_session::{FrontEndCommand, SessionActivity, SessionEvent, SessionHandle};

use crate::{event_log::EventLog, problem::Problem};

/// Longest wait for a session to take a command. Its queue has room for more than a user types.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a session that waits for input and has no stream stays open. It can be opened again.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// Sessions that may be opened at the same time. After the death of another machine, clients ask for
/// all of its sessions at once.
const OPENING_MAX: usize = 32;

/// A session that is open.
#[derive(Debug)]
pub(crate) struct ServedSession {
    pub(crate) id: String,
    pub(crate) user: String,
    pub(crate) handle: SessionHandle,
    pub(crate) log: EventLog,
    streams: AtomicUsize,
    state: Mutex<SessionState>,
}

#[derive(Debug)]
struct SessionState {
    activity: SessionActivity,
    last_use: Instant,
}

/// Marks that a session has one more stream, until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamMark(Arc<ServedSession>);

/// The open sessions by their IDs.
#[derive(Debug, Default)]
pub(crate) struct OpenSessions {
    sessions: Mutex<HashMap<String, Arc<ServedSession>>>,
    /// Read while a session is opened, so that the end of the service can wait for all.
    opening: tokio::sync::RwLock<()>,
    /// Locked while a session is opened whose ID has this remainder, so that none is opened twice.
    opening_by_id: [tokio::sync::Mutex<()>; OPENING_MAX],
}

impl OpenSessions {
    /// Returns an open session of a user. For another user it does not exist.
    pub(crate) fn find(&self, user: &str, id: &str) -> Option<Arc<ServedSession>> {
        self.sessions().get(id).filter(|session| session.user == user).cloned()
    }

    /// Returns the open sessions of a user.
    pub(crate) fn of_user(&self, user: &str) -> Vec<Arc<ServedSession>> {
        self.sessions().values().filter(|session| session.user == user).cloned().collect()
    }

    /// Adds a session that was opened.
    pub(crate) fn add(&self, session: Arc<ServedSession>) {
        self.sessions().insert(session.id.clone(), session);
    }

    /// Removes a session that has ended.
    pub(crate) fn remove(&self, id: &str) {
        self.sessions().remove(id);
    }

    /// Marks that a session is being opened, until the mark is dropped.
    pub(crate) async fn begin_to_open(&self) -> tokio::sync::RwLockReadGuard<'_, ()> {
        self.opening.read().await
    }

    /// Waits until nobody else opens the session with this ID.
    pub(crate) async fn wait_to_open(&self, id: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        self.opening_by_id[hasher.finish() as usize % OPENING_MAX].lock().await
    }

    /// Waits until no session is being opened, and returns all that are open.
    pub(crate) async fn wait_for_all(&self) -> Vec<Arc<ServedSession>> {
        let _opening = self.opening.write().await;
        self.sessions().values().cloned().collect()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<ServedSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServedSession {
    /// A session of a user, which has begun just now.
    pub(crate) fn new(user: &str, host_session: &HostSession) -> Self {
        Self {
            id: host_session.session_id.clone(),
            user: user.to_owned(),
            handle: host_session.handle.clone(),
            log: EventLog::new(),
            streams: AtomicUsize::new(0),
            state: Mutex::new(SessionState {
                activity: SessionActivity::Ready,
                last_use: Instant::now(),
            }),
        }
    }

    /// Sends a command.
    ///
    /// # Errors
    ///
    /// The session has ended, or takes no command at the moment.
    pub(crate) async fn send(&self, command: FrontEndCommand) -> Result<(), Problem> {
        self.state().last_use = Instant::now();
        let sent = self.handle.send_traced(command, sallyport_telemetry::current_trace());
        match tokio::time::timeout(COMMAND_TIME_MAX, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Problem::session_not_open()),
            Err(_) => Err(Problem::too_many("the session has too much to do")),
        }
    }

    /// Closes the session and waits until its last event is kept.
    pub(crate) async fn close(&self) {
        let mut news = self.log.subscribe();
        // It may have ended.
        let _ = self.handle.send(FrontEndCommand::Close).await;
        let _ = news.wait_for(|(_, has_ended)| *has_ended).await;
    }

    /// Keeps an event.
    pub(crate) fn keep(&self, event: SessionEvent) {
        let event = without_details(event);
        if let SessionEvent::State { state } = &event {
            self.state().activity = *state;
        }
        self.state().last_use = Instant::now();
        // Every event can be written as JSON.
        if let Ok(text) = serde_json::to_string(&event) {
            self.log.add(text);
        }
    }

    /// Whether nobody uses it any more.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.state();
        state.activity == SessionActivity::Ready
            && state.last_use.elapsed() > IDLE_TIME_MAX
            && self.streams.load(Ordering::Relaxed) == 0
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamMark {
    pub(crate) fn new(session: &Arc<ServedSession>) -> Self {
        session.streams.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(session))
    }
}

impl Drop for StreamMark {
    fn drop(&mut self) {
        self.0.state().last_use = Instant::now();
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

fn without_details(mut event: SessionEvent) -> SessionEvent {
    if let SessionEvent::CallFinished { report, .. } = &mut event {
        remove_details(report);
    }
    event
}

/// Removes what is for the operator: the details of a failure, which name files of the host.
pub(crate) fn remove_details(report: &mut CallReport) {
    if let Outcome::Failed(failure) | Outcome::InvalidArguments(failure) = &mut report.outcome {
        failure.detail = None;
    }
}
