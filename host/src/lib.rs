//! The host: reads the configuration, finds the plugins, talks to the model, runs the session.
//!
//! This package is the composition root. Everything that can be known without a terminal, a file or
//! a network is in the crates below it (`contract`, `policy`), and so are the two things that touch
//! the outside on behalf of others (`sandbox`, `model`). What is here ties them together:
//!
//! - [`config`]: flags, environment and files become one value, once.
//! - [`registry`]: finds and loads plugins, and is the gate that every call passes.
//! - [`session`]: one conversation, as commands in and events out.
//! - [`cli`]: the commands of the program, and all that is ever printed.

pub mod cli;
pub mod config;
pub mod registry;
pub mod session;
