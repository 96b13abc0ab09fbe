//! Servers of the first revisions that answer any unknown method with an empty result.

use rmcp::{
    RoleClient,
    model::{
        ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, JsonRpcResponse, ServerJsonRpcMessage,
        ServerResult,
    },
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

/// Messages of a server whose first answer, the one to `server/discover`, is never empty: an empty
/// one becomes the error for an unknown method, because that lets the connection begin the old way.
pub(crate) struct DiscoveryAnswers<T> {
    inner: T,
    has_answer: bool,
}

impl<T> DiscoveryAnswers<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, has_answer: false }
    }

    fn correct_first_answer(&mut self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        if !is_answer || std::mem::replace(&mut self.has_answer, true) {
            return message;
        }
        match message {
            JsonRpcMessage::Response(JsonRpcResponse {
                id,
                result: ServerResult::EmptyResult(_),
                ..
            }) => {
                let text = "the answer to server/discover is empty";
                let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None);
                JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
            }
            other => other,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for DiscoveryAnswers<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        Some(self.correct_first_answer(message))
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
