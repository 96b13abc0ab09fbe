//! What differs between protocols: how a request is written and an answer is read.

use std::fmt::Debug;

use serde_json::{Value, value::RawValue};

use super::{PartialAnswer, connection};
use crate::{
    chat::{FileAttachment, ModelToolDefinition, ReplyDelta},
    chat_model::ModelRequest,
    endpoint::ModelEndpoint,
    kept_messages::SingleMessageWriter,
};

/// Receives an answer while it arrives.
pub(crate) type OnDelta<'a> = &'a mut (dyn FnMut(ReplyDelta) + Send);

/// The requests and answers of one protocol.
pub(crate) trait WireFormat: Debug + Send + Sync {
    /// Returns the path of the method, below the base address.
    fn method_path(&self, endpoint: &ModelEndpoint) -> String;

    /// Returns the media type of a streamed answer.
    fn stream_type(&self) -> &'static str {
        connection::EVENT_STREAM
    }

    /// Returns true if a file can be sent unchanged. Text files can always be sent, as part of the
    /// text.
    fn can_send_file(&self, file: &FileAttachment) -> bool;

    /// Returns the list of tools in the protocol's form.
    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value;

    /// Returns the body of a request. `tools` is the list from [`WireFormat::tool_list`].
    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8>;

    /// Returns a writer of single messages, for protocols that do not join them. What it writes can
    /// be kept for later requests.
    fn message_writer<'a>(
        &self,
        _endpoint: &'a ModelEndpoint,
        _tools: Option<&'a RawValue>,
    ) -> Option<Box<dyn SingleMessageWriter + 'a>> {
        None
    }

    /// Returns an answer of which nothing has arrived.
    fn begin_answer(&self) -> Box<dyn PartialAnswer>;
}
