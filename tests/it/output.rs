//! Output that cannot be written: a full disk, a closed stream, a reader that has gone.

use std::{
    fs::File,
    io,
    process::{Command, Stdio},
};

use crate::support::{Home, Ran, home::finish};

/// Every command that prints, each in every form that it has of its own. Standard input is empty.
const COMMANDS: [&[&str]; 44] = [
    &["--help"],
    &["--version"],
    &["help"],
    &["help", "run"],
    &["nonsense"],
    &["run", "--help"],
    &["run"],
    &["run", "What time is it in UTC?"],
    &["run", "--output", "json", "What time is it in UTC?"],
    &["run", "--output", "jsonl", "What time is it in UTC?"],
    &["chat"],
    &["call", "clock.get_time", "{}"],
    &["call", "clock.get_time", "{}", "--output", "json"],
    &["call", "clock.get_time", "{"],
    &["call", "clock.get_tiem", "{}"],
    &["plugin", "list"],
    &["plugin", "list", "--output", "json"],
    &["plugin", "show", "clock"],
    &["plugin", "accept", "clock"],
    &["tool", "list"],
    &["tool", "list", "--output", "json"],
    &["tool", "show", "clock.get_time"],
    &["policy"],
    &["policy", "--output", "json"],
    &["policy", "check"],
    &["policy", "explain", "clock.get_time", "{}"],
    &["audit", "show"],
    &["audit", "show", "--output", "json"],
    &["audit", "verify"],
    &["audit", "report", "--html", "/dev/full"],
    &["model", "list"],
    &["config", "show"],
    &["secret", "list"],
    &["session", "list"],
    &["timer", "list"],
    &["timer", "list", "--output", "json"],
    &["state", "list", "clock"],
    &["memory", "list"],
    &["schema"],
    &["schema", "config"],
    &["doctor"],
    &["doctor", "-v"],
    &["man"],
    &["completions", "bash"],
];

/// What becomes of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sink {
    /// What is written is read by the test.
    Read,
    /// Every write fails: no space left.
    Full,
    /// The stream is closed when the program starts.
    Closed,
    /// Whoever reads has gone.
    Gone,
}

fn home() -> Home {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["call", "clock.get_time", "{}"]).ended(0);
    home
}

/// Runs the program with its two streams as they are said to be.
#[track_caller]
fn run(home: &Home, args: &[&str], stdout: Sink, stderr: Sink) -> Ran {
    let closed = |sink, redirection| if sink == Sink::Closed { redirection } else { "" };
    let script = format!("exec \"$0\" \"$@\" {}{}", closed(stdout, ">&-"), closed(stderr, " 2>&-"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_sallyport")]).args(args);
    command.env_clear().envs(home.environment()).current_dir(home.folder.path());
    command.stdin(Stdio::null()).stdout(sink(stdout)).stderr(sink(stderr));
    finish(command.spawn().unwrap(), args)
}

fn sink(sink: Sink) -> Stdio {
    match sink {
        Sink::Read | Sink::Closed => Stdio::piped(),
        Sink::Full => File::options().write(true).open("/dev/full").unwrap().into(),
        Sink::Gone => io::pipe().unwrap().1.into(),
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_no_panic() {
    let home = home();
    for args in COMMANDS {
        let usual = run(&home, args, Sink::Read, Sink::Read);
        assert_ne!(usual.code, 101, "{usual:#?}");
        for (stdout, stderr) in [
            (Sink::Full, Sink::Read),
            (Sink::Read, Sink::Full),
            (Sink::Full, Sink::Full),
            (Sink::Closed, Sink::Read),
            (Sink::Read, Sink::Closed),
            (Sink::Closed, Sink::Closed),
            (Sink::Gone, Sink::Read),
            (Sink::Read, Sink::Gone),
            (Sink::Gone, Sink::Gone),
        ] {
            let ran = run(&home, args, stdout, stderr);
            let row =
                format!("{args:?} with {stdout:?} and {stderr:?}: {ran:#?}, usual {usual:#?}");
            let is_lost = stdout == Sink::Full && !usual.stdout.is_empty()
                || stderr == Sink::Full && !usual.stderr.is_empty();
            let want = if is_lost && usual.code == 0 { 1 } else { usual.code };
            assert_eq!(ran.code, want, "{row}");
            assert!(!ran.stderr.contains("panicked"), "{row}");
            let is_told = ran.stderr.contains("cannot write the output: No space left on device");
            let is_due = stdout == Sink::Full && !usual.stdout.is_empty() && stderr == Sink::Read;
            assert_eq!(is_told, is_due, "{row}");
        }
    }
}

/// A server whose protocol could not be written ended with 0, as if its client had left.
#[test]
fn a_server_that_could_not_write_its_protocol_said_nothing() {
    let hello = |params: &str| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{params}}}\n")
    };
    let client = r#""capabilities":{},"clientInfo":{"name":"test","version":"1"}"#;
    let home = home()
        .file("mcp.json", hello(&format!("{{\"protocolVersion\":\"2025-06-18\",{client}}}")))
        .file("acp.json", hello("{\"protocolVersion\":1}"));
    for server in ["mcp", "acp"] {
        for (stdout, want) in [(Sink::Full, 1), (Sink::Gone, 0), (Sink::Read, 0)] {
            let input = File::open(home.path(&format!("{server}.json"))).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_sallyport"));
            command.arg(server).env_clear().envs(home.environment());
            command.current_dir(home.folder.path());
            command.stdin(input).stdout(sink(stdout)).stderr(Stdio::piped());
            let ran = finish(command.spawn().unwrap(), &[server]).ended(want);
            let is_told = ran.stderr.contains("cannot write the output: No space left on device");
            assert_eq!(is_told, stdout == Sink::Full, "{server} with {stdout:?}: {ran:#?}");
        }
    }
}

#[test]
fn what_was_done_is_on_record_although_nobody_could_see_it() {
    let home = home();
    for sink in [Sink::Full, Sink::Closed, Sink::Gone] {
        let before = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
        run(&home, &["call", "clock.get_time", "{}"], sink, sink);
        let after = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
        // A decision, and what came of it.
        assert_eq!(after.lines().count(), before.lines().count() + 2, "{sink:?}: {after}");
        home.run(&["audit", "verify"]).ended(0);
    }
}

#[test]
fn a_reader_that_leaves_in_the_middle_ends_the_program_quietly() {
    let home = home();
    let program = env!("CARGO_BIN_EXE_sallyport");
    for args in
        ["schema config", "completions zsh", "man", "audit show", "run --output jsonl hello"]
    {
        let script = format!("{{ {program} {args}; echo \"ended with $?\" >&2; }} | head -c 1");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env_clear().envs(home.environment());
        command.current_dir(home.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let stderr = finish(command.spawn().unwrap(), &[args]).stderr;
        assert!(stderr.ends_with("ended with 0\n"), "{args}: {stderr}");
        for word in ["panicked", "error:", "Broken pipe"] {
            assert!(!stderr.contains(word), "{args}: {stderr}");
        }
    }
}
