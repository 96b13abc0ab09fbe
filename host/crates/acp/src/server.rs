//! The sessions of a client.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use sallyport_contract::{LOCAL_USER, Principal};
use sallyport_runtime::{
    Host, HostNotice,
    config::HostSettings,
    history,
    session::{
        ModelHandle, SessionConfig, SessionError, SessionOverrides, SessionSelector, SessionSpec,
        open_session,
    },
};
use sallyport_store::{SessionFilter, StoreError, StoredSession};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    client_servers::{self, ClientMcpServer, ClientServers, NamedServers},
    new_session::NewAcpSession,
    output::ClientOutput,
    replay,
    rpc::{RequestId, RpcError},
    session::AcpSession,
    session_config::{MODEL_OPTION, config_options, has_no_model},
    session_params::{ListParams, OpenKind, OpenParams},
    session_queue::{SessionPlace, SessionQueues},
};

/// Most open sessions. Each has its tasks and its instances of plugins; nobody watches more.
const SESSIONS_MAX: usize = 64;

/// Sessions in one page of a list.
const LIST_PAGE: usize = 50;

/// Longest wait for sessions to end after nothing is sent to the client any more. A call that is
/// cancelled ends much faster.
const SESSIONS_END_TIME_MAX: Duration = Duration::from_secs(5);

/// What the user can do about a model that is not configured.
const SETUP_HINT: &str = "run `sallyport setup` in a terminal";

/// Reads the configuration anew, as it is for a folder. An error is a sentence for the user.
pub type SettingsReader = Box<dyn Fn(Option<&Path>) -> Result<HostSettings, String> + Send + Sync>;

/// The parts of a server.
pub struct AcpServerParts {
    /// The loaded plugins.
    pub host: Arc<Host>,
    /// Reads the configuration for each new session, so that a model that was set up meanwhile is
    /// known.
    pub read_settings: SettingsReader,
    /// Overrides the configuration of sessions.
    pub overrides: SessionOverrides,
}

/// The sessions of one client.
pub struct AcpServer {
    host: Arc<Host>,
    read_settings: SettingsReader,
    overrides: SessionOverrides,
    output: Arc<ClientOutput>,
    sessions: Mutex<SessionTable>,
    /// Locked while a session is opened, so that there are never too many.
    opening: tokio::sync::Mutex<()>,
    /// The requests that open, close or delete the same session.
    queues: SessionQueues,
    /// Locked while servers are started and ended.
    client_servers: tokio::sync::Mutex<ClientServers>,
    shows_notices: Arc<AtomicBool>,
}

/// The open sessions by their ids.
#[derive(Default)]
struct SessionTable {
    sessions: HashMap<String, Arc<AcpSession>>,
    /// Those that are closing, and some that have ended.
    closing: Vec<Arc<AcpSession>>,
    is_stopping: bool,
}

impl AcpServer {
    /// Prepares to serve a client.
    pub(crate) fn new(parts: AcpServerParts, output: Arc<ClientOutput>) -> Arc<Self> {
        let AcpServerParts { host, read_settings, overrides } = parts;
        Arc::new(Self {
            host,
            read_settings,
            overrides,
            output,
            sessions: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            queues: SessionQueues::default(),
            client_servers: tokio::sync::Mutex::default(),
            shows_notices: Arc::default(),
        })
    }

    pub(crate) fn output(&self) -> &Arc<ClientOutput> {
        &self.output
    }

    /// Notes whether the client shows notices.
    pub(crate) fn note_client(&self, shows_notices: bool) {
        self.shows_notices.store(shows_notices, Ordering::Relaxed);
    }

    /// Takes a place among the requests that open, close or delete a session. Each of them has its
    /// turn before it begins.
    pub(crate) fn take_place(&self, session_id: &str) -> SessionPlace {
        self.queues.take_place(session_id)
    }

    /// Returns an open session.
    pub(crate) fn find_session(&self, session_id: &str) -> Result<Arc<AcpSession>, RpcError> {
        self.table().sessions.get(session_id).cloned().ok_or_else(session_not_open)
    }

    /// Cancels the turn that a request began.
    pub(crate) fn cancel_request(&self, id: &RequestId) {
        let sessions: Vec<_> = self.table().sessions.values().cloned().collect();
        sessions.iter().filter(|session| session.runs_prompt(id)).for_each(|s| s.cancel_prompt());
    }

    /// The ways to configure a model; none if one is configured.
    pub(crate) fn auth_methods(&self, has_terminal: bool) -> Value {
        let settings = (self.read_settings)(None);
        if settings.is_ok_and(|settings| check_model(&settings).is_ok()) {
            return json!([]);
        }
        let mut method = json!({
            "id": "setup",
            "name": "Set up a model",
            "description": "Run `sallyport setup` in a terminal: it asks for a provider, a model and a key",
        });
        if has_terminal {
            method["type"] = "terminal".into();
            method["args"] = json!(["--setup"]);
        }
        json!([method])
    }

    /// Checks whether a model has been configured meanwhile.
    pub(crate) async fn authenticate(&self) -> Result<Value, RpcError> {
        check_model(&self.settings(None)?)?;
        Ok(json!({}))
    }

    /// Opens a session.
    pub(crate) async fn open_session(
        &self,
        kind: OpenKind,
        params: OpenParams,
    ) -> Result<Value, RpcError> {
        let folder = folder_text(&params.cwd)?;
        let session_id = match (kind, &params.session_id) {
            (OpenKind::New, _) => None,
            (_, Some(id)) => Some(id.as_str()),
            (_, None) => return Err(RpcError::invalid_params("sessionId is missing")),
        };
        let _opening = self.opening.lock().await;
        let session = match session_id.map(|id| self.find_session(id)) {
            Some(Ok(open)) => open,
            _ => self.start_session(session_id, folder).await?,
        };
        if kind == OpenKind::Load {
            self.send_history(&session).await?;
        }
        let settings = self.settings(Some(session.folder()))?;
        let mut response = json!({
            "modes": session.mode_state(),
            "configOptions": config_options(&settings, &session.model_name()),
        });
        if kind == OpenKind::New {
            response["sessionId"] = session.id().into();
        }
        self.use_client_servers(&session, params.mcp_servers).await;
        Ok(response)
    }

    /// Uses the MCP servers that a client brings along with a session. What cannot be used is told
    /// to the user with the next turn.
    async fn use_client_servers(&self, session: &AcpSession, offered: Vec<ClientMcpServer>) {
        let mut notes = Vec::new();
        let servers = client_servers::named_servers(offered, &mut notes);
        match self.set_client_servers(session.id(), servers.clone(), &mut notes).await {
            Ok(()) => {
                notes.extend(client_servers::unusable_servers(&self.host.registry(), &servers));
            }
            Err(error) => notes.push(format!("The MCP servers are not used: {error}.")),
        }
        notes.into_iter().for_each(|note| session.add_note(note));
    }

    /// Replaces the servers of a session; with none, those that no other session uses are ended.
    async fn set_client_servers(
        &self,
        session_id: &str,
        servers: NamedServers,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut all = self.client_servers.lock().await;
        if !all.set(session_id, servers, notes) {
            return Ok(());
        }
        let settings = (self.read_settings)(None)?;
        let set = self.host.set_mcp_servers(&settings, all.all()).await;
        set.map(drop).map_err(|error| error.to_string())
    }

    /// Ends the servers that only this session has brought along.
    async fn forget_client_servers(&self, session_id: &str) {
        // The session is gone, so nobody would read a note.
        let _ = self.set_client_servers(session_id, NamedServers::new(), &mut Vec::new()).await;
    }

    async fn start_session(
        &self,
        session_id: Option<&str>,
        folder: String,
    ) -> Result<Arc<AcpSession>, RpcError> {
        {
            let table = self.table();
            if table.is_stopping || table.sessions.len() >= SESSIONS_MAX {
                return Err(RpcError::invalid_request("too many sessions are open; close one"));
            }
        }
        let selector = match session_id {
            Some(id) => SessionSelector::Named(self.stored_session(id).await?.id),
            None => SessionSelector::NewIn(folder.clone()),
        };
        let settings = self.settings(Some(&folder))?;
        let model = check_model(&settings)?;
        let principal = Principal::local();
        let store = self.host.store();
        let opened = open_session(store, settings.sessions, &principal, &selector)
            .await
            .map_err(|error| session_failure(&error))?;
        let config =
            SessionConfig::from_settings(&self.overrides, &settings, &self.host, &principal)
                .await
                .map_err(|error| session_failure(&error))?;
        let prepared = self
            .host
            .prepare_session(SessionSpec {
                opened,
                config: &config,
                model: &model,
                answers_questions: true,
                receives_notices: true,
            })
            .map_err(|error| session_failure(&error))?;
        let new_session = NewAcpSession {
            host: Arc::clone(&self.host),
            output: Arc::clone(&self.output),
            shows_notices: Arc::clone(&self.shows_notices),
            folder,
            model_name: settings.chosen_model.name.clone(),
            context_tokens: settings.chosen_model.context_tokens,
        };
        let session = new_session.start(prepared).map_err(|error| session_failure(&error))?;
        let mut table = self.table();
        if table.is_stopping {
            table.closing.push(Arc::clone(&session));
            drop(table);
            session.begin_close();
            return Err(RpcError::invalid_request("the program is stopping"));
        }
        table.sessions.insert(session.id().to_owned(), Arc::clone(&session));
        Ok(session)
    }

    /// Sends the turns of a session so far.
    async fn send_history(&self, session: &AcpSession) -> Result<(), RpcError> {
        let stored = self.stored_session(session.id()).await?;
        let records = history::read_records(self.host.store(), &stored);
        let records = records.await.map_err(|error| store_failure(&error))?;
        for update in replay::history_updates(&records) {
            self.output.send_update(session.id(), update).await;
        }
        Ok(())
    }

    async fn stored_session(&self, session_id: &str) -> Result<StoredSession, RpcError> {
        let found = self.host.store().sessions.get(LOCAL_USER, session_id).await;
        found.map_err(|error| store_failure(&error))
    }

    /// Lists the stored sessions, the one used last first.
    pub(crate) async fn list_sessions(&self, params: ListParams) -> Result<Value, RpcError> {
        let before_ms = match params.cursor.as_deref().map(str::parse) {
            Some(Ok(before_ms)) => Some(before_ms),
            Some(Err(_)) => return Err(RpcError::invalid_params("the cursor is not one of ours")),
            None => None,
        };
        let folder = params.cwd.as_deref().map(folder_text).transpose()?;
        let limit = Some(LIST_PAGE);
        let filter =
            SessionFilter { folder, before_ms, limit, ..SessionFilter::of_user(LOCAL_USER) };
        let listed = self.host.store().sessions.list(filter).await;
        let listed = listed.map_err(|error| store_failure(&error))?;
        let sessions: Vec<Value> = listed.iter().map(session_info).collect();
        let mut response = json!({ "sessions": sessions });
        if let (Some(last), LIST_PAGE) = (listed.last(), listed.len()) {
            response["nextCursor"] = last.updated_ms.to_string().into();
        }
        Ok(response)
    }

    /// Ends a session. It can be loaded again.
    pub(crate) async fn close_session(&self, session_id: &str) -> Result<Value, RpcError> {
        let session = self.begin_close(session_id).ok_or_else(session_not_open)?;
        session.wait_for_end().await;
        self.forget_client_servers(session_id).await;
        Ok(json!({}))
    }

    /// Removes a session for good.
    pub(crate) async fn delete_session(&self, session_id: &str) -> Result<Value, RpcError> {
        let open = self.begin_close(session_id);
        let was_open = open.is_some();
        if let Some(session) = open {
            session.wait_for_end().await;
            self.forget_client_servers(session_id).await;
        }
        match self.host.store().sessions.remove(LOCAL_USER, session_id).await {
            Ok(()) => Ok(json!({})),
            // It had no turn yet, so it was never stored.
            Err(StoreError::SessionNotFound { .. }) if was_open => Ok(json!({})),
            Err(error) => Err(store_failure(&error)),
        }
    }

    /// Begins to close a session, which is not open from now on.
    fn begin_close(&self, session_id: &str) -> Option<Arc<AcpSession>> {
        let mut table = self.table();
        let session = table.sessions.remove(session_id)?;
        table.closing.retain(|closing| !closing.has_ended());
        table.closing.push(Arc::clone(&session));
        drop(table);
        session.begin_close();
        Some(session)
    }

    /// Sets one of the choices of a session.
    pub(crate) fn set_config_option(
        &self,
        session_id: &str,
        config_id: &str,
        value: &Value,
    ) -> Result<Value, RpcError> {
        let session = self.find_session(session_id)?;
        if config_id != MODEL_OPTION {
            return Err(RpcError::invalid_params("the only option is model"));
        }
        let settings = self.settings(Some(session.folder()))?;
        let options = config_options(&settings, &session.model_name());
        let offered = options[0]["options"].as_array().into_iter().flatten();
        let name = value.as_str().filter(|name| {
            offered.into_iter().any(|option| option["value"].as_str() == Some(name))
        });
        let name = name.ok_or_else(|| RpcError::invalid_params("there is no such model"))?;
        let chosen = settings
            .models
            .resolve_model_name(name)
            .map_err(|error| RpcError::invalid_params(error.to_string()).with_hint(error.hint()))?;
        let handle = ModelHandle::from_choice(&chosen).map_err(|error| session_failure(&error))?;
        let model = handle
            .model_for_session(self.host.roles(), LOCAL_USER, session_id)
            .map_err(|error| session_failure(&error))?;
        session.use_model(model, name.to_owned(), chosen.context_tokens)?;
        Ok(json!({ "configOptions": config_options(&settings, name) }))
    }

    /// Ends all sessions. The client has `time_max` to read the last updates; after that nothing is
    /// sent any more, and `ended` is cancelled.
    pub(crate) async fn stop(&self, ended: &CancellationToken, time_max: Duration) {
        let open: Vec<_> = {
            let mut table = self.table();
            table.is_stopping = true;
            table.sessions.keys().cloned().collect()
        };
        for session_id in open {
            self.begin_close(&session_id);
        }
        let last_updates = async {
            self.wait_for_sessions().await;
            self.output.wait_until_written().await;
        };
        let _ = tokio::time::timeout(time_max, last_updates).await;
        ended.cancel();
        let rest = self.wait_for_sessions();
        if tokio::time::timeout(SESSIONS_END_TIME_MAX, rest).await.is_err() {
            let text = "some sessions did not end in time; their last records may be missing";
            self.host.notices()(HostNotice::Warning(text.to_owned()));
        }
    }

    /// Waits until no session is being opened and all that are closing have ended.
    async fn wait_for_sessions(&self) {
        drop(self.opening.lock().await);
        let closing = self.table().closing.clone();
        for session in closing {
            session.wait_for_end().await;
        }
    }

    fn settings(&self, folder: Option<&str>) -> Result<HostSettings, RpcError> {
        (self.read_settings)(folder.map(Path::new)).map_err(RpcError::internal)
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn session_not_open() -> RpcError {
    RpcError::not_found("no such session is open")
}

/// Returns the configured model.
fn check_model(settings: &HostSettings) -> Result<ModelHandle, RpcError> {
    if has_no_model(&settings.chosen_model) {
        let error = RpcError::auth_required("no model is configured");
        return Err(error.with_hint(Some(SETUP_HINT)));
    }
    ModelHandle::from_choice(&settings.chosen_model).map_err(|error| session_failure(&error))
}

fn session_failure(error: &SessionError) -> RpcError {
    let failure = match error {
        SessionError::KeyMissing { .. } | SessionError::KeyUnreadable { .. } => {
            RpcError::auth_required(error.to_string())
        }
        SessionError::Store(error) => return store_failure(error),
        _ => RpcError::internal(error.to_string()),
    };
    failure.with_hint(error.hint())
}

fn store_failure(error: &StoreError) -> RpcError {
    match error {
        StoreError::SessionNotFound { .. } => RpcError::not_found("there is no such session"),
        _ => RpcError::internal(error.to_string()).with_hint(error.hint()),
    }
}

/// The folder of a client as text. It has to be absolute, because ours may be another one.
fn folder_text(folder: &Path) -> Result<String, RpcError> {
    let text = folder.to_str().filter(|_| folder.is_absolute());
    text.map(str::to_owned).ok_or_else(|| RpcError::invalid_params("cwd is not an absolute path"))
}

fn session_info(session: &StoredSession) -> Value {
    let mut info = json!({
        "sessionId": session.id,
        "cwd": session.folder.as_deref().unwrap_or("/"),
        "title": session.title,
    });
    let updated = i64::try_from(session.updated_ms).ok();
    if let Some(Ok(updated)) = updated.map(Timestamp::from_millisecond) {
        info["updatedAt"] = updated.to_string().into();
    }
    info
}
