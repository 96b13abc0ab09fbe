//! What a UI learns of its session besides the conversation: the model, the tools, what each plugin
//! may do, and the audit's records about the session.
//!
//! The contract has no case for it, so each part is an `other` event, a JSON object with a `type`.
//! A UI that does not know the word ignores it.

use sallyport_contract::{ToolDescriptor, text};
use sallyport_runtime::{Host, registry::RegisteredPlugin};
use sallyport_sandbox::roles::UiEvent;
use sallyport_store::{AuditEntry, AuditFilter};
use serde_json::{Value, json};

use crate::cli::audit;

/// Most records in one event: a page lists that many without a wait.
const RECORDS_MAX: usize = 200;

/// Longest description of a tool in characters: its first sentences, for a list.
const DESCRIPTION_CHARS_MAX: usize = 400;

/// The facts about a session, and which of them the UI has.
pub(super) struct SessionFacts<'a> {
    host: &'a Host,
    model: String,
    session_id: String,
    /// Whether the UI answers questions, and so learns what plugins may do.
    may_confirm: bool,
    sent_overview: Value,
    sent_seq: u64,
}

impl<'a> SessionFacts<'a> {
    pub(super) fn new(host: &'a Host, model: &str, session_id: &str, may_confirm: bool) -> Self {
        let (model, session_id) = (model.to_owned(), session_id.to_owned());
        Self { host, model, session_id, may_confirm, sent_overview: Value::Null, sent_seq: 0 }
    }

    /// Takes note of the audit's end, because only the records of this run are shown.
    pub(super) async fn skip_old_records(&mut self) {
        let newest = AuditFilter { limit: Some(1), newest_first: true, ..AuditFilter::default() };
        let newest = self.host.read_audit(newest).await.unwrap_or_default();
        self.sent_seq = newest.first().map_or(0, |entry| entry.seq);
    }

    /// Returns what the UI does not have yet.
    pub(super) async fn news(&mut self) -> Vec<UiEvent> {
        let overview = self.overview();
        let is_new = overview != self.sent_overview;
        self.sent_overview = overview;
        let overview = is_new.then(|| self.sent_overview.to_string());
        let records = if self.may_confirm { self.new_records().await } else { None };
        overview.into_iter().chain(records).map(UiEvent::Other).collect()
    }

    fn overview(&self) -> Value {
        let registry = self.host.registry();
        let tools: Vec<Value> = registry.tools().iter().map(tool_facts).collect();
        let mut overview = json!({
            "type": "session",
            "model": self.model,
            "session": self.session_id,
            "tools": tools,
        });
        if self.may_confirm {
            overview["plugins"] = registry.entries().map(plugin_facts).collect();
        }
        overview
    }

    /// The newest records about the session, the oldest first. A record that cannot be read may be
    /// about another session.
    async fn new_records(&mut self) -> Option<String> {
        let filter = AuditFilter {
            session: Some(self.session_id.clone()),
            after_seq: Some(self.sent_seq),
            limit: Some(RECORDS_MAX),
            newest_first: true,
            ..AuditFilter::default()
        };
        // The next call and the end of the host report an audit that cannot be used.
        let mut entries = self.host.read_audit(filter).await.ok()?;
        entries.reverse();
        self.sent_seq = entries.last()?.seq;
        let records: Vec<Value> = entries.iter().filter_map(record_facts).collect();
        Some(json!({ "type": "audit", "records": records }).to_string())
    }
}

fn tool_facts(tool: &ToolDescriptor) -> Value {
    let description = text::escape_excerpt(&tool.description, DESCRIPTION_CHARS_MAX);
    json!({ "name": tool.id.to_string(), "title": tool.title, "description": description })
}

fn plugin_facts(plugin: &RegisteredPlugin) -> Value {
    let problem = plugin.availability().problem_and_hint(plugin.name());
    json!({
        "name": plugin.name(),
        "version": plugin.manifest().version,
        "digest": plugin.digest(),
        "permissions": plugin.grant().permission_lines(),
        "problem": problem.map(|(problem, _)| problem),
    })
}

fn record_facts(entry: &AuditEntry) -> Option<Value> {
    let record = entry.record.as_ref()?;
    Some(json!({
        "seq": entry.seq,
        "at_ms": record.at_ms,
        "kind": record.kind.as_str(),
        "about": audit::subject_text(record),
        "result": audit::result_text(record),
        "details": audit::record_details(record),
    }))
}
