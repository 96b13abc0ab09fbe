//! What the host tells about the session besides the conversation: the model, the tools, what each
//! plugin may do, and the audit's records.

use std::collections::VecDeque;

use sallyport_sdk::prelude::*;

use crate::visible::visible;

/// Maximum number of records. The page lists the newest.
const RECORDS_MAX: usize = 200;

/// Maximum number of tools and of plugins that the page lists.
const LISTED_MAX: usize = 500;

/// The facts about the session, as the page gets them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Facts {
    /// Changes with the facts, so that a page knows when to ask for them.
    #[serde(skip)]
    pub(crate) revision: u64,
    #[serde(flatten)]
    overview: Overview,
    /// The oldest first.
    records: VecDeque<Record>,
}

/// The session, as the host describes it.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Overview {
    model: String,
    session: String,
    tools: Vec<Tool>,
    /// Absent if this plugin may not answer questions.
    plugins: Option<Vec<Plugin>>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Tool {
    name: String,
    title: Option<String>,
    description: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Plugin {
    name: String,
    version: String,
    digest: String,
    permissions: Vec<String>,
    problem: Option<String>,
}

/// A record of the audit.
#[derive(Debug, Deserialize, Serialize)]
struct Record {
    seq: u64,
    at_ms: u64,
    kind: String,
    about: String,
    result: String,
    details: Vec<String>,
}

/// The records of an event.
#[derive(Deserialize)]
struct Records {
    records: Vec<Record>,
}

impl Facts {
    /// Takes an event of the host. One that is not known here changes nothing.
    pub(crate) fn take(&mut self, mut event: Value) {
        show_hidden(&mut event);
        let is_taken = match event["type"].as_str() {
            Some("session") => self.take_overview(event),
            Some("audit") => self.take_records(event),
            _ => false,
        };
        self.revision += u64::from(is_taken);
    }

    fn take_overview(&mut self, event: Value) -> bool {
        let Ok(mut overview) = Overview::deserialize(event) else { return false };
        overview.tools.truncate(LISTED_MAX);
        overview.plugins.iter_mut().for_each(|plugins| plugins.truncate(LISTED_MAX));
        self.overview = overview;
        true
    }

    fn take_records(&mut self, event: Value) -> bool {
        let Ok(Records { records }) = Records::deserialize(event) else { return false };
        self.records.extend(records);
        let excess = self.records.len().saturating_sub(RECORDS_MAX);
        self.records.drain(..excess);
        true
    }
}

/// Makes the hidden characters of all texts visible.
fn show_hidden(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(text),
        Value::Array(items) => items.iter_mut().for_each(show_hidden),
        Value::Object(fields) => fields.values_mut().for_each(show_hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64) -> Value {
        json!({ "seq": seq, "at_ms": 1, "kind": "call", "about": "a.b", "result": "completed",
            "details": ["GET https://a\u{202e}"] })
    }

    #[test]
    fn the_newest_records_are_kept_and_their_texts_are_visible() {
        let mut facts = Facts::default();
        let records = |from: u64| (from..from + 150).map(record).collect::<Vec<_>>();
        for from in [1, 151] {
            facts.take(json!({ "type": "audit", "records": records(from) }));
        }
        let shown = json!(facts);
        assert_eq!(shown["records"].as_array().unwrap().len(), RECORDS_MAX);
        assert_eq!(shown["records"][RECORDS_MAX - 1]["seq"], 300);
        assert_eq!(shown["records"][0]["details"][0], "GET https://a\\u{202e}");
        assert_eq!(facts.revision, 2);
    }

    #[test]
    fn an_event_of_a_later_host_changes_nothing() {
        let mut facts = Facts::default();
        facts.take(json!({ "type": "session", "model": "m", "later": [1] }));
        let before = json!(facts);
        for event in [
            json!({ "type": "weather" }),
            json!({ "type": "session", "tools": 7 }),
            json!({ "type": "audit", "records": [{}] }),
            json!([]),
            json!("session"),
        ] {
            facts.take(event);
        }
        assert_eq!((json!(facts), facts.revision), (before, 1));
        assert_eq!(json!(facts)["plugins"], Value::Null, "this plugin may not answer questions");
    }
}
