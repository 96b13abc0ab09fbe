//! Limits of a guest that no policy key sets, and the account of its memory.

use wasmtime::ResourceLimiter;

/// Handles per resource of a guest: its own, and one that it has lent.
pub(crate) const HANDLES_PER_RESOURCE: usize = 2;

/// Most random bytes of one request. Key material needs hundreds.
pub(crate) const RANDOM_BYTES_MAX: u64 = 1024 * 1024;

/// Largest header section of a request or response in memory, in bytes. Servers commonly stop at 8
/// KiB.
pub(crate) const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Core instances of one call. A Python component has a few dozen.
const INSTANCES_MAX: usize = 256;

/// Linear memories of one call. The sum of their sizes is limited separately.
const MEMORIES_MAX: usize = 64;

/// Tables of one call. The sum of their sizes is limited separately.
const TABLES_MAX: usize = 256;

/// The memory that one table element takes in the host, in bytes.
const TABLE_ELEMENT_BYTES: u64 = size_of::<usize>() as u64;

/// Stack of the guest's own calls, in bytes. Interpreters written in C need four times wasmtime's
/// default: with less, Python traps before it can report that code recurses too deeply.
pub(crate) const WASM_STACK_BYTES: usize = 2 * 1024 * 1024;

/// Stack of the fiber for guest and host frames, in bytes: the guest's stack and ample space for
/// the host.
pub(crate) const FIBER_STACK_BYTES: usize = 4 * 1024 * 1024;

/// Counts all memories and tables of a store together, because a limit on each one would allow ten
/// memories just below it.
#[derive(Debug, Default)]
pub(crate) struct MemoryAccount {
    bytes_max: u64,
    bytes: u64,
    bytes_peak: u64,
    pending_growth: u64,
    refused: bool,
    /// Whether the last requested growth exceeds the maximum of the guest's own module.
    exceeds_module_max: bool,
    refused_by_system: bool,
}

impl MemoryAccount {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// The limit, in bytes.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// The peak in the current run, in bytes.
    pub(crate) fn bytes_peak(&self) -> u64 {
        self.bytes_peak
    }

    /// Whether the guest was refused memory in the current run.
    pub(crate) fn was_refused(&self) -> bool {
        self.refused
    }

    /// Whether the operating system had no memory for the guest in the current run, although the
    /// limit was not reached.
    pub(crate) fn was_refused_by_machine(&self) -> bool {
        self.refused_by_system
    }

    /// The memory in use, in bytes.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.bytes
    }

    /// Begins another run of the same guest. The memory in use still counts; earlier refusals do
    /// not.
    pub(crate) fn begin_run(&mut self) {
        self.bytes_peak = self.bytes;
        self.refused = false;
        self.refused_by_system = false;
    }

    fn try_grow(&mut self, by: u64) -> bool {
        self.pending_growth = 0;
        let wanted = self.bytes.saturating_add(by);
        if wanted > self.bytes_max {
            self.refused = true;
            return false;
        }
        self.bytes = wanted;
        self.bytes_peak = self.bytes_peak.max(wanted);
        self.pending_growth = by;
        true
    }

    /// Reverts the growth that was just counted and did not happen.
    fn revert_growth(&mut self) {
        self.refused_by_system |= self.pending_growth > 0 && !self.exceeds_module_max;
        self.bytes -= std::mem::take(&mut self.pending_growth);
    }
}

impl ResourceLimiter for MemoryAccount {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.exceeds_module_max = maximum.is_some_and(|maximum| desired > maximum);
        Ok(self.try_grow(desired.saturating_sub(current) as u64))
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.revert_growth();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.exceeds_module_max = maximum.is_some_and(|maximum| desired > maximum);
        let elements = desired.saturating_sub(current) as u64;
        Ok(self.try_grow(elements.saturating_mul(TABLE_ELEMENT_BYTES)))
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.revert_growth();
        Ok(())
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_and_tables_count_together() {
        let mut account = MemoryAccount::new(1000);
        assert!(account.memory_growing(0, 600, None).unwrap());
        assert!(!account.memory_growing(0, 500, None).unwrap(), "the sum would be 1100");
        assert!(account.was_refused());
        assert!(account.table_growing(0, 50, None).unwrap(), "50 elements of 8 bytes");
        assert!(!account.table_growing(0, 1 << 31, None).unwrap());
        assert_eq!(account.bytes_peak(), 1000);
    }

    #[test]
    fn another_run_has_what_is_held_and_was_refused_nothing() {
        let mut account = MemoryAccount::new(1000);
        assert!(account.memory_growing(0, 600, None).unwrap());
        assert!(!account.memory_growing(600, 1001, None).unwrap());
        account.begin_run();
        assert!(!account.was_refused());
        assert_eq!((account.used_bytes(), account.bytes_peak()), (600, 600));
        assert!(!account.memory_growing(600, 1001, None).unwrap(), "the limit is that of its life");
    }

    #[test]
    fn growth_that_failed_in_the_engine_is_not_held_against_the_guest() {
        let mut account = MemoryAccount::new(1000);
        assert!(account.memory_growing(0, 900, None).unwrap());
        account.memory_grow_failed(wasmtime::Error::msg("no pages")).unwrap();
        assert!(account.memory_growing(0, 900, None).unwrap());
    }
}
