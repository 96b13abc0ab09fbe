//! Plays the session that the README shows: the program runs in a terminal, a scripted user types,
//! and a server with canned responses replaces a paid model.

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
use provider::DemoProvider;
use terminal::DemoTerminal;

/// The README contains the session between these two lines.
const BEGIN: &str = "<!-- demo: written by `cargo xtask demo --write` -->\n";
const END: &str = "<!-- demo: end -->\n";

/// The policy of the session.
const POLICY: &str = r#"[plugin.files]
fs = [{ path = "~/notes", mount = "/notes", access = "read-write" }]
"#;

/// Plays the session and prints it, or writes it into the README.
pub(crate) fn run_demo(args: &[String]) -> Result<()> {
    let mut program = None;
    let mut writes = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--write" => writes = true,
            "--program" => program = Some(args.next().context("--program needs a file")?.into()),
            other => bail!("demo does not know {other:?}; it knows --write and --program FILE"),
        }
    }
    let program: PathBuf = match program {
        Some(program) => program,
        None => {
            build::build_plugins()?;
            build::build_host()?
        }
    };
    let session = play_session(&program)?;
    if writes { write_to_readme(&session) } else { print_session(&session) }
}

fn print_session(session: &str) -> Result<()> {
    println!("{session}");
    Ok(())
}

fn write_to_readme(session: &str) -> Result<()> {
    let readme = repository_root().join("README.md");
    let text = fs::read_to_string(&readme)?;
    let (before, rest) = text.split_once(BEGIN).context("the README has no place for it")?;
    let (_, after) = rest.split_once(END).context("its place in the README has no end")?;
    let text = format!("{before}{BEGIN}```text\n{session}\n```\n{END}{after}");
    fs::write(&readme, text).context("cannot write the README")
}

/// Plays the session in a temporary home, which the output shows as `~`.
fn play_session(program: &Path) -> Result<String> {
    let provider = DemoProvider::start()?;
    let folder = tempfile::tempdir()?;
    let home = folder.path();
    prepare_home(home, &provider)?;
    let mut command = Command::new(program);
    command
        .args(["chat"])
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env("SALLYPORT_HOME", home.join("sallyport"))
        .env("SALLYPORT_PLUGIN_DIR", repository_root().join("plugins-wasm"));
    let mut terminal = DemoTerminal::start(&mut command)?;
    person::type_conversation(&mut terminal)?;
    let lines = terminal.wait_for_exit()?.replace(&home.display().to_string(), "~");
    Ok(format!("$ sallyport chat\n{lines}"))
}

/// Writes what the session needs into a home, and nothing of the developer's own.
fn prepare_home(home: &Path, provider: &DemoProvider) -> Result<()> {
    fs::create_dir_all(home.join("notes"))?;
    fs::create_dir_all(home.join("sallyport"))?;
    fs::write(home.join("sallyport/policy.toml"), POLICY)?;
    let base_url = provider.base_url();
    let configuration = format!(
        "default_model = \"demo\"\n\n\
         [model.demo]\nprovider = \"openai\"\nmodel = \"demo\"\nbase_url = \"{base_url}\"\n\n\
         [price.\"demo\"]\ninput = 1.00\noutput = 4.00\n"
    );
    Ok(fs::write(home.join("sallyport/sallyport.toml"), configuration)?)
}
