//! Counts how often one run calls our own interfaces.
//!
//! Each call costs the host work, whether or not it succeeds, so a guest that calls in a loop is
//! stopped long before other users notice.

/// Store calls of one run. This is enough to read and write a small table key by key.
const STORE_MAX: u32 = 10_000;

/// Messages to the user in one run. The policy's own limit is usually lower.
const NOTICES_MAX: u32 = 100;

/// Pages that one run opens. Each one asks for the user's attention.
const PAGES_MAX: u32 = 20;

/// Packages that one run fetches, including dependencies.
const PACKAGES_MAX: u32 = 100;

/// Progress reports of one run. A screen shows only the latest.
const REPORTS_MAX: u32 = 1000;

/// Inputs of one run to a session. A signal or event rarely leads to more than one input, and a
/// flood of them would lock the user out of their own session.
const INPUTS_MAX: u32 = 16;

/// Answers to questions and ended turns of one run. One event leads to few of either.
const COMMANDS_MAX: u32 = 64;

/// The calls of one run, counted by kind.
#[derive(Debug, Default)]
pub(crate) struct HostCallCounters {
    pub(super) store: LimitedCounter<STORE_MAX>,
    pub(super) notices: LimitedCounter<NOTICES_MAX>,
    pub(super) pages: LimitedCounter<PAGES_MAX>,
    pub(super) packages: LimitedCounter<PACKAGES_MAX>,
    pub(super) reports: LimitedCounter<REPORTS_MAX>,
    pub(super) inputs: LimitedCounter<INPUTS_MAX>,
    pub(super) commands: LimitedCounter<COMMANDS_MAX>,
    /// Bytes that a UI has drawn.
    pub(super) drawn_bytes: u64,
}

/// A counter that stops at its limit.
#[derive(Debug, Default)]
pub(super) struct LimitedCounter<const MOST: u32>(u32);

impl<const MOST: u32> LimitedCounter<MOST> {
    /// Counts one more. Returns false if the limit is reached.
    pub(super) fn try_count(&mut self) -> bool {
        let fits = self.0 < MOST;
        self.0 += u32::from(fits);
        fits
    }

    /// The limit in human-readable form, for the guest and the ledger.
    pub(super) fn limit_text(&self, what: &str) -> String {
        format!("{MOST} {what} in one call")
    }
}
