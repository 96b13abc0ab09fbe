//! The methods of the protocol, for one connection.
#![expect(deprecated, reason = "log messages, which clients of the versions in use still show")]

use std::pin::pin;

use futures::StreamExt;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult,
        ErrorCode, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
        GetTaskParams, GetTaskResult, Implementation, ListPromptsRequestMethod, ListPromptsResult,
        ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
        ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        PromptsCapability, ReadResourceRequestMethod, ReadResourceRequestParams,
        ReadResourceResponse, ResourcesCapability, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestMethod, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestMethod, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{
        NotificationContext, RequestContext, SubscriptionContext, SubscriptionSendError,
        SubscriptionSink,
    },
};
use sallyport_contract::text;

use crate::{
    apps,
    handler::{McpConnection, is_stateless},
    offer_requests, offers,
    request_span::in_request_span,
    subscriptions::{SUBSCRIPTIONS_MAX, Subscriptions, look_interval},
    tasks,
};

/// What a client may tell its model about the server.
const INSTRUCTIONS: &str = "Each tool runs in a sandbox under the user's policy. A call that the \
policy does not allow fails with the reason. Only the user can change the policy; tell them the \
reason and the command, and do not repeat the call unchanged.";

impl ServerHandler for McpConnection {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        if offers::has_resources(self.server()) {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = Some(true);
            capabilities.resources = Some(resources);
        }
        if offers::has_prompts(self.server()) {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        let program = Implementation::new("sallyport", env!("CARGO_PKG_VERSION"))
            .with_title("Sallyport")
            .with_description("Tools that run as sandboxed WebAssembly components");
        ServerConfig::new(capabilities).with_server_info(program).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(page)?;
        let offered = self.server().offered_tools();
        let has_pages = apps::shows_pages(&context) && offers::has_resources(self.server());
        let listed = async {
            match has_pages {
                true => apps::with_pages(&offers::resources_of(self.session()).await, &offered),
                false => offered.listed().to_vec(),
            }
        };
        let listed = self.until_stopped(&context, listed);
        let tools = in_request_span("tools/list", &context, listed).await?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = self.until_stopped(&context, self.answer_call(request, &context));
        in_request_span("tools/call", &context, answer).await?
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.require_resources::<ListResourcesRequestMethod>()?;
        only_page(page)?;
        let listing = self.until_stopped(&context, offers::resources_of(self.session()));
        let items = in_request_span("resources/list", &context, listing).await?;
        Ok(ListResourcesResult::with_all_items(items))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.require_resources::<ListResourceTemplatesRequestMethod>()?;
        only_page(page)?;
        let listing = self.until_stopped(&context, offers::list_templates(self.session()));
        let items = in_request_span("resources/templates/list", &context, listing).await?;
        Ok(ListResourceTemplatesResult::with_all_items(items))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.require_resources::<ReadResourceRequestMethod>()?;
        let answer =
            self.until_stopped(&context, offer_requests::read_resource(self, request, &context));
        in_request_span("resources/read", &context, answer).await?
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require_resources::<SubscribeRequestMethod>()?;
        let subscribing = self.subscribe_to(request.uri, context.peer.clone());
        let subscribed = self.until_stopped(&context, subscribing);
        in_request_span("resources/subscribe", &context, subscribed).await?
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.require_resources::<UnsubscribeRequestMethod>()?;
        self.unsubscribe_from(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.require_prompts::<ListPromptsRequestMethod>()?;
        only_page(page)?;
        let listing = self.until_stopped(&context, offers::list_prompts(self.session()));
        let items = in_request_span("prompts/list", &context, listing).await?;
        Ok(ListPromptsResult::with_all_items(items))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.require_prompts::<GetPromptRequestMethod>()?;
        let answer =
            self.until_stopped(&context, offer_requests::get_prompt(self, request, &context));
        in_request_span("prompts/get", &context, answer).await?
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let answer = tasks::get_task(self.server(), self.user(), &request);
        in_request_span("tasks/get", &context, answer).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let answer = tasks::update_task(self.server(), self.user(), request);
        in_request_span("tasks/update", &context, answer).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let answer = tasks::cancel_task(self.server(), self.user(), &request);
        in_request_span("tasks/cancel", &context, answer).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.set_log_level(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.report_changes(context.peer);
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::builder()
            .tools_list_changed()
            .resources_list_changed()
            .prompts_list_changed()
            .build();
        let uris = requested.resource_subscriptions.iter().flatten().take(SUBSCRIPTIONS_MAX);
        accepted.resource_subscriptions =
            offers::has_resources(self.server()).then(|| uris.cloned().collect());
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = pin!(self.server().host().changes());
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let subscriptions = Subscriptions::of(&uris);
        let mut ticks = look_interval();
        loop {
            let is_change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.server().stop_token().cancelled() => return Ok(()),
                changed = changes.next() => match changed {
                    Some(_) => true,
                    None => return Ok(()),
                },
                _ = ticks.tick(), if !subscriptions.is_empty() => false,
            };
            // Boxed, because every request has the size of the largest one.
            let telling = Box::pin(self.tell_listener(context.sink(), &subscriptions, is_change));
            if telling.await.is_err() {
                return Ok(());
            }
        }
    }

    /// A known method whose parameters do not fit arrives here too, because it has no type.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = text::escape_excerpt(&request.method, 100);
        Err(match request.method.as_str() {
            // The versions without sessions have removed these.
            "logging/setLevel" | "initialize" | "resources/subscribe" | "resources/unsubscribe"
                if is_stateless(&context) =>
            {
                let message = format!("Unknown method: {method}");
                ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
            }
            "tools/call"
            | "tools/list"
            | "resources/read"
            | "resources/list"
            | "prompts/get"
            | "prompts/list"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "logging/setLevel"
            | "initialize" => {
                ErrorData::invalid_params(format!("the parameters of {method} do not fit"), None)
            }
            _ => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("Unknown method: {method}"),
                None,
            ),
        })
    }
}

impl McpConnection {
    /// Tells a listener what has changed.
    async fn tell_listener(
        &self,
        sink: &SubscriptionSink,
        subscriptions: &Subscriptions,
        is_change: bool,
    ) -> Result<(), SubscriptionSendError> {
        // What the listener did not ask for would be refused, and end the subscription.
        let accepted = sink.accepted();
        let wants = |kind: Option<bool>| is_change && kind == Some(true);
        if wants(accepted.tools_list_changed) {
            sink.notify_tool_list_changed().await?;
        }
        if wants(accepted.resources_list_changed) && offers::has_resources(self.server()) {
            sink.notify_resource_list_changed().await?;
        }
        if wants(accepted.prompts_list_changed) && offers::has_prompts(self.server()) {
            sink.notify_prompt_list_changed().await?;
        }
        for uri in subscriptions.look(self.session()).await {
            sink.notify_resource_updated(uri).await?;
        }
        Ok(())
    }
}

/// Every list has one page.
fn only_page(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        Some(_) => Err(ErrorData::invalid_params("there is one page, without a cursor", None)),
        None => Ok(()),
    }
}
