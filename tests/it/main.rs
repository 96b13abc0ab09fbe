//! The integration tests: the real program, the real sandbox, real components, and on the other side
//! servers of the loopback that say what a script tells them.
//!
//! Modules are themes. A test whose name begins with `h` and a number shows that the guard against
//! one hostile behaviour holds; the numbers are those of the project's list of such behaviours.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the tests run the program, with its environment")]

mod support;

mod cache;
mod cli;
mod conversation;
mod files;
mod first_run;
mod limits;
mod load;
mod network;
mod raw;
mod tls;
mod weather;
