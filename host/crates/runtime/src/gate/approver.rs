//! Turns a decision into a yes or a no: asks the user where the policy requires it, and remembers.
//!
//! An approval covers exactly what the user saw: plugin, component, tool, subject, and the rule
//! that asked. Another digest or a wider access is a new question. "Always" is not remembered here:
//! it becomes a rule in the user's policy, bound to the same component.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, ApprovalSubject, Consent, Decision, Denial, RequestPreview,
    RequestedCall,
};
use sallyport_policy::{Grant, PolicyVerdict, RuleText};
use sallyport_store::{HostStore, SessionApproval};

use super::{MessageSink, now_ms, user_policy};

/// Timeout of an approval before a call, so that a session does not wait forever for an absent
/// user.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(600);

/// Asks the user, and remembers the answers.
pub struct Approver {
    consent: Arc<dyn Consent>,
    store: Option<HostStore>,
    policy_file: PathBuf,
    /// Approvals for the session, for when the store cannot keep them.
    session_approvals: Mutex<Vec<SessionApproval>>,
    message_sink: MessageSink,
}

/// The subject of an approval.
pub(crate) struct AuthorizationRequest<'a> {
    pub(crate) call: &'a RequestedCall,
    pub(crate) version: &'a str,
    pub(crate) digest: &'a str,
    pub(crate) grant: &'a Grant,
    /// The parts of a request that the user sees but records do not keep. It may be missing until
    /// the user has to be asked.
    pub(crate) request: Option<Arc<RequestPreview>>,
    /// Timeout of the answer.
    pub(crate) time_max: Option<Duration>,
}

impl Approver {
    /// Asks through `consent`, keeps approvals in `store`, and writes rules into `policy_file`.
    pub fn new(
        consent: Arc<dyn Consent>,
        store: Option<HostStore>,
        policy_file: PathBuf,
        message_sink: MessageSink,
    ) -> Self {
        Self {
            consent,
            store,
            policy_file,
            session_approvals: Mutex::new(Vec::new()),
            message_sink,
        }
    }

    /// Turns a verdict into the grounds for proceeding.
    ///
    /// # Errors
    ///
    /// The policy or the user refuses, or no user is connected.
    pub(crate) async fn authorize(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
    ) -> Result<AuthorizationReason, Denial> {
        match verdict.decision {
            Decision::Allow => {
                Ok(AuthorizationReason::Policy(format!("allow: {}", verdict.reason)))
            }
            Decision::Deny => Err(verdict.to_denial(&authorization_request.call.tool)),
            Decision::Ask => self.ask_user(authorization_request, verdict).await,
        }
    }

    /// Whether the user has to be asked. If so, the preview must be ready first.
    pub(crate) fn has_to_ask(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
    ) -> bool {
        verdict.decision == Decision::Ask
            && !self.has_approval(&build_approval(authorization_request, verdict))
    }

    async fn ask_user(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
    ) -> Result<AuthorizationReason, Denial> {
        let approval = build_approval(authorization_request, verdict);
        if self.has_approval(&approval) {
            let text = format!("allow: approved for this session ({})", verdict.reason);
            return Ok(AuthorizationReason::Policy(text));
        }
        let rule = verdict
            .allowing_rule(&authorization_request.call.tool, Some(authorization_request.digest));
        let request = ApprovalRequest {
            call: authorization_request.call.clone(),
            subject: verdict.subject.clone(),
            request: authorization_request.request.clone(),
            plugin_version: authorization_request.version.to_owned(),
            plugin_digest: authorization_request.digest.to_owned(),
            reason: verdict.reason.clone(),
            rule: rule.as_ref().map(ToString::to_string),
            capabilities: authorization_request.grant.permission_lines(),
        };
        let time_max = authorization_request.time_max.unwrap_or(QUESTION_TIME_MAX);
        let answer = tokio::time::timeout(time_max, self.consent.ask_user(request)).await;
        let Ok(answer) = answer else {
            return Err(denial_by_timeout(authorization_request, verdict, time_max));
        };
        self.apply_answer(authorization_request, verdict, answer, approval, rule)
    }

    fn apply_answer(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
        answer: ApprovalAnswer,
        approval: SessionApproval,
        rule: Option<RuleText>,
    ) -> Result<AuthorizationReason, Denial> {
        let how = match (answer, rule) {
            (ApprovalAnswer::Once, _) => "once",
            (ApprovalAnswer::Always, Some(rule)) if self.write_rule(&rule) => "always",
            (ApprovalAnswer::Session | ApprovalAnswer::Always, _) => {
                self.remember_approval(approval);
                "for this session"
            }
            (ApprovalAnswer::No { reason }, _) => {
                return Err(denial_by_user(authorization_request, verdict, reason));
            }
            (ApprovalAnswer::Nobody, _) => {
                return Err(denial_without_user(authorization_request, verdict));
            }
        };
        Ok(AuthorizationReason::User(format!("the user agreed {how} ({})", verdict.reason)))
    }

    /// Writes the rule that the user saw. If that fails, the answer still applies to the session.
    fn write_rule(&self, rule: &RuleText) -> bool {
        match user_policy::add_rule(&self.policy_file, rule) {
            Ok(()) => true,
            Err(error) => {
                let file = self.policy_file.display();
                (self.message_sink)(&format!("cannot write the rule to {file}: {error}"));
                false
            }
        }
    }

    fn has_approval(&self, approval: &SessionApproval) -> bool {
        let remembered = self.session_approvals.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |remembered: &SessionApproval| {
            let at_ms = remembered.at_ms;
            *remembered == SessionApproval { at_ms, ..approval.clone() }
        };
        remembered.iter().any(is_same)
            // A failed lookup counts as no approval, so the user is asked again.
            || self.store.as_ref().is_some_and(|s| s.approvals().is_approved(approval).unwrap_or(false))
    }

    fn remember_approval(&self, approval: SessionApproval) {
        let stored = self.store.as_ref().map(|store| store.approvals().store_approval(&approval));
        if let Some(Err(error)) = stored {
            (self.message_sink)(&format!("the answer holds only until the program ends: {error}"));
        }
        self.session_approvals.lock().unwrap_or_else(PoisonError::into_inner).push(approval);
    }
}

/// The grounds for proceeding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthorizationReason {
    /// The policy, or an earlier answer in the session.
    Policy(String),
    /// The user's answer just now.
    User(String),
}

impl AuthorizationReason {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Policy(text) => text,
            Self::User(text) => format!("allow: {text}"),
        }
    }
}

fn build_approval(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
) -> SessionApproval {
    let tool = &authorization_request.call.tool;
    SessionApproval {
        session_id: authorization_request.call.context.session_id.clone(),
        plugin: tool.plugin.to_string(),
        digest: authorization_request.digest.to_owned(),
        tool: tool.tool.to_string(),
        subject: match &verdict.subject {
            ApprovalSubject::Call => "call".to_owned(),
            ApprovalSubject::Access { what } => what.clone(),
        },
        rule: verdict.reason.clone(),
        at_ms: now_ms(),
    }
}

fn denial_by_user(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
    reason: Option<String>,
) -> Denial {
    let why = match reason {
        Some(reason) => format!("the user said no: {reason}"),
        None => "the user said no".to_owned(),
    };
    Denial {
        why,
        fix: None,
        nobody_to_ask: false,
        ..verdict.to_denial(&authorization_request.call.tool)
    }
}

fn denial_without_user(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
) -> Denial {
    let denial = verdict.to_denial(&authorization_request.call.tool);
    let why = format!("it needs approval and nobody is there to ask ({})", denial.why);
    Denial { why, nobody_to_ask: true, ..denial }
}

fn denial_by_timeout(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
    waited: Duration,
) -> Denial {
    let denial = verdict.to_denial(&authorization_request.call.tool);
    let why = format!("no answer within {waited:?} ({})", denial.why);
    Denial { why, nobody_to_ask: true, ..denial }
}
