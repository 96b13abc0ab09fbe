//! A client of one server of the Model Context Protocol.
//!
//! [`ServerConnection`] speaks to a server through two streams of bytes, whoever made them, or over
//! HTTP; the crate `rmcp` implements the protocol. What a server may send is bounded: the length and the rate
//! of its messages, the number of its tools, the time to begin. A server that goes beyond loses its
//! connection, and [`ServerError`] says why. It gets no answer to its own requests except a refusal,
//! which [`ServerConnection::take_remarks`] reports. This crate knows no policy.

mod answer;
mod authorization;
mod connection;
mod discovery_answer;
mod http_messages;
mod journal;
pub mod lines;
mod requests;
mod tool;
mod transport;

pub use answer::{ServerAnswer, output_bytes};
pub use authorization::{
    AuthorizationError, EarlierPermissions, MayAsk, RegisteredApplication, ServerAuthorization,
    discover_authorization,
};
pub use connection::{ConnectionLimits, ServerConnection, ServerError};
pub use http_messages::{ServerAddress, is_reserved_header};
pub use tool::{OfferedTool, ToolClaims};
