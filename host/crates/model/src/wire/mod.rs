//! What all adapters share: the way to a server and back, and how its failures are told.
//!
//! An adapter turns a conversation into a body and an answer into a [`Reply`](crate::chat::Reply).
//! How the body gets there, what a refusal says, how long to wait and how much to read is here,
//! once. A [`Line`] sends one request for one answer and tries nothing twice.

pub(crate) mod http;
mod line;
pub(crate) mod provider;

pub(crate) use http::BodyError;
pub(crate) use line::{Line, content_type};
pub(crate) use provider::Provider;
