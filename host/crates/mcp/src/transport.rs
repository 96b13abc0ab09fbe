//! Messages as lines, with a limit to each line and to the requests that wait for an answer.
//!
//! `rmcp` has such a transport too, which drops a line that it cannot read without telling the
//! client, and which takes any number of requests from a client that reads no answers.

use std::{
    collections::HashSet,
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex as StdMutex, PoisonError},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequest, ClientNotification, ClientRequest, GetMeta, JsonRpcMessage,
        JsonRpcRequest, ProtocolVersion, RequestId,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use sallyport_runtime::bounded_lines::{BoundedLines, LineEnd};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::{Mutex, OwnedMutexGuard},
};
use tokio_util::sync::CancellationToken;

use crate::calls::CallLeftovers;

/// Longest message in bytes: the most arguments that a call takes, each byte of them escaped.
const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Most requests of a client that wait for an answer, or whose answer the client has not read.
const REQUESTS_WAITING_MAX: usize = 256;

/// Longest wait for a client to read an error. One that reads nothing for so long has stopped.
const TELL_TIME_MAX: Duration = Duration::from_secs(60);

/// How long after an answer the thread looks for the next request before it sleeps. A client that makes
/// one call after another asks again at once, and to wake a thread of an idle processor takes about as
/// long as a small call.
const LOOK_TIME: Duration = Duration::from_micros(50);

/// Messages of a client in lines.
pub(crate) struct LineTransport<R, W> {
    lines: BoundedLines<R>,
    output: Arc<Mutex<W>>,
    /// The requests without an answer.
    waiting: HashSet<RequestId>,
    /// Cloned for each answer that the client has not read yet.
    unread: Arc<()>,
    /// An error that the client is being told. Nothing is read meanwhile, so a client that does not
    /// read cannot make more of them.
    telling: Option<BoxFuture<'static, ()>>,
    has_begun: bool,
    /// Until when the thread looks for the next request. Never on a single processor, which the client
    /// needs meanwhile.
    looks_until: Option<Instant>,
    has_processors: bool,
    /// Is given back as soon as the answer is on its way.
    leftovers: Arc<CallLeftovers>,
    end: TransportEnd,
}

/// Whether a transport has ended, and why.
#[derive(Clone, Default)]
pub(crate) struct TransportEnd {
    /// Is cancelled when the input or the output ends.
    ended: CancellationToken,
    write_error: Arc<StdMutex<Option<io::Error>>>,
}

impl TransportEnd {
    /// Waits until the input or the output has ended.
    pub(crate) async fn wait(&self) {
        self.ended.cancelled().await;
    }

    /// Ends the transport, because the output cannot be written.
    fn fail(&self, error: io::Error) {
        *self.write_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.ended.cancel();
    }

    /// Takes why the output could not be written, unless the reader has gone, which is how a client
    /// may end a connection.
    pub(crate) fn take_write_error(&self) -> Option<io::Error> {
        let error = self.write_error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }
}

impl<R: AsyncRead + Unpin, W> LineTransport<R, W> {
    /// Reads from `input` and writes to `output`. `end` tells when either has ended.
    pub(crate) fn new(
        input: R,
        output: W,
        end: TransportEnd,
        leftovers: Arc<CallLeftovers>,
    ) -> Self {
        Self {
            lines: BoundedLines::new(input, MESSAGE_BYTES_MAX),
            output: Arc::new(Mutex::new(output)),
            waiting: HashSet::new(),
            unread: Arc::default(),
            telling: None,
            has_begun: false,
            looks_until: None,
            has_processors: thread::available_parallelism().is_ok_and(|number| number.get() > 1),
            leftovers,
            end,
        }
    }
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Waits for a line. For a moment after an answer, it looks for it without sleeping.
    async fn read_line(&mut self) -> LineEnd {
        let looks_until = self.looks_until.filter(|_| self.waiting.is_empty());
        if self.waiting.is_empty() {
            // A call that was cancelled gets no answer.
            self.leftovers.give_back();
        }
        let mut reading = pin!(self.lines.read_line());
        while looks_until.is_some_and(|until| Instant::now() < until) {
            tokio::select! {
                biased;
                end = &mut reading => return end,
                // Has the runtime look for what has come.
                () = tokio::task::yield_now() => {}
            }
        }
        reading.await
    }

    /// Reads the next message. An error is for the client, with the request that it is about.
    async fn read_message(
        &mut self,
    ) -> Option<Result<RxJsonRpcMessage<RoleServer>, (ErrorData, Option<RequestId>)>> {
        match self.read_line().await {
            LineEnd::Whole => {
                let message = parse_message(&self.lines.line);
                self.lines.line.clear();
                Some(message.and_then(|message| self.admit_message(message)))
            }
            LineEnd::TooLong => {
                let text = format!("a message has at most {MESSAGE_BYTES_MAX} bytes");
                Some(Err((ErrorData::invalid_request(text, None), None)))
            }
            LineEnd::Cut => {
                let text = "the input ended within a message";
                Some(Err((ErrorData::parse_error(text, None), None)))
            }
            LineEnd::Ended => None,
        }
    }

    /// Sends the client an error. The connection ends if the client does not read it.
    fn tell_error(&self, message: TxJsonRpcMessage<RoleServer>) -> BoxFuture<'static, ()> {
        let (output, end) = (Arc::clone(&self.output), self.end.clone());
        Box::pin(async move {
            let sending = LineSending::begin(&output, &message);
            match tokio::time::timeout(TELL_TIME_MAX, sending.finish()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => end.fail(error),
                Err(_) => end.ended.cancel(),
            }
        })
    }

    /// Notes a request until it is answered, and refuses what cannot be answered.
    fn admit_message(
        &mut self,
        message: RxJsonRpcMessage<RoleServer>,
    ) -> Result<RxJsonRpcMessage<RoleServer>, (ErrorData, Option<RequestId>)> {
        let refuse = |text: &str, id: Option<&RequestId>| {
            Err((ErrorData::invalid_request(text.to_owned(), None), id.cloned()))
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                self.has_begun |= begins_connection(&request.request);
                // A cancel that comes too late leaves an answer that no request waits for.
                let unread = Arc::strong_count(&self.unread) - 1;
                if self.waiting.len() + unread >= REQUESTS_WAITING_MAX {
                    return refuse("too many requests wait for an answer", Some(&request.id));
                }
                if !self.waiting.insert(request.id.clone()) {
                    return refuse(
                        "another request with this id has no answer yet",
                        Some(&request.id),
                    );
                }
            }
            JsonRpcMessage::Notification(one) => {
                if let ClientNotification::CancelledNotification(cancelled) = &one.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // A cancelled request gets no answer, unless it is being sent already.
                    self.waiting.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        // The library ends the connection if anything but a request comes before its begin.
        if !self.has_begun && !matches!(message, JsonRpcMessage::Request(_)) {
            return refuse("the connection has to begin with initialize", None);
        }
        Ok(message)
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let unread = answered.map(|id| {
            self.waiting.remove(&id);
            Arc::clone(&self.unread)
        });
        let sending = LineSending::begin(&self.output, &message);
        if unread.is_some() {
            self.leftovers.give_back();
            self.looks_until = self.has_processors.then(|| Instant::now() + LOOK_TIME);
        }
        let end = self.end.clone();
        async move {
            let sent = sending.finish().await;
            drop(unread);
            sent.map_err(|error| {
                let kind = error.kind();
                end.fail(error);
                kind.into()
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let ended = self.end.ended.clone();
        let message = ended.run_until_cancelled(async {
            loop {
                if let Some(telling) = &mut self.telling {
                    telling.await;
                    self.telling = None;
                }
                match self.read_message().await? {
                    Ok(message) => return Some(message),
                    Err((error, id)) => {
                        let message = TxJsonRpcMessage::<RoleServer>::error(error, id);
                        self.telling = Some(self.tell_error(message));
                    }
                }
            }
        });
        let message = message.await.flatten();
        if message.is_none() {
            self.end.ended.cancel();
        }
        message
    }

    /// Does not wait, because a client that does not read may keep an answer from being written.
    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a request begins a connection: with a handshake, or without one if the request has what
/// each request then needs. The library answers the others, and still waits for one of these.
fn begins_connection(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            let is_known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta.protocol_version().is_some_and(is_known)
        }
    }
}

/// A message that is being written. The library finishes it in a task of its own, and the client need
/// not wait for that task: what the output takes at once is written before.
struct LineSending<W> {
    output: Arc<Mutex<W>>,
    line: io::Result<Vec<u8>>,
    begun: Option<(OwnedMutexGuard<W>, io::Result<usize>)>,
}

impl<W: AsyncWrite + Unpin> LineSending<W> {
    /// Writes what the output takes without a wait. Until the message is finished, no other one is
    /// written.
    fn begin(output: &Arc<Mutex<W>>, message: &TxJsonRpcMessage<RoleServer>) -> Self {
        let line = message_line(message);
        let begun = match (&line, Arc::clone(output).try_lock_owned()) {
            (Ok(line), Ok(mut output)) => {
                // The rest is written with a waker of the task that finishes it.
                let mut context = Context::from_waker(Waker::noop());
                let written = match Pin::new(&mut *output).poll_write(&mut context, line) {
                    Poll::Ready(written) => written,
                    Poll::Pending => Ok(0),
                };
                Some((output, written))
            }
            _ => None,
        };
        Self { output: Arc::clone(output), line, begun }
    }

    async fn finish(self) -> io::Result<()> {
        let line = self.line?;
        let (mut output, written) = match self.begun {
            Some((output, written)) => (output, written?),
            None => (self.output.lock_owned().await, 0),
        };
        output.write_all(line.get(written..).unwrap_or_default()).await?;
        output.flush().await
    }
}

fn message_line(message: &TxJsonRpcMessage<RoleServer>) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Parses a line. An error names the request if the line has its id.
fn parse_message(
    line: &[u8],
) -> Result<RxJsonRpcMessage<RoleServer>, (ErrorData, Option<RequestId>)> {
    if let Some(call) = parse_call(line) {
        return Ok(call);
    }
    let no_json = |error: serde_json::Error| {
        (ErrorData::parse_error(format!("this is not JSON: {error}"), None), None)
    };
    match serde_json::from_slice(line) {
        Ok(message) => Ok(message),
        Err(error) if !error.is_data() => Err(no_json(error)),
        Err(_) => {
            let value: Value = serde_json::from_slice(line).map_err(no_json)?;
            let id = serde_json::from_value(value.get("id").cloned().unwrap_or_default()).ok();
            let text = "this is not a request, a notification or an answer of JSON-RPC 2.0";
            Err((ErrorData::invalid_request(text, None), id))
        }
    }
}

/// Parses a call. Most messages are calls, and for a message of any kind the library tries one type
/// after another, which takes several times as long.
fn parse_call(line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    let call: JsonRpcRequest<CallToolRequest> = serde_json::from_slice(line).ok()?;
    let request = ClientRequest::CallToolRequest(call.request);
    Some(JsonRpcMessage::Request(JsonRpcRequest::new(call.id, request)))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn answers_that_are_not_read_count_also_if_a_cancel_comes_after_them() {
        let parse = |line: String| parse_message(line.as_bytes()).unwrap();
        let list =
            |id: usize| parse(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
        let cancel = |id: usize| {
            parse(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            ))
        };
        let (output, _reader) = tokio::io::duplex(1);
        let mut transport =
            LineTransport::new(tokio::io::empty(), output, TransportEnd::default(), Arc::default());
        transport.has_begun = true;
        let mut answers = Vec::new();
        for id in 0..REQUESTS_WAITING_MAX {
            transport.admit_message(list(id)).unwrap();
            let answer = ErrorData::internal_error("an answer", None);
            let id_of_answer = RequestId::Number(id as i64);
            answers.push(transport.send(JsonRpcMessage::error(answer, Some(id_of_answer))));
            transport.admit_message(cancel(id)).unwrap();
        }
        assert!(transport.admit_message(list(7)).is_err());
        answers.clear();
        assert!(transport.admit_message(list(7)).is_ok());
    }

    #[tokio::test]
    async fn a_message_of_which_the_output_takes_a_part_at_once_stays_whole() {
        let (output, mut reader) = tokio::io::duplex(7);
        let mut transport =
            LineTransport::new(tokio::io::empty(), output, TransportEnd::default(), Arc::default());
        let answer = |id| {
            let error = ErrorData::internal_error("an answer", None);
            TxJsonRpcMessage::<RoleServer>::error(error, Some(RequestId::Number(id)))
        };
        let [first, second] = [1, 2].map(|id| message_line(&answer(id)).unwrap());
        let (sent_first, sent_second) = (transport.send(answer(1)), transport.send(answer(2)));
        let mut read = vec![0; first.len() + second.len()];
        let read_all = async { reader.read_exact(&mut read).await };
        // The second one is finished first, and waits.
        let ended = tokio::join!(sent_second, sent_first, read_all);
        assert!(ended.0.is_ok() && ended.1.is_ok() && ended.2.is_ok());
        assert_eq!(read, [first, second].concat());
    }

    #[test]
    fn a_call_is_parsed_as_the_library_would() {
        let call = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":"#.to_owned();
        for params in [
            r#"{"name":"echo"}}"#,
            r#"{"name":"echo","arguments":{"text":"hello"}}}"#,
            r#"{"name":"echo","_meta":{"progressToken":1},"arguments":{}}}"#,
        ] {
            let line = call.clone() + params;
            let usual: RxJsonRpcMessage<RoleServer> = serde_json::from_str(&line).unwrap();
            let parsed = parse_call(line.as_bytes()).unwrap();
            let texts = [&usual, &parsed].map(|one| serde_json::to_string(one).unwrap());
            assert_eq!(texts[0], texts[1]);
            let JsonRpcMessage::Request(parsed) = parsed else { panic!("{line}") };
            let JsonRpcMessage::Request(usual) = usual else { panic!("{line}") };
            let metas = [usual.request.get_meta(), parsed.request.get_meta()];
            assert_eq!(format!("{:?}", metas[0]), format!("{:?}", metas[1]));
        }
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        assert!(parse_call(list.as_bytes()).is_none());
    }

    #[test]
    fn what_is_no_message_is_told_with_its_request() {
        let rows = [
            ("{", -32700, None),
            ("garbage", -32700, None),
            ("\u{7f}\u{1}", -32700, None),
            ("[]", -32600, None),
            ("7", -32600, None),
            ("{}", -32600, None),
            (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, -32600, Some(RequestId::Number(3))),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, None),
        ];
        for (line, code, id) in rows {
            let (error, told_id) = parse_message(line.as_bytes()).unwrap_err();
            assert_eq!((error.code.0, told_id), (code, id), "{line}");
        }
    }
}
