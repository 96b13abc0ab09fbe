//! The tasks that run in this process, and their questions.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::model::{ElicitRequest, InputRequest, InputRequests};
use sallyport_contract::{ApprovalAnswer, text};
use sallyport_runtime::clock::now_ms;
use sallyport_store::{NewTask, StoredTask, TaskEnd, TaskState};
use tokio_util::sync::CancellationToken;

use crate::{
    approval,
    calls::{CallEvent, ClientQuestion},
};

/// Most questions of a task that wait at the same time. A guest that sends more requests at once than a
/// user can look through is refused the others.
pub(crate) const QUESTIONS_MAX: usize = 16;

/// Longest state of a task in words, in characters.
const MESSAGE_CHARS_MAX: usize = 300;

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
pub(crate) struct TaskView {
    pub(crate) stored: StoredTask,
    /// The questions that wait.
    pub(crate) forms: InputRequests,
    /// What it does at the moment.
    pub(crate) message: Option<String>,
}

impl RunningTasks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a task. Returns the token that cancels it.
    pub(crate) fn begin(&self, task: NewTask) -> CancellationToken {
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

    /// Notes how a task ended that the store does not take yet. Returns when it expires.
    pub(crate) fn note_end(&self, id: &str, end: &TaskEnd, ended_ms: u64) -> u64 {
        let mut tasks = self.lock();
        let Some(task) = tasks.get_mut(id) else { return ended_ms };
        task.questions.clear();
        task.end.get_or_insert_with(|| (end.clone(), ended_ms));
        task.task.expires_ms
    }

    /// Notes what a task does, and keeps its question if its client can be asked.
    pub(crate) fn note_event(&self, id: &str, event: CallEvent, can_ask: bool) {
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
    pub(crate) fn look(&self, user: &str, id: &str) -> Option<TaskView> {
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
    pub(crate) fn take_question(&self, id: &str, key: &str) -> Option<ClientQuestion> {
        let mut tasks = self.lock();
        let questions = &mut tasks.get_mut(id)?.questions;
        let place = questions.iter().position(|(open, _)| open == key)?;
        Some(questions.remove(place).1)
    }

    /// The token that cancels a task.
    pub(crate) fn cancel_token(&self, id: &str) -> Option<CancellationToken> {
        self.lock().get(id).map(|task| task.cancel.clone())
    }

    /// Forgets a task.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
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
