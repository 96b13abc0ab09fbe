//! Plays the sessions that the documents show: the program runs in a terminal, a scripted user
//! types, and a server with canned responses replaces a paid model.

mod film;
mod first_start;
mod person;
mod provider;
mod terminal;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{build, process::repository_root};
use provider::DemoServices;
use terminal::{DemoTerminal, TALL_WINDOW, WindowSize};

/// A document contains its session between these two lines.
const BEGIN: &str = "<!-- demo: written by `cargo xtask demo --write` -->\n";
const END: &str = "<!-- demo: end -->\n";

const KNOWN_ARGUMENTS: &str = "chat or start, --write and --program FILE";

/// The policy of the session.
const POLICY: &str = r#"[plugin.files]
fs = [{ path = "~/notes", mount = "/notes", access = "read-write" }]
"#;

/// Plays the sessions and prints them, or writes them into the documents.
pub(crate) fn run_demo(args: &[String]) -> Result<()> {
    let mut program = None;
    let mut writes = false;
    let mut only = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--write" => writes = true,
            "--program" => program = Some(args.next().context("--program needs a file")?.into()),
            "chat" | "start" => only = Some(arg.as_str()),
            other => bail!("demo does not know {other:?}; it knows {KNOWN_ARGUMENTS}"),
        }
    }
    let program: PathBuf = match program {
        Some(program) => program,
        None => {
            build::build_plugins()?;
            build::build_host()?
        }
    };
    if only != Some("start") {
        let session = play_session(&program)?;
        if writes { write_to_page("README.md", &session)? } else { println!("{session}\n") }
    }
    if only != Some("chat") {
        let first_start = first_start::play_first_start(&program)?;
        if writes { first_start.write()? } else { println!("{}", first_start.transcript) }
    }
    Ok(())
}

/// Writes a session into its place in a document.
fn write_to_page(page: &str, session: &str) -> Result<()> {
    let path = repository_root().join(page);
    let text = fs::read_to_string(&path)?;
    let no_place = || format!("{page} has no place for the session");
    let (before, rest) = text.split_once(BEGIN).with_context(no_place)?;
    let (_, after) = rest.split_once(END).with_context(no_place)?;
    let text = format!("{before}{BEGIN}```text\n{session}\n```\n{END}{after}");
    fs::write(&path, text).with_context(|| format!("cannot write {page}"))
}

/// The program with the environment of an empty home, and nothing of the developer's own.
fn command_in_home(program: &Path, home: &Path, plugins: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env("SALLYPORT_HOME", home.join("sallyport"))
        .env("SALLYPORT_PLUGIN_DIR", plugins)
        // A model that is called before its tools are there would show that they are missing.
        .env("SALLYPORT_COMPILE_WAIT", "10m");
    command
}

/// Plays the session in a temporary home, which the output shows as `~`.
fn play_session(program: &Path) -> Result<String> {
    let services = DemoServices::start()?;
    let folder = tempfile::tempdir()?;
    let home = folder.path();
    prepare_home(home, &services)?;
    let mut command = command_in_home(program, home, &repository_root().join("plugins-wasm"));
    let mut terminal = DemoTerminal::start(command.arg("chat"), TALL_WINDOW)?;
    person::type_conversation(&mut terminal)?;
    let lines = terminal.wait_for_exit()?.replace(&home.display().to_string(), "~");
    Ok(format!("$ sallyport chat\n{lines}"))
}

/// Writes what the session needs into a home, and nothing of the developer's own.
fn prepare_home(home: &Path, services: &DemoServices) -> Result<()> {
    fs::create_dir_all(home.join("notes"))?;
    fs::create_dir_all(home.join("sallyport"))?;
    fs::write(home.join("sallyport/policy.toml"), POLICY)?;
    let base_url = services.base_url();
    let configuration = format!(
        "default_model = \"demo\"\n\n\
         [model.demo]\nprovider = \"openai\"\nmodel = \"demo\"\nbase_url = \"{base_url}\"\n\n\
         [price.\"demo\"]\ninput = 1.00\noutput = 4.00\n"
    );
    Ok(fs::write(home.join("sallyport/sallyport.toml"), configuration)?)
}
