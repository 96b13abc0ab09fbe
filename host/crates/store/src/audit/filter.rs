//! Selecting the records to read.

use sallyport_contract::Decision;

use super::record::{AuditKind, AuditRecord};

/// The conditions that a record must meet. A field that is `None` is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// The plugin's name.
    pub plugin: Option<String>,
    /// The tool's name within its plugin.
    pub tool: Option<String>,
    /// The word for how a call ended, see `Outcome::as_str`.
    pub outcome: Option<String>,
    /// The decision.
    pub decision: Option<Decision>,
    /// What the record is about.
    pub kind: Option<AuditKind>,
    /// The session.
    pub session: Option<String>,
    /// The user on whose behalf a call ran, or for whom the host runs.
    pub user: Option<String>,
    /// The user on whose behalf a call ran. Unlike `user`, it never selects the records of others
    /// because their host runs for a login of the same name.
    pub caller: Option<String>,
    /// Only denied calls, and calls that were refused something while they ran.
    pub denied: bool,
    /// Not before this time, in milliseconds since 1970.
    pub since_ms: Option<u64>,
    /// Before this time, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// Only records with a higher number than this.
    pub after_seq: Option<u64>,
    /// At most this many records.
    pub limit: Option<usize>,
    /// Newest record first.
    pub newest_first: bool,
}

impl AuditFilter {
    /// Returns whether a record meets the conditions.
    pub(crate) fn accepts_record(&self, record: &AuditRecord) -> bool {
        fn field_matches<T: PartialEq>(wanted: Option<&T>, actual: Option<&T>) -> bool {
            wanted.is_none() || wanted == actual
        }
        field_matches(self.plugin.as_ref(), record.plugin.as_ref())
            && field_matches(self.tool.as_ref(), record.tool.as_ref())
            && field_matches(self.outcome.as_ref(), record.outcome.as_ref())
            && field_matches(self.decision.as_ref(), record.decision.as_ref())
            && field_matches(self.kind.as_ref(), Some(&record.kind))
            && field_matches(self.session.as_ref(), record.session.as_ref())
            && field_matches(self.caller.as_ref(), record.user.as_ref())
            && self.user.as_ref().is_none_or(|user| record.is_about_user(user))
            && (!self.denied || record.is_about_denial())
            && self.since_ms.is_none_or(|since| record.at_ms >= since)
            && self.until_ms.is_none_or(|until| record.at_ms < until)
    }
}
