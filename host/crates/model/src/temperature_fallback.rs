//! Repeats a request without a wish that its provider refuses.
//!
//! A request may wish for a temperature, regardless of the model that answers. Some models take
//! none and refuse the whole request, which must not cost the session its answers. A temperature of
//! the endpoint is not a wish: the user set it and sees the refusal.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sallyport_contract::BoxFuture;

use crate::chat::{ChatModel, ModelError, ModelReply, ModelRequest, ReplyDelta, TokenPrice};

/// A model whose provider may refuse wishes.
pub(crate) struct TemperatureFallbackModel {
    inner: Arc<dyn ChatModel>,
    /// Whether the wish was refused once. It is then never sent again.
    is_refused: AtomicBool,
}

impl TemperatureFallbackModel {
    /// Wraps a model.
    pub(crate) fn new(inner: Arc<dyn ChatModel>) -> Self {
        Self { inner, is_refused: AtomicBool::new(false) }
    }

    async fn generate_with_fallback(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<ModelReply, ModelError> {
        let is_refused = self.is_refused.load(Ordering::Relaxed);
        let temperature = request.temperature.filter(|_| !is_refused);
        let answer = self.inner.generate(ModelRequest { temperature, ..request }, on_delta).await;
        match answer {
            Err(error) if temperature.is_some() && is_temperature_refused(&error) => {
                self.is_refused.store(true, Ordering::Relaxed);
                self.inner.generate(ModelRequest { temperature: None, ..request }, on_delta).await
            }
            answer => answer,
        }
    }
}

impl ChatModel for TemperatureFallbackModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<TokenPrice> {
        self.inner.price()
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.generate_with_fallback(request, on_delta))
    }
}

/// Returns true if a provider refused the temperature of the request. The messages differ, but all
/// of them name the field.
fn is_temperature_refused(error: &ModelError) -> bool {
    match error {
        ModelError::Refused { status: 400 | 422, message, .. } => {
            message.to_ascii_lowercase().contains("temperature")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::chat::{AssistantMessage, FinishReason};

    /// A model that refuses every request with a temperature, in the words of a test.
    struct Strict {
        refusal: ModelError,
        asked: Mutex<Vec<Option<f64>>>,
    }

    impl ChatModel for Strict {
        fn name(&self) -> &str {
            "strict"
        }

        fn generate<'a>(
            &'a self,
            request: ModelRequest<'a>,
            _: &'a mut (dyn FnMut(ReplyDelta) + Send),
        ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
            self.asked.lock().unwrap().push(request.temperature);
            let refusal = request.temperature.map(|_| self.refusal.clone());
            let (message, finish) = (AssistantMessage::default(), FinishReason::Stop);
            let reply = ModelReply { message, finish, usage: None };
            Box::pin(std::future::ready(refusal.map_or(Ok(reply), Err)))
        }
    }

    fn refused(status: u16, message: &str) -> ModelError {
        let (provider, message) = ("p".to_owned(), message.to_owned());
        ModelError::Refused { provider, status, message, retry_after: None }
    }

    /// Wishes twice for a temperature and compares what the model was asked.
    #[track_caller]
    fn check(refusal: ModelError, want: &[Option<f64>]) {
        use futures::FutureExt as _;

        let model = Arc::new(Strict { refusal, asked: Mutex::default() });
        let wishing = TemperatureFallbackModel::new(Arc::clone(&model) as Arc<dyn ChatModel>);
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
}
