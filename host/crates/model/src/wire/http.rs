//! The HTTP client: requests to one server, and bodies with limits on length and silence.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use reqwest::{Client, Response};
use sallyport_http_client::{client_builder, error_causes};

/// Longest silence within an answer. Models think for minutes without output, but a dead connection
/// stays silent forever.
const SILENCE_TIME_MAX: Duration = Duration::from_secs(180);

/// Why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResponseBodyError {
    /// The connection failed.
    #[error("{0}")]
    Cut(String),
    /// The server stopped sending.
    #[error("nothing came for {time:?}")]
    Silent {
        /// How long nothing arrived.
        time: Duration,
    },
    /// The body is too long.
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit, in bytes.
        bytes_max: usize,
    },
}

/// Builds a client that connects only to the named server: it ignores proxy variables and follows
/// no redirects.
pub(crate) fn build_client(https: bool) -> Result<Client, String> {
    client_builder(https).map_err(|e| e.to_string())?.build().map_err(|e| error_causes(&e))
}

/// Returns the body piece by piece: at most `bytes_max` bytes, and never a long silence.
pub(crate) fn body_pieces(
    response: Response,
    bytes_max: usize,
) -> impl Stream<Item = Result<Bytes, ResponseBodyError>> {
    stream::try_unfold((response, bytes_max), move |(mut response, left)| async move {
        let chunk = tokio::time::timeout(SILENCE_TIME_MAX, response.chunk());
        let chunk =
            chunk.await.map_err(|_| ResponseBodyError::Silent { time: SILENCE_TIME_MAX })?;
        let Some(chunk) = chunk.map_err(|e| ResponseBodyError::Cut(error_causes(&e)))? else {
            return Ok(None);
        };
        let left = left.checked_sub(chunk.len()).ok_or(ResponseBodyError::TooLong { bytes_max })?;
        Ok(Some((chunk, (response, left))))
    })
}

/// Reads a body of at most `bytes_max` bytes.
pub(crate) async fn read_body(
    response: Response,
    bytes_max: usize,
) -> Result<Vec<u8>, ResponseBodyError> {
    let join = |mut all: Vec<u8>, piece: Bytes| async move {
        all.extend_from_slice(&piece);
        Ok(all)
    };
    body_pieces(response, bytes_max).try_fold(Vec::new(), join).await
}
