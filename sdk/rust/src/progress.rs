//! How far a call has come.
//!
//! The manifest requests `progress` and the policy grants it. Without the grant nothing is shown,
//! and nothing else happens.

use crate::host;

/// Shows how far the call has come: a part from 0 to 1 where that is known, and a few words.
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
