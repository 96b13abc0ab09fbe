//! A plugin that answers the requests of one path, as a listener or a UI.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use sallyport_contract::{
    AdmittedCall, BoxFuture, CallReport,
    services::{SessionInbox, UiSession},
};
use sallyport_sandbox::roles::{HttpBody, ServedRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{HttpRequestHandler, dispatch::text_body};
use crate::{
    gate::MessageSink,
    registry::RoleRunKind,
    roles::{RolePlugin, failure_reason},
};

/// How long one decision covers read-only requests to one path under one policy. A page sends
/// several per second, and each decision is a record. Every other request has a decision of its
/// own.
const DECISION_TIME_MAX: Duration = Duration::from_secs(60);

/// Most decisions that are kept. A page requests a handful of paths; when the limit is reached, all
/// kept decisions are dropped.
const CACHED_DECISIONS_MAX: usize = 64;

/// The response to a request that a rule of the policy denies.
const DENIED: &str = "the policy does not allow this\n";

/// A plugin that answers requests.
pub struct PluginRequestHandler {
    /// The plugin.
    pub role_plugin: RolePlugin,
    /// The user of the session.
    pub user: String,
    /// The session that it belongs to.
    pub session_id: String,
    /// Receives its inputs, if it is a listener.
    pub inbox: Option<Arc<dyn SessionInbox>>,
    /// Receives its commands, if it is a UI.
    pub ui_session: Option<Arc<dyn UiSession>>,
    /// Receives errors, for the operator.
    pub message_sink: MessageSink,
    /// The latest decisions on read-only requests.
    pub decision_cache: ReadDecisionCache,
}

/// The latest decisions on read-only requests.
#[derive(Debug, Default)]
pub struct ReadDecisionCache(Mutex<BTreeMap<String, CachedReadDecision>>);

/// A decision on requests that rules cannot tell apart.
#[derive(Debug)]
struct CachedReadDecision {
    decided_at: Instant,
    /// The edition of the policy that decided.
    policy_revision: u64,
    call: AdmittedCall,
}

impl ReadDecisionCache {
    fn cached_decision(&self, run_arguments: &Value, policy_revision: u64) -> Option<AdmittedCall> {
        let decisions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = decisions.get(&run_arguments.to_string())?;
        let is_valid = cached.policy_revision == policy_revision
            && cached.decided_at.elapsed() < DECISION_TIME_MAX;
        is_valid.then(|| cached.call.clone_for_rerun())
    }

    fn store_decision(&self, run_arguments: &Value, policy_revision: u64, call: &AdmittedCall) {
        let mut decisions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.len() >= CACHED_DECISIONS_MAX {
            decisions.clear();
        }
        decisions.insert(
            run_arguments.to_string(),
            CachedReadDecision { decided_at: Instant::now(), policy_revision, call: call.clone() },
        );
    }
}

impl HttpRequestHandler for PluginRequestHandler {
    fn handle_request(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response<HttpBody>> {
        Box::pin(async move {
            let is_read_only = [Method::GET, Method::HEAD].contains(request.method());
            match self.admit_request(&request, is_read_only).await {
                Ok(call) => self.serve_request(call, is_read_only, request).await,
                Err(report) => {
                    let (plugin, why) = (self.role_plugin.name(), failure_reason(&report));
                    let why = why.unwrap_or_default();
                    (self.message_sink)(&format!("{plugin}: a request was refused: {why}"));
                    let mut response = Response::new(text_body(DENIED.into()));
                    *response.status_mut() = StatusCode::FORBIDDEN;
                    response
                }
            }
        })
    }
}

impl PluginRequestHandler {
    async fn admit_request(
        &self,
        request: &Request<Full<Bytes>>,
        is_read_only: bool,
    ) -> Result<AdmittedCall, Box<CallReport>> {
        let roles = &self.role_plugin.roles;
        let run_arguments =
            json!({ "method": request.method().as_str(), "path": request.uri().path() });
        let gate = Arc::clone(roles.registry().gate());
        let policy_revision = gate.policy_store.check_files().await.revision;
        let may_reuse = is_read_only && !roles.is_audit_failing();
        if let Some(call) = self
            .decision_cache
            .cached_decision(&run_arguments, policy_revision)
            .filter(|_| may_reuse)
        {
            return Ok(call);
        }
        let context = roles.new_call_context(&self.user, &self.session_id);
        let call = self.role_plugin.admit_run(RoleRunKind::Http, context, &run_arguments).await?;
        if is_read_only {
            self.decision_cache.store_decision(&run_arguments, policy_revision, &call);
        }
        Ok(call)
    }

    /// Serves a request. A read-only request is recorded only if it had effects or failed. The
    /// client may disconnect at any moment, so a separate task writes the record.
    async fn serve_request(
        &self,
        call: AdmittedCall,
        is_read_only: bool,
        request: Request<Full<Bytes>>,
    ) -> Response<HttpBody> {
        let role_plugin = self.role_plugin.clone();
        let role_run = if is_read_only {
            role_plugin.start_silent_run(&call)
        } else {
            role_plugin.start_run(&call)
        };
        let (inbox, ui_session) = (self.inbox.clone(), self.ui_session.clone());
        let ServedRequest { response, report } =
            role_plugin.plugin().serve_request(call, inbox, ui_session, request);
        let message_sink = Arc::clone(&self.message_sink);
        tokio::spawn(async move {
            let report = report.await;
            if let Some(why) = failure_reason(&report) {
                message_sink(&format!("{}: a request failed: {why}", role_plugin.name()));
            }
            role_run.finish(&report);
        });
        response.await
    }
}
