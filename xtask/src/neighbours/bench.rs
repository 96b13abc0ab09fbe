//! `sallyport mcp` beside servers of the TypeScript and the Python SDK, with the same echo tool: from
//! the start of the process to the first result, the middle of many calls, and the resident memory at
//! rest. Our own server is measured twice: with a usual policy, and with one that has instances made
//! ahead of their calls.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{NeighbourRow, home::NeighbourHome, packages::Packages};
use crate::{dist, process::resident_bytes};

/// Starts of each server. They take turns, so that noise affects all alike.
const STARTS: usize = 20;

/// Calls of one server that runs, after as many that are not counted.
const CALLS: usize = 2000;

/// How long each server rests after its calls, before its memory is read. A server may give back what
/// its start and its calls needed.
const REST: Duration = Duration::from_secs(3);

/// The line of a plugin that has instances made ahead of their calls.
const PREPARED_LIMITS: &str = "limits = { prepared-instances = 2 }";

/// The figures of one server.
#[derive(Default)]
struct ServerFigures {
    first_results: Vec<Duration>,
    calls: Vec<Duration>,
    resident_bytes: u64,
}

/// Builds the program as it is released, and measures all in one run.
pub(super) fn run_bench(packages: &Packages) -> Result<Vec<NeighbourRow>> {
    let home = NeighbourHome::new(dist::build_program()?)?;
    let ours = || {
        let mut command = home.command();
        command.args(["mcp", "--names", "tool", "--only", "reference.echo"]);
        command
    };
    let policy = home.write_policy_with("[plugin.reference]", PREPARED_LIMITS)?;
    let prepared = || {
        let mut command = ours();
        command.arg("--policy").arg(&policy);
        command
    };
    let script = |interpreter, script: &str| {
        let mut command = Command::new(interpreter);
        command.current_dir(packages.folder()).arg(packages.folder().join(script));
        command
    };
    let typescript = || script(packages.node(), "echo.mjs");
    let python = || script(packages.python(), "echo.py");
    let servers: [(&str, &dyn Fn() -> Command); 4] = [
        ("sallyport mcp", &ours),
        ("sallyport mcp with prepared instances", &prepared),
        ("TypeScript SDK", &typescript),
        ("Python SDK", &python),
    ];
    let mut figures = [(); 4].map(|()| ServerFigures::default());
    // The first start compiles and fills caches.
    for (_, start) in servers {
        EchoServer::start(start())?.call()?;
    }
    for _ in 0..STARTS {
        for ((_, start), figures) in servers.iter().zip(&mut figures) {
            let begin = Instant::now();
            let mut server = EchoServer::start(start())?;
            server.call()?;
            figures.first_results.push(begin.elapsed());
        }
    }
    for ((_, start), figures) in servers.iter().zip(&mut figures) {
        measure_calls(start(), figures)?;
    }
    Ok(servers.iter().zip(figures).map(|((name, _), figures)| figures.into_row(name)).collect())
}

fn measure_calls(command: Command, figures: &mut ServerFigures) -> Result<()> {
    let mut server = EchoServer::start(command)?;
    for _ in 0..CALLS {
        server.call()?;
    }
    for _ in 0..CALLS {
        figures.calls.push(server.call()?);
    }
    thread::sleep(REST);
    figures.resident_bytes = resident_bytes(&server.child)?;
    Ok(())
}

impl ServerFigures {
    fn into_row(mut self, name: &str) -> NeighbourRow {
        let [first, call] = [&mut self.first_results, &mut self.calls].map(|times| median(times));
        let resident = self.resident_bytes >> 20;
        let detail = format!(
            "first result {first:.1?}, a call {call:.1?} (p50), {resident} MiB resident at rest"
        );
        NeighbourRow::new(true, format!("bench: {name}"), detail)
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A server with the tool `echo`, over standard input and output.
struct EchoServer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl EchoServer {
    /// Starts it, and shakes hands.
    fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let mut server = Self { child, input, output, next_id: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        server.request("initialize", &hello)?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        server.send(&format!("{initialized}\n"))?;
        Ok(server)
    }

    /// Calls the tool once. The time is that of the server: from the request to the answer, without
    /// what this client does with JSON before and after.
    fn call(&mut self) -> Result<Duration> {
        let params = json!({ "name": "echo", "arguments": { "text": "hello" } });
        let (answer, time) = self.request("tools/call", &params)?;
        ensure!(answer["result"]["content"][0]["text"] == "hello", "the answer is {answer}");
        Ok(time)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<(Value, Duration)> {
        self.next_id += 1;
        let id = self.next_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let line = format!("{request}\n");
        let begin = Instant::now();
        self.send(&line)?;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "the server has ended");
            let time = begin.elapsed();
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return Ok((message, time));
            }
        }
    }

    fn send(&mut self, line: &str) -> Result<()> {
        self.input.write_all(line.as_bytes())?;
        Ok(self.input.flush()?)
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
