//! The command line: dispatches commands and maps their results to exit codes.
//!
//! The answer of a command goes to standard output and everything else to standard error. Without a
//! terminal there are no colours and no questions.

mod args;
mod audit;
mod call;
mod chat;
mod file_attachments;

mod call_display;
mod call_trace;
mod command_aliases;
mod config;
mod consent;
mod doctor;
mod events;
mod excerpt;
mod exit;
mod listen;
mod man;
mod memory;
mod model;
mod notices;
mod observers;
mod output;
mod plugin;
mod policy;
mod run;
mod run_recording;
mod schema;
mod secret;
mod secret_input;
mod selftest;
mod session;
mod setup;
mod state;
mod stream;
mod timer;
mod tool;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{CliArgs, CliCommand};
use exit::{CommandFailure, ExitStatus};
use observers::CallObservers;
use output::CliOutput;
use session::SessionCommand;

/// Runs the program.
pub fn main() -> ExitCode {
    let out = CliOutput::new();
    let exit = match CliArgs::try_parse() {
        Ok(args) => {
            dispatch_command(&args, &out).unwrap_or_else(|failure| out.print_failure(&failure))
        }
        Err(error) => out.print_clap_message(&error),
    };
    out.finish(exit).into()
}

fn dispatch_command(args: &CliArgs, out: &CliOutput) -> Result<ExitStatus, CommandFailure> {
    let flags = args.config_flags();
    let observers = CallObservers { verbose: args.verbose, ..CallObservers::default() };
    match &args.command {
        CliCommand::Chat(chat) => {
            setup::run_on_thread_pool(chat::run_chat_command(&flags, chat, &observers, out))
        }
        CliCommand::Listen(args) => {
            setup::run_on_thread_pool(listen::run_listen_command(&flags, args, &observers, out))
        }
        CliCommand::Run(run) => {
            setup::run_on_thread_pool(run::run_prompt(&flags, run, &observers, out))
        }
        CliCommand::Call(call) => {
            setup::run_on_current_thread(call::run_call_command(&flags, call, &observers, out))
        }
        CliCommand::Plugin(plugin) => {
            setup::run_on_current_thread(plugin::run_plugin_command(&flags, plugin, out))
        }
        CliCommand::Tool(tool) => {
            setup::run_on_current_thread(tool::run_tool_command(&flags, tool, out))
        }
        CliCommand::Policy(policy) => policy::run_policy_command(&flags, policy, &observers, out),
        CliCommand::Audit(command) => audit::run_audit_command(&flags, command, out),
        CliCommand::Secret(secret) => {
            setup::run_on_current_thread(secret::run_secret_command(&flags, secret, out))
        }
        CliCommand::Session(SessionCommand::Kept(command)) => {
            session::run_session_command(&flags, command, out)
        }
        CliCommand::Session(SessionCommand::Resume { id, model, files }) => {
            let args = session::resume_args(id, model, files);
            setup::run_on_thread_pool(chat::run_chat_command(&flags, &args, &observers, out))
        }
        CliCommand::Timer(command) => timer::run_timer_command(&flags, command, out),
        CliCommand::State(command) => state::run_state_command(&flags, command, out),
        CliCommand::Memory(command) => memory::run_memory_command(&flags, command, out),
        CliCommand::Schema { of } => Ok(schema::print_schema(*of, out)),
        CliCommand::Model(model) => {
            setup::run_on_current_thread(model::run_model_command(&flags, model, out))
        }
        CliCommand::Config(config) => config::run_config_command(&flags, config, out),
        CliCommand::Trust(trust) => config::trust_project(&flags, trust, out),
        CliCommand::Doctor(doctor) => {
            setup::run_on_current_thread(doctor::run_doctor_command(&flags, doctor, out))
        }
        CliCommand::Selftest(test) => {
            setup::run_on_thread_pool(selftest::run_selftest_command(&flags, test, &observers, out))
        }
        CliCommand::Man { folder } => man::run_man_command(folder.as_deref(), out),
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut CliArgs::command(), "sallyport", &mut script);
            out.print_generated(&script);
            Ok(ExitStatus::Done)
        }
    }
}
