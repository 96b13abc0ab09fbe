//! The checks of a call before it runs, and of its result afterwards.
//!
//! 1. The tool exists and its plugin can be used.
//! 2. The arguments are strict JSON and match the tool's schema.
//! 3. The policy decides: allow, deny, or ask the user, who sees exactly these arguments.
//!
//! The call runs only after all of these. Its result must match the tool's output schema.

use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, Decision, Denial, Effect, FailureKind, Outcome,
    RequestedCall, ToolDescriptor, ToolId, json,
};
use sallyport_policy::{
    Capability, FsAccess, Grant, Policy, PolicyQuestion, PolicyVerdict, question::ROLE_PREFIX,
};
use serde_json::Value;

use super::{PluginLookupError, RegisteredPlugin, Registry};
use crate::gate::approver::{AuthorizationReason, AuthorizationRequest};

/// Size limit of the arguments of one call in bytes. Tools that need more take a file.
const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// Decides on a call. A refusal is the call's outcome.
pub(super) async fn admit_call(
    registry: &Registry,
    mut call: RequestedCall,
) -> Result<AdmittedCall, Outcome> {
    let (entry, _) = registry.find_tool(&call.tool).map_err(lookup_failure)?;
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    let arguments = check_arguments(entry, &call)?;
    let authorization_reason =
        authorize_call(registry, entry, &call, &arguments, Policy::decide_call).await;
    let authorization_reason = authorization_reason.map_err(Outcome::Denied)?;
    #[expect(clippy::disallowed_methods, reason = "this is the registry's own `admit`")]
    Ok(AdmittedCall::new(call, arguments).with_authorization_reason(authorization_reason))
}

/// Decides on a run that no model requested. The tool names a role, and choosing the plugin for
/// that role counts as consent unless a rule decides otherwise. A refusal is the run's outcome.
pub(super) async fn admit_role_run(
    registry: &Registry,
    run: RequestedCall,
) -> Result<AdmittedCall, Outcome> {
    let entry = registry.find_usable_plugin(run.tool.plugin.as_str()).map_err(lookup_failure)?;
    let role_arguments =
        json::parse_json(&run.arguments, ARGUMENTS_BYTES_MAX).map_err(|error| {
            let message = format!("what {} is about is {error}", run.tool);
            Outcome::Failed(CallFailure::new(FailureKind::Internal, message))
        })?;
    let authorization_reason =
        authorize_call(registry, entry, &run, &role_arguments, Policy::decide_role).await;
    let authorization_reason = authorization_reason.map_err(Outcome::Denied)?;
    #[expect(clippy::disallowed_methods, reason = "this is the registry's own `admit`, for roles")]
    Ok(AdmittedCall::new(run, role_arguments).with_authorization_reason(authorization_reason))
}

/// Why an admitted run in a role may not continue.
pub(super) fn role_run_denial(registry: &Registry, run: &AdmittedCall) -> Option<Denial> {
    let entry = registry.find_plugin(run.tool().plugin.as_str()).ok()?;
    let (tool, arguments, context) = (run.tool(), run.arguments(), run.context());
    let question = PolicyQuestion { tool, digest: entry.digest(), arguments, context };
    let denied = || {
        let policy = registry.gate.policy_store.current().policy;
        let verdict = policy.decide_role(&question, &entry.grant());
        (verdict.decision == Decision::Deny).then(|| verdict.to_denial(tool))
    };
    missing_capability_denial(&entry.grant(), tool).or_else(denied)
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

fn lookup_failure(missing: PluginLookupError) -> Outcome {
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

fn check_arguments(entry: &RegisteredPlugin, call: &RequestedCall) -> Result<Value, Outcome> {
    let invalid = |message: String| {
        Outcome::InvalidArguments(CallFailure::new(FailureKind::InvalidArguments, message))
    };
    let arguments = json::parse_json(&call.arguments, ARGUMENTS_BYTES_MAX)
        .map_err(|error| invalid(format!("the arguments of {} are {error}", call.tool)))?;
    if !arguments.is_object() {
        return Err(invalid(format!("the arguments of {} are not a JSON object", call.tool)));
    }
    let schema_errors = entry.check_arguments(&call.tool, &arguments);
    schema_errors.map_err(|list| {
        invalid(format!("the arguments do not fit {}: {}", call.tool, list.join("; ")))
    })?;
    Ok(arguments)
}

/// Asks the policy, and the user where the policy requires it. Returns the grounds for proceeding.
async fn authorize_call(
    registry: &Registry,
    entry: &RegisteredPlugin,
    call: &RequestedCall,
    arguments: &Value,
    decide: impl Fn(&Policy, &PolicyQuestion<'_>, &Grant) -> PolicyVerdict,
) -> Result<String, Denial> {
    let (tool, context) = (&call.tool, &call.context);
    let grant = entry.grant();
    if let Some(denial) =
        entry.unconditional_denial().or_else(|| missing_capability_denial(&grant, tool))
    {
        return Err(denial);
    }
    let question = PolicyQuestion { tool, digest: entry.digest(), arguments, context };
    let verdict = decide(&registry.gate.policy_store.current().policy, &question, &grant);
    let authorization_request = AuthorizationRequest {
        call,
        version: &entry.manifest().version,
        digest: entry.digest(),
        grant: &grant,
        request: None,
        time_max: None,
    };
    registry
        .gate
        .approver
        .authorize(&authorization_request, &verdict)
        .await
        .map(AuthorizationReason::into_text)
}

/// Runs an admitted call.
pub(super) async fn run_call(registry: &Registry, call: AdmittedCall) -> CallReport {
    let id = call.tool().clone();
    let (entry, tool) = match registry.find_tool(&id) {
        Ok(found) => found,
        Err(gone) => return lookup_failure(gone).into(),
    };
    let path = find_path_argument(call.arguments());
    let global_limits = registry.gate.policy_store.current().policy.shared_limits();
    let slot = registry.gate.call_limits.acquire_place(global_limits, entry.grant().limits()).await;
    let slot = match slot {
        Ok(slot) => slot,
        Err(failure) => return Outcome::Failed(failure).into(),
    };
    let mut report = entry.run_call(&registry.sandbox, call).await;
    drop(slot);
    if let Outcome::Denied(denial) = &mut report.outcome
        && denial.fix.is_none()
        && !report.effects.iter().any(|effect| matches!(effect, Effect::Refused(_)))
    {
        let grant = entry.grant();
        denial.fix = grant
            .missing_files_fix(path.as_deref(), suggested_access(tool))
            .or_else(|| grant.deny_capability(Capability::Scratch, "use it").fix);
    }
    if let Outcome::Completed(output) = &report.outcome
        && let Err(schema_errors) = entry.check_output(&id, &output.data)
    {
        let message = format!(
            "{id} returned a result that does not match its schema: {}",
            schema_errors.join("; ")
        );
        report.outcome = Outcome::Failed(CallFailure::new(FailureKind::BadOutput, message));
    }
    report
}

/// The argument that looks like a path, for the advice. A path outside every folder that the guest
/// holds never reaches the host, so this argument is the best guess.
fn find_path_argument(arguments: &Value) -> Option<String> {
    let texts = arguments.as_object()?.values().filter_map(Value::as_str);
    texts.into_iter().find(|text| text.starts_with('/')).map(str::to_owned)
}

/// The access that the advice should suggest. The author's hint is good enough for advice.
fn suggested_access(tool: &ToolDescriptor) -> FsAccess {
    if tool.hints.read_only == Some(true) { FsAccess::Read } else { FsAccess::ReadWrite }
}
