//! Adapters: a wire format on the connection to one server.
//!
//! Providers differ in how a request is written and an answer is read; each protocol implements
//! this as a [`WireFormat`]. Everything else is the same for all of them and is part of this
//! module.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use reqwest::Response;
use sallyport_contract::BoxFuture;

use crate::{
    anthropic::AnthropicFormat,
    chat::{
        AttachmentKind, ChatMessage, FileAttachment, ModelError, ModelReply, OmittedContent,
        ReplyDelta, TokenPrice,
    },
    chat_model::{ChatModel, ModelRequest},
    endpoint::{EndpointSettingsError, ModelEndpoint},
    fit::SchemaDialect,
    gemini::GeminiFormat,
    ollama::OllamaFormat,
    openai::ChatCompletionsFormat,
    prices,
    protocol::ProviderProtocol,
    responses::ResponsesFormat,
    wire::{
        self, AnswerContext, OnDelta, ProviderConnection, SerializedTools, SerializedToolsCache,
        WireFormat, http,
    },
};

/// Longest streamed answer, in bytes. A token is wrapped in some 150 to 300 bytes, and some
/// protocols repeat the whole answer at the end. The limit leaves room for 100,000 tokens, more
/// than any model writes in one answer.
const STREAM_BYTES_MAX: usize = 32 << 20;

/// A model behind an endpoint. It sends one request for one answer and never retries, because it
/// cannot know whether a turn is worth another attempt.
#[derive(Debug)]
pub struct ModelAdapter {
    endpoint: ModelEndpoint,
    format: &'static dyn WireFormat,
    connection: ProviderConnection,
    price: Option<TokenPrice>,
    dialect: SchemaDialect,
    tools: SerializedToolsCache,
    /// The omissions that have been reported to the user.
    reported_omissions: Mutex<HashSet<String>>,
}

impl ModelAdapter {
    /// Creates an adapter. It does not connect before the first request.
    ///
    /// # Errors
    ///
    /// Returns an error with a hint if the settings cannot work.
    pub fn new(endpoint: ModelEndpoint) -> Result<Self, EndpointSettingsError> {
        let format = wire_format(endpoint.protocol);
        let connection = ProviderConnection::new(
            &endpoint,
            &format.method_path(&endpoint),
            wire::auth_headers(&endpoint)?,
        )?;
        // Looked up once: every answer needs it, and the table is long.
        let price = endpoint.price.or_else(|| prices::of(&endpoint, &[]));
        let dialect = SchemaDialect::from_endpoint(&endpoint);
        let (tools, reported_omissions) = (SerializedToolsCache::default(), Mutex::default());
        Ok(Self { endpoint, format, connection, price, dialect, tools, reported_omissions })
    }

    async fn request_reply(
        &self,
        request: ModelRequest<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let written = self
            .tools
            .serialize_tools(request.tools, self.dialect, |tools| self.format.tool_list(tools));
        self.new_omissions(&written, request.messages)
            .into_iter()
            .map(ReplyDelta::LeftOut)
            .for_each(&mut *on_delta);
        let response = self.send_request(request, &written).await?;
        let exchange = AnswerContext {
            provider: self.connection.provider(),
            messages: request.messages,
            origin: self.endpoint.origin(),
        };
        let (stream_type, answer) = (self.format.stream_type(), self.format.begin_answer());
        let mut reply = if wire::is_stream(&response, stream_type, self.endpoint.stream) {
            let pieces = http::body_pieces(response, STREAM_BYTES_MAX);
            let events = match stream_type {
                wire::NDJSON => wire::read_lines(pieces, exchange.provider),
                _ => wire::read_events(pieces, exchange.provider),
            };
            exchange.read_stream(answer, events, on_delta).await?
        } else {
            let whole = self.connection.read_json(response).await?;
            exchange.read_whole(answer, whole, on_delta)?
        };
        written.fit.restore_arguments(&mut reply.message.calls);
        Ok(reply)
    }

    async fn send_request(
        &self,
        request: ModelRequest<'_>,
        written: &SerializedTools,
    ) -> Result<Response, ModelError> {
        let endpoint = self.with_temperature(request.temperature);
        let body = self.request_body(&endpoint, request, written);
        let accept = match self.endpoint.stream {
            true => self.format.stream_type(),
            false => wire::JSON,
        };
        self.connection.post(body, accept).await
    }

    /// Returns the body of a request. Messages that were written before are copied if the request
    /// brings them and the protocol can use them.
    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        written: &SerializedTools,
    ) -> Vec<u8> {
        let (origin, tools) = (endpoint.origin(), written.json.as_deref());
        if let Some(kept) = request.kept
            && let Some(writer) = self.format.message_writer(endpoint, tools)
        {
            return kept.write_body(request.messages, &written.fit, &origin, &*writer);
        }
        let messages = written.fit.fit_history(request.messages, &origin);
        self.format.request_body(endpoint, ModelRequest { messages: &messages, ..request }, tools)
    }

    /// Returns the parts that the model is asked without and that have not been reported yet. Files
    /// are reported with their own input only.
    fn new_omissions(
        &self,
        written: &Arc<SerializedTools>,
        messages: &[ChatMessage],
    ) -> Vec<OmittedContent> {
        let input = messages.iter().rev().find_map(|message| match message {
            ChatMessage::User(user_message) => Some(user_message.attachments.as_slice()),
            _ => None,
        });
        let is_lost = |file: &&FileAttachment| {
            !matches!(file.kind(), AttachmentKind::Text(_)) && !self.format.can_send_file(file)
        };
        let files = input.into_iter().flatten().filter(is_lost).map(|file| OmittedContent::File {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            bytes: file.data.len(),
        });
        let all = written.fit.omitted_tools().iter().cloned().chain(files);
        let mut reported_omissions =
            self.reported_omissions.lock().unwrap_or_else(PoisonError::into_inner);
        all.filter(|omission| reported_omissions.insert(omission.to_string())).collect()
    }

    /// Returns the endpoint with the temperature of a request. A negative one, which no provider
    /// accepts, is ignored.
    fn with_temperature(&self, temperature: Option<f64>) -> Cow<'_, ModelEndpoint> {
        match temperature.filter(|requested| requested.is_finite() && *requested >= 0.0) {
            Some(requested) => {
                Cow::Owned(ModelEndpoint { temperature: Some(requested), ..self.endpoint.clone() })
            }
            None => Cow::Borrowed(&self.endpoint),
        }
    }
}

impl ChatModel for ModelAdapter {
    fn name(&self) -> &str {
        self.connection.name()
    }

    fn price(&self) -> Option<TokenPrice> {
        self.price
    }

    fn protocol(&self) -> Option<ProviderProtocol> {
        Some(self.endpoint.protocol)
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let exchange = self.request_reply(request, on_delta);
        Box::pin(self.connection.provider().run_with_timeout(self.endpoint.time_max, exchange))
    }
}

fn wire_format(protocol: ProviderProtocol) -> &'static dyn WireFormat {
    match protocol {
        ProviderProtocol::OpenAiChat => &ChatCompletionsFormat,
        ProviderProtocol::OpenAiResponses => &ResponsesFormat,
        ProviderProtocol::Anthropic => &AnthropicFormat,
        ProviderProtocol::Gemini => &GeminiFormat,
        ProviderProtocol::Ollama => &OllamaFormat,
    }
}
