//! Calls that take long, as tasks of the protocol's extension.
//!
//! A client that knows tasks gets the name of a task instead of a wait, and asks for the result later,
//! also on another connection and after its own restart. The store has each task before its client
//! hears of it. A call runs in this process alone: if that ends first, the task says that it was cut
//! off, and the call is not made again, because it may have had an effect. An end that cannot be stored
//! at once stays in memory until it can, and clients of this process get it from there.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rmcp::{
    ErrorData,
    model::{
        CancelTaskParams, CreateTaskResult, DetailedTask, ElicitResult, ErrorCode, GetTaskParams,
        GetTaskResult, InputRequests, Task, TaskPayload, TaskStatus, UpdateTaskParams,
    },
};
use sallyport_contract::{ApprovalAnswer, CallReport, FailureKind, Outcome, ToolDescriptor, text};
use sallyport_runtime::{HostNotice, clock::now_ms, session_id::new_session_id};
use sallyport_store::{NewTask, StoreError, StoredTask, TaskEnd, TaskState, TaskStore};
use serde_json::{Map, Value, json};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    approval, call_result,
    calls::{CallStep, ServedCall},
    connection_session::ConnectionSession,
    running_tasks::{RunningTasks, TaskView},
    server::McpServer,
};

/// How long a call may take before it becomes a task.
pub(crate) const TASK_AFTER: Duration = Duration::from_secs(1);

/// How long a task is known, in milliseconds. It begins with the task, as the protocol has it.
const TASK_TIME_MS: u64 = 60 * 60 * 1000;

/// How often a client should ask, in milliseconds.
const POLL_EVERY_MS: u64 = 1000;

/// First pause before an end is stored again. Each further one is twice as long.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause. After an outage, every end is stored within half a minute.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The message of a task that was cut off.
const CUT_OFF: &str = "the program ended while the call ran. Whether the call had an effect is not \
known; it was not made again";

/// A call that becomes a task.
pub(crate) struct LongCall {
    pub(crate) call: ServedCall,
    pub(crate) tool: ToolDescriptor,
    /// Keeps the session of the call open.
    pub(crate) session: Arc<ConnectionSession>,
    /// Whether its client can answer questions.
    pub(crate) can_ask: bool,
}

/// The end of a task, as the client gets it.
#[derive(Debug, Clone, PartialEq)]
enum TaskOutcome {
    Completed(Value),
    Failed(ErrorData),
    Cancelled,
}

/// Makes a task of a call. Returns the call if that is not possible; the client then waits for it.
pub(crate) async fn begin_task(
    server: &Arc<McpServer>,
    long: LongCall,
) -> Result<CreateTaskResult, Box<LongCall>> {
    let Some(place) = server.task_place() else { return Err(Box::new(long)) };
    // Twice 64 random bits.
    let id = format!("task-{}-{}", new_session_id(), new_session_id());
    let created_ms = now_ms();
    let task = NewTask {
        id: id.clone(),
        user: long.call.requested().context.user().to_owned(),
        name: long.tool.id.to_string(),
        created_ms,
        expires_ms: created_ms + TASK_TIME_MS,
    };
    if let Err(error) = server.host().store().tasks.add_task(task.clone()).await {
        let text = format!("a long call does not become a task: {error}");
        server.host().notices()(HostNotice::Warning(text));
        return Err(Box::new(long));
    }
    let cancel = server.tasks().begin(task.clone());
    let stored = StoredTask { task, updated_ms: created_ms, state: TaskState::Running };
    // It outlives its request, whose runtime may end with the client.
    let run = run_task(Arc::clone(server), id, long, (cancel, place));
    server.call_runtime().spawn(run);
    Ok(CreateTaskResult::new(wire_task(&stored, None)))
}

/// Accompanies a task to its end, and keeps the end.
async fn run_task(
    server: Arc<McpServer>,
    id: String,
    long: LongCall,
    (cancel, _place): (CancellationToken, OwnedSemaphorePermit),
) {
    let LongCall { mut call, tool, session, can_ask } = long;
    let outcome = loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break TaskOutcome::Cancelled,
            () = server.stop_token().cancelled() => break TaskOutcome::Failed(cut_off()),
            step = call.next_step() => match step {
                CallStep::Finished(report) => break task_outcome(&report, &tool),
                CallStep::Event(event) => server.tasks().note_event(&id, event, can_ask),
            },
        }
    };
    // Ends the call, if it still runs, and its session, which does not wait for the store.
    drop((call, session));
    let store = &server.host().store().tasks;
    let kept = server.tasks().keep_end(&**store, &id, outcome.into_end(), server.stop_token());
    if let Err(error) = kept.await {
        let text = format!("the end of a task is not kept: {error}");
        server.host().notices()(HostNotice::Warning(text));
    }
}

impl RunningTasks {
    /// Stores the end of a task. It is tried again until the store has it, the task has expired or the
    /// server stops; until then, clients of this process get the end from memory. The places of tasks
    /// bound how many ends wait.
    ///
    /// # Errors
    ///
    /// The last error of the store, if it never had the end.
    async fn keep_end(
        &self,
        store: &dyn TaskStore,
        id: &str,
        mut end: TaskEnd,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let ended_ms = now_ms();
        let mut pause = RETRY_PAUSE_MIN;
        let kept = loop {
            let error = match store.end_task(id, end.clone(), ended_ms).await {
                Ok(_) => break Ok(()),
                Err(StoreError::TooLong { .. }) => {
                    let error =
                        ErrorData::internal_error("the result is too long to be kept", None);
                    end = TaskOutcome::Failed(error).into_end();
                    continue;
                }
                Err(error) => error,
            };
            let expires_ms = self.note_end(id, &end, ended_ms);
            if stop.is_cancelled() || now_ms() >= expires_ms {
                break Err(error);
            }
            // The last attempt follows the stop.
            let _ = timeout(pause, stop.cancelled()).await;
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        };
        self.remove(id);
        kept
    }
}

/// Returns where a task of a user stands, with its result if it has one.
pub(crate) async fn get_task(
    server: &McpServer,
    user: &str,
    request: &GetTaskParams,
) -> Result<GetTaskResult, ErrorData> {
    let TaskView { stored, forms, message } = find_task(server, user, &request.task_id).await?;
    let (payload, message) = match &stored.state {
        TaskState::Ended(end) => (ended_payload(end), None),
        TaskState::CutOff => (TaskOutcome::Failed(cut_off()).into_payload(), None),
        TaskState::Running if forms.is_empty() => (TaskPayload::Working, message),
        TaskState::Running => (TaskPayload::InputRequired { input_requests: forms }, message),
    };
    let task = DetailedTask::new(wire_task(&stored, message), payload);
    Ok(GetTaskResult::new(task))
}

/// Gives the answers of a client to a task. An answer to another question changes nothing.
pub(crate) async fn update_task(
    server: &McpServer,
    user: &str,
    request: UpdateTaskParams,
) -> Result<(), ErrorData> {
    find_task(server, user, &request.task_id).await?;
    for (key, answer) in request.input_responses {
        let Some(question) = server.tasks().take_question(&request.task_id, &key) else { continue };
        let form = serde_json::from_value::<ElicitResult>(answer).ok();
        let answer = form.map_or(ApprovalAnswer::No { reason: None }, |form| {
            approval::answer_from_form(&form, &question.request)
        });
        question.answer(answer);
    }
    Ok(())
}

/// Cancels a task. One that has ended stays as it is.
pub(crate) async fn cancel_task(
    server: &McpServer,
    user: &str,
    request: &CancelTaskParams,
) -> Result<(), ErrorData> {
    let TaskView { stored, .. } = find_task(server, user, &request.task_id).await?;
    let cancel = server.tasks().cancel_token(&request.task_id);
    match (cancel, stored.state) {
        (Some(cancel), _) => cancel.cancel(),
        (None, TaskState::Running) => {
            let text = "the task runs in another process, which alone can cancel it";
            return Err(ErrorData::internal_error(text, None));
        }
        (None, TaskState::CutOff | TaskState::Ended(_)) => {}
    }
    Ok(())
}

/// Finds a task. What this process knows of its own tasks comes first, because it is newer than what
/// the store has, and known while the store is away.
async fn find_task(server: &McpServer, user: &str, id: &str) -> Result<TaskView, ErrorData> {
    if let Some(view) = server.tasks().look(user, id) {
        return Ok(view);
    }
    let found = server.host().store().tasks.find_task(user, id, now_ms()).await;
    let found = found.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let stored = found.ok_or_else(|| {
        let shown = text::escape_excerpt(id, 100);
        ErrorData::invalid_params(format!("there is no task {shown}, or no longer"), None)
    })?;
    let message = Some("it runs in another process".to_owned());
    Ok(TaskView { stored, forms: InputRequests::default(), message })
}

fn wire_task(stored: &StoredTask, message: Option<String>) -> Task {
    let NewTask { id, created_ms, expires_ms, .. } = &stored.task;
    let mut task =
        Task::new(id, TaskStatus::Working, wire_time(*created_ms), wire_time(stored.updated_ms))
            .with_ttl_ms(expires_ms.saturating_sub(*created_ms))
            .with_poll_interval_ms(POLL_EVERY_MS);
    task.status_message = message;
    task
}

fn wire_time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

fn cut_off() -> ErrorData {
    ErrorData::internal_error(CUT_OFF, None)
}

/// A plugin that broke is a failure of the task; a tool that failed has a result that reports it.
fn task_outcome(report: &CallReport, tool: &ToolDescriptor) -> TaskOutcome {
    if let Outcome::Failed(failure) = &report.outcome
        && matches!(failure.kind, FailureKind::Trapped | FailureKind::Internal)
    {
        let data = call_result::reason(&report.outcome, &tool.id);
        let data = Some(json!({ call_result::REASON_KEY: data }));
        let message = call_result::failure_text(&report.outcome, &tool.id);
        return TaskOutcome::Failed(ErrorData::internal_error(message, data));
    }
    let result = call_result::result_from_report(report, tool);
    TaskOutcome::Completed(serde_json::to_value(result).unwrap_or_default())
}

impl TaskOutcome {
    fn into_end(self) -> TaskEnd {
        let (kind, body) = match self {
            Self::Completed(result) => ("completed", result),
            Self::Failed(error) => ("failed", serde_json::to_value(error).unwrap_or_default()),
            Self::Cancelled => ("cancelled", Value::Null),
        };
        TaskEnd { kind: kind.to_owned(), body: body.to_string() }
    }

    fn into_payload(self) -> TaskPayload {
        ended_payload(&self.into_end())
    }
}

/// What a client gets of the end of a task.
fn ended_payload(end: &TaskEnd) -> TaskPayload {
    let body: Map<String, Value> = serde_json::from_str(&end.body).unwrap_or_default();
    match end.kind.as_str() {
        "completed" => TaskPayload::Completed { result: body },
        "cancelled" => TaskPayload::Cancelled,
        _ => TaskPayload::Failed { error: with_code(body) },
    }
}

/// An error as it was kept, or one that states that none was kept.
fn with_code(error: Map<String, Value>) -> Map<String, Value> {
    match error.contains_key("code") {
        true => error,
        false => {
            let code = ErrorCode::INTERNAL_ERROR.0;
            let kept = json!({ "code": code, "message": "the end of the task cannot be read" });
            kept.as_object().cloned().unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests;
