//! Where two values first differ.

use std::{collections::BTreeSet, fmt};

use sallyport_contract::text;
use serde_json::Value;

/// Most characters of a value that are shown.
const EXCERPT_CHARS_MAX: usize = 80;

/// Characters of a text that are shown before the difference.
const LEAD_CHARS: usize = 20;

/// The first difference between the tape and the live session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayDifference {
    /// Its position, as a JSON pointer.
    pub pointer: String,
    /// The value on the tape, shortened and safe to print.
    pub recorded: String,
    /// The live value, shortened and safe to print.
    pub live: String,
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, recorded, live } = self;
        write!(f, "{pointer}: {recorded} on the tape, {live} now")
    }
}

impl ReplayDifference {
    /// Finds the first difference, with keys in sorted order; a missing value is a difference.
    pub(super) fn find(recorded: &Value, live: &Value) -> Option<Self> {
        let mut pointer = String::new();
        let (recorded, live) = find_difference(Some(recorded), Some(live), &mut pointer)?;
        let (recorded, live) = match (recorded, live) {
            (Some(Value::String(recorded)), Some(Value::String(live))) => {
                excerpt_pair(recorded, live)
            }
            (recorded, live) => (value_excerpt(recorded), value_excerpt(live)),
        };
        Some(Self { pointer: text::escape_line(&pointer), recorded, live })
    }
}

type ValuePair<'a> = (Option<&'a Value>, Option<&'a Value>);

/// Finds the first difference. The recursion is bounded: values of a tape and of a request are at
/// most as deep as the JSON parser allows.
fn find_difference<'a>(
    recorded: Option<&'a Value>,
    live: Option<&'a Value>,
    pointer: &mut String,
) -> Option<ValuePair<'a>> {
    let length = pointer.len();
    let mut inside = |key: &str, recorded, live| {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        let found = find_difference(recorded, live, pointer);
        if found.is_none() {
            pointer.truncate(length);
        }
        found
    };
    match (recorded, live) {
        (Some(Value::Object(recorded)), Some(Value::Object(live))) => {
            let keys: BTreeSet<&String> = recorded.keys().chain(live.keys()).collect();
            keys.into_iter().find_map(|key| inside(key, recorded.get(key), live.get(key)))
        }
        (Some(Value::Array(recorded)), Some(Value::Array(live))) => {
            (0..recorded.len().max(live.len()))
                .find_map(|index| inside(&index.to_string(), recorded.get(index), live.get(index)))
        }
        (recorded, live) => (recorded != live).then_some((recorded, live)),
    }
}

/// Shows two texts from shortly before their first difference.
fn excerpt_pair(recorded: &str, live: &str) -> (String, String) {
    let same = recorded.chars().zip(live.chars()).take_while(|(a, b)| a == b).count();
    let skipped = same.saturating_sub(LEAD_CHARS);
    let shown = |text: &str| {
        let lead = if skipped > 0 { "…" } else { "" };
        let rest: String = text.chars().skip(skipped).take(EXCERPT_CHARS_MAX + 1).collect();
        format!("\"{lead}{}\"", text::escape_excerpt(&rest, EXCERPT_CHARS_MAX))
    };
    (shown(recorded), shown(live))
}

fn value_excerpt(value: Option<&Value>) -> String {
    let shown = |value: &Value| text::escape_excerpt(&value.to_string(), EXCERPT_CHARS_MAX);
    value.map_or_else(|| "nothing".to_owned(), shown)
}
