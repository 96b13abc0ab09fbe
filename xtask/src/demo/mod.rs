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

use crate::{build, process::root};
use provider::Provider;
use terminal::Terminal;

/// The README contains the session between these two lines.
const BEGIN: &str = "<!-- demo: written by `cargo xtask demo --write` -->\n";
const END: &str = "<!-- demo: end -->\n";

/// The policy of the session.
const POLICY: &str = r#"[plugin.files]
fs = [{ path = "~/notes", mount = "/notes", access = "read-write" }]
"#;

/// Plays the session and prints it, or writes it into the README.
pub(crate) fn demo(args: &[String]) -> Result<()> {
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
            build::plugins()?;
            build::host()?
        }
    };
    let session = play(&program)?;
    if writes { write(&session) } else { print(&session) }
}

fn print(session: &str) -> Result<()> {
    println!("{session}");
    Ok(())
}

fn write(session: &str) -> Result<()> {
    let readme = root().join("README.md");
    let text = fs::read_to_string(&readme)?;
    let (before, rest) = text.split_once(BEGIN).context("the README has no place for it")?;
    let (_, after) = rest.split_once(END).context("its place in the README has no end")?;
    let text = format!("{before}{BEGIN}```text\n{session}\n```\n{END}{after}");
    fs::write(&readme, text).context("cannot write the README")
}

/// Plays the session in a temporary home, which the output shows as `~`.
fn play(program: &Path) -> Result<String> {
    let provider = Provider::start()?;
    let folder = tempfile::tempdir()?;
    let home = folder.path();
    furnish(home, &provider)?;
    let mut command = Command::new(program);
    command
        .args(["chat"])
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env("SALLYPORT_HOME", home.join("sallyport"))
        .env("SALLYPORT_PLUGIN_DIR", root().join("plugins-wasm"));
    let mut terminal = Terminal::start(&mut command)?;
    person::talk(&mut terminal)?;
    let lines = terminal.end()?.replace(&home.display().to_string(), "~");
    Ok(format!("$ sallyport chat\n{lines}"))
}

/// Writes what the session needs into a home, and nothing of the developer's own.
fn furnish(home: &Path, provider: &Provider) -> Result<()> {
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
