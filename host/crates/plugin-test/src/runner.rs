//! Runs a case.

use std::{path::Path, sync::Arc};

use sallyport_contract::{CallReport, Outcome, Principal, RequestedCall, ToolId};
use sallyport_runtime::{
    Host,
    host::{HostError, HostOptions},
    notice::no_notices,
    registry::PluginSelection,
    session_id::new_session_id,
};
use sallyport_sandbox::Simulation;
use serde_json::Value;

use crate::{
    case_file::PluginCase,
    comparison::{CaseResult, compare},
    error::CaseError,
    network::ScriptedNetwork,
    world::{CaseHome, TestedPlugin},
};

/// Runs a case in a home of its own, which nothing outlives. `cache` has compiled components.
///
/// # Errors
///
/// The case could not be run. A call that ends differently is not an error.
pub async fn run_case(
    tested: &TestedPlugin,
    case: &PluginCase,
    cache: &Path,
) -> Result<CaseResult, CaseError> {
    let home = CaseHome::create(tested, &case.world, cache)?;
    let network = ScriptedNetwork::new(case.world.http.clone());
    let only = PluginSelection::Only(tested.name.clone());
    let options = HostOptions {
        simulation: Simulation {
            now: case.world.now.map(Into::into),
            network: Some(Arc::new(network.clone())),
        },
        ..HostOptions::unattended(only, no_notices())
    };
    let host = Host::open(&home.settings, options).await?;
    let report = run_calls(&host, tested, case).await;
    let shutdown = host.close().await;
    if let Some(error) = shutdown.write_error {
        return Err(CaseError::Case(format!("the audit of the case cannot be written: {error}")));
    }
    Ok(compare(case, &report?, network.objections(), &home))
}

/// Runs the earlier calls and the one that counts, in one session.
async fn run_calls(
    host: &Host,
    tested: &TestedPlugin,
    case: &PluginCase,
) -> Result<CallReport, CaseError> {
    host.registry().find_usable_plugin(tested.name.as_str()).map_err(HostError::PluginLookup)?;
    let session = new_session_id();
    for (number, earlier) in case.world.before.iter().enumerate() {
        let call_id = format!("before-{}", number + 1);
        let call = requested_call(tested, &earlier.tool, &earlier.arguments, &session, call_id)?;
        let report = host.call_tool(call).await;
        if !matches!(report.outcome, Outcome::Completed(_)) {
            let end = report.outcome.to_model_value();
            let what = format!("call {} of \"before\", {}: {end}", number + 1, earlier.tool);
            return Err(CaseError::Case(what));
        }
    }
    let call_id = "call-1".to_owned();
    Ok(host
        .call_tool(requested_call(tested, &case.tool, &case.arguments, &session, call_id)?)
        .await)
}

fn requested_call(
    tested: &TestedPlugin,
    tool: &str,
    arguments: &Value,
    session: &str,
    call_id: String,
) -> Result<RequestedCall, CaseError> {
    // Arguments that are a text are passed on as they are, to test what is no JSON.
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let context = Principal::local().call_context(call_id, session);
    let tool = ToolId::new(tested.name.clone(), tool.parse()?);
    Ok(RequestedCall { context, tool, arguments })
}
