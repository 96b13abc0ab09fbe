//! Tests of how programs start, communicate and end, and that no process outlives a run.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use sallyport_process::{ProcessExit, RunError, StageExecutable, run_program};

use crate::{HOSTILE, Tool, alive, host, marked, runtime, shown, soon};

#[test]
fn input_comes_in_and_output_and_errors_go_out() {
    let tool = Tool::script("cat; echo oops >&2; exit 3");
    let finished = tool.run(br#"{"a": 1}"#).unwrap();
    assert_eq!(finished.exit, ProcessExit::Code(3));
    assert_eq!(finished.stdout, br#"{"a": 1}"#);
    assert_eq!(finished.stderr, "oops\n");
}

#[test]
fn much_goes_through() {
    let input: Vec<u8> = (0..1_000_000_u32).flat_map(|n| [n as u8, (n >> 8) as u8]).collect();
    let tool = Tool::script("cat").with(|spec| spec.limits.output_bytes = 4 << 20);
    assert!(tool.run(&input).unwrap().stdout == input);
}

#[test]
fn h69_input_that_is_never_read_holds_nobody_up() {
    let input = vec![b'x'; 3 << 20];
    for body in ["echo done", "exec <&-; echo done", "head -c 1 >/dev/null; echo done"] {
        let finished = Tool::script(body).run(&input).unwrap();
        assert_eq!(
            (finished.exit, &*finished.stdout),
            (ProcessExit::Code(0), &b"done\n"[..]),
            "{body}"
        );
    }
}

#[test]
fn a_signal_that_ends_it_is_told() {
    for signal in [Signal::SEGV, Signal::TERM, Signal::KILL] {
        let tool = Tool::script(&format!("kill -{} $$", signal.as_raw()));
        tool.ends(ProcessExit::Signal(signal.as_raw()));
    }
}

#[test]
fn its_surroundings_are_clean() {
    let tool = Tool::script("env -0 | sort -z | tr '\\0' '\\n'; pwd");
    let tool = tool.with(|spec| spec.env.push(("OWN".into(), "value".into())));
    let printed = tool.prints();
    let lines: Vec<&str> = printed.lines().collect();
    let names: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // The last two are the shell's.
    let want = ["HOME", "LANG", "OWN", "PATH", "TMPDIR", "OLDPWD", "PWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| want.contains(name)), "{printed}");
    assert!(lines.contains(&"OWN=value") && lines.contains(&"LANG=C.UTF-8"), "{printed}");
    assert_eq!(lines.last(), Some(&&*shown(tool.folder.path())));
}

#[test]
fn it_gets_no_descriptor_of_the_host() {
    let tool = Tool::script("cat <&9 2>/dev/null || echo closed");
    let mut host = host(&tool, "exec 9</etc/passwd", "");
    let mut printed = String::new();
    host.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    host.wait().unwrap();
    assert!(printed.contains("\nclosed\n"), "{printed}");
}

#[test]
fn a_script_knows_its_own_name_and_finds_its_neighbours() {
    let tool = Tool::script(". \"$(dirname \"$0\")/neighbour.sh\"; echo $0");
    fs::write(tool.folder.path().join("neighbour.sh"), "echo here").unwrap();
    assert_eq!(tool.prints(), format!("here\n{}\n", shown(&tool.spec.program)));
}

#[test]
fn h69_whoever_is_left_behind_is_ended() {
    for body in [
        "sleep 60 & echo done",
        "(sleep 60 &) ; echo done",
        "(trap '' TERM HUP INT; (sleep 60; sleep 60) & ) & echo done",
        "nohup sleep 60 >/dev/null 2>&1 & echo done",
        "setsid sleep 60 2>/dev/null & echo done",
        "sleep 60 >&- 2>&- <&- & echo done",
    ] {
        let (tool, mark) = marked(Tool::script(body));
        assert_eq!(tool.prints(), "done\n", "{body}");
        assert_eq!(alive(&mark), 0, "{body}");
    }
}

#[test]
fn a_last_word_of_a_descendant_is_heard() {
    let body = "(while kill -0 $$ 2>/dev/null && ! grep -q '^State:.Z' /proc/$$/status; do :; done; \
                echo late) & echo done";
    let tool = Tool::script(body).with(|spec| spec.reads.push("/proc".into()));
    assert_eq!(tool.prints(), "done\nlate\n");
}

#[test]
fn a_program_that_ended_in_time_did_so_whoever_holds_its_output() {
    // Its time limit ends before that of its descendants. If it did not get that far, the test
    // retries.
    let tool = Tool::script("sleep 60 & echo done");
    let tool = tool.with(|spec| spec.limits.time = Duration::from_millis(900));
    let mut ended = std::iter::repeat_with(|| tool.run(b"{}").unwrap()).take(20);
    let ended = ended.find(|finished| finished.stdout == b"done\n").expect("it has ended");
    assert_eq!(ended.exit, ProcessExit::Code(0));
}

#[test]
fn a_run_that_nobody_waits_for_is_ended() {
    let (tool, mark) = marked(Tool::script("echo $HOME > $OUT/home; sleep 60 & sleep 60"));
    let out = tempfile::tempdir().unwrap();
    let tool = tool.with(|spec| {
        spec.env.push(("OUT".into(), shown(out.path())));
        spec.writes.push(out.path().to_owned());
    });
    let stage = StageExecutable::from_path(HOSTILE.into());
    let home = out.path().join("home");
    runtime().block_on(async {
        let running = run_program(&stage, &tool.spec, b"{}");
        let begun = async {
            while !fs::read(&home).is_ok_and(|text| text.ends_with(b"\n")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = running => panic!("{ended:?}"),
            () = begun => {}
        }
    });
    soon("processes are left", || alive(&mark) == 0);
    let home = PathBuf::from(fs::read_to_string(home).unwrap().trim());
    soon("the private folder is left", || !home.exists());
}

#[test]
fn h68_a_host_that_is_killed_takes_everything_along() {
    let (tool, mark) = marked(Tool::script("trap '' TERM HUP; (sleep 60) & sleep 60"));
    let mut host = host(&tool, "", "");
    soon("it does not start", || alive(&mark) >= 3);
    host.kill().unwrap();
    host.wait().unwrap();
    soon("processes are left", || alive(&mark) == 0);
}

#[test]
fn a_watcher_that_is_killed_leaves_no_program() {
    let body = "echo $HOME > $OUT/home; echo $PPID > $OUT/watcher; sleep 60 & sleep 60";
    let (tool, mark) = marked(Tool::script(body));
    let out = tempfile::tempdir().unwrap();
    let tool = tool.with(|spec| {
        spec.env.push(("OUT".into(), shown(out.path())));
        spec.writes.push(out.path().to_owned());
    });
    let killer = std::thread::spawn(move || {
        let number = out.path().join("watcher");
        let read = || fs::read_to_string(&number).ok()?.trim().parse().ok();
        soon("it does not start", || read().is_some());
        kill_process(Pid::from_raw(read().unwrap()).unwrap(), Signal::KILL).unwrap();
        out
    });
    let error = tool.run(b"{}").unwrap_err();
    assert!(matches!(error, RunError::Stage { .. }), "{error:?}");
    soon("processes are left", || alive(&mark) == 0);
    let out = killer.join().unwrap();
    let home = fs::read_to_string(out.path().join("home")).unwrap();
    assert!(!Path::new(home.trim()).exists(), "{home}");
}

#[test]
fn a_program_dies_with_its_watcher_also_when_the_host_does_nothing() {
    let out = tempfile::tempdir().unwrap();
    let (tool, mark) = marked(Tool::script("echo $PPID > $OUT/watcher; exec sleep 60"));
    let tool = tool.with(|spec| {
        spec.env.push(("OUT".into(), shown(out.path())));
        spec.writes.push(out.path().to_owned());
    });
    let mut host = host(&tool, "", "");
    let watcher = || fs::read_to_string(out.path().join("watcher")).ok()?.trim().parse().ok();
    soon("it does not start", || watcher().is_some());
    let signal = |pid: i32, signal| kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    signal(host.id().cast_signed(), Signal::STOP);
    signal(watcher().unwrap(), Signal::KILL);
    soon("the program is left", || alive(&mark) == 0);
    signal(host.id().cast_signed(), Signal::CONT);
    host.wait().unwrap();
}

#[test]
fn many_run_at_once() {
    let tool = Tool::script("cat");
    let stage = StageExecutable::from_path(HOSTILE.into());
    runtime().block_on(async {
        let inputs: Vec<String> = (0..8).map(|number| format!("{number}")).collect();
        let mut running = tokio::task::JoinSet::new();
        for input in inputs {
            let (stage, spec) = (stage.clone(), tool.spec.clone());
            running.spawn(async move {
                let finished = run_program(&stage, &spec, input.as_bytes()).await.unwrap();
                assert_eq!(finished.stdout, input.as_bytes());
            });
        }
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    });
}
