//! Logging in at an identity server, with OpenID Connect.

mod claims;
mod http;
mod id_token;
mod pending;
mod provider;
mod refusal;
mod settings;

use serde_json::{Map, Value};

pub use settings::{SignOnSettings, SignOnSettingsError};

use http::IdentityHttpError;
use refusal::SignOnRefusal;

/// The claims of a user, as the identity server signed or sent them.
type Claims = Map<String, Value>;

impl From<IdentityHttpError> for SignOnRefusal {
    fn from(error: IdentityHttpError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
