//! Runs the actions of a definition.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_connections::{
    Action, Definition,
    definition::{
        AnswerFailure, FailureFacts, PageState, RequestTemplate, ServiceAnswer, ServiceRequest,
    },
};
use sallyport_contract::{
    AdmittedCall, BoxFuture, CallFailure, CallReport, FailureKind, Outcome, ToolName, ToolOutput,
};
use sallyport_policy::ActionRules;
use sallyport_sandbox::{
    ActionAnswer, ActionRequest, ActionRequestError, ActionRun, CallSlots, HostCallAuthorizer,
    Sandbox,
};
use serde_json::Value;

use super::{
    guidance::{failure_facts, with_guidance},
    plugin::{ActionPlugin, no_way_to_run},
};
use crate::{
    executor::{LazyComponent, PluginExecutor, PluginKind},
    gate::authorizer::PluginAuthorizer,
    script::run_in_call_slot,
};

/// Runs the actions of one definition.
pub(crate) struct ActionExecutor {
    definition: Arc<Definition>,
    file: PathBuf,
    sandbox: Arc<Sandbox>,
    component: Option<LazyComponent>,
    call_slots: CallSlots,
}

/// The end of an action's requests.
enum RequestEnd {
    Result(Value),
    Failed(AnswerFailure),
    Arguments(String),
    TimedOut,
    NotSent(String),
}

impl ActionExecutor {
    pub(crate) fn new(
        plugin: &ActionPlugin,
        sandbox: &Arc<Sandbox>,
        component: Option<LazyComponent>,
    ) -> Self {
        Self {
            definition: Arc::clone(&plugin.definition),
            file: plugin.file.clone(),
            sandbox: Arc::clone(sandbox),
            component,
            call_slots: CallSlots::new(),
        }
    }

    async fn run_action(
        &self,
        action: &Action,
        authorizer: &Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> CallReport {
        // Before anything of the call runs, so that a component does not begin in vain.
        if let Err(failure) = authorizer.ensure_account(&call).await {
            // What the user said to the offer comes before the definition's own words.
            let facts = FailureFacts::from_kind(failure.kind);
            let facts = (!authorizer.offers_sign_in()).then_some(facts);
            let report = Outcome::Failed(failure).into();
            return with_guidance(&self.definition, action, &call, report, facts.as_ref());
        }
        let report = self.run_with_account(action, authorizer, Arc::clone(&call)).await;
        // The service has ended the account meanwhile. It did nothing for the request.
        let is_refused = matches!(
            &report.outcome,
            Outcome::Failed(failure) if failure.kind == FailureKind::AuthRequired
        );
        let may_repeat = is_refused && action.request.is_some();
        if may_repeat && authorizer.ensure_account(&call).await == Ok(true) {
            return self.run_with_account(action, authorizer, call).await;
        }
        report
    }

    async fn run_with_account(
        &self,
        action: &Action,
        authorizer: &Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> CallReport {
        match (&action.request, &self.component) {
            (Some(request), _) => {
                let run = self.run_request(action, request, authorizer, &call);
                run_in_call_slot(&self.call_slots, &authorizer.current_grant(), run).await
            }
            (None, Some(component)) => {
                let report = component.run_call(authorizer, Arc::clone(&call)).await;
                let facts = failure_facts(&report);
                with_guidance(&self.definition, action, &call, report, facts.as_ref())
            }
            (None, None) => {
                let message = no_way_to_run(&[action]);
                Outcome::Failed(CallFailure::new(FailureKind::Unavailable, message)).into()
            }
        }
    }

    async fn run_request(
        &self,
        action: &Action,
        request: &RequestTemplate,
        authorizer: &Arc<PluginAuthorizer>,
        call: &Arc<AdmittedCall>,
    ) -> CallReport {
        let host_calls = Arc::clone(authorizer) as Arc<dyn HostCallAuthorizer>;
        let run = self.sandbox.begin_action(host_calls, Arc::clone(call));
        let sender = RequestSender { run: &run, request, call };
        let end = sender.send_all().await;
        let output_bytes_max = authorizer.current_grant().limits().output_bytes;
        let (outcome, facts) = outcome_of(end, &run, output_bytes_max);
        with_guidance(&self.definition, action, call, run.finish(outcome), facts.as_ref())
    }
}

/// Sends the requests of one call.
struct RequestSender<'a> {
    run: &'a ActionRun,
    request: &'a RequestTemplate,
    call: &'a AdmittedCall,
}

impl RequestSender<'_> {
    async fn send_all(&self) -> RequestEnd {
        let mut request = match self.request.build(self.call.arguments()) {
            Ok(request) => request,
            Err(error) => return RequestEnd::Arguments(error.to_string()),
        };
        let template = &self.request.answer;
        let mut pages = PageState::new();
        loop {
            let answer = match self.send(&request).await {
                Ok(answer) => answer,
                Err(ActionRequestError::TimedOut) => return RequestEnd::TimedOut,
                Err(ActionRequestError::Failed(message)) => return RequestEnd::NotSent(message),
            };
            if !template.has_pages() {
                return match template.read_result(&answer) {
                    Ok(result) => RequestEnd::Result(result),
                    Err(failure) => RequestEnd::Failed(failure),
                };
            }
            match template.add_page(&mut pages, &request, &answer) {
                Ok(Some(next)) if template.may_continue(&pages) => request = next,
                Ok(next) => return RequestEnd::Result(pages.into_result(next.is_some())),
                Err(failure) => return RequestEnd::Failed(failure),
            }
        }
    }

    async fn send(&self, request: &ServiceRequest) -> Result<ServiceAnswer, ActionRequestError> {
        let sent = ActionRequest {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
        };
        Ok(service_answer(self.run.send(&sent).await?))
    }
}

fn service_answer(answer: ActionAnswer) -> ServiceAnswer {
    let header = |name: &str| {
        let value = answer.headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_owned)
    };
    let media_type = header("content-type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    ServiceAnswer {
        status: answer.status,
        media_type,
        link: header("link"),
        retry_after: header("retry-after"),
        is_quota_used: header("x-ratelimit-remaining").as_deref() == Some("0"),
        body: answer.body,
    }
}

fn outcome_of(
    end: RequestEnd,
    run: &ActionRun,
    output_bytes_max: u64,
) -> (Outcome, Option<FailureFacts>) {
    let failed = |kind, message: String, facts| {
        let failure = CallFailure::new(kind, message);
        let outcome = match kind {
            FailureKind::InvalidArguments => Outcome::InvalidArguments(failure),
            _ => Outcome::Failed(failure),
        };
        (outcome, Some(facts))
    };
    match end {
        RequestEnd::Result(data) => {
            let bytes = data.to_string().len() as u64;
            if bytes > output_bytes_max {
                let message =
                    format!("the result has {bytes} bytes, at most {output_bytes_max} are allowed");
                let kind = FailureKind::LimitReached;
                return failed(kind, message, FailureFacts::from_kind(kind));
            }
            (Outcome::Completed(ToolOutput { data, ..ToolOutput::default() }), None)
        }
        RequestEnd::Failed(AnswerFailure { message, facts }) => failed(facts.kind, message, facts),
        RequestEnd::Arguments(message) => {
            let kind = FailureKind::InvalidArguments;
            failed(kind, message, FailureFacts::from_kind(kind))
        }
        RequestEnd::TimedOut => {
            (Outcome::TimedOut { limit: run.time_limit() }, Some(FailureFacts::timeout()))
        }
        RequestEnd::NotSent(message) => {
            let kind = FailureKind::Unavailable;
            let message = format!("the service gave no answer: {message}");
            failed(kind, message, FailureFacts::from_kind(kind))
        }
    }
}

impl PluginExecutor for ActionExecutor {
    fn kind(&self) -> PluginKind {
        PluginKind::Definition
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.file)
    }

    fn run_call<'a>(
        &'a self,
        authorizer: &'a Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> BoxFuture<'a, CallReport> {
        Box::pin(async move {
            match self.definition.action(&call.tool().tool) {
                Some(action) => self.run_action(action, authorizer, call).await,
                None => {
                    let message = format!("there is no action {}", call.tool());
                    Outcome::Failed(CallFailure::new(FailureKind::NotFound, message)).into()
                }
            }
        })
    }

    fn component(&self) -> Option<&LazyComponent> {
        self.component.as_ref()
    }

    fn action_rules(&self, tool: &ToolName) -> Option<&ActionRules> {
        Some(&self.definition.action(tool)?.rules)
    }

    fn definition(&self) -> Option<&Arc<Definition>> {
        Some(&self.definition)
    }
}
