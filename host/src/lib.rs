//! The host: reads the configuration, finds the plugins, talks to the model, runs the session.
//!
//! This package is the composition root. Everything that can be known without a terminal, a file or
//! a network is in the crates below it (`contract`, `policy`), and so are the two things that touch
//! the outside on behalf of others (`sandbox`, `model`). What is here ties them together:
//!
//! - [`config`]: flags, environment and files become one value, once.
//! - [`gate`]: decides, asks, remembers and writes down.
//! - [`secrets`]: where the values of secrets come from.
//! - [`history`]: sessions as they are kept.
//! - [`lock`]: what was agreed to about plugins.
//! - [`registry`]: finds and loads plugins, and sends every call through the gate.
//! - [`cli`]: the commands of the program, and all that is ever printed.

pub mod cli;
pub mod config;
pub mod gate;
pub mod history;
pub mod lock;
pub mod registry;
pub mod secrets;
