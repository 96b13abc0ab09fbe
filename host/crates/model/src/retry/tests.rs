//! Retries under a paused clock, which advances only while all tasks wait.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::chat::{AssistantMessage, FinishReason};

/// The deltas of an attempt, and its result.
type Attempt = (Vec<ReplyDelta>, Result<ModelReply, ModelError>);

struct Scripted(Mutex<VecDeque<Attempt>>);

impl ChatModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn price(&self) -> Option<TokenPrice> {
        Some(TokenPrice { input: 1.0, output: 2.0, cached_input: 3.0, cache_write: 4.0 })
    }

    fn generate<'a>(
        &'a self,
        _: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let (deltas, end) = next.expect("an attempt too many");
        deltas.into_iter().for_each(on_delta);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            end
        })
    }
}

const TIME_MAX: Duration = Duration::from_secs(3600);

fn retrying(attempts: Vec<Attempt>) -> (Arc<Scripted>, RetryingModel) {
    let scripted = Arc::new(Scripted(Mutex::new(attempts.into())));
    (Arc::clone(&scripted), RetryingModel::new(scripted, TIME_MAX))
}

async fn ask(model: &RetryingModel) -> (Result<ModelReply, ModelError>, Vec<ReplyDelta>) {
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let request = ModelRequest::default();
    let end = model.generate(request, &mut on_delta).await;
    (end, deltas)
}

fn reply() -> ModelReply {
    let message = AssistantMessage { text: "hi".to_owned(), ..AssistantMessage::default() };
    ModelReply { message, finish: FinishReason::Stop, usage: None }
}

fn limited(retry_after: Option<u64>) -> ModelError {
    let retry_after = retry_after.map(Duration::from_secs);
    ModelError::RateLimited { provider: "p".to_owned(), message: "m".to_owned(), retry_after }
}

fn refused(status: u16, retry_after: Option<u64>) -> ModelError {
    let retry_after = retry_after.map(Duration::from_secs);
    ModelError::Refused { provider: "p".to_owned(), status, message: "m".to_owned(), retry_after }
}

fn unreachable() -> ModelError {
    ModelError::Unreachable { provider: "p".to_owned(), message: "m".to_owned() }
}

fn silent(error: &ModelError) -> Attempt {
    (Vec::new(), Err(error.clone()))
}

/// The reported waits, each with the number of the next attempt.
fn waits(deltas: &[ReplyDelta]) -> Vec<(u32, Duration)> {
    let wait = |delta: &ReplyDelta| match delta {
        ReplyDelta::Retry { attempt, wait, .. } => Some((*attempt, *wait)),
        _ => None,
    };
    deltas.iter().filter_map(wait).collect()
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_asked_again_and_the_waits_grow() {
    let passing = [
        limited(None),
        unreachable(),
        refused(408, None),
        refused(409, None),
        refused(425, None),
        refused(500, None),
        refused(503, None),
        refused(529, None),
    ];
    for error in passing {
        let fails = (1..ATTEMPTS_MAX).map(|_| silent(&error));
        let (_, model) = retrying(fails.chain([(Vec::new(), Ok(reply()))]).collect());
        let begun = Instant::now();
        let (end, deltas) = ask(&model).await;
        assert_eq!(end, Ok(reply()), "{error:?}");
        let waits = waits(&deltas);
        let attempts: Vec<u32> = waits.iter().map(|(attempt, _)| *attempt).collect();
        assert_eq!(attempts, [2, 3, 4, 5]);
        for ((attempt, wait), most) in waits.iter().zip([750, 1500, 3000, 6000]) {
            let most = Duration::from_millis(most);
            assert!((most / 2..=most).contains(wait), "{attempt}: {wait:?}");
        }
        let waited: Duration = waits.iter().map(|(_, wait)| *wait).sum();
        assert!(begun.elapsed() >= waited + Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_last_attempt_the_error_is_told() {
    let (scripted, model) = retrying((0..9).map(|_| silent(&unreachable())).collect());
    let (end, deltas) = ask(&model).await;
    assert_eq!(end, Err(unreachable()));
    assert_eq!(waits(&deltas).len() as u32, ATTEMPTS_MAX - 1);
    assert_eq!(scripted.0.lock().unwrap().len() as u32, 9 - ATTEMPTS_MAX);
    assert!(deltas.iter().all(|delta| match delta {
        ReplyDelta::Retry { reason, .. } => *reason == unreachable().to_string(),
        _ => false,
    }));
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_told_at_once() {
    let provider = || "p".to_owned();
    let lasting = [
        ModelError::Credentials { provider: provider(), message: provider() },
        ModelError::Broken { provider: provider(), message: provider() },
        refused(200, None),
        refused(400, Some(1)),
        refused(404, None),
        refused(413, None),
    ];
    for error in lasting {
        let (_, model) = retrying(vec![silent(&error)]);
        assert_eq!(ask(&model).await, (Err(error), Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_is_given_the_time_it_asks_for_up_to_a_bound() {
    let bound = RETRY_AFTER_MAX.as_secs();
    for asked in [0, 7, bound] {
        for error in [limited(Some(asked)), refused(503, Some(asked))] {
            let (_, model) = retrying(vec![silent(&error), (Vec::new(), Ok(reply()))]);
            let (end, deltas) = ask(&model).await;
            assert_eq!(end, Ok(reply()));
            let [(2, wait)] = waits(&deltas)[..] else { panic!("{deltas:?}") };
            let asked = Duration::from_secs(asked);
            assert!((asked..=asked + WAIT_MIN).contains(&wait), "{wait:?}");
        }
    }
    for error in [limited(Some(bound + 1)), refused(500, Some(bound + 1))] {
        let (_, model) = retrying(vec![silent(&error)]);
        assert_eq!(ask(&model).await, (Err(error), Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_has_spoken_is_the_last_one() {
    let words = [
        ReplyDelta::Text { text: "a".to_owned() },
        ReplyDelta::Reasoning { text: "a".to_owned() },
        ReplyDelta::CallBegun { name: "a".to_owned() },
    ];
    for said in words {
        let (_, model) =
            retrying(vec![silent(&unreachable()), (vec![said.clone()], Err(refused(529, None)))]);
        let (end, deltas) = ask(&model).await;
        assert_eq!(end, Err(refused(529, None)));
        assert_eq!((waits(&deltas).len(), deltas.last()), (1, Some(&said)));
    }
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_after_the_time_of_one_answer() {
    let scripted = Arc::new(Scripted(Mutex::new([silent(&limited(Some(30)))].into())));
    let model = RetryingModel::new(scripted, Duration::from_secs(20));
    assert_eq!(ask(&model).await, (Err(limited(Some(30))), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_answer_ends_the_wait() {
    let (scripted, model) = retrying(vec![silent(&limited(Some(50))), silent(&unreachable())]);
    let cut = tokio::time::timeout(Duration::from_secs(10), ask(&model)).await;
    assert!(cut.is_err());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scripted.0.lock().unwrap().len(), 1);
}

#[test]
fn name_and_price_are_those_of_the_model_inside() {
    let (scripted, model) = retrying(Vec::new());
    assert_eq!((model.name(), model.price()), ("scripted", scripted.price()));
}

#[test]
fn chance_stays_within_its_bounds() {
    for _ in 0..1000 {
        assert!(random_part(WAIT_MIN) <= WAIT_MIN);
    }
    assert!(backoff_wait(u32::MAX) <= WAIT_MAX);
    assert_eq!(random_part(Duration::ZERO), Duration::ZERO);
}
