//! Reporting the progress of a call.
//!
//! The manifest requests `progress` and the policy grants it. Without the grant, reports have no
//! effect.

use crate::host;

/// Reports the progress of the call: `part` is the completed fraction from 0 to 1, if known, and
/// `message` a short text.
///
/// ```
/// use sallyport_sdk::{progress, testing};
///
/// testing::grant([testing::Power::Progress]);
/// progress::report(Some(0.25), Some("page 1 of 4"));
/// assert_eq!(testing::progressed(), [(Some(0.25), Some("page 1 of 4".to_owned()))]);
/// ```
pub fn report(part: Option<f64>, message: Option<&str>) {
    host::progress::report(part, message);
}
