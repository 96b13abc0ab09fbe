//! A connection to one server.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, ErrorCode, InputRequest, InputRequiredResult,
        InputResponses, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
        RequestParamsMeta,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, RunningService, ServiceError,
        serve_client_with_lifecycle,
    },
    transport::Transport,
};
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use crate::{
    answer::ServerAnswer,
    call_record::CallRecord,
    calls::{CallQuestions, ConnectionCall},
    discovery_answer::DiscoveryAnswers,
    error::{SERVER_TEXT_CHARS_MAX, ServerError},
    http_messages::{self, HttpMessages, ServerAddress},
    journal::{ConnectionJournal, RedactServerText},
    requests::ServerRequests,
    tool::OfferedTool,
    transport::ServerLines,
};

/// Longest list of tools in bytes, over all its pages. 256 tools with long schemas are far below, and
/// pages of the largest size could fill the memory.
const TOOL_LIST_BYTES_MAX: usize = 16 << 20;

/// The limits of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How long the server may take until it is ready, and then to list its tools.
    pub start: Duration,
    /// How many tools it may list.
    pub tools: usize,
}

/// A connection to a server that is ready. Dropping it closes the server's input.
pub struct ServerConnection {
    service: RunningService<RoleClient, ServerRequests>,
    journal: Arc<ConnectionJournal>,
    limits: ConnectionLimits,
}

impl ServerConnection {
    /// Waits until the server with these pipes is ready. Both kinds of the protocol are spoken, with
    /// and without a handshake, whichever the server has. `redact` removes secrets from its texts.
    ///
    /// # Errors
    ///
    /// The server is not ready in time, or its answer cannot be used.
    pub async fn open<R, W>(
        output: R,
        input: W,
        limits: ConnectionLimits,
        redact: RedactServerText,
    ) -> Result<Self, ServerError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let journal = Arc::new(ConnectionJournal::new(redact));
        let transport = ServerLines::new(output, input, Arc::clone(&journal));
        Self::open_transport(DiscoveryAnswers::new(transport, true), journal, limits).await
    }

    /// Waits until the server at this address is ready, in the same way.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, requires a sign-in, is not ready in time, or its answer cannot
    /// be used.
    pub async fn open_address(
        address: ServerAddress,
        limits: ConnectionLimits,
        redact: RedactServerText,
    ) -> Result<Self, ServerError> {
        let journal = Arc::new(ConnectionJournal::new(redact));
        let transport = HttpMessages::new(address, Arc::clone(&journal));
        // Each request has an answer of its own, which comes or fails.
        Self::open_transport(DiscoveryAnswers::new(transport, false), journal, limits).await
    }

    async fn open_transport(
        transport: impl Transport<RoleClient> + 'static,
        journal: Arc<ConnectionJournal>,
        limits: ConnectionLimits,
    ) -> Result<Self, ServerError> {
        let handler = ServerRequests { journal: Arc::clone(&journal) };
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let serving = serve_client_with_lifecycle(handler, transport, mode);
        let service = timeout(limits.start, serving)
            .await
            .map_err(|_| ServerError::NotReady(limits.start))?
            .map_err(|error| begin_error(&error, &journal))?;
        Ok(Self { service, journal, limits })
    }

    /// Returns all its tools, in its order.
    ///
    /// # Errors
    ///
    /// It does not answer in time, lists too many, or its list is too long.
    pub async fn list_tools(&self) -> Result<Vec<OfferedTool>, ServerError> {
        let time = self.limits.start;
        timeout(time, self.list_pages()).await.map_err(|_| ServerError::NotReady(time))?
    }

    async fn list_pages(&self) -> Result<Vec<OfferedTool>, ServerError> {
        let mut tools = Vec::new();
        let mut bytes = 0;
        let mut cursor = None;
        // A page may be empty, so pages are limited like tools.
        for _ in 0..=self.limits.tools {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.peer().list_tools(Some(request)).await;
            let page = page.map_err(|error| self.request_error(error))?;
            bytes += json_bytes(&page);
            if bytes > TOOL_LIST_BYTES_MAX {
                return Err(ServerError::ToolListTooLong(TOOL_LIST_BYTES_MAX));
            }
            tools.extend(page.tools.into_iter().map(OfferedTool::from));
            if tools.len() > self.limits.tools {
                break;
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(ServerError::TooManyTools(self.limits.tools))
    }

    /// Calls a tool. Dropping the future cancels the call at the server. What the server wants to
    /// know from the user meanwhile goes to `questions`. `record` has what happened, also of a call
    /// that was cancelled.
    ///
    /// # Errors
    ///
    /// The server refuses the call, gives no answer that can be used, or asks too often. That a tool
    /// fails is not an error.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        questions: Arc<dyn CallQuestions>,
        record: Arc<CallRecord>,
    ) -> Result<ServerAnswer, ServerError> {
        let entry = self.journal.calls.enter(questions, record);
        tokio::select! {
            answer = self.call_until_complete(tool, arguments, &entry.call) => answer,
            () = self.journal.wait_for_cut() => Err(closed_error(&self.journal)),
        }
    }

    /// Makes a call, and returns to the server with what it wants to know until it has a result.
    async fn call_until_complete(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        call: &ConnectionCall,
    ) -> Result<ServerAnswer, ServerError> {
        let mut request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = sallyport_telemetry::current_trace() {
            request.set_traceparent(&trace.to_string());
        }
        loop {
            let asked = match self.service.peer().call_tool_once(request.clone()).await {
                Ok(CallToolResponse::Complete(result)) => return Ok(ServerAnswer::from(result)),
                Ok(CallToolResponse::InputRequired(asked)) => asked,
                Ok(_) => return Err(ServerError::BadAnswer("it is not a result".into())),
                Err(error) => return Err(self.request_error(error)),
            };
            request.request_state.clone_from(&asked.request_state);
            request.input_responses = self.answer_questions(asked, call).await?;
        }
    }

    /// Answers what a server wants to know before it goes on with a call.
    async fn answer_questions(
        &self,
        asked: InputRequiredResult,
        call: &ConnectionCall,
    ) -> Result<Option<InputResponses>, ServerError> {
        let requests = asked.input_requests.unwrap_or_default();
        // Without a question, it wants the same call again.
        if requests.is_empty() && call.is_exhausted(&self.journal) {
            return Err(closed_error(&self.journal));
        }
        let mut answers = InputResponses::new();
        for (key, request) in requests {
            let params = match request {
                InputRequest::Elicitation(request) => request.params,
                InputRequest::CreateMessage(_) => {
                    return Err(refused_request("an answer of a model (sampling)"));
                }
                InputRequest::ListRoots(_) => {
                    return Err(refused_request("the user's folders (roots)"));
                }
                _ => return Err(refused_request("something that is not known")),
            };
            let answer = call.ask(&params, &self.journal).await;
            answers.insert(key, serde_json::to_value(answer).unwrap_or_default());
            if self.journal.is_cut() {
                return Err(closed_error(&self.journal));
            }
        }
        Ok((!answers.is_empty()).then_some(answers))
    }

    /// Whether the server can no longer be asked.
    pub fn is_closed(&self) -> bool {
        self.journal.is_cut()
            || self.service.is_closed()
            || self.service.peer().is_transport_closed()
    }

    /// How often the server has reported other tools. A list that it was asked for at a lower count
    /// is out of date.
    pub fn tool_changes(&self) -> u64 {
        self.journal.tool_changes()
    }

    /// Closes the server's input, which usually ends it.
    pub async fn close(self) {
        // An error means that the connection has ended already.
        let _ = self.service.cancel().await;
    }

    fn request_error(&self, error: ServiceError) -> ServerError {
        match error {
            ServiceError::McpError(error) => ServerError::Refused {
                message: self.journal.safe_excerpt(&error.message, SERVER_TEXT_CHARS_MAX),
                is_about_arguments: error.code == ErrorCode::INVALID_PARAMS,
            },
            ServiceError::TransportSend(error) => http_messages::send_error(&error, &self.journal)
                .unwrap_or_else(|| closed_error(&self.journal)),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                closed_error(&self.journal)
            }
            other => ServerError::BadAnswer(other.to_string()),
        }
    }
}

/// The length of a page of a list. It counts whole, because anything in it can be long.
///
/// It is measured by writing the page again: over HTTP, only parsed messages arrive here, and over
/// pipes the bytes that were read also belong to other messages. What the parser dropped, such as
/// blanks, takes no memory and does not count.
fn json_bytes(page: &ListToolsResult) -> usize {
    // What came as JSON can be written as JSON.
    serde_json::to_vec(page).map_or(0, |json| json.len())
}

fn begin_error(error: &ClientInitializeError, journal: &ConnectionJournal) -> ServerError {
    if let Some(error) = http_messages::begin_error(error, journal) {
        return error;
    }
    match (journal.fault(), error) {
        (Some(_), _) | (None, ClientInitializeError::ConnectionClosed(_)) => closed_error(journal),
        (None, error) => {
            ServerError::BadAnswer(journal.safe_excerpt(&error.to_string(), SERVER_TEXT_CHARS_MAX))
        }
    }
}

/// The error of a call that cannot go on without something that no server gets.
fn refused_request(wanted: &str) -> ServerError {
    ServerError::BadAnswer(format!("it asks for {wanted}, which is refused"))
}

fn closed_error(journal: &ConnectionJournal) -> ServerError {
    ServerError::Closed(journal.fault().unwrap_or_else(|| "the server has ended it".to_owned()))
}
