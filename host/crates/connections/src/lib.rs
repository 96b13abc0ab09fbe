//! Plugins that are one JSON file, and the accounts that users connect them to.
//!
//! [`definition`] reads such a file: who the plugin is, how its user signs in, and what its actions
//! take, do and say. [`oauth`] signs a user in, and [`TokenCipher`] seals the tokens. Nothing here runs an action, opens a connection to a service on behalf of a
//! plugin, or knows a database: the runtime does.

mod cipher;
pub mod definition;
pub mod oauth;

pub use cipher::{CipherError, TOKEN_KEY_BYTES, TokenCipher};
pub use definition::{AccountService, Action, AuthConfig, AuthType, Definition};
