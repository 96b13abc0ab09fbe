//! The questions of a server during one call, and the time of the call, which stands still meanwhile.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{AdmittedCall, BoxFuture, FormQuestion};
use sallyport_mcp_client::{CallQuestions, QuestionReply};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::gate::{authorizer::PluginAuthorizer, server_questions::FormOutcome};

/// Asks the user of a call on behalf of its server.
pub(super) struct UserQuestions {
    authorizer: Arc<PluginAuthorizer>,
    call: Arc<AdmittedCall>,
    owner: String,
    /// How many questions wait for an answer.
    open: watch::Sender<usize>,
}

/// A call has reached its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeLimitReached;

/// A question that waits, until this is dropped.
struct WaitingQuestion<'a>(&'a watch::Sender<usize>);

impl UserQuestions {
    /// The questions of a call.
    pub(super) fn new(authorizer: &Arc<PluginAuthorizer>, call: &Arc<AdmittedCall>) -> Arc<Self> {
        let context = call.context();
        Arc::new(Self {
            authorizer: Arc::clone(authorizer),
            call: Arc::clone(call),
            // No name of a user has a line break.
            owner: format!("{}\n{}", context.user(), context.session_id),
            open: watch::Sender::new(0),
        })
    }

    /// Waits for the end of a call. The time in which the user is asked does not count.
    pub(super) async fn run_within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> Result<T, TimeLimitReached> {
        run_within(self.open.subscribe(), limit, call).await
    }
}

impl CallQuestions for UserQuestions {
    fn owner(&self) -> &str {
        &self.owner
    }

    fn ask_user(&self, question: FormQuestion) -> BoxFuture<'_, QuestionReply> {
        Box::pin(async move {
            let _open = WaitingQuestion::new(&self.open);
            match self.authorizer.ask_for_server(&self.call, question).await {
                FormOutcome::Accepted(values) => QuestionReply::Accepted(values),
                FormOutcome::Declined => QuestionReply::Declined,
                FormOutcome::HasSecret => QuestionReply::Withheld,
                FormOutcome::Unanswered => QuestionReply::Unanswered,
            }
        })
    }
}

impl<'a> WaitingQuestion<'a> {
    fn new(open: &'a watch::Sender<usize>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open)
    }
}

impl Drop for WaitingQuestion<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

async fn run_within<T>(
    mut open: watch::Receiver<usize>,
    limit: Duration,
    call: impl Future<Output = T>,
) -> Result<T, TimeLimitReached> {
    let mut call = std::pin::pin!(call);
    let mut left = limit;
    loop {
        let is_waiting = *open.borrow_and_update() > 0;
        let began = Instant::now();
        tokio::select! {
            done = &mut call => return Ok(done),
            () = sleep(left), if !is_waiting => return Err(TimeLimitReached),
            // The other end lives as long as the call.
            Ok(()) = open.changed() => {
                if !is_waiting {
                    left = left.saturating_sub(began.elapsed());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_call_stands_still_while_the_user_is_asked() {
        let seconds = Duration::from_secs;
        // How long the call works, is asked, and works; its limit; whether it ends in time.
        let rows = [
            (1, 100, 1, 3, true),
            (1, 100, 3, 3, false),
            (4, 0, 0, 3, false),
            (0, 1000, 2, 3, true),
        ];
        for (before, asked, after, limit, is_in_time) in rows {
            let open = watch::Sender::new(0);
            let receiver = open.subscribe();
            let call = async {
                sleep(seconds(before)).await;
                let question = WaitingQuestion::new(&open);
                sleep(seconds(asked)).await;
                drop(question);
                sleep(seconds(after)).await;
            };
            let ended = run_within(receiver, seconds(limit), call).await;
            assert_eq!(ended.is_ok(), is_in_time, "{before} {asked} {after} {limit}");
        }
    }
}
