//! Serves a host to many users over HTTP.
//!
//! - [`TokenBook`], [`token_file`]: who the users are.
#![allow(dead_code, reason = "the routes that use these parts follow")]

mod event_log;
mod idempotency;
mod problem;
mod quota;
mod request_body;
mod role;
pub mod token_file;
mod tokens;

pub use role::{ServiceUser, UserRole};
pub use tokens::TokenBook;
