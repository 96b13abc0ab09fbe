//! Listeners: plugins that turn outside events into inputs of a session.
//!
//! The host owns every socket. The plugin receives each event on one as a [`Signal`], answers with
//! [`Reply`]s, and submits inputs to the [`inbox`]. Each signal is a run in a role: the gate
//! decides on it, and it is recorded.

pub mod inbox;
pub mod stdin;
pub mod websocket;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use sallyport_contract::{AdmittedCall, CallReport, services::SessionInbox};
use sallyport_sandbox::roles::{ListenerReply, ListenerSignal, PluginListener, SignalResult};
use serde_json::json;
use tokio::sync::mpsc;

use self::inbox::{INPUTS_WAITING_MAX, Tray};
use super::{Player, Roles, Run, trouble};
use crate::gate::Tell;

/// Most answers that may wait for a connection: one for each input that can wait, and one for the
/// input of the current turn.
const ANSWERS_WAITING_MAX: usize = INPUTS_WAITING_MAX + 1;

/// A plugin that listens for a session.
pub struct Ear {
    /// The plugins of the session.
    pub roles: Arc<Roles>,
    /// The plugin.
    pub player: Player,
    /// The session that it listens for.
    pub session_id: String,
    /// Receives its inputs.
    pub tray: Tray,
    /// Receives errors, for the operator.
    pub tell: Tell,
    /// The open connections.
    pub lines: Lines,
}

/// The open connections, and the channels for their answers.
#[derive(Debug, Default)]
pub struct Lines {
    open: Mutex<BTreeMap<String, mpsc::Sender<String>>>,
    /// Number of connections so far.
    count: AtomicU64,
    /// Number of connections that have not ended yet, including those that are closing.
    standing: AtomicU64,
    /// The plugin was notified that signals will come.
    has_started: AtomicBool,
}

/// An open connection.
pub struct Connection {
    ear: Arc<Ear>,
    /// Its name, unique within the listener.
    pub name: String,
    /// The session's answers to inputs from this connection. The channel closes when the session
    /// hangs up.
    pub answers: mpsc::Receiver<String>,
}

impl Ear {
    /// Notifies the plugin that signals will come.
    ///
    /// # Errors
    ///
    /// Why it does not listen, in human-readable form.
    pub async fn start(&self) -> Result<(), String> {
        let call = self.admit("start", None).await.map_err(|report| words(&report))?;
        let playing = self.player.begin(&call);
        let report = self.listener(call).start().await;
        let why = trouble(&report);
        self.lines.has_started.store(why.is_none(), Ordering::Relaxed);
        playing.finish(&report);
        why.map_or(Ok(()), Err)
    }

    /// Notifies the plugin that no more signals come, if it was notified of the start.
    pub async fn stop(&self) {
        if !self.lines.has_started.load(Ordering::Relaxed) {
            return;
        }
        let Ok(call) = self.admit("stop", None).await else { return };
        let playing = self.player.begin(&call);
        let report = self.listener(call).stop().await;
        self.complain(&report);
        playing.finish(&report);
    }

    /// Delivers a signal to the plugin and returns its replies. Inputs go to `inbox`.
    async fn hear(
        &self,
        connection: &str,
        signal: ListenerSignal,
        inbox: Arc<dyn SessionInbox>,
    ) -> Vec<ListenerReply> {
        let call = match self.admit(word(&signal), Some(connection)).await {
            Ok(call) => call,
            Err(report) => {
                self.complain(&report);
                return Vec::new();
            }
        };
        let playing = self.player.begin(&call);
        let listener = self.player.plugin().create_listener(call, inbox);
        let SignalResult { replies, report } = listener.handle_signal(connection, signal).await;
        self.complain(&report);
        playing.finish(&report);
        replies
    }

    /// Sends the answer to an input to the input's connection, if that is still open.
    pub fn answered(&self, connection: &str, answer: &str) {
        let open = self.lines.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = open.get(connection) else { return };
        if line.try_send(answer.to_owned()).is_err() {
            (self.tell)(&format!("{}: {connection} takes no answer", self.player.name()));
        }
    }

    /// Closes every connection after its waiting answers are sent.
    pub fn hang_up(&self) {
        self.lines.open.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether any connection has not ended yet.
    pub fn is_connected(&self) -> bool {
        self.lines.standing.load(Ordering::Relaxed) > 0
    }

    /// Opens a connection of this kind.
    pub fn connect(self: &Arc<Self>, kind: &str) -> Connection {
        let (line, answers) = mpsc::channel(ANSWERS_WAITING_MAX);
        let number = self.lines.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.lines.standing.fetch_add(1, Ordering::Relaxed);
        let name = format!("{kind}-{number}");
        let mut open = self.lines.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.clone(), line);
        Connection { ear: Arc::clone(self), name, answers }
    }

    async fn admit(
        &self,
        signal: &str,
        connection: Option<&str>,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        let about = match connection {
            Some(connection) => json!({ "signal": signal, "connection": connection }),
            None => json!({ "signal": signal }),
        };
        let context = self.roles.context(&self.session_id);
        self.player.admit(Run::Listener, context, &about).await
    }

    fn listener(&self, call: AdmittedCall) -> PluginListener {
        self.player.plugin().create_listener(call, Arc::new(self.tray.clone()))
    }

    fn complain(&self, report: &CallReport) {
        if let Some(why) = trouble(report) {
            (self.tell)(&format!("{}: {why}", self.player.name()));
        }
    }
}

impl Connection {
    /// Delivers a signal on this connection to the plugin.
    pub async fn hear(&self, signal: ListenerSignal) -> Vec<ListenerReply> {
        self.hear_into(signal, Arc::new(self.ear.tray.clone())).await
    }

    /// Delivers a signal on this connection to the plugin, with a separate inbox.
    pub async fn hear_into(
        &self,
        signal: ListenerSignal,
        inbox: Arc<dyn SessionInbox>,
    ) -> Vec<ListenerReply> {
        self.ear.hear(&self.name, signal, inbox).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.ear.lines.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&self.name);
        self.ear.lines.standing.fetch_sub(1, Ordering::Relaxed);
    }
}

fn words(report: &CallReport) -> String {
    trouble(report).unwrap_or_else(|| "it was not let through".to_owned())
}

fn word(signal: &ListenerSignal) -> &'static str {
    match signal {
        ListenerSignal::Opened(_) => "opened",
        ListenerSignal::Text(_) => "text",
        ListenerSignal::Binary(_) => "binary",
        ListenerSignal::Answered(_) => "answered",
        ListenerSignal::Closed => "closed",
    }
}
