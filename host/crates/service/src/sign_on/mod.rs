//! Logging in at an identity server, with OpenID Connect.

mod claims;
mod refusal;
mod settings;

use serde_json::{Map, Value};

pub use settings::{SignOnSettings, SignOnSettingsError};

use refusal::SignOnRefusal;

/// The claims of a user, as the identity server signed or sent them.
type Claims = Map<String, Value>;
