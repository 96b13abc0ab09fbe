//! Plugins that are one JSON file, and the accounts that users connect them to.
//!
//! [`definition`] reads such a file: who the plugin is, how its user signs in, and what its actions
//! take, do and say.  Nothing here runs an action, opens a connection to a service on behalf of a
//! plugin, or knows a database: the runtime does.

pub mod definition;

pub use definition::{Action, AuthConfig, AuthType, Definition};
