//! Turns a decision into a yes or a no: asks the user where the policy requires it, and remembers.
//!
//! An approval covers exactly what the user saw: plugin, component, tool, subject, and the rule
//! that asked. Another digest or a wider access is a new question. "Always" is not remembered here:
//! it becomes a rule in the user's policy, bound to the same component.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sallyport_contract::{
    ApprovalAnswer, ApprovalObstacle, ApprovalRequest, ApprovalSubject, Decision, Denial,
    DenialReason, RequestPreview, RequestedCall, UserAnswer,
};
use sallyport_policy::{Grant, PolicyVerdict, RuleText};
use sallyport_store::{HostStore, SessionApproval};

use super::{MessageSink, approval_desk::ApprovalDesk, user_policy};
use crate::{clock::now_ms, config::PolicyFiles};

/// Timeout of an approval before a call, so that a session does not wait forever for an absent
/// user.
pub(super) const QUESTION_TIME_MAX: Duration = Duration::from_secs(600);

/// Asks the user, and remembers the answers.
pub struct Approver {
    desk: ApprovalDesk,
    store: Option<HostStore>,
    policy_files: PolicyFiles,
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
    /// Asks through `desk`, keeps approvals in `store`, and writes rules into the user's policy.
    pub(crate) fn new(
        desk: ApprovalDesk,
        store: Option<HostStore>,
        policy_files: PolicyFiles,
        message_sink: MessageSink,
    ) -> Self {
        Self { desk, store, policy_files, session_approvals: Mutex::new(Vec::new()), message_sink }
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
    pub(crate) async fn has_to_ask(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
    ) -> bool {
        verdict.decision == Decision::Ask
            && !self.has_approval(&build_approval(authorization_request, verdict)).await
    }

    async fn ask_user(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
    ) -> Result<AuthorizationReason, Denial> {
        let approval = build_approval(authorization_request, verdict);
        if self.has_approval(&approval).await {
            let text = format!("allow: approved for this session ({})", verdict.reason);
            return Ok(AuthorizationReason::Policy(text));
        }
        let rule = verdict
            .allowing_rule(&authorization_request.call.tool, Some(authorization_request.digest));
        let request = ApprovalRequest {
            call: authorization_request.call.clone(),
            subject: verdict.subject(),
            request: authorization_request.request.clone(),
            plugin_version: authorization_request.version.to_owned(),
            plugin_digest: authorization_request.digest.to_owned(),
            reason: verdict.reason.clone(),
            rule: rule.as_ref().map(ToString::to_string),
            capabilities: authorization_request.grant.permission_lines(),
        };
        let time_max = authorization_request.time_max.unwrap_or(QUESTION_TIME_MAX);
        let Some(answer) = self.desk.ask(request, time_max).await else {
            return Err(denial_by_timeout(authorization_request, verdict, time_max));
        };
        self.apply_answer(authorization_request, verdict, answer, approval, rule).await
    }

    /// Asks a question that is not about a rule. `None` if there was no answer in time.
    pub(crate) async fn ask_within(
        &self,
        request: ApprovalRequest,
        time_max: Duration,
    ) -> Option<ApprovalAnswer> {
        self.desk.ask(request, time_max).await
    }

    /// Waits until the questions of dropped calls are removed from the store.
    pub(crate) async fn wait_for_withdrawals(&self) {
        self.desk.wait_for_withdrawals().await;
    }

    async fn apply_answer(
        &self,
        authorization_request: &AuthorizationRequest<'_>,
        verdict: &PolicyVerdict,
        answer: ApprovalAnswer,
        approval: SessionApproval,
        rule: Option<RuleText>,
    ) -> Result<AuthorizationReason, Denial> {
        let is_written = match rule.filter(|_| answer == ApprovalAnswer::Always) {
            Some(rule) => self.write_rule(rule).await,
            None => false,
        };
        let (answer, how) = match answer {
            ApprovalAnswer::Once => (UserAnswer::Once, "once"),
            ApprovalAnswer::Always if is_written => (UserAnswer::Always, "always"),
            ApprovalAnswer::Session | ApprovalAnswer::Always => {
                self.remember_approval(approval).await;
                (UserAnswer::Session, "for this session")
            }
            ApprovalAnswer::No { reason } => {
                return Err(denial_by_user(authorization_request, verdict, reason));
            }
            // Nothing was offered that it could choose.
            ApprovalAnswer::Grant(_) | ApprovalAnswer::Form(_) => {
                return Err(denial_by_user(authorization_request, verdict, None));
            }
            ApprovalAnswer::Nobody => {
                return Err(denial_without_user(authorization_request, verdict));
            }
        };
        let text = format!("the user agreed {how} ({})", verdict.reason);
        Ok(AuthorizationReason::User { answer, text })
    }

    /// Writes the rule that the user saw, on a blocking thread because the disk may be slow. If that
    /// fails, or if the file would not be valid with the rule, the answer still applies to the
    /// session.
    async fn write_rule(&self, rule: RuleText) -> bool {
        let files = self.policy_files.clone();
        let work = move || user_policy::add_rule(&files, &rule).map_err(|error| error.to_string());
        let written = tokio::task::spawn_blocking(work).await;
        match written.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => true,
            Err(error) => {
                let file = self.policy_files.user_file().display();
                (self.message_sink)(&format!("cannot write the rule to {file}: {error}"));
                false
            }
        }
    }

    async fn has_approval(&self, approval: &SessionApproval) -> bool {
        let is_same = |remembered: &SessionApproval| {
            let at_ms = remembered.at_ms;
            *remembered == SessionApproval { at_ms, ..approval.clone() }
        };
        let is_remembered = {
            let remembered = self.session_approvals.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.iter().any(is_same)
        };
        match &self.store {
            // A failed lookup counts as no approval, so the user is asked again.
            Some(store) if !is_remembered => {
                store.approvals.is_approved(approval).await.unwrap_or(false)
            }
            _ => is_remembered,
        }
    }

    async fn remember_approval(&self, approval: SessionApproval) {
        if let Some(store) = &self.store
            && let Err(error) = store.approvals.store_approval(&approval).await
        {
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
    User { answer: UserAnswer, text: String },
}

impl AuthorizationReason {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Policy(text) => text,
            Self::User { text, .. } => format!("allow: {text}"),
        }
    }

    /// The user's answer just now, if that is the reason.
    pub(crate) fn user_answer(&self) -> Option<UserAnswer> {
        match self {
            Self::Policy(_) => None,
            Self::User { answer, .. } => Some(*answer),
        }
    }
}

fn build_approval(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
) -> SessionApproval {
    let (tool, context) = (&authorization_request.call.tool, &authorization_request.call.context);
    SessionApproval {
        user: context.user().to_owned(),
        session_id: context.session_id.clone(),
        plugin: tool.plugin.to_string(),
        digest: authorization_request.digest.to_owned(),
        tool: tool.tool.to_string(),
        subject: match verdict.subject() {
            ApprovalSubject::Call => "call".to_owned(),
            ApprovalSubject::Access { what } => what,
            ApprovalSubject::Grant(question) => question.what,
            ApprovalSubject::Form(question) => question.message,
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
    let denial = verdict.to_denial(&authorization_request.call.tool);
    let reason = DenialReason::RefusedByUser { answer: reason };
    Denial { reason, fix: None, nobody_to_ask: false, ..denial }
}

fn denial_without_user(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
) -> Denial {
    let denial = verdict.to_denial(&authorization_request.call.tool);
    unapproved(denial, ApprovalObstacle::NoUser)
}

fn denial_by_timeout(
    authorization_request: &AuthorizationRequest<'_>,
    verdict: &PolicyVerdict,
    waited: Duration,
) -> Denial {
    let denial = verdict.to_denial(&authorization_request.call.tool);
    unanswered_denial(denial, waited)
}

/// The refusal after a question without an answer in time.
pub(crate) fn unanswered_denial(denial: Denial, waited: Duration) -> Denial {
    unapproved(denial, ApprovalObstacle::TimedOut { waited })
}

fn unapproved(denial: Denial, cause: ApprovalObstacle) -> Denial {
    let reason = DenialReason::NotApproved { cause, reason: Box::new(denial.reason) };
    Denial { reason, nobody_to_ask: true, ..denial }
}
