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

use super::{Entry, Missing, Registry};
use crate::gate::approver::{Grounds, Matter};

/// Size limit of the arguments of one call in bytes. Tools that need more take a file.
const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;

/// Decides on a call. A refusal is the call's outcome.
pub(super) async fn admit(
    registry: &Registry,
    mut call: RequestedCall,
) -> Result<AdmittedCall, Outcome> {
    let (entry, _) = registry.find(&call.tool).map_err(missing)?;
    if call.arguments.trim().is_empty() {
        call.arguments = "{}".to_owned();
    }
    let arguments = check_arguments(entry, &call)?;
    let grounds = decide(registry, entry, &call, &arguments, Policy::decide_call).await;
    let grounds = grounds.map_err(Outcome::Denied)?;
    #[expect(clippy::disallowed_methods, reason = "this is the registry's own `admit`")]
    Ok(AdmittedCall::new(call, arguments).with_authorization_reason(grounds))
}

/// Decides on a run that no model requested. The tool names a role, and choosing the plugin for
/// that role counts as consent unless a rule decides otherwise. A refusal is the run's outcome.
pub(super) async fn admit_role(
    registry: &Registry,
    run: RequestedCall,
) -> Result<AdmittedCall, Outcome> {
    let entry = registry.usable(run.tool.plugin.as_str()).map_err(missing)?;
    let about = json::parse_json(&run.arguments, ARGUMENTS_BYTES_MAX).map_err(|error| {
        let message = format!("what {} is about is {error}", run.tool);
        Outcome::Failed(CallFailure::new(FailureKind::Internal, message))
    })?;
    let grounds = decide(registry, entry, &run, &about, Policy::decide_role).await;
    let grounds = grounds.map_err(Outcome::Denied)?;
    #[expect(clippy::disallowed_methods, reason = "this is the registry's own `admit`, for roles")]
    Ok(AdmittedCall::new(run, about).with_authorization_reason(grounds))
}

/// Why an admitted run in a role may not continue.
pub(super) fn refusal(registry: &Registry, run: &AdmittedCall) -> Option<Denial> {
    let entry = registry.plugin(run.tool().plugin.as_str()).ok()?;
    let (tool, arguments, context) = (run.tool(), run.arguments(), run.context());
    let question = PolicyQuestion { tool, digest: entry.digest(), arguments, context };
    let denied = || {
        let policy = registry.gate.standing.present().policy;
        let verdict = policy.decide_role(&question, &entry.grant());
        (verdict.decision == Decision::Deny).then(|| verdict.to_denial(tool))
    };
    lacking(&entry.grant(), tool).or_else(denied)
}

/// The refusal of a run in a role whose capability is not granted.
fn lacking(grant: &Grant, run: &ToolId) -> Option<Denial> {
    let (capability, what) = match run.tool.as_str().strip_prefix(ROLE_PREFIX)? {
        "timer" => (Capability::Schedule, "be called back"),
        "listener" => (Capability::Listen, "listen"),
        "http" => (Capability::Listen, "answer requests"),
        "ui" => (Capability::Ui, "be the user's side of a session"),
        _ => return None,
    };
    (!grant.has_capability(capability)).then(|| grant.deny_capability(capability, what))
}

fn missing(missing: Missing) -> Outcome {
    Outcome::Failed(match missing {
        Missing::Unknown { message, near } => {
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            CallFailure::new(FailureKind::NotFound, message + &near)
        }
        // The message may contain paths of the host, which the model must not see.
        Missing::Unusable { message, .. } => {
            CallFailure::new(FailureKind::Unavailable, "this plugin cannot be used for now")
                .with_detail(message)
        }
    })
}

fn check_arguments(entry: &Entry, call: &RequestedCall) -> Result<Value, Outcome> {
    let invalid = |message: String| {
        Outcome::InvalidArguments(CallFailure::new(FailureKind::InvalidArguments, message))
    };
    let arguments = json::parse_json(&call.arguments, ARGUMENTS_BYTES_MAX)
        .map_err(|error| invalid(format!("the arguments of {} are {error}", call.tool)))?;
    if !arguments.is_object() {
        return Err(invalid(format!("the arguments of {} are not a JSON object", call.tool)));
    }
    let complaints = entry.check_arguments(&call.tool, &arguments);
    complaints.map_err(|list| {
        invalid(format!("the arguments do not fit {}: {}", call.tool, list.join("; ")))
    })?;
    Ok(arguments)
}

/// Asks the policy, and the user where the policy requires it. Returns the grounds for proceeding.
async fn decide(
    registry: &Registry,
    entry: &Entry,
    call: &RequestedCall,
    arguments: &Value,
    judge: impl Fn(&Policy, &PolicyQuestion<'_>, &Grant) -> PolicyVerdict,
) -> Result<String, Denial> {
    let (tool, context) = (&call.tool, &call.context);
    let grant = entry.grant();
    if let Some(denial) = entry.barrier().or_else(|| lacking(&grant, tool)) {
        return Err(denial);
    }
    let question = PolicyQuestion { tool, digest: entry.digest(), arguments, context };
    let verdict = judge(&registry.gate.standing.present().policy, &question, &grant);
    let matter = Matter {
        call,
        version: &entry.manifest().version,
        digest: entry.digest(),
        grant: &grant,
        request: None,
        time_max: None,
    };
    registry.gate.approver.settle(&matter, &verdict).await.map(Grounds::into_words)
}

/// Runs an admitted call.
pub(super) async fn run(registry: &Registry, call: AdmittedCall) -> CallReport {
    let id = call.tool().clone();
    let (entry, tool) = match registry.find(&id) {
        Ok(found) => found,
        Err(gone) => return missing(gone).into(),
    };
    let path = path_in(call.arguments());
    let shared = registry.gate.standing.present().policy.shared_limits();
    let place = registry.gate.call_limits.take(shared, entry.grant().limits()).await;
    let place = match place {
        Ok(place) => place,
        Err(failure) => return Outcome::Failed(failure).into(),
    };
    let mut report = entry.call(&registry.sandbox, call).await;
    drop(place);
    if let Outcome::Denied(denial) = &mut report.outcome
        && denial.fix.is_none()
        && !report.effects.iter().any(|effect| matches!(effect, Effect::Refused(_)))
    {
        let grant = entry.grant();
        denial.fix = grant
            .missing_files_fix(path.as_deref(), wanted_access(tool))
            .or_else(|| grant.deny_capability(Capability::Scratch, "use it").fix);
    }
    if let Outcome::Completed(output) = &report.outcome
        && let Err(complaints) = entry.check_output(&id, &output.data)
    {
        let message = format!(
            "{id} returned a result that does not match its schema: {}",
            complaints.join("; ")
        );
        report.outcome = Outcome::Failed(CallFailure::new(FailureKind::BadOutput, message));
    }
    report
}

/// The argument that looks like a path, for the advice. A path outside every folder that the guest
/// holds never reaches the host, so this argument is the best guess.
fn path_in(arguments: &Value) -> Option<String> {
    let texts = arguments.as_object()?.values().filter_map(Value::as_str);
    texts.into_iter().find(|text| text.starts_with('/')).map(str::to_owned)
}

/// The access that the advice should suggest. The author's hint is good enough for advice.
fn wanted_access(tool: &ToolDescriptor) -> FsAccess {
    if tool.hints.read_only == Some(true) { FsAccess::Read } else { FsAccess::ReadWrite }
}
