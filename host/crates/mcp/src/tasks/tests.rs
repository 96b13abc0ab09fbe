//! The ends and the questions of tasks.

use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};

use rmcp::model::ElicitationAction;
use sallyport_contract::{
    ApprovalRequest, ApprovalSubject, RequestedCall, ToolCallContext, async_trait,
};
use sallyport_store::tasks::TASK_RESULT_BYTES_MAX;
use tokio::sync::oneshot;

use super::*;
use crate::{
    calls::{CallEvent, ClientQuestion},
    running_tasks::QUESTIONS_MAX,
};

const ID: &str = "task-1";

/// A store that fails a number of times before it takes an end.
struct FailingStore {
    failures: AtomicU32,
    ended: Mutex<Vec<TaskEnd>>,
}

#[async_trait]
impl TaskStore for FailingStore {
    async fn add_task(&self, _: NewTask) -> Result<(), StoreError> {
        Ok(())
    }

    async fn end_task(&self, _: &str, end: TaskEnd, _: u64) -> Result<bool, StoreError> {
        let bytes = end.body.len();
        if bytes > TASK_RESULT_BYTES_MAX {
            let (what, bytes_max) = ("the result of a task", TASK_RESULT_BYTES_MAX);
            return Err(StoreError::TooLong { what, bytes, bytes_max });
        }
        let left = self.failures.load(Ordering::SeqCst);
        if left > 0 {
            self.failures.store(left - 1, Ordering::SeqCst);
            let (database, message) = ("a test".to_owned(), "it is away".to_owned());
            return Err(StoreError::Unreachable { database, message });
        }
        self.ended.lock().unwrap().push(end);
        Ok(true)
    }

    async fn find_task(&self, _: &str, _: &str, _: u64) -> Result<Option<StoredTask>, StoreError> {
        Ok(None)
    }
}

fn failing(failures: u32) -> Arc<FailingStore> {
    let (failures, ended) = (AtomicU32::new(failures), Mutex::default());
    Arc::new(FailingStore { failures, ended })
}

fn running_task() -> Arc<RunningTasks> {
    let tasks = Arc::<RunningTasks>::default();
    let created_ms = now_ms();
    let [id, user, name] = [ID, "ann", "mail.send"].map(str::to_owned);
    let expires_ms = created_ms + TASK_TIME_MS;
    tasks.begin(NewTask { id, user, name, created_ms, expires_ms });
    tasks
}

fn question() -> (ClientQuestion, oneshot::Receiver<ApprovalAnswer>) {
    ClientQuestion::new(ApprovalRequest {
        call: RequestedCall {
            context: ToolCallContext::default(),
            tool: "mail.send".parse().unwrap(),
            arguments: "{}".to_owned(),
        },
        subject: ApprovalSubject::Call,
        request: None,
        plugin_version: "1.2.0".to_owned(),
        plugin_digest: "0123456789abcdef".to_owned(),
        reason: "no rule for it".to_owned(),
        rule: None,
        capabilities: Vec::new(),
    })
}

fn keys(tasks: &RunningTasks) -> Vec<String> {
    tasks.look("ann", ID).unwrap().forms.into_keys().collect()
}

#[tokio::test]
async fn a_second_question_of_a_task_does_not_refuse_the_first() {
    let tasks = running_task();
    let (first, mut first_answer) = question();
    let (second, mut second_answer) = question();
    for question in [first, second] {
        tasks.note_event(ID, CallEvent::Question(question), true);
    }
    assert_eq!(keys(&tasks), ["approval-1", "approval-2"]);
    assert!(first_answer.try_recv().is_err(), "it is not answered yet");
    let form =
        ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "approve": "once" }));
    let first = tasks.take_question(ID, "approval-1").unwrap();
    let answer = approval::answer_from_form(&form, &first.request);
    first.answer(answer);
    assert_eq!(first_answer.try_recv(), Ok(ApprovalAnswer::Once));
    assert!(tasks.take_question(ID, "approval-1").is_none(), "it is answered once");
    assert_eq!(keys(&tasks), ["approval-2"]);
    tasks.take_question(ID, "approval-2").unwrap().answer(ApprovalAnswer::Session);
    assert_eq!(second_answer.try_recv(), Ok(ApprovalAnswer::Session));
}

#[tokio::test]
async fn a_task_has_a_bounded_number_of_open_questions() {
    let tasks = running_task();
    let mut answers = Vec::new();
    for _ in 0..=QUESTIONS_MAX {
        let (question, answer) = question();
        tasks.note_event(ID, CallEvent::Question(question), true);
        answers.push(answer);
    }
    assert_eq!(answers.pop().unwrap().try_recv(), Ok(ApprovalAnswer::Nobody));
    assert_eq!(keys(&tasks).len(), QUESTIONS_MAX);
    // One that its guest does not wait for any more makes room.
    answers.remove(0);
    let (further, mut answer) = question();
    tasks.note_event(ID, CallEvent::Question(further), true);
    assert!(answer.try_recv().is_err(), "it waits");
    assert_eq!(keys(&tasks).len(), QUESTIONS_MAX);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_stored_at_once_is_not_replaced_by_a_failure() {
    let (tasks, store) = (running_task(), failing(5));
    let end = TaskOutcome::Completed(json!({ "content": [] })).into_end();
    let keeping = tokio::spawn({
        let (tasks, store, end) = (Arc::clone(&tasks), Arc::clone(&store), end.clone());
        async move { tasks.keep_end(&*store, ID, end, &CancellationToken::new()).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let state = |user| tasks.look(user, ID).map(|view| view.stored.state);
    assert_eq!(state("ann"), Some(TaskState::Ended(end.clone())), "clients get it meanwhile");
    assert_eq!(state("ben"), None);
    keeping.await.unwrap().unwrap();
    assert_eq!(*store.ended.lock().unwrap(), [end]);
    assert_eq!(state("ann"), None, "the store has it");
}

#[tokio::test(start_paused = true)]
async fn only_a_result_that_is_too_long_is_replaced() {
    let (tasks, store) = (running_task(), failing(1));
    let long = "x".repeat(TASK_RESULT_BYTES_MAX + 1);
    let end = TaskOutcome::Completed(json!({ "text": long })).into_end();
    tasks.keep_end(&*store, ID, end, &CancellationToken::new()).await.unwrap();
    let ended = store.ended.lock().unwrap();
    assert!(ended[0].body.contains("too long to be kept"), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_tries_once_more_and_does_not_wait() {
    for (failures, is_kept) in [(1, true), (9, false)] {
        let (tasks, store, stop) = (running_task(), failing(failures), CancellationToken::new());
        let end = TaskOutcome::Cancelled.into_end();
        let (kept, ()) = tokio::join!(tasks.keep_end(&*store, ID, end, &stop), async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            stop.cancel();
        });
        assert_eq!(kept.is_ok(), is_kept);
    }
}
