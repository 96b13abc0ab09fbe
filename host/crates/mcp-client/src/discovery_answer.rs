//! Servers of the first revisions that answer an unknown method with an empty result, or not at all.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage,
        JsonRpcResponse, PingRequest, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long the answer to `server/discover` may take before the server is asked whether it listens.
const PING_AFTER: Duration = Duration::from_millis(500);

/// How long a server that listens may still take. One without `server/discover` never answers.
const ANSWER_AFTER_PING: Duration = Duration::from_millis(1500);

/// The id of the ping.
const PING_ID: &str = "is-listening";

/// Messages of a server whose first answer, the one to `server/discover`, is never empty or missing:
/// then the error for an unknown method takes its place, because that lets the connection begin the
/// old way.
///
/// That an answer is missing is known once the server has answered a later ping. A server that reads
/// nothing yet answers neither, and may only be slow to start.
pub(crate) struct DiscoveryAnswers<T> {
    inner: T,
    has_order: bool,
    state: DiscoveryState,
}

/// Where the first question to a server stands.
enum DiscoveryState {
    /// It has not been asked.
    Unasked,
    /// It has been asked, and pinged at this time if that is not `None`.
    Asked { id: RequestId, ping_at: Option<Instant> },
    /// It has answered the ping, and may answer the question until this time.
    Listens { id: RequestId, until: Instant },
    /// It has answered, or an error took the place of the answer. The id is that of an answer that may
    /// still come.
    Answered { missing: Option<RequestId> },
}

impl<T> DiscoveryAnswers<T> {
    /// Messages of a server that answers in its order. `has_order` is whether it does: a ping says
    /// something about earlier questions then.
    pub(crate) fn new(inner: T, has_order: bool) -> Self {
        Self { inner, has_order, state: DiscoveryState::Unasked }
    }

    fn note_sent(&mut self, message: &ClientJsonRpcMessage) {
        let JsonRpcMessage::Request(request) = message else { return };
        match (&self.state, &request.request) {
            (DiscoveryState::Unasked, ClientRequest::DiscoverRequest(_)) => {
                let ping_at = self.has_order.then(|| Instant::now() + PING_AFTER);
                self.state = DiscoveryState::Asked { id: request.id.clone(), ping_at };
            }
            // The client has waited long enough, and begins the old way.
            (
                DiscoveryState::Asked { id, .. } | DiscoveryState::Listens { id, .. },
                ClientRequest::InitializeRequest(_),
            ) => self.state = DiscoveryState::Answered { missing: Some(id.clone()) },
            _ => {}
        }
    }

    /// Takes what the server says about its first question. `None` for a message that is not for the
    /// client: the answer to the ping, or an answer that came too late.
    fn take(&mut self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        let id = match &message {
            JsonRpcMessage::Response(response) => response.id.clone(),
            JsonRpcMessage::Error(error) => error.id.clone()?,
            _ => return Some(message),
        };
        if id == RequestId::String(PING_ID.into()) {
            if let DiscoveryState::Asked { id, .. } = &self.state {
                let until = Instant::now() + ANSWER_AFTER_PING;
                self.state = DiscoveryState::Listens { id: id.clone(), until };
            }
            return None;
        }
        match &self.state {
            DiscoveryState::Answered { missing: Some(missing) } if *missing == id => None,
            DiscoveryState::Answered { .. } => Some(message),
            _ => {
                self.state = DiscoveryState::Answered { missing: None };
                Some(without_empty_result(message))
            }
        }
    }

    /// The error in place of an answer that is missing.
    fn give_up(&mut self, id: RequestId) -> ServerJsonRpcMessage {
        self.state = DiscoveryState::Answered { missing: Some(id.clone()) };
        unknown_method(id, "the server does not answer server/discover")
    }
}

fn without_empty_result(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Response(JsonRpcResponse {
            id,
            result: ServerResult::EmptyResult(_),
            ..
        }) => unknown_method(id, "the answer to server/discover is empty"),
        other => other,
    }
}

fn unknown_method(id: RequestId, text: &'static str) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

impl<T: Transport<RoleClient>> DiscoveryAnswers<T> {
    /// Asks a server whether it listens. If nothing can be written, reading says so.
    async fn ping(&mut self) {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let ping = ClientJsonRpcMessage::request(ping, RequestId::String(PING_ID.into()));
        let _ = self.inner.send(ping).await;
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for DiscoveryAnswers<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.note_sent(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = match &mut self.state {
                DiscoveryState::Asked { ping_at: due @ Some(_), .. } => {
                    let at = due.unwrap_or_else(Instant::now);
                    tokio::select! {
                        message = self.inner.receive() => message?,
                        () = sleep_until(at) => {
                            *due = None;
                            self.ping().await;
                            continue;
                        }
                    }
                }
                DiscoveryState::Listens { id, until } => {
                    let (id, until) = (id.clone(), *until);
                    match timeout_at(until, self.inner.receive()).await {
                        Ok(message) => message?,
                        Err(_) => return Some(self.give_up(id)),
                    }
                }
                _ => self.inner.receive().await?,
            };
            if let Some(message) = self.take(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

    use crate::{ConnectionLimits, RedactServerText, ServerConnection, ServerError};

    use super::*;

    /// A server whose texts have no secrets.
    fn unredacted() -> RedactServerText {
        std::sync::Arc::new(|text: &str| text.to_owned())
    }

    /// How a server treats `server/discover`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Old {
        /// It answers with an error.
        Refuses,
        /// It answers with an empty result.
        AnswersNothing,
        /// It does not answer what it does not know.
        Ignores,
        /// The same, and a ping too as long as there was no handshake.
        IgnoresAll,
    }

    async fn serve(old: Old, input: DuplexStream, mut output: DuplexStream) {
        let mut lines = BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = message.get("id") else { continue };
            let about = json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": { "name": "old", "version": "1" }
            });
            let unknown = json!({ "code": -32601, "message": "unknown" });
            let answer = match (message["method"].as_str().unwrap(), old) {
                ("initialize", _) => json!({ "result": about }),
                ("ping", Old::IgnoresAll) | ("server/discover", Old::Ignores | Old::IgnoresAll) => {
                    continue;
                }
                ("ping", _) | ("server/discover", Old::AnswersNothing) => json!({ "result": {} }),
                _ => json!({ "error": unknown }),
            };
            let mut answer = answer;
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = id.clone();
            output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }

    /// The client would wait 10 seconds for each.
    #[tokio::test(start_paused = true)]
    async fn an_old_server_is_asked_the_old_way_as_soon_as_it_is_known() {
        let rows = [
            (Old::Refuses, Duration::ZERO),
            (Old::AnswersNothing, Duration::ZERO),
            (Old::Ignores, PING_AFTER + ANSWER_AFTER_PING),
            (Old::IgnoresAll, Duration::from_secs(10)),
        ];
        for (old, want) in rows {
            let (input, their_input) = duplex(1 << 16);
            let (their_output, output) = duplex(1 << 16);
            let serving = tokio::spawn(serve(old, their_input, their_output));
            let began = Instant::now();
            let limits = ConnectionLimits { start: Duration::from_secs(30), tools: 10 };
            let opened = ServerConnection::open(output, input, limits, unredacted()).await;
            assert!(opened.is_ok(), "{old:?}: {:?}", opened.err());
            let took = began.elapsed();
            assert!(took >= want && took < want + Duration::from_millis(50), "{old:?}: {took:?}");
            serving.abort();
        }
    }

    /// The answer to the first question was taken for that of the handshake.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_needs_longer_than_ten_seconds_to_start_is_connected() {
        let (input, their_input) = duplex(1 << 16);
        let (their_output, output) = duplex(1 << 16);
        let serving = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(12)).await;
            serve(Old::Refuses, their_input, their_output).await;
        });
        let limits = ConnectionLimits { start: Duration::from_secs(30), tools: 10 };
        let opened = ServerConnection::open(output, input, limits, unredacted()).await;
        assert!(opened.is_ok(), "{:?}", opened.err());
        serving.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_too_late_is_not_taken_for_another() {
        let (input, their_input) = duplex(1 << 16);
        let (mut their_output, output) = duplex(1 << 16);
        let serving = tokio::spawn(async move {
            let mut lines = BufReader::new(their_input).lines();
            let mut discover = Value::Null;
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                let reply = |id: &Value, part: Value| {
                    let mut reply = part;
                    reply["jsonrpc"] = "2.0".into();
                    reply["id"] = id.clone();
                    format!("{reply}\n")
                };
                let error = json!({ "error": { "code": -32601, "message": "unknown" } });
                let answer = match message["method"].as_str().unwrap() {
                    "server/discover" => {
                        discover = message["id"].clone();
                        continue;
                    }
                    "initialize" => reply(&discover, error.clone()) + &reply(&message["id"], error),
                    _ => reply(&message["id"], error),
                };
                their_output.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let limits = ConnectionLimits { start: Duration::from_secs(30), tools: 10 };
        let opened = ServerConnection::open(output, input, limits, unredacted()).await;
        let Err(ServerError::BadAnswer(text)) = opened else { panic!("it has no handshake") };
        assert!(!text.contains("conflict"), "{text}");
        serving.abort();
    }
}
