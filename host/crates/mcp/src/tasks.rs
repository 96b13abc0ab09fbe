//! Calls that take long, as tasks of the protocol's extension.
//!
//! A client that knows tasks gets the name of a task instead of a wait, and asks for the result later,
//! also on another connection and after its own restart. The store has each task before its client
//! hears of it. A call runs in this process alone: if that ends first, the task says that it was cut
//! off, and the call is not made again, because it may have had an effect. An end that cannot be stored
//! at once stays in memory until it can, and clients of this process get it from there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use rmcp::{
    ErrorData,
    model::{
        CancelTaskParams, CreateTaskResult, DetailedTask, ElicitRequest, ElicitResult, ErrorCode,
        GetTaskParams, GetTaskResult, InputRequest, InputRequests, Task, TaskPayload, TaskStatus,
        UpdateTaskParams,
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
    calls::{CallEvent, CallStep, ClientQuestion, ServedCall},
    connection_session::ConnectionSession,
    server::McpServer,
};

/// How long a call may take before it becomes a task.
pub(crate) const TASK_AFTER: Duration = Duration::from_secs(1);

/// How long a task is known, in milliseconds. It begins with the task, as the protocol has it.
const TASK_TIME_MS: u64 = 60 * 60 * 1000;

/// How often a client should ask, in milliseconds.
const POLL_EVERY_MS: u64 = 1000;

/// Most questions of a task that wait at the same time. A guest that sends more requests at once than a
/// user can look through is refused the others.
const QUESTIONS_MAX: usize = 16;

/// First pause before an end is stored again. Each further one is twice as long.
const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause. After an outage, every end is stored within half a minute.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Longest state of a task in words, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

/// The message of a task that was cut off.
const CUT_OFF: &str = "the program ended while the call ran. Whether the call had an effect is not \
known; it was not made again";

/// The tasks that run in this process, by their id.
#[derive(Default)]
pub(crate) struct RunningTasks {
    tasks: Mutex<HashMap<String, RunningTask>>,
}

/// What a client can reach of a task whose end is not stored.
struct RunningTask {
    task: NewTask,
    cancel: CancellationToken,
    /// The questions that wait for their answers, each with the key of its answer.
    questions: Vec<(String, ClientQuestion)>,
    /// How many questions there were.
    question_count: u32,
    /// What it does at the moment.
    message: Option<String>,
    /// How it ended, and when.
    end: Option<(TaskEnd, u64)>,
}

/// A task as this process knows it.
struct TaskView {
    stored: StoredTask,
    /// The questions that wait.
    forms: InputRequests,
    /// What it does at the moment.
    message: Option<String>,
}

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

impl RunningTasks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    tokio::spawn(run_task(Arc::clone(server), id, long, (cancel, place)));
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
    fn begin(&self, task: NewTask) -> CancellationToken {
        let cancel = CancellationToken::new();
        let running = RunningTask {
            task,
            cancel: cancel.clone(),
            questions: Vec::new(),
            question_count: 0,
            message: None,
            end: None,
        };
        self.lock().insert(running.task.id.clone(), running);
        cancel
    }

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
        self.lock().remove(id);
        kept
    }

    /// Notes how a task ended that the store does not take yet. Returns when it expires.
    fn note_end(&self, id: &str, end: &TaskEnd, ended_ms: u64) -> u64 {
        let mut tasks = self.lock();
        let Some(task) = tasks.get_mut(id) else { return ended_ms };
        task.questions.clear();
        task.end.get_or_insert_with(|| (end.clone(), ended_ms));
        task.task.expires_ms
    }

    fn note_event(&self, id: &str, event: CallEvent, can_ask: bool) {
        let mut tasks = self.lock();
        let Some(task) = tasks.get_mut(id) else { return };
        match event {
            CallEvent::Contacting(server) => task.say(&format!("contacting {server}")),
            CallEvent::Progress(progress) => {
                task.say(progress.message.as_deref().unwrap_or_default());
            }
            CallEvent::Question(question) => {
                let can_show = can_ask && approval::question_form(&question.request).is_some();
                if !can_show {
                    return question.answer(ApprovalAnswer::Nobody);
                }
                task.add_question(question);
            }
        }
    }

    /// A task of a user whose end is not stored.
    fn look(&self, user: &str, id: &str) -> Option<TaskView> {
        let mut tasks = self.lock();
        let task = tasks.get_mut(id)?;
        if task.task.user != user || task.task.expires_ms <= now_ms() {
            return None;
        }
        task.questions.retain(|(_, question)| !question.is_withdrawn());
        let forms = task.questions.iter().filter_map(|(key, question)| {
            let form = approval::question_form(&question.request)?;
            Some((key.clone(), InputRequest::Elicitation(ElicitRequest::new(form))))
        });
        let (state, updated_ms) = match task.end.clone() {
            Some((end, ended_ms)) => (TaskState::Ended(end), ended_ms),
            None => (TaskState::Running, task.task.created_ms),
        };
        let stored = StoredTask { task: task.task.clone(), updated_ms, state };
        Some(TaskView { stored, forms: forms.collect(), message: task.message.clone() })
    }

    /// Takes an open question of a task by the key of its answer.
    fn take_question(&self, id: &str, key: &str) -> Option<ClientQuestion> {
        let mut tasks = self.lock();
        let questions = &mut tasks.get_mut(id)?.questions;
        let place = questions.iter().position(|(open, _)| open == key)?;
        Some(questions.remove(place).1)
    }
}

impl RunningTask {
    fn say(&mut self, message: &str) {
        let message = text::escape_excerpt(message, MESSAGE_CHARS_MAX);
        self.message = Some(message).filter(|message| !message.is_empty());
    }

    /// Adds a question to those that wait, unless there are too many.
    fn add_question(&mut self, question: ClientQuestion) {
        self.questions.retain(|(_, question)| !question.is_withdrawn());
        if self.questions.len() >= QUESTIONS_MAX {
            return question.answer(ApprovalAnswer::Nobody);
        }
        self.question_count += 1;
        self.questions.push((format!("approval-{}", self.question_count), question));
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
    let cancel = server.tasks().lock().get(&request.task_id).map(|task| task.cancel.clone());
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
