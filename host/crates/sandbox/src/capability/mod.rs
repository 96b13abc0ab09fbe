//! The capabilities that the plugin contract adds to WASI, one file each: the host's side of an
//! interface in `wit/`, implemented on [`HostCall`]. Next to them are the standard streams of guests
//! (`stdio`) and of programs (`program_stdio`).
//!
//! All of them treat a call that is not allowed alike, whether the grant or the role is missing or
//! the user says no: the refusal is recorded with the text that lifts it, and nothing else happens.
//! A function that can fail returns the interface's own `not-granted` or `denied`. One that returns
//! nothing cannot tell the guest, so its refusal never becomes the outcome of the call.

mod commands;
mod config;
mod deltas;
mod inbox;
mod input;
mod log;
mod notify;
mod open_url;
mod packages;
mod program_stdio;
mod progress;
mod render;
pub(crate) mod schedule;
mod secrets;
mod state;
pub(crate) mod stdio;

use std::{fmt::Display, future::Future, sync::Arc};

use sallyport_contract::{Denial, Services};
use sallyport_policy::{Capability, Grant};
use serde_json::{Map, Value, json};
use wasmtime::component::{HasData, Linker};

use crate::{
    bindings::v0_1::sallyport::plugin as wit, rate_limiter::MinuteRateLimiter,
    run_context::RunContext,
};

/// The request that a manifest must contain before a component may import an interface.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ImportedPower {
    /// Requests to the network.
    Net,
    /// Requests to the network, or receiving requests.
    NetOrListen,
    /// Reading a secret. A secret that the host sends for a plugin needs no interface.
    RevealSecret,
    /// A capability of the host.
    Capability(Capability),
}

/// An interface of `wit/` that a component can import.
pub(crate) struct HostInterface {
    /// The name without its version.
    pub(crate) name: &'static str,
    /// The request that a manifest needs, unless the interface gives no power.
    pub(crate) required: Option<ImportedPower>,
}

/// Makes the list of the interfaces, and links them.
macro_rules! host_interfaces {
    ($($module:ident, $name:literal, $required:expr;)*) => {
        /// Every interface of `wit/`.
        pub(crate) const HOST_INTERFACES: &[HostInterface] = &[$(
            HostInterface { name: concat!("sallyport:plugin/", $name), required: $required },
        )*];

        /// Links every interface of `wit/` to the part of a guest that serves it.
        pub(crate) fn link_capabilities<T: Send + 'static>(
            linker: &mut Linker<T>,
            host_call: fn(&mut T) -> HostCall<'_>,
        ) -> wasmtime::Result<()> {
            $(wit::$module::add_to_linker::<_, HostCallData>(linker, host_call)?;)*
            Ok(())
        }
    };
}

// A guest without the grant for an interface can still import it if its manifest requests it; its
// calls are refused. Calls of `deltas` outside a provider's generation are recorded as refused too,
// so it needs no request.
host_interfaces! {
    commands, "commands", Some(ImportedPower::Capability(Capability::Ui));
    config, "config", None;
    deltas, "deltas", None;
    inbox, "inbox", Some(ImportedPower::Capability(Capability::Listen));
    log, "log", None;
    notify, "notify", Some(ImportedPower::Capability(Capability::Notify));
    open_url, "open-url", Some(ImportedPower::Capability(Capability::OpenUrl));
    packages, "packages", Some(ImportedPower::Capability(Capability::Packages));
    progress, "progress", Some(ImportedPower::Capability(Capability::Progress));
    render, "render", Some(ImportedPower::Capability(Capability::Ui));
    schedule, "schedule", Some(ImportedPower::Capability(Capability::Schedule));
    secrets, "secrets", Some(ImportedPower::RevealSecret);
    state, "state", Some(ImportedPower::Capability(Capability::State));
    types, "types", None;
}

/// Longest excerpt of a guest's text in a record, in bytes.
const EXCERPT_BYTES_MAX: usize = 100;

/// The state that all guests of one plugin share.
pub(crate) struct SharedPluginState {
    /// The settings, with defaults filled in.
    pub(crate) settings: Map<String, Value>,
    /// Messages to the user, counted over all runs.
    pub(crate) notices: MinuteRateLimiter,
    /// Whether timers can call the plugin back.
    pub(crate) has_timers: bool,
}

impl SharedPluginState {
    /// For a component that is only inspected and belongs to no plugin.
    pub(crate) fn without_plugin() -> Arc<Self> {
        Arc::new(Self {
            settings: Map::new(),
            notices: MinuteRateLimiter::default(),
            has_timers: false,
        })
    }
}

/// The part of a guest that serves its calls to the interfaces of `wit/`.
pub(crate) struct HostCall<'a> {
    pub(crate) run_context: &'a Arc<RunContext>,
    pub(crate) counters: &'a mut HostCallCounters,
    pub(crate) shared_state: &'a SharedPluginState,
}

/// Gives the linker the type of [`HostCall`].
struct HostCallData;

impl HasData for HostCallData {
    type Data<'a> = HostCall<'a>;
}

/// The uses of one run, by what is counted. Each call costs the host work, whether or not it
/// succeeds, so a guest that calls in a loop is stopped long before other users notice.
#[derive(Debug, Default)]
pub(crate) struct HostCallCounters(Vec<(&'static str, u64)>);

/// Most calls of one kind in a run.
struct HostCallLimit {
    calls_max: u64,
    /// What is counted, in the plural.
    unit: &'static str,
}

/// Calls of `state` and `schedule` in one run. This is enough to read and write a small table key
/// by key.
const STORE_CALLS: HostCallLimit =
    HostCallLimit { calls_max: 10_000, unit: "questions to the store" };

/// The text for the guest when the host's database does not work.
const STORE_UNREACHABLE: &str = "the store cannot be reached just now";

/// Why a host call has no result. Each interface converts it to its own error.
enum HostCallError {
    /// The call is not allowed. The refusal is recorded.
    Refused(Denial),
    /// The run has reached a limit, which is recorded. The text is for the guest.
    LimitReached(String),
    /// This host has no such service, or it does not work now. The text is for the guest; the
    /// details are recorded.
    Unavailable(&'static str),
}

/// Converts a [`HostCallError`] to an error that has a case `not-granted`.
macro_rules! impl_not_granted_error {
    ($error:ty, limit: $limit:ident, unavailable: $unavailable:ident) => {
        impl From<$crate::capability::HostCallError> for $error {
            fn from(error: $crate::capability::HostCallError) -> Self {
                match error {
                    $crate::capability::HostCallError::Refused(_) => Self::NotGranted,
                    $crate::capability::HostCallError::LimitReached(text) => Self::$limit(text),
                    $crate::capability::HostCallError::Unavailable(text) => {
                        Self::$unavailable(text.to_owned())
                    }
                }
            }
        }
    };
}
use impl_not_granted_error;

impl HostCallCounters {
    /// Counts uses. Returns their sum.
    fn add(&mut self, unit: &'static str, count: u64) -> u64 {
        let known = self.0.iter().position(|(known, _)| *known == unit);
        let at = known.unwrap_or_else(|| {
            self.0.push((unit, 0));
            self.0.len() - 1
        });
        self.0[at].1 += count;
        self.0[at].1
    }
}

impl HostCall<'_> {
    /// The part of the current grant that a call needs. If it is missing, the user is asked for it.
    async fn require_grant<T>(
        &self,
        capability: Capability,
        what: &str,
        granted: impl Fn(&Grant) -> Option<T>,
    ) -> Result<T, HostCallError> {
        self.require_permission(|grant| {
            granted(grant).ok_or_else(|| grant.deny_capability(capability, what))
        })
        .await
    }

    /// Checks the current grant. If a grant is missing, the user is asked for it, and after a yes
    /// the check is made again.
    async fn require_permission<T>(
        &self,
        check: impl Fn(&Grant) -> Result<T, Denial>,
    ) -> Result<T, HostCallError> {
        let denial = match check(&self.run_context.current_grant()) {
            Ok(granted) => return Ok(granted),
            Err(denial) => denial,
        };
        let asked = self.run_context.request_grant(denial).await;
        asked.map_err(|denial| self.refuse(denial))?;
        check(&self.run_context.current_grant()).map_err(|denial| self.refuse(denial))
    }

    /// Like [`require_grant`](Self::require_grant), but asks nobody and records nothing.
    fn check_grant<T>(
        &self,
        capability: Capability,
        what: &str,
        granted: impl FnOnce(&Grant) -> Option<T>,
    ) -> Result<T, Denial> {
        let grant = self.run_context.current_grant();
        granted(&grant).ok_or_else(|| grant.deny_capability(capability, what))
    }

    /// The link to the session that a call needs. A run has it only in the role that it belongs to.
    fn check_role<T: Clone>(&self, what: &str, link: &Option<T>) -> Result<T, Denial> {
        let denial = || self.run_context.build_denial(what, "it has no such role in this run");
        link.clone().ok_or_else(denial)
    }

    fn refuse(&self, denial: Denial) -> HostCallError {
        self.run_context.effect_log.record_refusal(denial.clone());
        HostCallError::Refused(denial)
    }

    /// Records the refusal of a call that returns nothing.
    fn allow_or_record<T>(&self, checked: Result<T, Denial>) -> Option<T> {
        checked.map_err(|denial| self.run_context.effect_log.record_silent_refusal(denial)).ok()
    }

    /// Counts a call.
    fn count_call(&mut self, limit: &HostCallLimit) -> Result<(), HostCallError> {
        if self.counters.add(limit.unit, 1) <= limit.calls_max {
            return Ok(());
        }
        Err(self.reach_limit(format!("{} {} in one call", limit.calls_max, limit.unit)))
    }

    fn reach_limit(&self, limit: String) -> HostCallError {
        let text = format!("the limit of {limit} is reached");
        self.run_context.effect_log.record_limit(limit);
        HostCallError::LimitReached(text)
    }

    /// A service of the host. `missing` tells the guest that this host does not have it.
    fn require_service<S>(
        &self,
        service: impl FnOnce(Services) -> Option<S>,
        missing: &'static str,
    ) -> Result<S, HostCallError> {
        service(self.run_context.authorizer().services()).ok_or(HostCallError::Unavailable(missing))
    }

    /// Waits for the use of a capability. It is recorded from its beginning, because the guest may
    /// be stopped meanwhile, and `outcome` adds to the record how it ended.
    async fn record_use<R>(
        &self,
        capability: Capability,
        what: String,
        work: impl Future<Output = R>,
        outcome: impl FnOnce(&R) -> Option<String>,
    ) -> R {
        let capability_use = self.run_context.effect_log.begin_use(capability, what);
        let result = work.await;
        if let Some(outcome) = outcome(&result) {
            capability_use.record_outcome(&outcome);
        }
        result
    }

    /// A guest's text without secrets, cut to a length. Secrets are removed before the cut, so that
    /// no part of one is left.
    fn redact_and_cut(&self, text: &str, bytes_max: usize) -> String {
        let redactor = self.run_context.authorizer().redactor();
        let text = redactor.redact_text(text);
        text[..text.floor_char_boundary(bytes_max)].to_owned()
    }

    /// A guest's text for a record: quoted, on one line, cut to the limit and without secrets.
    fn quote_for_record(&self, text: &str) -> String {
        let redactor = self.run_context.authorizer().redactor();
        let text = redactor.redact_text(text);
        let shown = &text[..text.floor_char_boundary(EXCERPT_BYTES_MAX)];
        let dots = if shown.len() < text.len() { "…" } else { "" };
        format!("{shown:?}{dots}")
    }
}

/// What is recorded of a use that may fail.
fn error_outcome<R, E: Display>(result: &Result<R, E>) -> Option<String> {
    result.as_ref().err().map(|error| format!(": {error}"))
}

/// The `other` case of an error: an object with a message.
fn other_case_json(message: &str) -> String {
    json!({ "message": message }).to_string()
}
