//! Serves a host to many users over HTTP: sessions.
//!
//! - [`serve`]: serves until it is stopped. Start reading here.
//! - [`ServiceParts`]: what it serves.
//! - [`TokenBook`], [`token_file`]: who the users are.
//! - [`openapi_document`]: the description of all routes.
#![allow(dead_code, reason = "the routes that use the rest follow")]

mod access;
mod connection;
mod event_log;
mod event_stream;
mod health;
mod idempotency;
mod metrics;
mod open_sessions;
mod openapi;
mod problem;
mod protection;
mod quota;
mod request_body;
mod role;
mod routes;
mod server;
mod session_routes;
pub mod token_file;
mod tokens;

pub use openapi::openapi_document;
pub use role::{ServiceUser, UserRole};
pub use server::{ServiceConsent, ServiceParts, SettingsSource, serve};
pub use tokens::TokenBook;
