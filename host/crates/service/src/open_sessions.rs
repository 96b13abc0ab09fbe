//! The sessions that are open: one task for each, which keeps its events.

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
use sallyport_runtime::{
    HostSession,
    config::{ChosenModel, HostSettings, ModelChoice},
    history::Supersession,
    session::{Events, ModelHandle, SessionConfig, SessionSelector, SessionSpec, open_session},
};
use sallyport_session::{FrontEndCommand, SessionActivity, SessionEvent, SessionHandle};
use serde::Deserialize;

use crate::{
    event_log::EventLog,
    problem::{Problem, ProblemKind},
    role::ServiceUser,
    server::Service,
};

/// Longest wait for a session to take a command. Its queue has room for more than a user types.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(2);

/// How often an idle session is looked at.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(60);

/// How long a session that waits for input and has no stream stays open. It can be opened again.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// Sessions that may be opened at the same time. After the death of another machine, clients ask for
/// all of its sessions at once.
const OPENING_MAX: usize = 32;

/// Longest name of a model, and of a session.
const NAME_BYTES_MAX: usize = 256;

/// The session that a client wants to open.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionToOpen {
    /// The ID of a session that exists. Without it, a new one begins.
    pub(crate) resume: Option<String>,
    /// The model, by one of the names that the operator has configured.
    pub(crate) model: Option<String>,
    /// Instructions for the model.
    pub(crate) system: Option<String>,
}

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

/// A session that has started, with what ends it.
struct StartedSession {
    host_session: HostSession,
    events: Events,
    supersession: Supersession,
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

    /// Waits until nobody else opens the session with this ID.
    async fn wait_to_open(&self, id: &str) -> tokio::sync::MutexGuard<'_, ()> {
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

impl Service {
    /// Opens a session of a user. One that is open already is returned; the second value is whether
    /// it was opened now.
    pub(crate) async fn open_session(
        self: &Arc<Self>,
        user: &ServiceUser,
        wanted: SessionToOpen,
    ) -> Result<(Arc<ServedSession>, bool), Problem> {
        let names = [&wanted.resume, &wanted.model].into_iter().flatten();
        if names.into_iter().any(|name| name.len() > NAME_BYTES_MAX) {
            return Err(Problem::bad_request("a name is too long"));
        }
        let _opening = self.sessions.opening.read().await;
        let _same = match &wanted.resume {
            Some(id) => Some(self.sessions.wait_to_open(id).await),
            None => None,
        };
        if self.stop.is_cancelled() {
            return Err(Problem::stopping());
        }
        let selector = match wanted.resume.clone() {
            None => SessionSelector::New,
            Some(id) => match self.sessions.find(&user.name, &id) {
                Some(open) => return Ok((open, false)),
                // The store finds sessions by the start of their IDs, too; here it must be whole.
                None => {
                    let stored = self.host.store().sessions.get(&user.name, &id).await?;
                    SessionSelector::Named(stored.id)
                }
            },
        };
        let own_max = self.host.registry().gate().sessions_max(&user.name).await;
        let own_max = own_max.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        let session_use = self.limits.sessions.begin_use_within(&user.name, own_max)?;
        let started = self.start_session(user, wanted, &selector).await?;
        let session = Arc::new(ServedSession {
            id: started.host_session.session_id.clone(),
            user: user.name.clone(),
            handle: started.host_session.handle.clone(),
            log: EventLog::new(),
            streams: AtomicUsize::new(0),
            state: Mutex::new(SessionState {
                activity: SessionActivity::Ready,
                last_use: Instant::now(),
            }),
        });
        self.sessions.sessions().insert(session.id.clone(), Arc::clone(&session));
        let feed = keep_events(Arc::clone(self), Arc::clone(&session), started);
        tokio::spawn(async move {
            feed.await;
            // A stream can hold the session longer, and takes no place of it.
            drop(session_use);
        });
        Ok((session, true))
    }

    async fn start_session(
        &self,
        user: &ServiceUser,
        wanted: SessionToOpen,
        selector: &SessionSelector,
    ) -> Result<StartedSession, Problem> {
        let settings = (self.read_settings)().map_err(|_| {
            let title = "the configuration of the service has a mistake";
            Problem::new(ProblemKind::ModelUnavailable, title)
        })?;
        let chosen = chosen_model(&settings, wanted.model.as_deref())?;
        if chosen.choice == (ModelChoice::Offline { is_explicit: false }) {
            let problem = Problem::new(ProblemKind::ModelUnavailable, "no model is configured");
            return Err(problem.with_detail("the operator configures one with `sallyport setup`"));
        }
        let model = ModelHandle::from_choice(&chosen)?;
        let principal = user.principal();
        let store = self.host.store();
        let opened = open_session(store, settings.sessions, &principal, selector).await?;
        let supersession = opened.supersession.clone();
        let mut overrides = self.overrides.clone();
        overrides.system_prompt = wanted.system.or(overrides.system_prompt);
        let config =
            SessionConfig::from_settings(&overrides, &settings, &self.host, &principal).await?;
        let spec = SessionSpec {
            opened,
            config: &config,
            model: &model,
            answers_questions: true,
            receives_notices: true,
        };
        let (host_session, events) = self.host.session(spec)?;
        Ok(StartedSession { host_session, events, supersession })
    }
}

/// The model that a client wants. It is one of the operator's, because any other name would be
/// asked for with the operator's key.
fn chosen_model(settings: &HostSettings, name: Option<&str>) -> Result<ChosenModel, Problem> {
    let Some(name) = name.filter(|name| *name != settings.chosen_model.name) else {
        return Ok(settings.chosen_model.clone());
    };
    let is_offered = settings.models.entries.contains_key(name);
    let chosen = settings.models.resolve_model_name(name).ok().filter(|_| is_offered);
    chosen.ok_or_else(|| {
        let problem = Problem::bad_request("there is no such model");
        problem.with_detail("the names are those of the tables [model.NAME] of the configuration")
    })
}

/// Keeps the events of a session until it ends.
async fn keep_events(service: Arc<Service>, session: Arc<ServedSession>, started: StartedSession) {
    let StartedSession { mut host_session, mut events, mut supersession } = started;
    let mut is_superseded = false;
    loop {
        let event = tokio::select! {
            event = tokio::time::timeout(IDLE_LOOK_EVERY, events.recv()) => event,
            // This machine was taken for dead, and the session continues elsewhere.
            () = supersession.wait(), if !is_superseded => {
                is_superseded = true;
                tokio::spawn(close_session(Arc::clone(&session)));
                continue;
            }
        };
        match event {
            Ok(Some(event)) => session.keep(event),
            Ok(None) => break,
            // The task itself must not wait, because the session waits for it.
            Err(_) if session.is_idle() => drop(tokio::spawn(close_session(Arc::clone(&session)))),
            Err(_) => {}
        }
    }
    host_session.stop_listening().await;
    service.host.registry().end_session(&session.id).await;
    service.sessions.sessions().remove(&session.id);
    session.log.end();
}

async fn close_session(session: Arc<ServedSession>) {
    // It may have ended.
    let _ = session.handle.send(FrontEndCommand::Close).await;
}

impl ServedSession {
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

    fn keep(&self, event: SessionEvent) {
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

    fn is_idle(&self) -> bool {
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
