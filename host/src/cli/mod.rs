//! The command line: dispatches commands and maps their results to exit codes.
//!
//! The answer of a command goes to standard output and everything else to standard error. Without a
//! terminal there are no colours and no questions.

mod acp;
mod approval;
mod args;
mod audit;
mod call;
mod chat;
mod file_attachments;

mod call_display;
mod call_lines;
mod call_trace;
mod command_aliases;
mod command_line;
mod completion;
mod config;
mod connection;
mod consent;
mod doctor;
mod events;
mod examples;
mod excerpt;
mod exit;
mod guided_setup;
mod help;
mod interrupt;
mod listen;
mod man;
mod mcp;
mod mcp_servers;
mod memory;
mod model;
mod name_kind;
mod new_file;
mod notices;
mod observers;
mod output;
mod permissions;
mod plugin;
mod plugin_notice;
mod plugin_reload;
mod policy;
mod policy_learn;
mod run;
mod run_recording;
mod schema;
mod secret;
mod secret_input;
mod selftest;
mod serve;
mod serve_certificate;
mod serving;
mod session;
mod setup;
mod start_pages;
mod state;
mod store;
mod stream;
mod telemetry;
mod timer;
mod tool;
mod trace_file;

use std::process::ExitCode;

use sallyport_runtime::config::ConfigFlags;

use args::ChatArgs;
use command_line::{CliArgs, CliCommand};
use exit::{CommandFailure, ExitStatus};
use observers::CallObservers;
use output::CliOutput;
use policy::{LearnArgs, PolicyArgs};
use session::SessionCommand;
use setup::{run_on_current_thread, run_on_thread_pool};
use trace_file::TraceFile;

/// Runs the program.
pub fn main() -> ExitCode {
    let out = CliOutput::new();
    if completion::print_if_asked(&out) {
        return ExitCode::SUCCESS;
    }
    let exit = match help::parse_command_line() {
        Ok(args) => run_traced(&args, &out).unwrap_or_else(|failure| out.print_failure(&failure)),
        Err(error) => print_command_line_error(&error, &out),
    };
    out.finish(exit).into()
}

fn print_command_line_error(error: &clap::Error, out: &CliOutput) -> ExitStatus {
    let arguments: Vec<String> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    match command_aliases::unknown_word_failure(error, &arguments) {
        Some(failure) => out.print_failure(&failure),
        None => out.print_clap_message(error),
    }
}

/// Runs the command, with a trace of it if the user wants one.
fn run_traced(args: &CliArgs, out: &CliOutput) -> Result<ExitStatus, CommandFailure> {
    let trace = args.trace.as_deref().map(TraceFile::create).transpose()?;
    let exit = run_command(args, out);
    telemetry::finish(out);
    if let Some(error) = trace.and_then(|trace| trace.write_error()) {
        out.print_warning(&format!("the trace is incomplete: {error}"));
    }
    exit
}

/// Runs the command. Without one, a terminal gets a chat, and everything else the help.
fn run_command(args: &CliArgs, out: &CliOutput) -> Result<ExitStatus, CommandFailure> {
    let has_terminal = out.can_ask && out.stdout_is_terminal;
    match &args.command {
        Some(command) => dispatch_command(args, command, out),
        None if has_terminal => run_chat(args, &ChatArgs::default(), out),
        None => Ok(out.print_missing_command(&help::command().render_help())),
    }
}

/// Runs a chat, after offering the guided setup to a user who has configured nothing yet.
fn run_chat(
    args: &CliArgs,
    chat: &ChatArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let flags = args.config_flags();
    let offered = guided_setup::offer_before_chat(&flags, chat, out);
    if let Some(exit) = run_on_current_thread(offered)? {
        return Ok(exit);
    }
    let observers = CallObservers { verbose: args.verbose, ..CallObservers::default() };
    run_on_thread_pool(chat::run_chat_command(&flags, chat, &observers, out))
}

fn dispatch_command(
    args: &CliArgs,
    command: &CliCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let flags = args.config_flags();
    let observers = CallObservers { verbose: args.verbose, ..CallObservers::default() };
    match command {
        CliCommand::Chat(chat) => run_chat(args, chat, out),
        CliCommand::Listen(args) => {
            run_on_thread_pool(listen::run_listen_command(&flags, args, &observers, out))
        }
        CliCommand::Mcp(args) => {
            run_on_thread_pool(mcp::run_mcp_command(&flags, args, &observers, out))
        }
        CliCommand::Acp(args) => {
            run_on_thread_pool(acp::run_acp_command(&flags, args, &observers, out))
        }
        CliCommand::Serve(args) => run_on_thread_pool(serve::run(&flags, args, &observers, out)),
        CliCommand::Run(run) => run_on_thread_pool(run::run_prompt(&flags, run, &observers, out)),
        CliCommand::Call(call) => {
            run_on_current_thread(call::run_call_command(&flags, call, &observers, out))
        }
        CliCommand::Plugin(plugin) => {
            run_on_current_thread(plugin::run_plugin_command(&flags, plugin, out))
        }
        CliCommand::Tool(tool) => run_on_current_thread(tool::run_tool_command(&flags, tool, out)),
        CliCommand::Approval(command) => {
            run_on_current_thread(approval::run_approval_command(&flags, command, out))
        }
        CliCommand::Policy(policy) => run_policy(&flags, policy, &observers, out),
        CliCommand::Audit(command) => {
            run_on_current_thread(audit::run_audit_command(&flags, command, out))
        }
        CliCommand::Secret(secret) => {
            run_on_current_thread(secret::run_secret_command(&flags, secret, out))
        }
        CliCommand::Connection(command) => {
            run_on_current_thread(connection::run_connection_command(&flags, command, out))
        }
        CliCommand::Session(SessionCommand::Kept(command)) => {
            run_on_current_thread(session::run_session_command(&flags, command, out))
        }
        CliCommand::Session(SessionCommand::Resume { id, model, files }) => {
            let args = session::resume_args(id, model, files);
            run_on_thread_pool(chat::run_chat_command(&flags, &args, &observers, out))
        }
        CliCommand::Timer(command) => {
            run_on_current_thread(timer::run_timer_command(&flags, command, out))
        }
        CliCommand::State(c) => run_on_current_thread(state::run_state_command(&flags, c, out)),
        CliCommand::Store(store) => run_on_current_thread(store::run(&flags, store, out)),
        CliCommand::Memory(command) => {
            run_on_current_thread(memory::run_memory_command(&flags, command, out))
        }
        CliCommand::Schema { of } => Ok(schema::print_schema(*of, out)),
        CliCommand::Model(model) => {
            run_on_current_thread(model::run_model_command(&flags, model, out))
        }
        CliCommand::Config(config) => config::run_config_command(&flags, config, out),
        CliCommand::Trust(trust) => config::trust_project(&flags, trust, out),
        CliCommand::Setup(args) => {
            run_on_current_thread(guided_setup::run_setup_command(&flags, args, out))
        }
        CliCommand::Doctor(doctor) => {
            run_on_current_thread(doctor::run_doctor_command(&flags, doctor, args.verbose, out))
        }
        CliCommand::Selftest(test) => {
            run_on_thread_pool(selftest::run_selftest_command(&flags, test, &observers, out))
        }
        CliCommand::Man { folder } => man::run_man_command(folder.as_deref(), out),
        CliCommand::Completions { shell } => Ok(completion::print_script(*shell, out)),
        CliCommand::Help { words } => help::run_help_command(words, out),
    }
}

fn run_policy(
    flags: &ConfigFlags,
    policy: &PolicyArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let learn = |args: &LearnArgs| policy_learn::run_learn_command(flags, args, observers, out);
    policy::run_policy_command(flags, policy, learn, out)
}
