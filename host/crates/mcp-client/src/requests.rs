//! The server's own requests and reports.
//!
//! A question to the user goes to the user of the call that runs. Everything else is refused and told
//! to the user: a server that could ask a model would be a way around the gate.
#![expect(deprecated, reason = "log messages, which servers of the versions in use still send")]

use std::sync::Arc;

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
        CreateMessageResult, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationCapability, ErrorCode, FormElicitationCapability,
        Implementation, ListRootsRequestMethod, ListRootsResult, LoggingMessageNotificationParam,
        UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};

use crate::journal::ConnectionJournal;

/// Answers a server.
pub(crate) struct ServerRequests {
    pub(crate) journal: Arc<ConnectionJournal>,
}

impl ServerRequests {
    fn note_refusal(&self, wanted: &str) {
        self.journal.add_remark(&format!("the server {wanted}, which was refused"), "");
    }
}

impl ClientHandler for ServerRequests {
    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("sallyport", env!("CARGO_PKG_VERSION"));
        let form = FormElicitationCapability::new().with_schema_validation(true);
        let elicitation =
            ElicitationCapability::new().with_form(form).with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, program)
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
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        let Some(call) = self.journal.calls.asked_call() else {
            // Its words are in no record, because they are for a user who is not known.
            self.note_refusal("asked a question while no call ran, or calls of several users");
            return Ok(declined());
        };
        Ok(tokio::select! {
            answer = call.ask(&request, &self.journal) => answer,
            () = context.ct.cancelled() => declined(),
        })
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let what = "the server sent a request that is not known, which was refused";
        self.journal.add_remark(what, &request.method);
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
        self.journal.add_remark("the server logged", &text);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.journal.note_changed_tools();
    }
}
