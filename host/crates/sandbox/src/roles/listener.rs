//! A plugin as a listener. It receives signals from outside, returns replies, and submits input to
//! the session by itself.

use std::sync::Arc;

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, FailureKind, Outcome, Redactor, ToolOutput,
    services::SessionInbox,
};

use crate::{
    Plugin,
    abi::ToolReturnValue,
    plugin::CompletedRun,
    role_data::{ListenerReply, ListenerSignal},
    role_links::{ListenerInputLink, RoleLinks},
    run_body::RunBody,
};

/// Most replies to one signal. This fits a page of lines and stops a flood.
const REPLIES_MAX: usize = 256;

/// The result of a signal.
#[derive(Debug)]
pub struct SignalResult {
    /// The replies in order. Empty if the run did not complete.
    pub replies: Vec<ListenerReply>,
    /// The record of the run.
    pub report: CallReport,
}

/// A plugin that listens on behalf of a session.
pub struct PluginListener {
    plugin: Arc<Plugin>,
    call: Arc<AdmittedCall>,
    inbox: Arc<dyn SessionInbox>,
}

impl Plugin {
    /// Creates a listener for a session. `call` has passed the gate, and the plugin's input goes to
    /// `inbox`.
    pub fn create_listener(
        self: &Arc<Self>,
        call: AdmittedCall,
        inbox: Arc<dyn SessionInbox>,
    ) -> PluginListener {
        PluginListener { plugin: Arc::clone(self), call: Arc::new(call), inbox }
    }
}

impl PluginListener {
    /// Notifies the plugin that signals are about to arrive. If this does not complete, no signals
    /// should be sent.
    pub async fn start(&self) -> CallReport {
        let completed = self.run(None, self.plugin.abi().start_listener()).await;
        self.plugin.build_return_report(completed)
    }

    /// Notifies the plugin that no more signals will arrive.
    pub async fn stop(&self) -> CallReport {
        let completed = self.run(None, self.plugin.abi().stop_listener()).await;
        self.plugin.build_report(completed, |(), _| Outcome::Completed(ToolOutput::default()))
    }

    /// Passes a signal to the plugin. Dropping the future stops the instance.
    pub async fn handle_signal(&self, connection: &str, signal: ListenerSignal) -> SignalResult {
        let body = self.plugin.abi().handle_signal(connection.to_owned(), signal);
        let completed = self.run(Some(connection.to_owned()), body).await;
        let bytes_max = completed.run_context.initial_grant().limits().output_bytes;
        let redactor = completed.run_context.authorizer().redactor();
        let mut accepted = Vec::new();
        let report = self.plugin.build_report(completed, |value, effect_log| {
            match value.and_then(|replies| check_replies(replies, bytes_max)) {
                Ok(replies) => {
                    accepted = replies.into_iter().map(|reply| reply.redact(&redactor)).collect();
                    Outcome::Completed(ToolOutput::default())
                }
                Err(error) => self.plugin.outcome_from_return(error, effect_log),
            }
        });
        SignalResult { replies: accepted, report }
    }

    async fn run<R: Send + 'static>(
        &self,
        connection: Option<String>,
        body: RunBody<R>,
    ) -> CompletedRun<R> {
        let listener_input = Some(ListenerInputLink { inbox: Arc::clone(&self.inbox), connection });
        let links = RoleLinks { listener_input, ..RoleLinks::default() };
        self.plugin.run_call(Arc::clone(&self.call), links, body).await
    }
}

impl ListenerReply {
    fn size_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(data) => data.len(),
            Self::Close => 0,
        }
    }

    fn redact(self, redactor: &Redactor) -> Self {
        match self {
            Self::Text(text) => Self::Text(redactor.redact_text(&text).into_owned()),
            Self::Binary(data) => Self::Binary(redactor.redact_bytes(&data).into_owned()),
            Self::Close => Self::Close,
        }
    }
}

/// Accepts all replies or none.
fn check_replies(
    replies: Vec<ListenerReply>,
    bytes_max: u64,
) -> Result<Vec<ListenerReply>, ToolReturnValue> {
    let refused = |message: String| {
        Err(ToolReturnValue::Error(CallFailure::new(FailureKind::LimitReached, message)))
    };
    let bytes = replies.iter().map(|reply| reply.size_bytes() as u64).sum::<u64>();
    if replies.len() > REPLIES_MAX {
        let count = replies.len();
        return refused(format!("it gave {count} replies, at most {REPLIES_MAX} are taken"));
    }
    if bytes > bytes_max {
        let text =
            format!("its replies have {bytes} bytes, its limit is {bytes_max} (limits.output)");
        return refused(text);
    }
    Ok(replies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_taken_as_a_whole_or_not_at_all() {
        let text = |bytes| ListenerReply::Text("x".repeat(bytes));
        for (replies, words) in [
            (vec![], None),
            (vec![text(60), ListenerReply::Binary(vec![0; 40]), ListenerReply::Close], None),
            (vec![text(60), ListenerReply::Binary(vec![0; 41])], Some("101 bytes")),
            (vec![ListenerReply::Close; REPLIES_MAX], None),
            (vec![ListenerReply::Close; REPLIES_MAX + 1], Some("257 replies")),
        ] {
            match (check_replies(replies.clone(), 100), words) {
                (Ok(accepted), None) => assert_eq!(accepted, replies),
                (Err(error), Some(words)) => assert!(format!("{error:?}").contains(words)),
                (other, _) => panic!("{other:?}"),
            }
        }
    }
}
