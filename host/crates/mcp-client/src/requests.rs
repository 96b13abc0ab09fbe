//! The server's own requests and reports. It is offered nothing, so each request is refused and told
//! to the user: a server that could ask a model or the user would be a way around the gate.
#![expect(deprecated, reason = "log messages, which servers of the versions in use still send")]

use std::sync::Arc;

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
        CreateMessageResult, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
        ElicitationAction, ErrorCode, Implementation, ListRootsRequestMethod, ListRootsResult,
        LoggingMessageNotificationParam,
    },
    service::{NotificationContext, RequestContext},
};

use crate::journal::ConnectionJournal;

/// Answers a server.
pub(crate) struct RequestRefuser {
    pub(crate) journal: Arc<ConnectionJournal>,
}

impl RequestRefuser {
    fn note_refusal(&self, wanted: &str) {
        self.journal.add_remark(&format!("the server {wanted}, which was refused"));
    }
}

impl ClientHandler for RequestRefuser {
    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("sallyport", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), program)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.note_refusal("asked for an answer of a model (sampling)");
        Err(ErrorData::method_not_found::<CreateMessageRequestMethod>())
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.note_refusal("asked for the user's folders (roots)");
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = match &request {
            ElicitRequestParams::FormElicitationParams { message, .. }
            | ElicitRequestParams::UrlElicitationParams { message, .. } => message.as_str(),
            _ => "",
        };
        self.note_refusal(&format!("wanted to ask the user {question:?} (elicitation)"));
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        self.note_refusal(&format!("sent the request {:?}", request.method));
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match params.data.as_str() {
            Some(text) => text.to_owned(),
            None => params.data.to_string(),
        };
        self.journal.add_remark(&format!("the server logged: {text}"));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.journal.note_changed_tools();
    }
}
