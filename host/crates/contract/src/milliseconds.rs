//! Durations as whole milliseconds in JSON: `#[serde(rename = "elapsed_ms", with = "milliseconds")]`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Writes a duration as milliseconds, rounded down.
///
/// # Errors
///
/// The serializer failed.
pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Reads a duration in milliseconds.
///
/// # Errors
///
/// The value is not an unsigned integer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// The same for a duration that may be absent. The field needs `default` as well.
pub mod option {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    /// Writes a duration as milliseconds, rounded down, or `null`.
    ///
    /// # Errors
    ///
    /// The serializer failed.
    pub fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a duration in milliseconds, or `null`.
    ///
    /// # Errors
    ///
    /// The value is neither `null` nor an unsigned integer.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
