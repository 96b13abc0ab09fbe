//! The order of functions in the released program.
//!
//! The linker leaves functions in the order of the compiler, so those that a start needs are spread over
//! the whole file, and each of its pages that is touched costs a fault. Trial runs under valgrind find
//! what frequent commands run through, and these functions come first.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::{build, process::run_command};

/// The tool that names the functions that run.
pub(super) const VALGRIND: &str = "valgrind";

/// Where valgrind writes, in the folder of a trial. `%p` is the process.
const OUTPUT: &str = "functions.%p";

/// The commands whose functions come first, in this order: those of a start, a call, and a turn.
const COMMANDS: [&[&str]; 4] = [
    &["--version"],
    &["call", "clock.get_time", "{}"],
    &["tool", "list"],
    &["run", "what time is it in Tokyo?"],
];

/// What a client of `sallyport mcp` sends: a handshake, and some calls.
const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"trial","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"clock.get_time","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"clock.get_time","arguments":{}}}"#,
];

/// The functions that trial runs of a program with names run through, most urgent first, each once.
/// Functions of one run are sorted, so that equal runs give equal programs.
pub(super) fn find_order(program: &Path) -> Result<Vec<String>> {
    let home = tempfile::tempdir()?;
    let command = |program: &Path| {
        let mut command = Command::new(program);
        let plugins = build::plugin_output_folder("");
        command.env("SALLYPORT_HOME", home.path()).env("SALLYPORT_PLUGIN_DIR", plugins);
        command.env("SALLYPORT_MODEL", "offline").stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    // The first runs compile and fill caches, which later ones do not.
    for arguments in COMMANDS {
        run_command(command(program).args(arguments))?;
    }
    let mut order = FunctionOrder::default();
    for arguments in COMMANDS {
        let trial = Trial::new()?;
        run_command(
            command(Path::new(VALGRIND)).args(trial.arguments()).arg(program).args(arguments),
        )?;
        order.add(trial.functions()?);
    }
    let trial = Trial::new()?;
    let mut server = command(Path::new(VALGRIND));
    serve(server.args(trial.arguments()).arg(program).arg("mcp"))?;
    order.add(trial.functions()?);
    Ok(order.names)
}

/// Starts `sallyport mcp`, sends it the messages, and waits for each answer.
fn serve(command: &mut Command) -> Result<()> {
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = server.stdin.take().context("no input")?;
    let mut output = BufReader::new(server.stdout.take().context("no output")?);
    for message in MESSAGES {
        writeln!(input, "{message}")?;
        if message.contains(r#""id""#) {
            let mut answer = String::new();
            output.read_line(&mut answer)?;
            ensure!(answer.contains(r#""result""#), "the server answered {answer:?}");
        }
    }
    drop(input);
    let status = server.wait()?;
    ensure!(status.success(), "the server ended with {status}");
    Ok(())
}

/// One run under valgrind.
struct Trial {
    folder: TempDir,
}

impl Trial {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    /// Arguments of valgrind. Names stay as the linker knows them, and each is written in full.
    fn arguments(&self) -> Vec<String> {
        let output = self.folder.path().join(OUTPUT);
        vec![
            "--quiet".to_owned(),
            "--tool=callgrind".to_owned(),
            "--demangle=no".to_owned(),
            "--compress-strings=no".to_owned(),
            format!("--callgrind-out-file={}", output.display()),
        ]
    }

    /// The functions that ran, in all processes.
    fn functions(&self) -> Result<BTreeSet<String>> {
        let mut functions = BTreeSet::new();
        for file in fs::read_dir(self.folder.path())? {
            let text = String::from_utf8_lossy(&fs::read(file?.path())?).into_owned();
            functions.extend(text.lines().filter_map(function_name).map(str::to_owned));
        }
        ensure!(!functions.is_empty(), "valgrind named no function");
        Ok(functions)
    }
}

/// The function that a line of valgrind begins. Its number tells recursive calls apart.
fn function_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("fn=")?;
    Some(name.split_once('\'').map_or(name, |(name, _)| name))
}

/// Functions, each once, in the order in which they were first added.
#[derive(Default)]
struct FunctionOrder {
    names: Vec<String>,
    known: BTreeSet<String>,
}

impl FunctionOrder {
    fn add(&mut self, functions: BTreeSet<String>) {
        for name in functions {
            if self.known.insert(name.clone()) {
                self.names.push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_valgrind_are_named_once() {
        let rows = [
            (
                "fn=_ZN4core3fmt5write17h0123456789abcdefE",
                Some("_ZN4core3fmt5write17h0123456789abcdefE"),
            ),
            ("fn=main'2", Some("main")),
            ("cfn=called", None),
            ("ob=/usr/lib/libc.so.6", None),
            ("16 400", None),
            ("", None),
        ];
        for (line, want) in rows {
            assert_eq!(function_name(line), want, "{line}");
        }
        let mut order = FunctionOrder::default();
        order.add(["b", "a"].map(str::to_owned).into());
        order.add(["c", "a"].map(str::to_owned).into());
        assert_eq!(order.names, ["a", "b", "c"]);
    }
}
