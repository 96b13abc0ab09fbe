//! Internal tools, which are compiled into the host.
//!
//! They are registered like plugins, under names that no plugin can have. Their calls pass the same
//! checks, rules and audit. They run without a sandbox, so they are few and small, and each can be
//! switched off under `[internal]`.

mod reminder;

use std::{sync::Arc, time::Instant};

use jiff::Zoned;
use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, FailureKind, Outcome, PluginName, Services,
    ToolDescriptor,
    services::{PluginNotice, TimerFiring},
};
use sallyport_policy::Manifest;
use sallyport_sandbox::HostCallAuthorizer;

use crate::config::InternalToolSettings;

/// A group of tools that is compiled into the host.
pub trait InternalTool: Send + Sync {
    /// Returns the manifest. It requests no capabilities: the code of the tool alone defines what
    /// it does.
    fn manifest(&self) -> Manifest;

    /// Returns its tools.
    fn tools(&self) -> Vec<ToolDescriptor>;

    /// Answers a call that has passed the gate. May block.
    fn call_tool(&self, call: &AdmittedCall, context: &InternalCallContext) -> CallReport;

    /// Returns the message for a timer of this tool that has fired.
    fn firing_notice(&self, firing: &TimerFiring) -> PluginNotice;
}

/// The user and time of a call. The session is in the call's context.
#[derive(Debug)]
pub struct InternalCallContext {
    /// The user who makes the call.
    pub user: String,
    /// The current time in the user's time zone.
    pub now: Zoned,
    /// The services that keep state and schedule timers.
    pub services: Services,
}

/// Returns the tools that are switched on.
pub fn enabled_tools(settings: InternalToolSettings) -> Vec<Arc<dyn InternalTool>> {
    let known = [(settings.reminder, reminder_tool())];
    known.into_iter().filter_map(|(is_on, tool)| is_on.then_some(tool)).collect()
}

fn reminder_tool() -> Arc<dyn InternalTool> {
    Arc::new(reminder::ReminderTool)
}

/// Returns the message for a fired timer of an internal tool, even if the tool is now switched off.
/// Returns `None` if the timer belongs to another plugin.
pub fn firing_notice(firing: &TimerFiring) -> Option<PluginNotice> {
    Some(find_tool(&firing.timer.owner.plugin)?.firing_notice(firing))
}

/// Returns whether a name belongs to an internal tool. The name stays reserved while the tool is
/// switched off, because its timers keep firing.
pub fn is_internal_plugin(plugin: &PluginName) -> bool {
    find_tool(plugin).is_some()
}

fn find_tool(plugin: &PluginName) -> Option<Arc<dyn InternalTool>> {
    enabled_tools(InternalToolSettings::ALL)
        .into_iter()
        .find(|tool| tool.manifest().name == *plugin)
}

/// Runs a call of an internal tool on a blocking thread.
pub(crate) async fn run_tool_call(
    tool: &Arc<dyn InternalTool>,
    authorizer: &Arc<impl HostCallAuthorizer + 'static>,
    call: AdmittedCall,
) -> CallReport {
    let (tool, authorizer, started) = (Arc::clone(tool), Arc::clone(authorizer), Instant::now());
    let work = tokio::task::spawn_blocking(move || {
        let user = authorizer.default_user().to_owned();
        let context =
            InternalCallContext { user, now: Zoned::now(), services: authorizer.services() };
        let mut report = tool.call_tool(&call, &context);
        authorizer.redactor().redact_report(&mut report);
        report
    });
    // A panic in the tool is a bug of the host, but it must not end the session.
    let report = work.await.unwrap_or_else(|error| internal_failure(&error.to_string()).into());
    CallReport { elapsed: started.elapsed(), ..report }
}

fn internal_failure(why: &str) -> Outcome {
    let failure =
        CallFailure::new(FailureKind::Internal, "the tool broke; this is a bug of the host");
    Outcome::Failed(failure.with_detail(why))
}
