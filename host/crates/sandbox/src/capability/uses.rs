//! How often one run has asked our own interfaces for something.
//!
//! Each question costs the host some work, whatever comes of it: a guest that asks in a loop is told
//! that it is enough long before others notice.

/// Questions to the store of one run: a small table can be read and written key by key.
const STORE_MAX: u32 = 10_000;

/// Messages to the person of one run. The policy's own limit is usually nearer.
const NOTICES_MAX: u32 = 100;

/// Pages that one run opens. Each one is somebody's attention.
const PAGES_MAX: u32 = 20;

/// Packages that one run fetches, with what they depend on.
const PACKAGES_MAX: u32 = 100;

/// Reports of progress of one run; a screen shows no more than the last.
const REPORTS_MAX: u32 = 1000;

/// Inputs of one run to a session. One signal or event is rarely more than one input; a flood of them
/// would keep the person out of their own session.
const INPUTS_MAX: u32 = 16;

/// Answers to questions, and ends of turns, of one run. One event leads to few of either.
const COMMANDS_MAX: u32 = 64;

/// What one run has asked for.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub(super) store: Count<STORE_MAX>,
    pub(super) notices: Count<NOTICES_MAX>,
    pub(super) pages: Count<PAGES_MAX>,
    pub(super) packages: Count<PACKAGES_MAX>,
    pub(super) reports: Count<REPORTS_MAX>,
    pub(super) inputs: Count<INPUTS_MAX>,
    pub(super) commands: Count<COMMANDS_MAX>,
    /// Bytes that a UI has drawn.
    pub(super) drawn_bytes: u64,
}

/// A count that ends at its limit.
#[derive(Debug, Default)]
pub(super) struct Count<const MOST: u32>(u32);

impl<const MOST: u32> Count<MOST> {
    /// Counts one more, unless there were as many as may be.
    pub(super) fn take(&mut self) -> bool {
        let fits = self.0 < MOST;
        self.0 += u32::from(fits);
        fits
    }

    /// What ran out, for the guest and the ledger.
    pub(super) fn limit(&self, what: &str) -> String {
        format!("{MOST} {what} in one call")
    }
}
