//! Listeners: plugins that turn outside events into inputs of a session.
//!
//! The host owns every socket. The plugin receives each event on one as a [`ListenerSignal`],
//! answers with [`ListenerReply`]s, and submits inputs to the [`inbox`]. Each signal is a run in a
//! role: the gate decides on it, and it is recorded.

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

use sallyport_contract::{CallReport, services::SessionInbox};
use sallyport_sandbox::roles::{ListenerReply, ListenerSignal, PluginListener, SignalResult};
use serde_json::json;
use tokio::sync::mpsc;

use self::inbox::{INPUTS_WAITING_MAX, InputQueue};
use super::{RolePlugin, RunRecord, failure_reason};
use crate::{gate::MessageSink, registry::RoleRunKind};

/// Most answers that may wait for a connection: one for each input that can wait, and one for the
/// input of the current turn.
const ANSWERS_WAITING_MAX: usize = INPUTS_WAITING_MAX + 1;

/// A plugin that listens for a session.
pub struct SessionListener {
    /// The plugin.
    pub role_plugin: RolePlugin,
    /// The user of the session.
    pub user: String,
    /// The session that it listens for.
    pub session_id: String,
    /// Receives its inputs.
    pub input_queue: InputQueue,
    /// Receives errors, for the operator.
    pub message_sink: MessageSink,
    /// The open connections.
    pub connections: ListenerConnections,
}

/// The open connections, and the channels for their answers.
#[derive(Debug, Default)]
pub struct ListenerConnections {
    answer_senders: Mutex<BTreeMap<String, mpsc::Sender<String>>>,
    /// Number of connections so far.
    opened_count: AtomicU64,
    /// Number of connections that have not ended yet, including those that are closing.
    open_count: AtomicU64,
    /// The plugin was notified that signals will come.
    has_started: AtomicBool,
}

/// An open connection.
pub struct ListenerConnection {
    listener: Arc<SessionListener>,
    /// Its name, unique within the listener.
    pub name: String,
    /// The session's answers to inputs from this connection. The channel closes when the session
    /// hangs up.
    pub answers: mpsc::Receiver<String>,
}

impl SessionListener {
    /// Notifies the plugin that signals will come.
    ///
    /// # Errors
    ///
    /// Why it does not listen, in human-readable form.
    pub async fn start(&self) -> Result<(), String> {
        let begun = self.begin_run("start", None, self.own_inbox()).await;
        let (listener, role_run) = begun.map_err(|report| failure_text(&report))?;
        let report = listener.start().await;
        let why = failure_reason(&report);
        self.connections.has_started.store(why.is_none(), Ordering::Relaxed);
        role_run.finish(&report);
        why.map_or(Ok(()), Err)
    }

    /// Notifies the plugin that no more signals come, if it was notified of the start.
    pub async fn stop(&self) {
        if !self.connections.has_started.load(Ordering::Relaxed) {
            return;
        }
        let begun = self.begin_run("stop", None, self.own_inbox()).await;
        let Ok((listener, role_run)) = begun else { return };
        let report = listener.stop().await;
        self.report_failure(&report);
        role_run.finish(&report);
    }

    /// Delivers a signal to the plugin and returns its replies. Inputs go to `inbox`.
    async fn deliver_signal(
        &self,
        connection: &str,
        signal: ListenerSignal,
        inbox: Arc<dyn SessionInbox>,
    ) -> Vec<ListenerReply> {
        match self.begin_run(signal_name(&signal), Some(connection), inbox).await {
            Ok((listener, role_run)) => {
                let SignalResult { replies, report } =
                    listener.handle_signal(connection, signal).await;
                self.report_failure(&report);
                role_run.finish(&report);
                replies
            }
            Err(report) => {
                self.report_failure(&report);
                Vec::new()
            }
        }
    }

    /// Sends the answer to an input to the input's connection, if that is still open.
    pub fn deliver_answer(&self, connection: &str, answer: &str) {
        let answer_senders =
            self.connections.answer_senders.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer_sender) = answer_senders.get(connection) else { return };
        if answer_sender.try_send(answer.to_owned()).is_err() {
            (self.message_sink)(&format!(
                "{}: {connection} takes no answer",
                self.role_plugin.name()
            ));
        }
    }

    /// Closes every connection after its waiting answers are sent.
    pub fn close_connections(&self) {
        self.connections.answer_senders.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether any connection has not ended yet.
    pub fn has_connections(&self) -> bool {
        self.connections.open_count.load(Ordering::Relaxed) > 0
    }

    /// Opens a connection of this kind.
    pub fn open_connection(self: &Arc<Self>, kind: &str) -> ListenerConnection {
        let (answer_sender, answers) = mpsc::channel(ANSWERS_WAITING_MAX);
        let number = self.connections.opened_count.fetch_add(1, Ordering::Relaxed) + 1;
        self.connections.open_count.fetch_add(1, Ordering::Relaxed);
        let name = format!("{kind}-{number}");
        let mut answer_senders =
            self.connections.answer_senders.lock().unwrap_or_else(PoisonError::into_inner);
        answer_senders.insert(name.clone(), answer_sender);
        ListenerConnection { listener: Arc::clone(self), name, answers }
    }

    /// Asks the gate to admit a run, and starts its record.
    async fn begin_run(
        &self,
        signal: &str,
        connection: Option<&str>,
        inbox: Arc<dyn SessionInbox>,
    ) -> Result<(PluginListener, RunRecord), Box<CallReport>> {
        let mut run_arguments = json!({ "signal": signal });
        if let Some(connection) = connection {
            run_arguments["connection"] = connection.into();
        }
        let context = self.role_plugin.roles.new_call_context(&self.user, &self.session_id);
        let admitted = self.role_plugin.admit_run(RoleRunKind::Listener, context, &run_arguments);
        let call = admitted.await?;
        let role_run = self.role_plugin.start_run(&call);
        Ok((self.role_plugin.plugin().create_listener(call, inbox), role_run))
    }

    fn own_inbox(&self) -> Arc<dyn SessionInbox> {
        Arc::new(self.input_queue.clone())
    }

    fn report_failure(&self, report: &CallReport) {
        if let Some(why) = failure_reason(report) {
            (self.message_sink)(&format!("{}: {why}", self.role_plugin.name()));
        }
    }
}

impl ListenerConnection {
    /// Delivers a signal on this connection to the plugin.
    pub async fn deliver_signal(&self, signal: ListenerSignal) -> Vec<ListenerReply> {
        self.deliver_signal_to_inbox(signal, self.listener.own_inbox()).await
    }

    /// Delivers a signal on this connection to the plugin, with a separate inbox.
    pub async fn deliver_signal_to_inbox(
        &self,
        signal: ListenerSignal,
        inbox: Arc<dyn SessionInbox>,
    ) -> Vec<ListenerReply> {
        self.listener.deliver_signal(&self.name, signal, inbox).await
    }
}

impl Drop for ListenerConnection {
    fn drop(&mut self) {
        let mut answer_senders =
            self.listener.connections.answer_senders.lock().unwrap_or_else(PoisonError::into_inner);
        answer_senders.remove(&self.name);
        self.listener.connections.open_count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn failure_text(report: &CallReport) -> String {
    failure_reason(report).unwrap_or_else(|| "it was not let through".to_owned())
}

fn signal_name(signal: &ListenerSignal) -> &'static str {
    match signal {
        ListenerSignal::Opened(_) => "opened",
        ListenerSignal::Text(_) => "text",
        ListenerSignal::Binary(_) => "binary",
        ListenerSignal::Answered(_) => "answered",
        ListenerSignal::Closed => "closed",
    }
}
