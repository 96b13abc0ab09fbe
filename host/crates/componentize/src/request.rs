//! What a manifest requests, as far as it decides about imports.

use std::{fs, path::Path};

use toml::{Table, Value};

use crate::BuildError;

/// The requests of a manifest.
#[derive(Debug, Clone, Default)]
pub struct PluginRequest(Table);

/// An interface that needs a request, and the words for an author who forgot it.
pub(crate) struct RequiredRequest {
    /// The name of the interface without its version.
    pub(crate) interface: &'static str,
    /// The key below `request`.
    pub(crate) key: &'static str,
    /// The lines that request it.
    pub(crate) fix: &'static str,
}

const NET: &str = "[[request.net]]\nallow = \"GET https://api.example.com/**\"\nwhy = \"…\"";

const REQUIRED_REQUESTS: [RequiredRequest; 7] = [
    required("wasi:http/outgoing-handler", "net", NET),
    required("wasi:http/types", "net", NET),
    required("sallyport:plugin/notify", "notify", "[[request.notify]]\nwhy = \"…\""),
    required("sallyport:plugin/open-url", "open-url", "[[request.open-url]]\nwhy = \"…\""),
    required("sallyport:plugin/progress", "progress", "[[request.progress]]\nwhy = \"…\""),
    required(
        "sallyport:plugin/secrets",
        "secrets",
        "[[request.secrets]]\nname = \"…\"\nreveal = true\nwhy = \"…\"",
    ),
    required("sallyport:plugin/state", "state", "[[request.state]]\nwhy = \"…\""),
];

const fn required(
    interface: &'static str,
    key: &'static str,
    fix: &'static str,
) -> RequiredRequest {
    RequiredRequest { interface, key, fix }
}

impl PluginRequest {
    /// Reads the requests of a manifest. Whether the manifest is right otherwise is the host's
    /// question.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if the file cannot be read or is not TOML.
    pub fn read(manifest: &Path) -> Result<Self, BuildError> {
        let problem = |reason: String| BuildError::Manifest { path: manifest.to_owned(), reason };
        let text = fs::read_to_string(manifest).map_err(|error| problem(error.to_string()))?;
        Self::parse(&text).map_err(|error| problem(error.to_string()))
    }

    /// Reads the requests from the text of a manifest.
    ///
    /// # Errors
    ///
    /// Returns the parser's error if the text is not TOML.
    pub fn parse(manifest: &str) -> Result<Self, toml::de::Error> {
        let mut table: Table = toml::from_str(manifest)?;
        match table.remove("request") {
            Some(Value::Table(request)) => Ok(Self(request)),
            _ => Ok(Self::default()),
        }
    }

    /// The request that an interface needs and this manifest lacks. `interface` may have a version.
    pub(crate) fn missing_for(&self, interface: &str) -> Option<&'static RequiredRequest> {
        let name = interface.split('@').next().unwrap_or(interface);
        let needed = REQUIRED_REQUESTS.iter().find(|needed| needed.interface == name)?;
        (!self.has(needed.key)).then_some(needed)
    }

    fn has(&self, key: &str) -> bool {
        let Some(Value::Array(entries)) = self.0.get(key) else { return false };
        let reveals = |entry: &Value| entry.get("reveal").and_then(Value::as_bool) == Some(true);
        match key {
            "secrets" => entries.iter().any(reveals),
            _ => !entries.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, interface: &str, missing: Option<&str>) {
        let request = PluginRequest::parse(manifest).unwrap();
        let found = request.missing_for(interface).map(|needed| needed.key);
        assert_eq!(found, missing, "{interface} with {manifest:?}");
    }

    #[test]
    fn an_interface_of_power_needs_its_request() {
        let hidden = "[[request.secrets]]\nname = \"pin\"";
        let shown = "[[request.secrets]]\nname = \"pin\"\nreveal = true";
        check("", "sallyport:plugin/state@0.1.0", Some("state"));
        check("[[request.state]]", "sallyport:plugin/state@0.1.0", None);
        check("request = 3", "sallyport:plugin/state@0.1.0", Some("state"));
        check("[request]\nstate = true", "sallyport:plugin/state@0.1.0", Some("state"));
        check("[[request.net]]", "wasi:http/types@0.2.12", None);
        check("[[request.state]]", "wasi:http/outgoing-handler@0.2.12", Some("net"));
        check(hidden, "sallyport:plugin/secrets@0.1.0", Some("secrets"));
        check(shown, "sallyport:plugin/secrets@0.1.0", None);
        check("", "sallyport:plugin/log@0.1.0", None);
        check("", "wasi:filesystem/types@0.2.6", None);
    }
}
