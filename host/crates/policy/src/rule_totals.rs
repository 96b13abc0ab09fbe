//! How many rules a file may have: what is read of an untrusted file is bounded.

use crate::{condition::Condition, rule::PolicyRule, source::SourceError, unit::ByteSize};

/// Most condition text in one file, in bytes: dozens of long conditions, and little enough that
/// reading an untrusted file takes no noticeable time.
const CONDITIONS_BYTES_MAX: usize = 64 << 10;

/// Most regular expressions in the conditions of one file: their compiled forms stay in memory.
const PATTERNS_MAX: usize = 64;

/// Most rules in one file: enough for years of "always" answers, and few enough to evaluate each
/// rule on every call and to compare it with every other rule.
const RULES_MAX: usize = 2000;

/// Totals over the rules of one file, for the quantities that are bounded.
pub(crate) struct RuleTotals {
    rules: usize,
    conditions_bytes: usize,
    patterns: usize,
}

impl RuleTotals {
    /// The totals of an empty file.
    pub(crate) fn none() -> Self {
        Self { rules: 0, conditions_bytes: 0, patterns: 0 }
    }

    /// Counts a rule.
    ///
    /// # Errors
    ///
    /// A bound is exceeded now.
    pub(crate) fn count_rule(&mut self, rule: PolicyRule) -> Result<PolicyRule, SourceError> {
        match self.add_and_check_bounds(&rule) {
            None => Ok(rule),
            Some(what) => Err(rule.place.into_error(format!("the file has {what}"))),
        }
    }

    /// Adds a rule, and returns a description of the first bound that is now exceeded.
    fn add_and_check_bounds(&mut self, rule: &PolicyRule) -> Option<String> {
        self.rules += 1;
        self.conditions_bytes += rule.when.as_ref().map_or(0, Condition::text_bytes);
        self.patterns += rule.when.as_ref().map_or(0, Condition::pattern_count);
        if self.rules > RULES_MAX {
            Some(format!("more than {RULES_MAX} rules"))
        } else if self.conditions_bytes > CONDITIONS_BYTES_MAX {
            let most = ByteSize(CONDITIONS_BYTES_MAX as u64);
            Some(format!("conditions of more than {most} together"))
        } else if self.patterns > PATTERNS_MAX {
            Some(format!("more than {PATTERNS_MAX} patterns in its conditions"))
        } else {
            None
        }
    }
}
