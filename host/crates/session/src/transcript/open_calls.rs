//! The calls of the last message, until each has its result.

use std::collections::HashMap;

use sallyport_model::{ChatMessage, ModelCallRequest, ToolResultMessage};
use serde_json::json;

/// The error for the model about a call whose end was not recorded.
const INTERRUPTED: &str =
    "interrupted: the host stopped before this call ended; it may or may not have had its effect";

/// Calls of which some have no result yet.
#[derive(Debug)]
pub(super) struct OpenCalls {
    calls: Vec<ModelCallRequest>,
    results: Vec<Option<ToolResultMessage>>,
    /// The index of each call id. The map keeps look-ups fast for a hostile answer with very many
    /// calls.
    call_indices: HashMap<String, usize>,
    missing_count: usize,
}

impl OpenCalls {
    pub(super) fn new(calls: Vec<ModelCallRequest>) -> Self {
        let results = calls.iter().map(|_| None).collect();
        let ids = calls.iter().map(|call| call.id.clone());
        let call_indices = ids.enumerate().map(|(index, id)| (id, index)).collect();
        let missing_count = calls.len();
        Self { calls, results, call_indices, missing_count }
    }

    /// Adds a result. A result for an unknown call, or a second one, changes nothing.
    pub(super) fn add_result(&mut self, result: ToolResultMessage) {
        let index = self.call_indices.get(&result.call_id);
        let slot = index.and_then(|index| self.results.get_mut(*index));
        if let Some(slot @ None) = slot {
            *slot = Some(result);
            self.missing_count -= 1;
        }
    }

    pub(super) fn has_all_results(&self) -> bool {
        self.missing_count == 0
    }

    /// The calls without a result.
    pub(super) fn calls_without_result(&self) -> impl Iterator<Item = &ModelCallRequest> {
        let pairs = self.calls.iter().zip(&self.results);
        pairs.filter(|(_, result)| result.is_none()).map(|(call, _)| call)
    }

    /// Returns one result for each call, in the order of the calls.
    pub(super) fn into_messages(self) -> impl Iterator<Item = ChatMessage> {
        let pairs = self.calls.into_iter().zip(self.results);
        pairs.map(|(call, result)| {
            ChatMessage::Tool(result.unwrap_or_else(|| interrupted_result(call)))
        })
    }
}

fn interrupted_result(call: ModelCallRequest) -> ToolResultMessage {
    let content = json!({ "outcome": "cancelled", "error": INTERRUPTED }).to_string();
    ToolResultMessage { call_id: call.id, name: call.name, content, failed: true }
}
