//! `[telemetry]`: the collector that spans, metrics and logs are sent to.

use std::{collections::BTreeMap, fmt};

use sallyport_contract::Secret;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{VariableText, mcp_server::header_secret};

/// The name of the program at the collector, unless the configuration gives it another.
const SERVICE_NAME: &str = "sallyport";

/// The `[telemetry]` table.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// The address of an OpenTelemetry collector that takes OTLP over HTTP.
    #[schemars(extend("x-variables" = true))]
    pub endpoint: String,
    /// Headers of every request to it, such as the one that signs in.
    #[serde(default)]
    headers: BTreeMap<String, VariableText>,
    /// The name of this program at the collector; without it, sallyport.
    #[schemars(extend("x-variables" = true))]
    service_name: Option<String>,
    /// Whether the texts of warnings are sent in log records. They can name files and addresses.
    #[serde(default)]
    pub notice_texts: bool,
}

impl TelemetrySettings {
    /// The headers of each request. Their values may be keys.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.0.as_str()))
    }

    /// The name of this program at the collector.
    pub fn service_name(&self) -> &str {
        self.service_name.as_deref().filter(|name| !name.trim().is_empty()).unwrap_or(SERVICE_NAME)
    }

    /// The values of the headers, each with the name of its source. They are removed from all texts,
    /// because most of them are keys.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (String, Secret)> {
        self.headers().filter_map(|(name, value)| {
            let secret = header_secret(value)?;
            Some((format!("telemetry.headers.{name}"), Secret::new(secret.to_owned())))
        })
    }
}

impl fmt::Debug for TelemetrySettings {
    /// Leaves out the values of headers and the address, which can have a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TelemetrySettings")
            .field("headers", &self.headers.keys())
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}
