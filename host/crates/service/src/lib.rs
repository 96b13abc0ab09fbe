//! Serves a host to many users over HTTP: sessions, tools, approvals, the audit.
//!
//! Every call passes the same gate as any other: policy, approvals, sandbox and audit. Each user has
//! a token; what belongs to one user does not exist for another. The crate knows neither a command
//! line nor a terminal.
//!
//! - [`serve`]: serves until it is stopped. Start reading here.
//! - [`ServiceParts`]: what it serves.
//! - [`TokenBook`], [`token_file`], [`SignOn`]: who the users are.
//! - [`openapi_document`]: the description of all routes.

mod access;
mod approvals;
mod audit;
mod browser_login;
mod caller;
mod connections;
mod console;
mod event_log;
mod event_socket;
mod event_stream;
mod health;
mod idempotency;
mod keyed_work;
mod metrics;
mod open_sessions;
mod openapi;
mod origin;
mod peer_address;
mod pending_return;
mod pending_sign_ins;
mod plugins;
mod problem;
mod protection;
mod quota;
mod request_body;
mod request_span;
mod role;
mod route_spec;
mod routes;
mod server;
mod service;
mod session_opening;
mod session_routes;
mod sign_on;
pub mod token_file;
mod tokens;
mod tools;
mod usage;

pub use origin::{PublicOrigin, PublicOriginError};
pub use role::{ServiceUser, UserRole};
pub use routes::openapi_document;
pub use server::serve;
pub use service::{ServiceConsent, ServiceParts, SettingsSource};
pub use sign_on::{SignOn, SignOnSettings, SignOnSettingsError};
pub use tokens::TokenBook;
