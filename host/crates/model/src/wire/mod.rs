//! The parts that all adapters share: the connection to a server, and the errors of a provider.
//!
//! A [`WireFormat`] converts a conversation into a body and an answer into a
//! [`ModelReply`](crate::chat::ModelReply); a [`ModelAdapter`](crate::ModelAdapter) combines it
//! with a [`ProviderConnection`]. Sending a body, reading a refusal, timeouts and size limits are
//! implemented here once. A [`ProviderConnection`] sends one request for one answer and never
//! retries.

pub(crate) mod answer;
mod auth;
mod connection;
pub(crate) mod http;
mod ids;
pub(crate) mod json;
mod lazy_sequence;
pub(crate) mod provider;
mod sse;
mod tools;
mod wire_format;

pub(crate) use answer::{AnswerContext, AnswerError, PartialAnswer};
pub(crate) use auth::auth_headers;
pub(crate) use connection::{JSON, NDJSON, ProviderConnection, is_stream};
pub(crate) use http::ResponseBodyError;
pub(crate) use ids::unique_ids;
pub(crate) use lazy_sequence::{LazySequence, join_turns};
pub(crate) use provider::ProviderIdentity;
pub(crate) use sse::{ServerEvents, read_events, read_lines};
pub(crate) use tools::{SerializedTools, SerializedToolsCache};
pub(crate) use wire_format::{OnDelta, WireFormat};
