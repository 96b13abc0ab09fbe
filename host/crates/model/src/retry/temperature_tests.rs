//! A refused temperature is dropped, and no other refusal is taken for one.

use std::sync::Mutex;

use super::*;
use crate::chat::{AssistantMessage, FinishReason};

/// A model that refuses every request with a temperature, in the words of a test.
struct Strict {
    refusal: ModelError,
    /// Whether it refuses the other requests too.
    is_stubborn: bool,
    /// Whether its refusal comes after a part of an answer.
    speaks: bool,
    asked: Mutex<Vec<Option<f64>>>,
}

impl ChatModel for Strict {
    fn name(&self) -> &str {
        "strict"
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.asked.lock().unwrap().push(request.temperature);
        if self.speaks {
            on_delta(ReplyDelta::Text { text: "so far".to_owned() });
        }
        let is_refused = self.is_stubborn || request.temperature.is_some();
        let refusal = is_refused.then(|| self.refusal.clone());
        let (message, finish) = (AssistantMessage::default(), FinishReason::Stop);
        let reply = ModelReply { message, finish, usage: None };
        Box::pin(std::future::ready(refusal.map_or(Ok(reply), Err)))
    }
}

fn refused(status: u16, message: &str) -> ModelError {
    let (provider, message) = ("p".to_owned(), message.to_owned());
    ModelError::Refused { provider, status, message, retry_after: None }
}

/// Wishes twice for a temperature, without time for retries, and compares what the model was asked.
#[track_caller]
fn check(refusal: ModelError, want: &[Option<f64>]) {
    check_model(
        Strict { refusal, is_stubborn: false, speaks: false, asked: Mutex::default() },
        want,
    );
}

#[track_caller]
fn check_model(model: Strict, want: &[Option<f64>]) {
    use futures::FutureExt as _;

    let model = Arc::new(model);
    let wishing = RetryingModel::new(Arc::clone(&model) as Arc<dyn ChatModel>, Duration::ZERO);
    for _ in 0..2 {
        let request = ModelRequest { temperature: Some(0.7), ..ModelRequest::default() };
        // Whether there is an answer shows in what was asked.
        let _ = wishing.generate(request, &mut |_| {}).now_or_never().unwrap();
    }
    assert_eq!(*model.asked.lock().unwrap(), want);
}

#[test]
fn a_wish_that_was_refused_is_dropped_for_good() {
    for status in [400, 422] {
        let words = "Unsupported value: 'temperature' does not support 0.7 with this model.";
        check(refused(status, words), &[Some(0.7), None, None]);
    }
}

#[test]
fn another_refusal_is_none_of_the_wish() {
    let unreachable =
        ModelError::Unreachable { provider: "p".into(), message: "temperature".into() };
    for error in [refused(400, "no such model"), refused(500, "temperature"), unreachable] {
        check(error, &[Some(0.7), Some(0.7)]);
    }
}

#[test]
fn a_refused_tool_with_the_word_in_its_name_turned_the_wish_off_for_good() {
    let refusal = refused(400, "Invalid schema for function 'weather__temperature'");
    let model = Strict { refusal, is_stubborn: true, speaks: false, asked: Mutex::default() };
    check_model(model, &[Some(0.7), None, Some(0.7), None]);
}

#[test]
fn a_refusal_within_a_stream_repeated_the_text_before_it() {
    let refusal = refused(400, "temperature");
    let model = Strict { refusal, is_stubborn: false, speaks: true, asked: Mutex::default() };
    check_model(model, &[Some(0.7), Some(0.7)]);
}
