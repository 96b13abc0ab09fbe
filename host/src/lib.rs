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
//! - [`internal`]: tools that are compiled in.
//! - [`script`]: tools that are programs of this machine.
//! - [`registry`]: finds and loads plugins, and sends every call through the gate.
//! - [`recall`]: earlier turns, found by what they mean.
//! - [`roles`]: what plugins do in a session beside tools.
//! - [`services`]: what plugins keep, plan and say beyond a call.
//! - [`timekeeper`]: lets timers fire while the program lives.
//! - [`cli`]: the commands of the program, and all that is ever printed.

pub mod cli;
pub mod config;
pub mod gate;
pub mod history;
pub mod internal;
pub mod lock;
pub mod recall;
pub mod registry;
pub mod roles;
pub mod script;
pub mod secrets;
pub mod services;
pub mod timekeeper;
