//! The integration tests: the real program, the real sandbox, real components, and on the other
//! side servers of the loopback that say what a script tells them.
//!
//! Modules are themes. A test whose name begins with `h` and a number shows that the guard against
//! one hostile behaviour holds; the numbers are those of the project's list of such behaviours.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the tests run the program, with its environment")]

mod support;

mod acp;
mod allocations;
mod approval_page;
mod approvals_elsewhere;
mod attended;
mod audit_cli;
mod authoring;
mod bounds;
mod by_plugin;
mod cache;
mod capabilities;
mod chat_terminal;
mod cli;
mod compile;
mod compile_fuzz;
mod compile_queue;
mod completions;
mod config_cli;
mod conformance;
mod connections;
mod consent;
mod contract;
mod conversation;
mod definitions;
mod docs;
mod durable;
mod embed;
mod files;
mod first_run;
mod fs_deny;
mod fs_grant;
mod fs_names;
mod fs_quota;
mod gemini;
mod glance;
mod guided_setup;
mod http_answers;
mod http_consent;
mod http_proxy;
mod http_redirects;
mod http_secrets;
mod instances;
mod kept_results;
mod kill;
mod limits;
mod living;
mod living_kill;
mod load;
mod lock;
mod mcp;
mod mcp_servers;
mod memory;
mod memory_pool;
mod model_cli;
mod network;
mod one_file;
mod output;
mod persona;
mod plugin_cases;
mod plugin_download;
mod plugin_install;
mod plugin_versions;
mod policy_cli;
mod postgres;
mod principals;
mod python;
mod raw;
mod recall;
mod reload;
mod reminder;
mod roles;
mod run_cli;
mod scratch;
mod screens;
mod scripts;
mod secret;
mod selftest;
mod service;
mod session_cli;
mod start_counts;
mod strangers;
mod tape_cli;
mod telemetry;
mod timers_together;
mod tls;
mod trace;
mod typed;
mod weather;
