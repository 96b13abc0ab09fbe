//! Lines for the operator's log.
//!
//! Models do not see them. The host limits their size, and prints them under the call that they
//! belong to if the operator asks for them (`-v`).

use std::fmt::Display;

/// The importance of a line.
///
/// ```
/// use sallyport_sdk::log::Level;
///
/// assert!(Level::Warn > Level::Info);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Very fine detail.
    Trace,
    /// Details for the plugin's author.
    Debug,
    /// Useful information for the operator.
    Info,
    /// A possible problem.
    Warn,
    /// A failure.
    Error,
}

/// Logs a line of very fine detail.
///
/// ```
/// sallyport_sdk::log::trace("entering");
/// ```
pub fn trace(message: impl Display) {
    line(Level::Trace, &message);
}

/// Logs a line for the plugin's author.
///
/// ```
/// sallyport_sdk::log::debug(format!("cache holds {} entries", 3));
/// ```
pub fn debug(message: impl Display) {
    line(Level::Debug, &message);
}

/// Logs a line of useful information.
///
/// ```
/// use sallyport_sdk::{log, testing};
///
/// log::info("looked up Paris");
/// assert_eq!(testing::logged(), [(log::Level::Info, "looked up Paris".to_owned())]);
/// ```
pub fn info(message: impl Display) {
    line(Level::Info, &message);
}

/// Logs a line about a possible problem.
///
/// ```
/// sallyport_sdk::log::warn("the service answers slowly");
/// ```
pub fn warn(message: impl Display) {
    line(Level::Warn, &message);
}

/// Logs a line about a failure.
///
/// ```
/// sallyport_sdk::log::error("the service sent no JSON");
/// ```
pub fn error(message: impl Display) {
    line(Level::Error, &message);
}

fn line(level: Level, message: &dyn Display) {
    crate::host::log(level, message.to_string());
}
