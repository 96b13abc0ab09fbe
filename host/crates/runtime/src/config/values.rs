//! The types of values in `sallyport.toml`: how each is read, shown and described in the schema.

use std::{borrow::Cow, ops::Deref, time::Duration};

use sallyport_model::TokenCost;
use sallyport_policy::{
    TimeSpan,
    source::{HintedError, quoted},
};
use sallyport_session::transcript;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value;

/// Largest value of a limit on a count. A larger one would not limit anything in practice.
const COUNT_MAX: u32 = 1_000_000;

/// Fewest and most bytes of a result that a model reads whole.
const RESULT_BYTES_LEAST: usize = 4 << 10;
const RESULT_BYTES_MOST: usize = transcript::RESULT_BYTES_MAX;

const DAY_S: u64 = 24 * 60 * 60;

/// Declares types of values: the TOML type that each is read from, its schema, its check and its
/// form in `config show`. In a message, the reader replaces `{key}` and takes the second line for
/// the hint.
macro_rules! value_types {
    ($($(#[$meta:meta])* $name:ident($inner:ty) from $raw:ty, $schema:tt,
        |$value:ident| $read:expr, |$this:ident| $show:expr;)*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, PartialOrd)]
        pub struct $name(
            /// The checked value.
            pub $inner,
        );

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $value = <$raw>::deserialize(deserializer)?;
                let checked: Result<$inner, String> = $read;
                checked.map(Self).map_err(D::Error::custom)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $this = &self.0;
                $show.serialize(serializer)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )* };
}

value_types! {
    /// A text that is not blank.
    #[derive(Eq, Ord)]
    NonblankText(String) from String, { "type": "string" },
        |text| match text.trim().is_empty() {
            true => Err("{key} is empty".to_owned()),
            false => Ok(text),
        },
        |text| text;

    /// A glob of model names. The special characters of other globs would match nothing here, so
    /// they are refused.
    #[derive(Eq, Ord)]
    ModelGlob(String) from NonblankText, { "type": "string" },
        |text| match text.contains(['?', '[', ']', '{', '}']) {
            true => Err(format!("{} is not a valid glob: only * is special", quoted(&text))),
            false => Ok(text.0),
        },
        |glob| glob;

    /// A number of calls, answers or sessions.
    #[derive(Copy, Eq, Ord)]
    CountLimit(u32) from i64, { "type": "integer", "minimum": 1, "maximum": COUNT_MAX },
        |number| u32::try_from(number).ok().filter(|count| (1..=COUNT_MAX).contains(count))
            .ok_or_else(|| format!("{{key}} must be from 1 to {COUNT_MAX}")),
        |count| count;

    /// A number of tokens.
    #[derive(Copy, Eq, Ord)]
    TokenCount(u64) from i64, { "type": "integer", "minimum": 1 },
        |number| u64::try_from(number).ok().filter(|count| *count > 0)
            .ok_or_else(|| "{key} must be a number of tokens from 1 up".to_owned()),
        |count| count;

    /// A length of a result, in bytes. Less would not show what it is, more would be cut anyway.
    #[derive(Copy, Eq, Ord)]
    ResultBytes(usize) from i64,
        { "type": "integer", "minimum": RESULT_BYTES_LEAST, "maximum": RESULT_BYTES_MOST },
        |number| usize::try_from(number).ok()
            .filter(|bytes| (RESULT_BYTES_LEAST..=RESULT_BYTES_MOST).contains(bytes))
            .ok_or_else(|| format!(
                "{{key}} must be from {RESULT_BYTES_LEAST} to {RESULT_BYTES_MOST} bytes"
            )),
        |bytes| bytes;

    /// A number of tokens of one answer, as the providers count them.
    #[derive(Copy, Eq, Ord)]
    OutputTokens(u32) from i64, { "type": "integer", "minimum": 1, "maximum": u32::MAX },
        |number| u32::try_from(number).ok().filter(|count| *count > 0)
            .ok_or_else(|| format!("{{key}} must be from 1 to {}", u32::MAX)),
        |tokens| tokens;

    /// A number from 0 up, which may have a fraction.
    #[derive(Copy)]
    PositiveAmount(f64) from f64, { "type": "number", "minimum": 0 },
        |number| match number.is_finite() && number >= 0.0 {
            true => Ok(number),
            false => Err("{key} must be a number from 0 up".to_owned()),
        },
        |amount| amount;

    /// An amount of money above 0, in US dollars.
    #[derive(Copy, Eq, Ord)]
    CostLimit(TokenCost) from PositiveAmount, { "type": "number", "exclusiveMinimum": 0 },
        // Less than a millionth of a dollar cannot be counted, and a limit of 0 would stop
        // everything.
        |dollars| match (dollars.0 * 1e6).floor() as u64 {
            0 => Err("{key} is not an amount that can be spent\nwrite US dollars, such as 0.50".into()),
            micro_usd => Ok(TokenCost { micro_usd }),
        },
        |cost| (cost.micro_usd as f64 / 1e6);

    /// A length of time, which may be zero.
    #[derive(Copy, Eq, Ord)]
    TimeSetting(Duration) from String,
        { "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" },
        |text| match text.parse::<TimeSpan>() {
            Ok(TimeSpan(time)) => Ok(time),
            Err(error) => Err(format!("{error}\n{}", error.hint().unwrap_or_default())),
        },
        |time| TimeSpan(*time).to_string();

    /// A length of time above zero.
    #[derive(Copy, Eq, Ord)]
    TimeLimit(Duration) from TimeSetting,
        { "type": "string", "pattern": "^[0-9]+(ms|s|m|h)$" },
        |time| match time.0.is_zero() {
            true => Err("{key} must be longer than 0".to_owned()),
            false => Ok(time.0),
        },
        |time| TimeSpan(*time).to_string();

    /// How long something is kept, forever without a value.
    #[derive(Copy, Eq)]
    RetentionTime(Option<Duration>) from String,
        { "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d)|forever)$" },
        |text| parse_retention_time(&text),
        |keep| match keep {
            None => "forever".to_owned(),
            Some(keep) if keep.as_secs() % DAY_S == 0 => format!("{}d", keep.as_secs() / DAY_S),
            Some(keep) => TimeSpan(*keep).to_string(),
        };
}

impl RetentionTime {
    /// A number of days.
    pub(super) const fn from_days(days: u64) -> Self {
        Self(Some(Duration::from_secs(days * DAY_S)))
    }
}

fn parse_retention_time(text: &str) -> Result<Option<Duration>, String> {
    const HINT: &str = "write days or hours, such as 90d or 12h, or forever";
    if text == "forever" {
        return Ok(None);
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    let time = match days {
        Some(days) => TimeSpan(Duration::from_secs(u64::from(days) * DAY_S)),
        None => text.parse().map_err(|error| format!("{error}\n{HINT}"))?,
    };
    match time.0.is_zero() {
        // With a zero age, every session would be too old immediately.
        true => Err(format!("{{key}} must be longer than nothing\n{HINT}")),
        false => Ok(Some(time.0)),
    }
}

/// One text or a list of texts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "{key} must be a string or a list of strings")]
pub enum TextOrTexts {
    /// One text.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl TextOrTexts {
    /// The texts.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// A setting that is passed to a plugin; its manifest names the settings.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(extend("x-variables" = "text"))]
pub struct PluginSetting(#[schemars(with = "Value")] pub toml::Value);

/// A text in which variables are replaced.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(extend("x-variables" = true))]
pub struct VariableText(pub String);

impl Deref for NonblankText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
