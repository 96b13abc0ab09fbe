//! Internal tools: those that are compiled into the host.
//!
//! They stand in the registry beside the plugins, under a name that no plugin can have. Their calls
//! pass the same checks, rules and records; what they lack is a sandbox, so they are few and small,
//! and each can be switched off under `[internal]`.

mod reminder;

use std::{sync::Arc, time::Instant};

use jiff::Zoned;
use sallyport_contract::{
    Admitted, CallReport, Failure, FailureKind, Outcome, PluginName, Services, ToolSpec,
    services::{Firing, Notice},
};
use sallyport_policy::Manifest;
use sallyport_sandbox::Warden;

use crate::config::Internal;

/// Tools under one name that are compiled into the host.
pub trait InternalTool: Send + Sync {
    /// Says who it is. It requests nothing: what it may do is what it does.
    fn manifest(&self) -> Manifest;

    /// Lists its tools.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Answers a call that has passed the gate. It may block.
    fn call(&self, call: &Admitted, from: &Caller) -> CallReport;

    /// Says what a timer that it has set tells the person.
    fn fired(&self, firing: &Firing) -> Notice;
}

/// Who calls, and when. The conversation that the call comes from stands in the call's context.
#[derive(Debug)]
pub struct Caller {
    /// The user on whose behalf it is.
    pub user: String,
    /// What their clock shows.
    pub now: Zoned,
    /// What there is to keep and to plan things with.
    pub services: Services,
}

/// Returns the tools that are switched on.
pub fn tools(settings: Internal) -> Vec<Arc<dyn InternalTool>> {
    let known = [(settings.reminder, reminder())];
    known.into_iter().filter_map(|(is_on, tool)| is_on.then_some(tool)).collect()
}

fn reminder() -> Arc<dyn InternalTool> {
    Arc::new(reminder::Reminder)
}

/// Says what a timer of an internal tool tells the person, whether or not the tool is switched on
/// now. `None`: the timer belongs to no such tool.
pub fn fired(firing: &Firing) -> Option<Notice> {
    Some(named(&firing.timer.owner.plugin)?.fired(firing))
}

/// Tells whether a name is that of an internal tool, switched on or not: what it has set goes on
/// while it is switched off, so the name is never another's.
pub fn owns(plugin: &PluginName) -> bool {
    named(plugin).is_some()
}

fn named(plugin: &PluginName) -> Option<Arc<dyn InternalTool>> {
    tools(Internal::ALL).into_iter().find(|tool| tool.manifest().name == *plugin)
}

/// Runs a call of an internal tool, apart from the threads that must not wait.
pub(crate) async fn run(
    tool: &Arc<dyn InternalTool>,
    warden: &Arc<impl Warden + 'static>,
    call: Admitted,
) -> CallReport {
    let (tool, warden, started) = (Arc::clone(tool), Arc::clone(warden), Instant::now());
    let work = tokio::task::spawn_blocking(move || {
        let user = warden.user().to_owned();
        let from = Caller { user, now: Zoned::now(), services: warden.services() };
        let mut report = tool.call(&call, &from);
        warden.redactor().report(&mut report);
        report
    });
    // What panics there is a bug of the host, which is no reason to end the session.
    let report = work.await.unwrap_or_else(|error| broken(&error.to_string()).into());
    CallReport { elapsed: started.elapsed(), ..report }
}

fn broken(why: &str) -> Outcome {
    let failure = Failure::new(FailureKind::Internal, "the tool broke; this is a bug of the host");
    Outcome::Failed(failure.with_detail(why))
}
