//! The checks of a call before it runs, and of its result afterwards.
//!
//! 1. The arguments are strict JSON and match the tool's schema.
//! 2. The policy decides: allow, deny, or ask the user, who sees exactly these arguments.
//!
//! The call runs only after both. A policy that has changed since the decision decides again, when
//! the user has answered and when the call begins. Its result must match the tool's output schema.

use std::{sync::Arc, time::Instant};

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, Decision, Denial, Effect, FailureKind, Outcome,
    RequestedCall, ToolDescriptor, ToolId, json,
};
use sallyport_policy::{
    ActionRuleKind, AppliedActionRule, Capability, FsAccess, Grant, LoginGroups, Policy,
    PolicyQuestion, PolicyVerdict, question::ROLE_PREFIX,
};
use sallyport_sandbox::{GrantOutcome, RunGrants, find_path_argument};
use serde_json::Value;

use super::{PluginLookupError, RegisteredPlugin, RoleRunKind};
use crate::gate::{
    Gate, approver::AuthorizationRequest, grant_questions::RefusedAction,
    user_account::budget_denial,
};

/// Size limit of the arguments of one call in bytes. Tools that need more take a file.
const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// A call that was admitted.
pub(super) struct DecidedCall {
    pub(super) call: AdmittedCall,
    /// The edition of the policy that admitted it.
    pub(super) policy_revision: u64,
}

/// Decides on a call of a tool, which is an index into the plugin's tools. Without a tool, it
/// decides on a run that no model requested: the call's name is that of a role, and choosing the
/// plugin for that role counts as consent unless a rule decides otherwise. A refusal is the outcome.
pub(super) async fn admit_call(
    gate: &Gate,
    plugin: &RegisteredPlugin,
    tool: Option<usize>,
    mut call: RequestedCall,
) -> Result<DecidedCall, Outcome> {
    let arguments = read_arguments(plugin, tool, &mut call)?;
    gate.policy_store.check_files().await;
    let grant = plugin.session_grant(&call.context);
    if let Some(denial) = missing_capability_denial(&grant, &call.tool) {
        return Err(Outcome::Denied(denial));
    }
    let run_grants = RunGrants::default();
    let grant_answer = request_missing_grant(plugin, &call, &run_grants, &grant).await?;
    let mut snapshot = gate.policy_store.current();
    let grant = plugin.authorizer.policy_and_grant(&call.context, &run_grants).1;
    let login_groups = gate.login_groups(call.context.user()).await;
    let question = policy_question(plugin, &call, &arguments, &login_groups);
    let subject = if tool.is_some() { RunSubject::Call } else { RunSubject::Role };
    let verdict = subject.judge(&snapshot.policy, plugin, &question, &grant);
    let counts = tool.is_some() || is_timer_run(&call.tool);
    if counts && verdict.decision < Decision::Deny {
        // Nobody is asked about a call that could not be made after a yes.
        let checked = gate.check_calls(call.context.user()).await;
        checked.map_err(|refusal| Outcome::Denied(budget_denial(&call.tool, refusal)))?;
    }
    let request = AuthorizationRequest {
        call: &call,
        version: &plugin.manifest().version,
        digest: plugin.digest(),
        grant: &grant,
        request: None,
        time_max: None,
    };
    let reason = gate.approver.authorize(&request, &verdict).await.map_err(Outcome::Denied)?;
    let answer = reason.user_answer();
    if answer.is_some() {
        snapshot = gate.policy_store.check_files().await;
        let denial = subject.denial_under(&snapshot.policy, plugin, &question, &run_grants);
        if let Some(denial) = denial {
            return Err(Outcome::Denied(denial));
        }
    }
    if counts {
        let counted = gate.count_call(&call.context, &call.tool, &login_groups).await;
        counted.map_err(Outcome::Denied)?;
    }
    #[expect(clippy::disallowed_methods, reason = "this is the registry's own `admit_call`")]
    let admitted = AdmittedCall::new(call, arguments);
    let admitted = admitted.with_authorization_reason(reason.into_text()).with_user_answer(answer);
    let call = admitted.with_grant_answer(grant_answer);
    Ok(DecidedCall { call, policy_revision: snapshot.revision })
}

fn policy_question<'a>(
    plugin: &'a RegisteredPlugin,
    call: &'a RequestedCall,
    arguments: &'a Value,
    login_groups: &'a LoginGroups,
) -> PolicyQuestion<'a> {
    let (tool, context) = (&call.tool, &call.context);
    PolicyQuestion { tool, digest: plugin.digest(), arguments, context, login_groups }
}

/// What a decision is about. The name does not say it, because a plugin may name a tool like a role.
#[derive(Debug, Clone, Copy)]
enum RunSubject {
    /// A call of a tool.
    Call,
    /// A run in a role.
    Role,
}

impl RunSubject {
    fn judge(
        self,
        policy: &Policy,
        plugin: &RegisteredPlugin,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> PolicyVerdict {
        match self {
            Self::Call => judge_call(policy, plugin, question, grant).0,
            Self::Role => policy.decide_role(question, grant),
        }
    }

    /// Why a policy that may be newer than the decision denies a call or a run. A question is no
    /// denial here, because the user is not asked twice about the same call.
    fn denial_under(
        self,
        policy: &Policy,
        plugin: &RegisteredPlugin,
        question: &PolicyQuestion<'_>,
        run_grants: &RunGrants,
    ) -> Option<Denial> {
        let grant = plugin.authorizer.policy_and_grant(question.context, run_grants).1;
        let denied = || {
            let verdict = self.judge(policy, plugin, question, &grant);
            (verdict.decision == Decision::Deny).then(|| verdict.to_denial(question.tool))
        };
        missing_capability_denial(&grant, question.tool).or_else(denied)
    }

    /// The same for a call or a run that was admitted.
    async fn admitted_denial(
        self,
        gate: &Gate,
        policy: &Policy,
        plugin: &RegisteredPlugin,
        call: &AdmittedCall,
    ) -> Option<Denial> {
        let (tool, arguments, context) = (call.tool(), call.arguments(), call.context());
        let login_groups = &gate.login_groups(context.user()).await;
        let question =
            PolicyQuestion { tool, digest: plugin.digest(), arguments, context, login_groups };
        self.denial_under(policy, plugin, &question, &RunGrants::of_call(call))
    }
}

/// The verdict on a call of a tool: that of the policy, which the rules of the plugin's author can
/// only tighten, and those rules.
fn judge_call(
    policy: &Policy,
    plugin: &RegisteredPlugin,
    question: &PolicyQuestion<'_>,
    grant: &Grant,
) -> (PolicyVerdict, Vec<AppliedActionRule>) {
    let rules = plugin.executor.action_rules(&question.tool.tool);
    let applied = rules.map(|rules| rules.applied_to(question, grant)).unwrap_or_default();
    let verdict = policy.decide_call(question, grant);
    (verdict.tightened_by(&applied), applied)
}

/// The result of checking a call without making it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct CallCheck {
    /// Whether the call could be made, perhaps after a confirmation.
    pub valid: bool,
    /// What is wrong with it, one sentence each.
    pub errors: Vec<String>,
    /// What the user would be asked.
    pub confirmations_required: Vec<String>,
    /// Whether a limit or the policy blocks it.
    pub blocked: bool,
}

/// Checks a call as [`admit_call`] does, and asks nobody.
pub(super) async fn check_call(
    gate: &Gate,
    plugin: &RegisteredPlugin,
    tool: usize,
    mut call: RequestedCall,
) -> CallCheck {
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    let mut check = CallCheck {
        valid: false,
        errors: Vec::new(),
        confirmations_required: Vec::new(),
        blocked: false,
    };
    let arguments = match check_arguments(plugin, tool, &call) {
        Ok(arguments) => arguments,
        Err(failure) => {
            check.errors = failure.sentences();
            return check;
        }
    };
    let policy = gate.policy_store.check_files().await.policy;
    let grant = plugin.session_grant(&call.context);
    let login_groups = gate.login_groups(call.context.user()).await;
    let question = policy_question(plugin, &call, &arguments, &login_groups);
    let (verdict, applied) = judge_call(&policy, plugin, &question, &grant);
    let of_kind = |kind| {
        let rules = applied.iter().filter(move |rule| rule.kind == kind);
        rules.map(|rule| rule.message.clone()).collect::<Vec<_>>()
    };
    let spent = gate.check_calls(call.context.user()).await.err();
    let spent = spent.map(|refusal| budget_denial(&call.tool, refusal));
    let denial = plugin.unconditional_denial_under(&grant).or(spent);
    check.blocked = verdict.decision == Decision::Deny || denial.is_some();
    check.errors = of_kind(ActionRuleKind::Limit);
    if let (true, true) = (check.blocked, check.errors.is_empty()) {
        let reason = denial.map_or(verdict.reason.clone(), |denial| denial.to_string());
        check.errors.push(reason);
    }
    check.confirmations_required = of_kind(ActionRuleKind::Confirmation);
    if verdict.decision == Decision::Ask && check.confirmations_required.is_empty() {
        check.confirmations_required.push(verdict.reason);
    }
    check.valid = !check.blocked;
    check
}

/// Asks the user for the grant without which a plugin cannot run at all, if it is missing. Returns the
/// answer, after which the policy in force is that of the files.
async fn request_missing_grant(
    plugin: &RegisteredPlugin,
    call: &RequestedCall,
    run_grants: &RunGrants,
    grant: &Grant,
) -> Result<Option<Effect>, Outcome> {
    let Some(denial) = plugin.unconditional_denial_under(grant) else { return Ok(None) };
    let login_groups = plugin.authorizer.gate().login_groups(call.context.user()).await;
    let refused = RefusedAction { call, run_grants, denial, login_groups };
    let GrantOutcome { effect, result } = plugin.authorizer.ask_for_grant(refused).await;
    plugin.authorizer.gate().policy_store.check_files().await;
    result.map(|()| effect).map_err(Outcome::Denied)
}

/// Why an admitted run in a role may not continue.
pub(super) async fn role_run_denial(
    gate: &Gate,
    plugin: &RegisteredPlugin,
    run: &AdmittedCall,
) -> Option<Denial> {
    let policy = gate.policy_store.check_files().await.policy;
    RunSubject::Role.admitted_denial(gate, &policy, plugin, run).await
}

/// Whether a run is the firing of a timer. It counts against the budgets of its user like a call: one
/// call may set a timer that fires every second.
fn is_timer_run(run: &ToolId) -> bool {
    run.tool.as_str().strip_prefix(ROLE_PREFIX) == Some(RoleRunKind::Timer.as_str())
}

/// The refusal of a run in a role whose capability is not granted.
fn missing_capability_denial(grant: &Grant, run: &ToolId) -> Option<Denial> {
    let (capability, what) = match run.tool.as_str().strip_prefix(ROLE_PREFIX)? {
        "timer" => (Capability::Schedule, "be called back"),
        "listener" => (Capability::Listen, "listen"),
        "http" => (Capability::Listen, "answer requests"),
        "ui" => (Capability::Ui, "be the user's side of a session"),
        _ => return None,
    };
    (!grant.has_capability(capability)).then(|| grant.deny_capability(capability, what))
}

/// The outcome of a call whose tool does not exist or cannot be used.
pub(super) fn lookup_failure(missing: PluginLookupError) -> Outcome {
    Outcome::Failed(match missing {
        PluginLookupError::Unknown { message, suggestion } => {
            let suggestion = suggestion
                .map(|suggestion| format!("; did you mean {suggestion}?"))
                .unwrap_or_default();
            CallFailure::new(FailureKind::NotFound, message + &suggestion)
        }
        // The message may contain paths of the host, which the model must not see.
        PluginLookupError::Unusable { message, .. } => {
            CallFailure::new(FailureKind::Unavailable, "this plugin cannot be used for now")
                .with_detail(message)
        }
    })
}

/// Reads the arguments of a call of a tool, or what a run in a role is about.
fn read_arguments(
    plugin: &RegisteredPlugin,
    tool: Option<usize>,
    call: &mut RequestedCall,
) -> Result<Value, Outcome> {
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    match tool {
        Some(tool) => check_arguments(plugin, tool, call).map_err(Outcome::InvalidArguments),
        None => read_role_input(call),
    }
}

/// Reads the arguments of a call, and compares them with the schema of its tool.
fn check_arguments(
    plugin: &RegisteredPlugin,
    tool: usize,
    call: &RequestedCall,
) -> Result<Value, CallFailure> {
    let invalid = |message: String| CallFailure::new(FailureKind::InvalidArguments, message);
    let arguments = json::parse_json(&call.arguments, ARGUMENTS_BYTES_MAX)
        .map_err(|error| invalid(format!("the arguments of {} are {error}", call.tool)))?;
    if !arguments.is_object() {
        return Err(invalid(format!("the arguments of {} are not a JSON object", call.tool)));
    }
    let schema_errors = plugin.check_tool_arguments(tool, &arguments);
    schema_errors.map_err(|errors| {
        let message = format!("the arguments do not fit {}: {}", call.tool, errors.join("; "));
        invalid(message).with_errors(errors)
    })?;
    Ok(arguments)
}

/// Reads what a run in a role is about. The host itself wrote it.
fn read_role_input(run: &RequestedCall) -> Result<Value, Outcome> {
    json::parse_json(&run.arguments, ARGUMENTS_BYTES_MAX).map_err(|error| {
        let message = format!("what {} is about is {error}", run.tool);
        Outcome::Failed(CallFailure::new(FailureKind::Internal, message))
    })
}

/// Why a call may no longer begin: since it was admitted, the policy has changed and denies it. Calls
/// wait between the two, for the questions about other calls of the same answer of the model and for
/// a place. Compares two numbers if nothing has changed.
async fn newer_denial(
    gate: &Gate,
    plugin: &RegisteredPlugin,
    call: &AdmittedCall,
    policy_revision: u64,
) -> Option<Denial> {
    if gate.policy_store.revision() == policy_revision {
        return None;
    }
    let policy = gate.policy_store.current().policy;
    RunSubject::Call.admitted_denial(gate, &policy, plugin, call).await
}

/// Runs an admitted call of a tool, an index into the plugin's tools. Known secrets are removed
/// from the report, because the model, the user and the log all read it.
pub(super) async fn run_call(
    gate: &Gate,
    plugin: &RegisteredPlugin,
    tool: usize,
    (call, policy_revision): (Arc<AdmittedCall>, u64),
) -> CallReport {
    let global_limits = gate.policy_store.current().policy.shared_limits();
    let slot = match gate.call_limits.acquire_place(global_limits, plugin.grant().limits()).await {
        Ok(slot) => slot,
        Err(failure) => return Outcome::Failed(failure).into(),
    };
    let denial = newer_denial(gate, plugin, &call, policy_revision).await;
    let (is_refused, started) = (denial.is_some(), Instant::now());
    let mut report = match denial {
        Some(denial) => Outcome::Denied(denial).into(),
        None => plugin.executor.run_call(&plugin.authorizer, Arc::clone(&call)).await,
    };
    drop(slot);
    report.elapsed = started.elapsed();
    report.effects.splice(0..0, call.grant_answer().cloned());
    gate.redactor().redact_report(&mut report);
    if is_refused {
        return report;
    }
    if let Outcome::Denied(denial) = &mut report.outcome
        && denial.fix.is_none()
        && !report.effects.iter().any(|effect| matches!(effect, Effect::Refused(_)))
    {
        let (grant, path) = (plugin.grant(), find_path_argument(call.arguments()));
        let files = grant.missing_files_fix(path, suggested_access(&plugin.tools()[tool]));
        denial.fix = files
            .map(Box::new)
            .or_else(|| grant.deny_capability(Capability::Scratch, "use it").fix);
    }
    if let Outcome::Completed(output) = &report.outcome
        && let Err(schema_errors) = plugin.check_output(tool, &output.data)
    {
        let message = format!(
            "{} returned a result that does not match its schema: {}",
            call.tool(),
            schema_errors.join("; ")
        );
        report.outcome = Outcome::Failed(CallFailure::new(FailureKind::BadOutput, message));
    }
    report
}

/// The access that the advice should suggest. The author's hint is good enough for advice.
fn suggested_access(tool: &ToolDescriptor) -> FsAccess {
    if tool.hints.read_only == Some(true) { FsAccess::Read } else { FsAccess::ReadWrite }
}
