//! The command line: dispatches commands and maps their results to exit codes.
//!
//! The answer of a command goes to standard output and everything else to standard error. Without a
//! terminal there are no colours and no questions.

mod args;
mod attached;
mod audit;
mod call;
mod chat;

mod compose;
mod config;
mod consent;
mod doctor;
mod events;
mod excerpt;
mod exit;
mod hidden;
mod listen;
mod man;
mod memory;
mod model;
mod neighbours;
mod notices;
mod output;
mod plugin;
mod policy;
mod run;
mod schema;
mod secret;
mod selftest;
mod session;
mod show;
mod state;
mod stream;
mod tape;
mod timer;
mod tool;
mod trace;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use exit::{Exit, Failure};
use output::Output;
use session::SessionCommand;
use watch::Watch;

/// Runs the program.
pub fn main() -> ExitCode {
    let out = Output::new();
    let exit = match Args::try_parse() {
        Ok(args) => dispatch(&args, &out).unwrap_or_else(|failure| out.failure(&failure)),
        Err(error) => out.usage(&error),
    };
    out.finish(exit).into()
}

fn dispatch(args: &Args, out: &Output) -> Result<Exit, Failure> {
    let flags = args.flags();
    let watch = Watch { verbose: args.verbose, ..Watch::default() };
    match &args.command {
        Command::Chat(chat) => compose::on_threads(chat::chat(&flags, chat, &watch, out)),
        Command::Listen(args) => compose::on_threads(listen::listen(&flags, args, &watch, out)),
        Command::Run(run) => compose::on_threads(run::run(&flags, run, &watch, out)),
        Command::Call(call) => compose::on_this_thread(call::call(&flags, call, &watch, out)),
        Command::Plugin(plugin) => compose::on_this_thread(plugin::plugin(&flags, plugin, out)),
        Command::Tool(tool) => compose::on_this_thread(tool::tool(&flags, tool, out)),
        Command::Policy(policy) => policy::policy(&flags, policy, &watch, out),
        Command::Audit(command) => audit::audit(&flags, command, out),
        Command::Secret(secret) => compose::on_this_thread(secret::secret(&flags, secret, out)),
        Command::Session(SessionCommand::Kept(command)) => session::session(&flags, command, out),
        Command::Session(SessionCommand::Resume { id, model, files }) => {
            let args = session::resumed(id, model, files);
            compose::on_threads(chat::chat(&flags, &args, &watch, out))
        }
        Command::Timer(command) => timer::timer(&flags, command, out),
        Command::State(command) => state::state(&flags, command, out),
        Command::Memory(command) => memory::memory(&flags, command, out),
        Command::Schema { of } => Ok(schema::schema(*of, out)),
        Command::Model(model) => compose::on_this_thread(model::model(&flags, model, out)),
        Command::Config(config) => config::config(&flags, config, out),
        Command::Trust(trust) => config::trust(&flags, trust, out),
        Command::Doctor(doctor) => compose::on_this_thread(doctor::doctor(&flags, doctor, out)),
        Command::Selftest(test) => {
            compose::on_threads(selftest::selftest(&flags, test, &watch, out))
        }
        Command::Man { folder } => man::man(folder.as_deref(), out),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "sallyport", &mut script);
            out.generated(&script);
            Ok(Exit::Done)
        }
    }
}
