//! The command line: which commands there are, and how each ends.
//!
//! The answer of a command goes to standard output, everything else to standard error. Nothing is
//! coloured and nobody is asked unless there is a terminal.

mod args;
mod call;
mod chat;
mod compose;
mod consent;
mod doctor;
mod exit;
mod output;
mod plugin;
mod policy;
mod run;
mod show;
mod tool;
mod trace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use exit::{Exit, Failure};
use output::Output;

/// Runs the program.
pub fn main() -> ExitCode {
    let out = Output::new();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return out.usage(&error).into(),
    };
    match dispatch(&args, &out) {
        Ok(exit) => exit.into(),
        Err(failure) => out.failure(&failure).into(),
    }
}

fn dispatch(args: &Args, out: &Output) -> Result<Exit, Failure> {
    let flags = args.flags();
    match &args.command {
        Command::Chat(chat) => compose::on_threads(chat::chat(&flags, chat, args.verbose, out)),
        Command::Run(run) => compose::on_threads(run::run(&flags, run, args.verbose, out)),
        Command::Call(call) => compose::on_this_thread(call::call(&flags, call, args.verbose, out)),
        Command::Plugin(plugin) => compose::on_this_thread(plugin::plugin(&flags, plugin, out)),
        Command::Tool(tool) => compose::on_this_thread(tool::tool(&flags, tool, out)),
        Command::Policy(policy) => compose::on_this_thread(policy::policy(&flags, policy, out)),
        Command::Doctor(doctor) => compose::on_this_thread(doctor::doctor(&flags, doctor, out)),
        Command::Completions { shell } => {
            clap_complete::generate(*shell, &mut Args::command(), "sallyport", &mut out.stdout());
            Ok(Exit::Done)
        }
    }
}
