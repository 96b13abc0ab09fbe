//! Everything that is sent to the client: answers, updates and questions.
//!
//! One task writes the lines. Whoever sends one waits for a place among those that are not written
//! yet, so a client that does not read slows everything down and fills no memory.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::rpc::{self, RequestId, RpcError};

/// Most lines that wait to be written. A line has a whole update, so these are a few screens.
const LINES_WAITING_MAX: usize = 64;

/// What the writer does next.
enum WriterOrder {
    /// Writes a line, which may be the answer to a request.
    Line { text: String, answered: Option<RequestId> },
    /// Reports that everything before it is written.
    Report(oneshot::Sender<()>),
}

/// Sends to one client.
pub(crate) struct ClientOutput {
    orders: mpsc::Sender<WriterOrder>,
    /// The requests of the client whose answer it has not received.
    waiting: Mutex<HashSet<RequestId>>,
    answered: Notify,
    /// Our own questions without an answer, by their number.
    questions: Mutex<HashMap<u64, oneshot::Sender<Result<Value, Value>>>>,
    last_question: AtomicU64,
    /// Is cancelled when nothing is sent any more.
    ended: CancellationToken,
    /// Why nothing is sent any more, if the output could not be written.
    write_error: Mutex<Option<io::Error>>,
}

/// The client did not answer a question: it refused it, or has gone.
#[derive(Debug)]
pub(crate) struct UnansweredQuestion;

impl ClientOutput {
    /// Writes to `writer` until it fails, or until `ended`. The task ends with the last line.
    pub(crate) fn start<W>(writer: W, ended: CancellationToken) -> (Arc<Self>, JoinHandle<()>)
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (orders, waiting_orders) = mpsc::channel(LINES_WAITING_MAX);
        let output = Arc::new(Self {
            orders,
            waiting: Mutex::default(),
            answered: Notify::new(),
            questions: Mutex::default(),
            last_question: AtomicU64::new(0),
            ended,
            write_error: Mutex::default(),
        });
        let task = tokio::spawn(write_lines(Arc::clone(&output), writer, waiting_orders));
        (output, task)
    }

    /// Notes a request until it is answered. Returns false if its id is in use.
    pub(crate) fn begin_request(&self, id: &RequestId) -> bool {
        self.waiting().insert(id.clone())
    }

    /// The number of requests whose answer the client has not received.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting().len()
    }

    /// Waits until every request has its answer.
    pub(crate) async fn wait_until_answered(&self) {
        loop {
            let answered = self.answered.notified();
            if self.waiting_count() == 0 {
                return;
            }
            answered.await;
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, id: RequestId, result: Result<Value, RpcError>) {
        let text = rpc::answer_line(Some(&id), &result);
        self.send_line(text, Some(id)).await;
    }

    /// Reports a message that cannot be handled. The request that it may name is not answered by it:
    /// another one with the same id may be running.
    pub(crate) async fn refuse(&self, id: Option<&RequestId>, error: RpcError) {
        self.send_line(rpc::answer_line(id, &Err(error)), None).await;
    }

    /// Sends an update of a session.
    pub(crate) async fn send_update(&self, session_id: &str, update: Value) {
        let params = json!({ "sessionId": session_id, "update": update });
        self.send_line(rpc::notification_line("session/update", &params), None).await;
    }

    /// Asks the client, and waits for the answer. Dropping the future withdraws the question.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Value, UnansweredQuestion> {
        let number = self.last_question.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        self.questions().insert(number, sender);
        let _withdrawal = QuestionWithdrawal { output: self, number };
        self.send_line(rpc::request_line(&question_id(number), method, params), None).await;
        tokio::select! {
            answer = receiver => answer.map_err(|_| UnansweredQuestion)?.map_err(|_| UnansweredQuestion),
            () = self.ended.cancelled() => Err(UnansweredQuestion),
        }
    }

    /// Takes the answer to one of our questions. One that is not open any more is ignored.
    pub(crate) fn deliver_answer(&self, id: &RequestId, result: Result<Value, Value>) {
        let RequestId::Number(number) = id else { return };
        let sender = number.as_u64().and_then(|number| self.questions().remove(&number));
        if let Some(sender) = sender {
            // Whoever asked may have stopped waiting.
            let _ = sender.send(result);
        }
    }

    /// Waits until everything that was sent is written, or cannot be written any more.
    pub(crate) async fn wait_until_written(&self) {
        let (report, written) = oneshot::channel();
        self.send_order(WriterOrder::Report(report)).await;
        let _ = written.await;
    }

    /// Takes the error that ended the output, unless the reader has gone, which is how a client may
    /// end a connection.
    pub(crate) fn take_write_error(&self) -> Option<io::Error> {
        let error = self.write_error().take();
        error.filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }

    async fn send_line(&self, text: String, answered: Option<RequestId>) {
        self.send_order(WriterOrder::Line { text, answered }).await;
    }

    /// Waits for room. Nothing is sent after the end.
    async fn send_order(&self, order: WriterOrder) {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => {}
            // The receiver goes only with the writer, which has ended everything then.
            _ = self.orders.send(order) => {}
        }
    }

    fn write_error(&self) -> MutexGuard<'_, Option<io::Error>> {
        self.write_error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Value, Value>>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn question_id(number: u64) -> RequestId {
    RequestId::Number(number.into())
}

/// Withdraws a question that nobody waits for any more, unless it has its answer.
struct QuestionWithdrawal<'a> {
    output: &'a ClientOutput,
    number: u64,
}

impl Drop for QuestionWithdrawal<'_> {
    fn drop(&mut self) {
        if self.output.questions().remove(&self.number).is_some() {
            let params = json!({ "requestId": question_id(self.number) });
            let text = rpc::notification_line("$/cancel_request", &params);
            // A client that does not read is not told: it has not seen the question either.
            let _ = self.output.orders.try_send(WriterOrder::Line { text, answered: None });
        }
    }
}

async fn write_lines(
    output: Arc<ClientOutput>,
    mut writer: impl AsyncWrite + Send + Unpin,
    mut orders: mpsc::Receiver<WriterOrder>,
) {
    let ended = output.ended.clone();
    while let Some(Some(order)) = ended.run_until_cancelled(orders.recv()).await {
        let (text, answered) = match order {
            WriterOrder::Line { text, answered } => (text + "\n", answered),
            WriterOrder::Report(report) => {
                let _ = report.send(());
                continue;
            }
        };
        let write = async {
            writer.write_all(text.as_bytes()).await?;
            writer.flush().await
        };
        let written = ended.run_until_cancelled(write).await;
        if !matches!(written, Some(Ok(()))) {
            *output.write_error() = written.and_then(Result::err);
            ended.cancel();
            return;
        }
        if let Some(id) = answered {
            output.waiting().remove(&id);
            output.answered.notify_waiters();
        }
    }
}
