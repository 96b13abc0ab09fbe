//! Reporting the progress of a call.
//!
//! The manifest requests `progress` and the policy grants it. Without the grant, reports have no
//! effect.

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
    host::report(part, message);
}

#[cfg(target_family = "wasm")]
mod host {
    //! The functions of the host, as imports.

    pub(crate) use crate::guest::bindings::powers::sallyport::plugin::progress::report;
}

#[cfg(not(target_family = "wasm"))]
pub(crate) mod host {
    //! The stand-in for the host in tests.

    use std::cell::RefCell;

    use crate::testing::{Power, is_granted};

    thread_local! {
        static PROGRESSED: RefCell<Vec<(Option<f64>, Option<String>)>> = RefCell::default();
    }

    /// Returns the progress that was reported since the last call.
    ///
    /// ```
    /// use sallyport_sdk::{progress, testing};
    ///
    /// progress::report(Some(0.5), None);
    /// assert_eq!(testing::progressed(), []);
    /// testing::grant([testing::Power::Progress]);
    /// progress::report(Some(0.5), None);
    /// assert_eq!(testing::progressed(), [(Some(0.5), None)]);
    /// ```
    pub fn progressed() -> Vec<(Option<f64>, Option<String>)> {
        PROGRESSED.take()
    }

    pub(crate) fn report(part: Option<f64>, message: Option<&str>) {
        if is_granted(Power::Progress) {
            let step = (part, message.map(str::to_owned));
            PROGRESSED.with_borrow_mut(|steps| steps.push(step));
        }
    }
}
