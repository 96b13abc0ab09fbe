//! Takes a question to everyone who may answer it, and the first valid answer back.
//!
//! A question goes to the front end of its session. At the same time it is published in the store,
//! where another program of the same user can answer it, and given to the operator's hook. Every
//! answer takes the same step in the store, so only one of them counts. The others are told which
//! one that was. A question that cannot be published is answered by its front end alone.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, Consent};
use sallyport_store::{AnswerResult, HostStore, QuestionStore, StoredAnswer, StoredQuestion};
use tokio::task::JoinHandle;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use super::{
    MessageSink,
    approval_hook::{ApprovalHook, HOOK_CARRIER},
    question_answer::store_answer,
    sealed_question::{QuestionSeal, SealedQuestion},
};

/// How often the store is asked for an answer. It is one lookup by key while a question is open, and
/// a user does not notice the delay.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Longest wait at the end of the program for the store to remove questions. One that remains
/// expires.
const WITHDRAWAL_TIME_MAX: Duration = Duration::from_secs(5);

/// The name of the front end among the carriers of answers.
const FRONT_END_CARRIER: &str = "the program that asked";

/// Asks questions.
pub(crate) struct ApprovalDesk {
    consent: Arc<dyn Consent>,
    questions: Option<Arc<dyn QuestionStore>>,
    hook: Option<ApprovalHook>,
    message_sink: MessageSink,
    /// The questions that are in the store, until they are removed from it.
    published: TaskTracker,
}

impl ApprovalDesk {
    pub(crate) fn new(
        consent: Arc<dyn Consent>,
        store: Option<&HostStore>,
        hook: Option<ApprovalHook>,
        message_sink: MessageSink,
    ) -> Self {
        let questions = store.map(|store| Arc::clone(&store.questions));
        Self { consent, questions, hook, message_sink, published: TaskTracker::new() }
    }

    /// Waits until the questions that nobody asks any more are removed from the store. Without it,
    /// the end of the program would leave those of calls that were dropped just before.
    pub(crate) async fn wait_for_withdrawals(&self) {
        self.published.close();
        // The store may not respond, which must not keep the program from its end.
        let _ = tokio::time::timeout(WITHDRAWAL_TIME_MAX, self.published.wait()).await;
    }

    /// Asks a question. `None` if there was no answer in time.
    pub(crate) async fn ask(
        &self,
        request: ApprovalRequest,
        time_max: Duration,
    ) -> Option<ApprovalAnswer> {
        let question = SealedQuestion::new(request, time_max);
        tokio::time::timeout(time_max, self.first_answer(question)).await.ok()
    }

    async fn first_answer(&self, question: SealedQuestion) -> ApprovalAnswer {
        let asked = self.consent.ask_user(question.request.clone());
        let Some(published) = self.publishable(&question) else { return asked.await };
        let elsewhere = published.answer_from_elsewhere(self);
        let mut elsewhere = std::pin::pin!(elsewhere);
        tokio::select! {
            answer = &mut elsewhere => answer,
            answer = asked => match answer {
                // The hook may still reach someone.
                ApprovalAnswer::Nobody if self.hook.is_some() => elsewhere.await,
                ApprovalAnswer::Nobody => ApprovalAnswer::Nobody,
                answer => self.settle(&published, answer).await,
            },
        }
    }

    fn publishable<'a>(&self, question: &'a SealedQuestion) -> Option<PublishedQuestion<'a>> {
        let questions = Arc::clone(self.questions.as_ref()?);
        let token = self.published.token();
        Some(PublishedQuestion { questions, seal: question.seal()?, question, token })
    }

    /// Enters the answer of the front end, and returns the one that counts.
    async fn settle(
        &self,
        published: &PublishedQuestion<'_>,
        answer: ApprovalAnswer,
    ) -> ApprovalAnswer {
        // The values stay in this program, because nobody else needs them.
        match published.enter_answer(&answer.without_values(), FRONT_END_CARRIER).await {
            Some(AnswerResult::AnsweredBefore(before)) => {
                let text = format!("the question was answered before, by {}", before.carrier);
                (self.message_sink)(&text);
                published.read_answer(&before)
            }
            Some(AnswerResult::Expired | AnswerResult::OtherHash) => {
                ApprovalAnswer::No { reason: None }
            }
            // A question that was never published has no other answer.
            Some(AnswerResult::Accepted | AnswerResult::NotAsked) | None => answer,
        }
    }
}

/// A question in the store. Dropping it withdraws the question, unless it has an answer.
struct PublishedQuestion<'a> {
    questions: Arc<dyn QuestionStore>,
    seal: QuestionSeal,
    question: &'a SealedQuestion,
    token: TaskTrackerToken,
}

impl PublishedQuestion<'_> {
    /// Waits for an answer of another program, or of the hook. Waits forever if there cannot be one.
    async fn answer_from_elsewhere(&self, desk: &ApprovalDesk) -> ApprovalAnswer {
        if self.questions.publish_question(self.stored()).await.is_err() {
            // The front end asks all the same, and whatever needs the store reports its failure.
            std::future::pending::<()>().await;
        }
        let hook = desk.hook.as_ref().map(|hook| self.start_hook(hook, &desk.message_sink));
        let _running = HookTask(hook);
        loop {
            if let Ok(Some(found)) = self.questions.find_answer(&self.seal.id).await {
                let answer = self.read_answer(&found);
                // What the user filled in is for the server alone.
                let kept = serde_json::to_string(&answer.without_values()).ok();
                // The one who answered waits to hear that it was received.
                let _ = self.questions.close_question(&self.seal.id, kept.as_deref()).await;
                return answer;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Starts the hook in a task of its own, which enters its answer as any other.
    fn start_hook(&self, hook: &ApprovalHook, message_sink: &MessageSink) -> JoinHandle<()> {
        let (hook, question) = (hook.clone(), self.question.clone());
        let (seal, message_sink) = (self.seal.clone(), Arc::clone(message_sink));
        let questions = Arc::clone(&self.questions);
        tokio::spawn(async move {
            match hook.ask(&question, &seal).await {
                Ok(Some(answer)) => {
                    let entered =
                        enter_answer(&*questions, &question, &seal, &answer, HOOK_CARRIER);
                    entered.await;
                }
                Ok(None) => {}
                Err(error) => message_sink(&format!("the hook for approvals: {error}")),
            }
        })
    }

    fn stored(&self) -> StoredQuestion {
        let QuestionSeal { id, hash, text } = self.seal.clone();
        let SealedQuestion { asked_ms, expires_ms, .. } = *self.question;
        let user = self.question.request.call.context.user().to_owned();
        StoredQuestion { id, user, text, hash, asked_ms, expires_ms }
    }

    async fn enter_answer(&self, answer: &ApprovalAnswer, carrier: &str) -> Option<AnswerResult> {
        enter_answer(&*self.questions, self.question, &self.seal, answer, carrier).await
    }

    /// Reads an answer that counts. What the question did not offer is a no.
    fn read_answer(&self, found: &StoredAnswer) -> ApprovalAnswer {
        let answer = serde_json::from_str(&found.answer).ok();
        let offered = answer.filter(|answer| self.question.offers(answer));
        offered.unwrap_or(ApprovalAnswer::No { reason: None })
    }
}

impl Drop for PublishedQuestion<'_> {
    fn drop(&mut self) {
        let (questions, id) = (Arc::clone(&self.questions), self.seal.id.clone());
        // Without a runtime the question expires.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let withdrawal = async move {
                let _ = questions.withdraw_question(&id).await;
                // The text of an answered question goes, too.
                let _ = questions.close_question(&id, None).await;
            };
            self.token.task_tracker().spawn_on(withdrawal, &runtime);
        }
    }
}

/// Enters an answer. `None` if the store cannot be used.
async fn enter_answer(
    questions: &dyn QuestionStore,
    question: &SealedQuestion,
    seal: &QuestionSeal,
    answer: &ApprovalAnswer,
    carrier: &str,
) -> Option<AnswerResult> {
    let user = question.request.call.context.user();
    store_answer(questions, user, (&seal.id, &seal.hash), answer, carrier).await.ok()
}

/// Ends a task with whoever waits for it.
struct HookTask(Option<JoinHandle<()>>);

impl Drop for HookTask {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
