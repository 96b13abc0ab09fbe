//! Internal tools, which are compiled into the host.
//!
//! They are registered like plugins, under names that no plugin can have. Their calls pass the same
//! checks, rules and audit. They run without a sandbox, so they are few and small, and each can be
//! switched off under `[internal]`.

mod reminder;

use std::{path::Path, sync::Arc};

use jiff::Zoned;
use sallyport_contract::{
    AdmittedCall, BoxFuture, CallFailure, CallReport, FailureKind, Outcome, PluginName, Services,
    ToolDescriptor, async_trait,
    services::{PluginNotice, TimerFiring},
};
use sallyport_policy::Manifest;
use sallyport_sandbox::HostCallAuthorizer;

use crate::{
    config::InternalToolSettings,
    executor::{PluginExecutor, PluginKind},
    gate::authorizer::PluginAuthorizer,
};

/// A group of tools that is compiled into the host.
#[async_trait]
pub trait InternalTool: Send + Sync {
    /// Returns the manifest. It requests no capabilities: the code of the tool alone defines what
    /// it does.
    fn manifest(&self) -> Manifest;

    /// Returns its tools.
    fn tools(&self) -> Vec<ToolDescriptor>;

    /// Answers a call that has passed the gate.
    async fn call_tool(&self, call: &AdmittedCall, context: &InternalCallContext) -> CallReport;

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

impl PluginExecutor for Arc<dyn InternalTool> {
    fn kind(&self) -> PluginKind {
        PluginKind::Internal
    }

    fn file(&self) -> Option<&Path> {
        None
    }

    fn run_call<'a>(
        &'a self,
        authorizer: &'a Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> BoxFuture<'a, CallReport> {
        let tool = Self::clone(self);
        let user = call.context().user_id.clone();
        let user = user.unwrap_or_else(|| authorizer.default_user().to_owned());
        let services = authorizer.services();
        Box::pin(async move {
            let work = tokio::spawn(async move {
                let context = InternalCallContext { user, now: Zoned::now(), services };
                tool.call_tool(&call, &context).await
            });
            // A panic in the tool is a bug of the host, but it must not end the session.
            work.await.unwrap_or_else(|error| internal_failure(&error.to_string()).into())
        })
    }
}

fn internal_failure(why: &str) -> Outcome {
    let failure =
        CallFailure::new(FailureKind::Internal, "the tool broke; this is a bug of the host");
    Outcome::Failed(failure.with_detail(why))
}
