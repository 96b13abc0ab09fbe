//! The answers of a service's token endpoint, as services write them.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Tokens, as a service answers them.
#[derive(Deserialize)]
pub(super) struct ServiceTokens {
    pub(super) access_token: String,
    #[serde(default, deserialize_with = "read_lifetime")]
    pub(super) expires_in: Option<u64>,
    #[serde(default)]
    pub(super) refresh_token: Option<String>,
    #[serde(default, deserialize_with = "read_scopes")]
    pub(super) scope: Option<Vec<String>>,
}

/// A refusal of a service.
#[derive(Deserialize)]
pub(super) struct ServiceRefusal {
    pub(super) error: String,
    #[serde(default)]
    pub(super) error_description: Option<String>,
}

/// The beginning of a sign-in on another device.
#[derive(Deserialize)]
pub(super) struct DeviceDetails {
    pub(super) device_code: String,
    pub(super) user_code: String,
    #[serde(alias = "verification_url")]
    pub(super) verification_uri: String,
    #[serde(default, deserialize_with = "read_lifetime")]
    pub(super) expires_in: Option<u64>,
    #[serde(default, deserialize_with = "read_lifetime")]
    pub(super) interval: Option<u64>,
}

/// Reads seconds, also from text. Zero, less and anything else count as unknown: a token is used
/// until the service refuses it.
fn read_lifetime<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    let seconds = match Value::deserialize(reader)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse::<f64>().ok(),
        _ => None,
    };
    let known = seconds.filter(|seconds| *seconds >= 1.0 && seconds.is_finite());
    Ok(known.map(|seconds| seconds as u64))
}

/// Reads permissions from a text with blanks or commas, or from a list.
fn read_scopes<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<String>>, D::Error> {
    let words: Vec<String> = match Value::deserialize(reader)? {
        Value::String(text) => {
            let words = text.split([' ', ',']).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        }
        Value::Array(items) => {
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    };
    Ok((!words.is_empty()).then_some(words))
}
