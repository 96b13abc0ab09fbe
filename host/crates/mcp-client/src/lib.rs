//! A client of one server of the Model Context Protocol.
//!
//! [`ServerConnection`] speaks to a server through two streams of bytes, whoever made them, or over
//! HTTP; the crate `rmcp` implements the protocol. What a server may send is bounded: the length and the rate
//! of its messages, the number of its tools, the time to begin. A server that goes beyond loses its
//! connection, and [`ServerError`] says why. Its questions to the user go to [`CallQuestions`], and its
//! other requests are refused; the [`CallRecord`] of a call has both. This crate knows no policy.

mod answer;
mod authorization;
mod call_record;
mod calls;
mod connection;
mod discovery_answer;
mod elicitation;
mod error;
mod http_messages;
mod journal;
pub mod lines;
mod mutex;
mod questions;
mod requests;
mod tool;
mod transport;

pub use answer::{ServerAnswer, output_bytes};
pub use authorization::{
    AuthorizationError, EarlierPermissions, MayAsk, RegisteredApplication, ServerAuthorization,
    discover_authorization,
};
pub use call_record::{AskedQuestion, CallRecord};
pub use calls::{CallQuestions, QuestionReply};
pub use connection::{ConnectionLimits, ServerConnection};
pub use error::ServerError;
pub use http_messages::{ServerAddress, is_reserved_header};
pub use journal::RedactServerText;
pub use tool::{OfferedTool, ToolClaims};
