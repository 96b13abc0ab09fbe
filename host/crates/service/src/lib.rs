//! Serves a host to many users over HTTP.
//!
//! - [`TokenBook`], [`token_file`]: who the users are.

mod role;
pub mod token_file;
mod tokens;

pub use role::{ServiceUser, UserRole};
pub use tokens::TokenBook;
