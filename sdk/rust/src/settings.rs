//! The plugin's own settings, from `[settings.PLUGIN]` in the host's configuration.
//!
//! The manifest describes the settings. The host checks them and fills in defaults, so the values
//! match the manifest.

use std::{error::Error, fmt};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{SetupError, ToolError, host};

/// Why a setting could not be read.
///
/// In a tool, `?` converts it into [`ToolError::Unavailable`]. In a `setup` function, `?` converts
/// a missing setting into [`SetupError::MissingSettings`].
///
/// ```
/// use sallyport_sdk::{ToolError, settings::SettingError};
///
/// let error = SettingError::Missing { key: "account".to_owned() };
/// assert_eq!(ToolError::from(error).message(), "the setting `account` is not given");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingError {
    /// The setting is not set and has no default.
    Missing {
        /// The name of the setting.
        key: String,
    },
    /// The setting has another type than the plugin expects.
    Mismatch {
        /// The name of the setting; `None` if all were read together.
        key: Option<String>,
        /// What does not match.
        reason: String,
    },
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { key } => write!(f, "the setting `{key}` is not given"),
            Self::Mismatch { key: Some(key), reason } => {
                write!(f, "the setting `{key}` does not fit: {reason}")
            }
            Self::Mismatch { key: None, reason } => write!(f, "the settings do not fit: {reason}"),
        }
    }
}

impl Error for SettingError {}

impl From<SettingError> for ToolError {
    fn from(error: SettingError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<SettingError> for SetupError {
    fn from(error: SettingError) -> Self {
        match error {
            SettingError::Missing { key } => Self::MissingSettings(vec![key]),
            mismatch => Self::Unavailable(mismatch.to_string()),
        }
    }
}

/// Returns one setting. Use an `Option` if it may be missing.
///
/// ```
/// use sallyport_sdk::{settings, testing};
/// use serde_json::json;
///
/// testing::settings(json!({ "units": "metric" }));
/// assert_eq!(settings::get::<String>("units"), Ok("metric".to_owned()));
/// assert_eq!(settings::get::<Option<u32>>("places"), Ok(None));
/// assert!(settings::get::<u32>("places").is_err());
/// ```
///
/// # Errors
///
/// The setting is missing, or does not match the type.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<T, SettingError> {
    let mismatch = |e: serde_json::Error| SettingError::Mismatch {
        key: Some(key.to_owned()),
        reason: e.to_string(),
    };
    match host::setting(key) {
        Some(text) => serde_json::from_str(&text).map_err(mismatch),
        None => serde_json::from_value(Value::Null)
            .map_err(|_| SettingError::Missing { key: key.to_owned() }),
    }
}

/// Returns all settings, as a struct or a map.
///
/// ```
/// use sallyport_sdk::{prelude::*, settings, testing};
///
/// #[derive(Deserialize)]
/// struct Settings {
///     units: String,
/// }
///
/// testing::settings(json!({ "units": "metric" }));
/// assert_eq!(settings::all::<Settings>()?.units, "metric");
/// # Ok::<(), settings::SettingError>(())
/// ```
///
/// # Errors
///
/// The settings do not match the type.
pub fn all<T: DeserializeOwned>() -> Result<T, SettingError> {
    serde_json::from_str(&host::all_settings())
        .map_err(|e| SettingError::Mismatch { key: None, reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::testing;

    #[test]
    fn settings_are_read_with_their_types() {
        testing::settings(json!({ "places": 3, "name": "x", "list": ["a"], "nothing": null }));
        assert_eq!(get::<u8>("places"), Ok(3));
        assert_eq!(get::<Vec<String>>("list"), Ok(vec!["a".to_owned()]));
        assert_eq!(get::<Option<u8>>("places"), Ok(Some(3)));
        assert_eq!(get::<Option<u8>>("nothing"), Ok(None));
        assert_eq!(get::<Option<u8>>("absent"), Ok(None));
        assert_eq!(get::<u8>("absent"), Err(SettingError::Missing { key: "absent".to_owned() }));
        assert!(all::<BTreeMap<String, Value>>().unwrap().contains_key("nothing"));
    }

    #[test]
    fn a_wrong_type_names_the_setting() {
        testing::settings(json!({ "name": "x" }));
        let error = ToolError::from(get::<u8>("name").unwrap_err());
        assert_eq!(error.kind(), "unavailable");
        assert!(error.message().starts_with("the setting `name` does not fit: "), "{error}");
        let error = SetupError::from(all::<Vec<u8>>().unwrap_err());
        assert!(matches!(error, SetupError::Unavailable(_)), "{error}");
    }
}
