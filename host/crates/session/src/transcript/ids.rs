//! Ids of calls, unique within a session.

use std::collections::HashSet;

use sallyport_model::AssistantMessage;

/// The ids that calls of this session have had.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    taken: HashSet<String>,
    made: u32,
}

impl CallIds {
    /// Takes the ids of a message. One that is empty or was taken before is replaced by a new one;
    /// the provider's own form of the message would contradict that and is dropped.
    pub(super) fn claim(&mut self, message: &mut AssistantMessage) {
        for call in &mut message.calls {
            if call.id.is_empty() || !self.taken.insert(call.id.clone()) {
                call.id = self.make();
                message.opaque = None;
            }
        }
    }

    fn make(&mut self) -> String {
        loop {
            self.made += 1;
            // Nine letters and digits: what the strictest provider takes as an id.
            let id = format!("call{:05}", self.made);
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}
