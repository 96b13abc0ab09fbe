//! Call ids, unique within a session.

use std::collections::HashSet;

use sallyport_model::AssistantMessage;

/// The call ids that this session has used.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    taken: HashSet<String>,
    made_count: u32,
}

impl CallIds {
    /// Claims the ids of a message. An empty or used id is replaced by a new one; the provider's
    /// own form of the message would contradict the new id and is dropped.
    pub(super) fn claim_ids(&mut self, message: &mut AssistantMessage) {
        for call in &mut message.calls {
            if call.id.is_empty() || !self.taken.insert(call.id.clone()) {
                call.id = self.new_id();
                message.opaque = None;
            }
        }
    }

    fn new_id(&mut self) -> String {
        loop {
            self.made_count += 1;
            // Nine letters and digits, the format of the strictest provider.
            let id = format!("call{:05}", self.made_count);
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}
