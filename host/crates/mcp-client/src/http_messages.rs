//! The messages of a server at an address, over HTTP, with the limits that a server with pipes has.

use std::{collections::HashMap, sync::Arc};

use http::{HeaderMap, HeaderName};
use reqwest::Client;
use rmcp::{
    RoleClient,
    service::{ClientInitializeError, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        DynamicTransportError, StreamableHttpClientTransport, Transport,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};
use sallyport_http_client::{error_causes, refused_address};
use url::Url;

use crate::{
    error::{SERVER_TEXT_CHARS_MAX, ServerError},
    journal::ConnectionJournal,
    transport::{MESSAGE_BYTES_MAX, MESSAGES_PER_SECOND_MAX, MessageRate},
};

/// Most bytes of an answer that is no message, which is read to say what is wrong.
const NOISE_BYTES_MAX: usize = 4096;

/// The headers that belong to the protocol or to the connection.
const RESERVED_HEADERS: [&str; 7] =
    ["accept", "connection", "content-length", "content-type", "host", "last-event-id", "te"];

/// The prefix of the other headers that belong to the protocol.
const RESERVED_PREFIX: &str = "mcp-";

/// Whether a header belongs to the protocol or to the connection, so that its user cannot set it.
pub fn is_reserved_header(name: &HeaderName) -> bool {
    RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(RESERVED_PREFIX)
}

/// Where a server is, and how it is asked.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    /// The client, which decides to which addresses it connects. It follows no redirects.
    pub client: Client,
    /// The address.
    pub url: Url,
    /// Headers of every request, such as the one that signs in.
    pub headers: HeaderMap,
}

type HttpError = StreamableHttpError<reqwest::Error>;

/// Messages of a server over HTTP.
pub(crate) struct HttpMessages {
    inner: StreamableHttpClientTransport<Client>,
    rate: MessageRate,
    journal: Arc<ConnectionJournal>,
}

impl HttpMessages {
    /// Speaks to the server at an address.
    pub(crate) fn new(address: ServerAddress, journal: Arc<ConnectionJournal>) -> Self {
        let ServerAddress { client, url, headers } = address;
        let named = headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .custom_headers(named.collect::<HashMap<_, _>>())
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            .max_json_response_size(MESSAGE_BYTES_MAX)
            .max_error_response_size(NOISE_BYTES_MAX);
        let inner = StreamableHttpClientTransport::with_client(client, config);
        Self { inner, rate: MessageRate::new(), journal }
    }
}

impl Transport<RoleClient> for HttpMessages {
    type Error = HttpError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), HttpError>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        if self.rate.admits_one_more() {
            return Some(message);
        }
        let fault = format!("it sent more than {MESSAGES_PER_SECOND_MAX} messages a second");
        self.journal.set_fault(fault);
        None
    }

    async fn close(&mut self) -> Result<(), HttpError> {
        self.inner.close().await
    }
}

/// Why a message did not reach a server over HTTP; `None` for a server with pipes.
pub(crate) fn send_error(
    error: &DynamicTransportError,
    journal: &ConnectionJournal,
) -> Option<ServerError> {
    let error = error.error.downcast_ref::<HttpError>()?;
    Some(describe_error(error, journal))
}

/// Why a connection over HTTP did not begin; `None` if the server's answer is the reason.
pub(crate) fn begin_error(
    error: &ClientInitializeError,
    journal: &ConnectionJournal,
) -> Option<ServerError> {
    match error {
        ClientInitializeError::TransportError { error, .. } => send_error(error, journal),
        // The second attempt says what the server lacks, unless it failed for another reason.
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
            begin_error(fallback, journal).or_else(|| begin_error(discover, journal))
        }
        _ => None,
    }
}

fn describe_error(error: &HttpError, journal: &ConnectionJournal) -> ServerError {
    let unusable =
        |text: &str| ServerError::BadAnswer(journal.safe_excerpt(text, SERVER_TEXT_CHARS_MAX));
    match error {
        StreamableHttpError::AuthRequired(error) => {
            ServerError::SignInRequired(error.www_authenticate_header.clone())
        }
        StreamableHttpError::InsufficientScope(error) => match error.get_required_scope() {
            Some(scope) => ServerError::PermissionMissing(scope.to_owned()),
            None => unusable("the token does not suffice"),
        },
        StreamableHttpError::HttpStatus(error) => match &error.retry_after {
            Some(time) => unusable(&format!("it answered {}; try again in {time} s", error.status)),
            None => unusable(&format!("it answered {}", error.status)),
        },
        StreamableHttpError::Client(error) => client_error(error),
        StreamableHttpError::TransportChannelClosed => {
            ServerError::Closed("the server has ended it".to_owned())
        }
        StreamableHttpError::UnexpectedContentType(None) => {
            unusable("it has no content type, so it may be no MCP server")
        }
        StreamableHttpError::UnexpectedContentType(Some(kind)) => {
            unusable(&format!("it is {kind}, so this may be the address of a web page"))
        }
        other => unusable(&other.to_string()),
    }
}

fn client_error(error: &reqwest::Error) -> ServerError {
    if let Some(refused) = refused_address(error) {
        return ServerError::Unreachable(format!(
            "{} leads to a private address, which the policy does not allow",
            refused.0
        ));
    }
    match error.status() {
        Some(status) => ServerError::BadAnswer(format!("it answered {status}")),
        None => ServerError::Unreachable(error_causes(error)),
    }
}
