//! Strict JSON parsing of the text that models and plugins write.
//!
//! A duplicate key is an error here because `serde_json` keeps the last of two equal keys, and
//! policy and plugin could then read the same text differently.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Why a text is rejected as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is longer than the caller allows.
    #[error("{bytes} bytes of JSON, at most {bytes_max} are accepted")]
    TooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The text is not JSON, nests too deeply, or repeats a key.
    #[error("not valid JSON: {0}")]
    Malformed(String),
}

/// Parses a text of at most `bytes_max` bytes.
///
/// # Errors
///
/// Text that is too long, that is not JSON (`NaN` and trailing text included), that nests 128
/// levels or deeper, or that repeats a key within an object.
pub fn parse_json(text: &str, bytes_max: usize) -> Result<Value, JsonError> {
    if text.len() > bytes_max {
        return Err(JsonError::TooLong { bytes: text.len(), bytes_max });
    }
    let malformed = |e: serde_json::Error| JsonError::Malformed(e.to_string());
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = StrictJsonVisitor.deserialize(&mut reader).map_err(malformed)?;
    reader.end().map_err(malformed)?;
    Ok(value)
}

struct StrictJsonVisitor;

impl<'de> DeserializeSeed<'de> for StrictJsonVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictJsonVisitor)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(StrictJsonVisitor)?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key {key:?} stands twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_serde_json_accepts() {
        for text in
            ["{}", "[1, -2, 3.5e3]", r#"{"a":{"b":[null,true,"x\u00e9"]}}"#, "18446744073709551615"]
        {
            assert_eq!(
                parse_json(text, 1000).unwrap(),
                serde_json::from_str::<Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn refuses_what_two_readers_could_read_differently() {
        let deep = "[".repeat(200);
        for text in ["", "NaN", "{\"a\":1,\"a\":2}", "{} {}", "{\"a\":}", "1e999", "{'a':1}", &deep]
        {
            assert!(matches!(parse_json(text, 1000), Err(JsonError::Malformed(_))), "{text}");
        }
        let inner = parse_json(r#"{"x":[{"k":1,"k":1}]}"#, 1000).unwrap_err();
        assert!(inner.to_string().contains("\"k\" stands twice"), "{inner}");
        assert!(matches!(parse_json("[1]", 2), Err(JsonError::TooLong { bytes: 3, bytes_max: 2 })));
    }
}
