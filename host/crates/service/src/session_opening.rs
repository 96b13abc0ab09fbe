//! How sessions are opened: one task for each, which keeps its events until it ends.

use std::{sync::Arc, time::Duration};

use sallyport_runtime::{
    HostSession,
    config::{ChosenModel, HostSettings, ModelChoice},
    history::Supersession,
    session::{Events, ModelHandle, SessionConfig, SessionSelector, SessionSpec, open_session},
};
use sallyport_session::FrontEndCommand;
use serde::Deserialize;

use crate::{
    open_sessions::ServedSession,
    problem::{Problem, ProblemKind},
    role::ServiceUser,
    service::Service,
};

/// How often an idle session is looked at.
const IDLE_LOOK_EVERY: Duration = Duration::from_secs(60);

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

/// A session that has started, with what ends it.
struct StartedSession {
    host_session: HostSession,
    events: Events,
    supersession: Supersession,
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
        let _opening = self.sessions.begin_to_open().await;
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
        let session = Arc::new(ServedSession::new(&user.name, &started.host_session));
        self.sessions.add(Arc::clone(&session));
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
    service.sessions.remove(&session.id);
    session.log.end();
}

async fn close_session(session: Arc<ServedSession>) {
    // It may have ended.
    let _ = session.handle.send(FrontEndCommand::Close).await;
}
