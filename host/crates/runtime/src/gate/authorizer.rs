//! Supervises one plugin while its calls run: its current grant, the approval of each request, and
//! its secrets.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    Gate, SecretLookupError,
    account::AccountToken,
    approver::{AuthorizationReason, AuthorizationRequest},
    grant_desk::GrantHolder,
    grant_questions::RefusedAction,
    preview::build_preview,
    user_grants::{ExtendedGrant, ExtendedGrants, UserGrantError},
};
use sallyport_connections::AccountService;
use sallyport_contract::{
    AdmittedCall, ApprovalObstacle, BoxFuture, Decision, Denial, DenialReason, LOCAL_USER,
    Redactor, RequestedCall, Secret, Services, ToolCallContext, ToolId,
};
use sallyport_policy::{
    Grant, Manifest, Policy, PolicyQuestion, PolicyVerdict, ProxyTable, edit::GrantAddition,
};
use sallyport_sandbox::{
    AccountCredential, BodyBufferError, GrantOutcome, HostCallAuthorizer, OutboundAccess,
    OutboundAccessKind, RunGrants,
};
use serde_json::{Map, Value};
use url::Url;

/// The facts about a plugin that do not change while it is loaded.
#[derive(Debug)]
pub(crate) struct PluginInfo {
    pub(crate) manifest: Manifest,
    /// Its settings from the configuration, which its requests may refer to.
    pub(crate) settings: Map<String, Value>,
    /// Digest of its component.
    pub(crate) digest: String,
    /// The service at which its users have accounts, if there is one.
    pub(crate) account: Option<Arc<AccountService>>,
}

/// Supervises one plugin.
pub(crate) struct PluginAuthorizer {
    gate: Arc<Gate>,
    plugin_info: PluginInfo,
    /// The grant under one edition of the policy. It is cached because every host call needs it.
    grant: Mutex<(u64, Arc<Grant>)>,
    /// The same with what users granted to calls and sessions.
    extended_grants: ExtendedGrants,
}

impl PluginAuthorizer {
    pub(crate) fn new(gate: Arc<Gate>, plugin_info: PluginInfo) -> Self {
        let snapshot = gate.policy_store.current();
        let grant =
            Arc::new(snapshot.policy.effective_grant(&plugin_info.manifest, &plugin_info.settings));
        let grant = Mutex::new((snapshot.revision, grant));
        Self { gate, plugin_info, grant, extended_grants: ExtendedGrants::default() }
    }

    pub(crate) fn plugin_info(&self) -> &PluginInfo {
        &self.plugin_info
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// The current grant of a call after a check of the policy's files: with what the user has
    /// granted to it before it ran, and to its session.
    pub(crate) async fn checked_call_grant(&self, call: &AdmittedCall) -> Arc<Grant> {
        self.gate.policy_store.check_files().await;
        self.run_grant(call, &RunGrants::of_call(call))
    }

    /// The current grant of a call before it runs: with what the user has granted to its session.
    pub(crate) fn session_grant(&self, context: &ToolCallContext) -> Arc<Grant> {
        self.policy_and_grant(context, &RunGrants::default()).1
    }

    /// The policy and the grant of a run, with what the user has granted to it and to its session.
    /// Grants that are not valid together with the policy of this moment do not count.
    pub(crate) fn policy_and_grant(
        &self,
        context: &ToolCallContext,
        run_grants: &RunGrants,
    ) -> (Arc<Policy>, Arc<Grant>) {
        let held = self.held_additions(context, run_grants);
        let extended = match held.is_empty() {
            true => None,
            false => self.extended_grant(&held).ok(),
        };
        match extended {
            Some(extended) => (extended.policy, extended.grant),
            None => (self.gate.policy_store.current().policy, self.current_grant()),
        }
    }

    /// What the user has granted to a run and to its session.
    pub(super) fn held_additions(
        &self,
        context: &ToolCallContext,
        run_grants: &RunGrants,
    ) -> Vec<GrantAddition> {
        let mut held = run_grants.additions();
        if !self.gate.grant_desk.is_empty() {
            let PluginInfo { manifest, digest, .. } = &self.plugin_info;
            let holder = GrantHolder::new(context, manifest.name.as_str(), digest);
            held.extend(self.gate.grant_desk.session_additions(&holder));
        }
        held
    }

    pub(super) fn extended_grant(
        &self,
        additions: &[GrantAddition],
    ) -> Result<ExtendedGrant, UserGrantError> {
        let PluginInfo { manifest, settings, .. } = &self.plugin_info;
        self.extended_grants.get(&self.gate, (manifest, settings), additions)
    }

    async fn checked_run_grant(&self, access: &OutboundAccess<'_>) -> Arc<Grant> {
        self.gate.policy_store.check_files().await;
        self.run_grant(access.call, access.run_grants)
    }

    async fn decide_access(&self, access: &OutboundAccess<'_>, grant: &Grant) -> PolicyVerdict {
        let login_groups = &self.gate.login_groups(access.call.context().user()).await;
        let question = PolicyQuestion {
            tool: access.call.tool(),
            digest: &self.plugin_info.digest,
            arguments: access.call.arguments(),
            context: access.call.context(),
            login_groups,
        };
        let policy = self.gate.policy_store.current().policy;
        match access.kind {
            OutboundAccessKind::Request { method, url, permit, .. } => {
                policy.decide_access(&question, grant, method, url, permit)
            }
            OutboundAccessKind::Page { url, .. } => policy.decide_page(&question, grant, url),
        }
    }

    /// The value of a secret that only a grant of the user names.
    fn granted_secret_value(&self, name: &str) -> Result<Secret, SecretLookupError> {
        let source = name.parse().ok().and_then(|name| self.extended_grants.secret_source(&name));
        self.gate.secret_value_from(name, &source.ok_or(SecretLookupError::NotInPolicy)?)
    }

    /// The subject of an approval, without its preview.
    fn authorization_request<'a>(
        &'a self,
        call: &'a RequestedCall,
        grant: &'a Grant,
    ) -> AuthorizationRequest<'a> {
        AuthorizationRequest {
            call,
            version: &self.plugin_info.manifest.version,
            digest: &self.plugin_info.digest,
            grant,
            request: None,
            time_max: Some(grant.limits().approval_time),
        }
    }

    /// Checks the policy again after an approval: a yes does not override a rule added meanwhile.
    async fn check_policy_again(&self, access: &OutboundAccess<'_>) -> Result<(), Denial> {
        let grant = self.checked_run_grant(access).await;
        let verdict = match access.kind {
            OutboundAccessKind::Request { method, url, headers, body, .. } => {
                let permit = grant.check_request(method, url)?;
                let kind =
                    OutboundAccessKind::Request { method, url, permit: &permit, headers, body };
                self.decide_access(&OutboundAccess { kind, ..*access }, &grant).await
            }
            OutboundAccessKind::Page { .. } => self.decide_access(access, &grant).await,
        };
        match verdict.decision {
            Decision::Allow | Decision::Ask => Ok(()),
            Decision::Deny => Err(verdict.to_denial(access.call.tool())),
        }
    }
}

impl HostCallAuthorizer for PluginAuthorizer {
    fn current_grant(&self) -> Arc<Grant> {
        let snapshot = self.gate.policy_store.current();
        let mut cached_grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        if cached_grant.0 != snapshot.revision {
            let grant = snapshot
                .policy
                .effective_grant(&self.plugin_info.manifest, &self.plugin_info.settings);
            *cached_grant = (snapshot.revision, Arc::new(grant));
        }
        Arc::clone(&cached_grant.1)
    }

    fn run_grant(&self, call: &AdmittedCall, run_grants: &RunGrants) -> Arc<Grant> {
        self.policy_and_grant(call.context(), run_grants).1
    }

    fn request_grant<'a>(
        &'a self,
        call: &'a AdmittedCall,
        run_grants: &'a RunGrants,
        denial: Denial,
    ) -> BoxFuture<'a, GrantOutcome> {
        Box::pin(async move {
            let call = &requested_call(call);
            let login_groups = self.gate.login_groups(call.context.user()).await;
            self.ask_for_grant(RefusedAction { call, run_grants, denial, login_groups }).await
        })
    }

    fn would_ask_user<'a>(&'a self, access: OutboundAccess<'a>) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let grant = self.run_grant(access.call, access.run_grants);
            let verdict = self.decide_access(&access, &grant).await;
            let call = requested_call(access.call);
            let request = self.authorization_request(&call, &grant);
            self.gate.approver.has_to_ask(&request, &verdict).await
        })
    }

    fn authorize_access<'a>(
        &'a self,
        access: OutboundAccess<'a>,
    ) -> BoxFuture<'a, Result<Option<String>, Denial>> {
        Box::pin(async move {
            let grant = self.checked_run_grant(&access).await;
            let verdict = self.decide_access(&access, &grant).await;
            let call = requested_call(access.call);
            let mut authorization_request = self.authorization_request(&call, &grant);
            if self.gate.approver.has_to_ask(&authorization_request, &verdict).await {
                let request_preview = build_preview(&access.kind, &grant, &self.redactor()).await;
                let request_preview = request_preview
                    .map_err(|error| preview_failure_denial(&verdict, access.call.tool(), error))?;
                authorization_request.request = Some(Arc::new(request_preview));
            }
            let answer_text =
                match self.gate.approver.authorize(&authorization_request, &verdict).await? {
                    AuthorizationReason::Policy(_) => None,
                    AuthorizationReason::User { text: answer_text, .. } => {
                        self.check_policy_again(&access).await?;
                        Some(answer_text)
                    }
                };
            let host = access.url().host_str().unwrap_or_default();
            (self.gate.activity)(access.call.context(), host);
            Ok(answer_text)
        })
    }

    fn look_up_secret(&self, name: &str) -> Result<Secret, String> {
        let found = match self.gate.secret_value(name) {
            Err(SecretLookupError::NotInPolicy) => self.granted_secret_value(name),
            found => found,
        };
        found.map_err(|error| match error {
            SecretLookupError::NotInPolicy => error.to_string(),
            SecretLookupError::Vault(error) => error.model_message(),
        })
    }

    fn account_credential<'a>(
        &'a self,
        call: &'a AdmittedCall,
        _url: &'a Url,
    ) -> BoxFuture<'a, Result<Option<AccountCredential>, String>> {
        Box::pin(async move {
            let token = self.account_token(call).await;
            let token =
                token.map_err(|error| error.into_call_failure(call.context().user()).message)?;
            Ok(token.map(AccountToken::into_credential))
        })
    }

    fn renew_account<'a>(
        &'a self,
        call: &'a AdmittedCall,
        refused: &'a Secret,
    ) -> BoxFuture<'a, bool> {
        Box::pin(self.renew_account_token(call, refused))
    }

    fn expire_account<'a>(&'a self, call: &'a AdmittedCall) -> BoxFuture<'a, ()> {
        Box::pin(self.expire_account_token(call))
    }

    fn environment_variable(&self, name: &str) -> Option<String> {
        self.gate.env.get(name).map(str::to_owned)
    }

    fn proxy_settings(&self) -> Option<Arc<ProxyTable>> {
        self.gate.policy_store.current().policy.proxy().cloned().map(Arc::new)
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.gate.redactor()
    }

    fn services(&self) -> Services {
        self.gate.services.clone()
    }

    fn default_user(&self) -> &str {
        LOCAL_USER
    }
}

/// A call as the model made it.
pub(super) fn requested_call(call: &AdmittedCall) -> RequestedCall {
    RequestedCall {
        context: call.context().clone(),
        tool: call.tool().clone(),
        arguments: call.arguments_text().to_owned(),
    }
}

/// The refusal of a request that needs an approval but cannot be shown whole. A rule that allows it
/// needs no approval.
fn preview_failure_denial(
    verdict: &PolicyVerdict,
    tool: &ToolId,
    error: BodyBufferError,
) -> Denial {
    let denial = verdict.to_denial(tool);
    let cause = ApprovalObstacle::NotShown { error: error.to_string() };
    let reason = DenialReason::NotApproved { cause, reason: Box::new(denial.reason) };
    Denial { reason, nobody_to_ask: false, ..denial }
}
