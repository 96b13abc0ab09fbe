//! Adapters: a wire format on the connection to one server.
//!
//! Providers differ in how a request is written and an answer is read; each protocol implements
//! this as a [`Format`]. Everything else is the same for all of them and is part of this module.

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::Response;
use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use super::{BodyError, Line, Provider, Written, WrittenTools, auth, http, line};
use crate::{
    anthropic::Messages,
    chat::{
        Attachment, ChatModel, Delta, Kind, LeftOut, Message, ModelError, Price, Reply, Request,
        ToolDefinition,
    },
    endpoint::{Endpoint, Protocol, SettingsError},
    fit::Dialect,
    gemini::GenerateContent,
    ollama::ApiChat,
    openai::Completions,
    prices,
    responses::Responses,
};

/// Longest streamed answer, in bytes. A token is wrapped in some 150 to 300 bytes, and some
/// protocols repeat the whole answer at the end. The limit leaves room for 100,000 tokens, more
/// than any model writes in one answer.
const STREAM_BYTES_MAX: usize = 32 << 20;

/// Receives an answer while it arrives.
pub(crate) type OnDelta<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// A streamed answer, in the pieces in which it arrives.
pub(crate) type Pieces<'a> = BoxStream<'a, Result<Bytes, BodyError>>;

/// The context in which an answer is read.
#[derive(Debug)]
pub(crate) struct Exchange<'a> {
    /// The server that answers.
    pub(crate) provider: &'a Provider,
    /// The conversation so far. New calls must not use its ids.
    pub(crate) messages: &'a [Message],
    /// The mark of the provider's own form of the answer.
    pub(crate) origin: String,
}

/// The requests and answers of one protocol.
pub(crate) trait Format: Debug + Send + Sync {
    /// Returns the path of the method, below the base address.
    fn path(&self, endpoint: &Endpoint) -> String;

    /// Returns the media type of a streamed answer.
    fn stream_type(&self) -> &'static str {
        line::EVENT_STREAM
    }

    /// Returns true if an answer of this media type is streamed; `asked` is true if a stream was
    /// requested.
    fn is_stream(&self, content_type: &str, asked: bool) -> bool {
        line::is_event_stream(content_type, asked)
    }

    /// Returns true if a file can be sent unchanged. Text files can always be sent, as part of the
    /// text.
    fn takes(&self, file: &Attachment) -> bool;

    /// Returns the list of tools in the protocol's form.
    fn tools(&self, tools: &[ToolDefinition]) -> Value;

    /// Returns the body of a request. `tools` is the list from [`Format::tools`].
    fn body(&self, endpoint: &Endpoint, request: Request<'_>, tools: Option<&RawValue>) -> Vec<u8>;

    /// Reads a streamed answer to its end.
    fn stream<'a>(
        &'a self,
        pieces: Pieces<'a>,
        exchange: &'a Exchange<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// Reads a whole answer.
    fn whole(
        &self,
        answer: Value,
        exchange: &Exchange<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, ModelError>;
}

/// A model behind an endpoint. It sends one request for one answer and never retries, because it
/// cannot know whether a turn is worth another attempt.
#[derive(Debug)]
pub struct Adapter {
    endpoint: Endpoint,
    format: &'static dyn Format,
    line: Line,
    price: Option<Price>,
    dialect: Dialect,
    tools: WrittenTools,
    /// The omissions that have been reported to the user.
    told: Mutex<HashSet<String>>,
}

impl Adapter {
    /// Creates an adapter. It does not connect before the first request.
    ///
    /// # Errors
    ///
    /// Returns an error with a hint if the settings cannot work.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let format = format(endpoint.protocol);
        let line = Line::new(&endpoint, &format.path(&endpoint), auth::headers(&endpoint)?)?;
        // Looked up once: every answer needs it, and the table is long.
        let price = endpoint.price.or_else(|| prices::of(&endpoint, &[]));
        let dialect = Dialect::of(&endpoint);
        let (tools, told) = (WrittenTools::default(), Mutex::default());
        Ok(Self { endpoint, format, line, price, dialect, tools, told })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, ModelError> {
        let written =
            self.tools.written(request.tools, self.dialect, |tools| self.format.tools(tools));
        self.left_out(&written, request.messages)
            .into_iter()
            .map(Delta::LeftOut)
            .for_each(&mut *on_delta);
        let response = self.ask(request, &written).await?;
        let exchange = Exchange {
            provider: self.line.provider(),
            messages: request.messages,
            origin: self.endpoint.origin(),
        };
        let mut reply =
            if self.format.is_stream(line::content_type(&response), self.endpoint.stream) {
                let pieces = http::pieces(response, STREAM_BYTES_MAX).boxed();
                self.format.stream(pieces, &exchange, on_delta).await?
            } else {
                let answer = self.line.whole(response).await?;
                self.format.whole(answer, &exchange, on_delta)?
            };
        written.fit.restore(&mut reply.message.calls);
        Ok(reply)
    }

    async fn ask(&self, request: Request<'_>, written: &Written) -> Result<Response, ModelError> {
        let endpoint = self.tempered(request.temperature);
        let messages = written.fit.history(request.messages, &endpoint.origin());
        let request = Request { messages: &messages, ..request };
        let body = self.format.body(&endpoint, request, written.json.as_deref());
        let accept = match self.endpoint.stream {
            true => self.format.stream_type(),
            false => line::JSON,
        };
        self.line.post(body, accept).await
    }

    /// Returns the parts that the model is asked without and that have not been reported yet. Files
    /// are reported with their own input only.
    fn left_out(&self, written: &Arc<Written>, messages: &[Message]) -> Vec<LeftOut> {
        let input = messages.iter().rev().find_map(|message| match message {
            Message::User(said) => Some(said.attachments.as_slice()),
            _ => None,
        });
        let is_lost =
            |file: &&Attachment| !matches!(file.kind(), Kind::Text(_)) && !self.format.takes(file);
        let files = input.into_iter().flatten().filter(is_lost).map(|file| LeftOut::File {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            bytes: file.data.len(),
        });
        let all = written.fit.left_out().iter().cloned().chain(files);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        all.filter(|one| told.insert(one.to_string())).collect()
    }

    /// Returns the endpoint with the temperature of a request. A negative one, which no provider
    /// accepts, is ignored.
    fn tempered(&self, temperature: Option<f64>) -> Cow<'_, Endpoint> {
        match temperature.filter(|wish| wish.is_finite() && *wish >= 0.0) {
            Some(wish) => Cow::Owned(Endpoint { temperature: Some(wish), ..self.endpoint.clone() }),
            None => Cow::Borrowed(&self.endpoint),
        }
    }
}

impl ChatModel for Adapter {
    fn name(&self) -> &str {
        self.line.name()
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let exchange = self.exchange(request, on_delta);
        Box::pin(self.line.provider().within(self.endpoint.time_max, exchange))
    }
}

fn format(protocol: Protocol) -> &'static dyn Format {
    match protocol {
        Protocol::OpenAiChat => &Completions,
        Protocol::OpenAiResponses => &Responses,
        Protocol::Anthropic => &Messages,
        Protocol::Gemini => &GenerateContent,
        Protocol::Ollama => &ApiChat,
    }
}
