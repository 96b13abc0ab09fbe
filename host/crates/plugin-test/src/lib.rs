//! Runs the test cases of a plugin: calls with the grants, settings, clock and servers that each
//! needs, in the real sandbox and behind the real gate.
//!
//! [`CaseFile`] reads a `cases.json`, [`run_case`] runs one case in a home of its own, and
//! [`CaseResult`] names what differs. [`CaseFile::with_actual_results`] writes the results into the
//! file and leaves the rest of it as it is. The form of the file is in `docs/writing-plugins.md`.

mod case_file;
mod comparison;
mod effect_match;
mod error;
mod expectation;
mod json_values;
mod network;
mod runner;
mod world;

pub use case_file::{CaseFile, PluginCase, RequestLine};
pub use comparison::{CaseDifference, CaseResult};
pub use error::CaseError;
pub use runner::run_case;
pub use world::TestedPlugin;
