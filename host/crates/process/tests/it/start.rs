//! Tests of which programs start.

use std::{fs, io::Read, path::Path};

use sallyport_process::{MissingWallPolicy, ProcessExit, RunError, StageExecutable, run_program};

use crate::{Tool, alive, host, marked, runtime, secret, shown};

/// Checks a failed start by its kind and a part of its message.
#[track_caller]
fn check_no_start(tool: &Tool, want: &str) {
    let error = tool.run(b"{}").unwrap_err();
    assert!(error.to_string().contains(want), "{error}");
    assert!(!error.hint().is_empty());
}

#[test]
fn a_native_program_and_a_script_start() {
    assert_eq!(Tool::script("echo yes").prints(), "yes\n");
    let tool = Tool::act("attempts");
    assert!(tool.prints().starts_with('{'));
}

#[test]
fn a_path_is_seen_from_where_the_host_is() {
    let tool = Tool::script("echo yes; pwd");
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count());
    let relative = |path: &Path| Path::new(&up).join(path.strip_prefix("/").unwrap());
    let tool = tool.with(|spec| {
        spec.program = relative(&spec.program);
        spec.folder = spec.folder.as_deref().map(relative);
    });
    assert!(tool.prints().starts_with("yes\n"));
}

#[test]
fn h65_a_program_that_was_changed_does_not_start() {
    for name in ["run.sh", "main"] {
        let tool = Tool::of(name, b"#!/bin/sh\necho yes\n");
        assert_eq!(tool.prints(), "yes\n");
        fs::write(&tool.spec.program, "#!/bin/sh\necho no\n").unwrap();
        let error = tool.run(b"{}").unwrap_err();
        assert!(matches!(error, RunError::Changed { .. }), "{error:?}");
    }
}

#[test]
fn a_text_without_a_first_line_is_the_shells_as_everywhere() {
    assert_eq!(Tool::of("run", b"echo yes").prints(), "yes\n");
    assert_eq!(Tool::of("run", b"").prints(), "");
    let finished = Tool::of("run", b"\x7fELF and no more").run(b"{}").unwrap();
    assert!(matches!(finished.exit, ProcessExit::Code(2..=127)), "{finished:?}");
}

#[test]
fn what_cannot_start_is_told() {
    check_no_start(&Tool::of("run", b"#!/no/such/interpreter\n"), "No such file");
    let gone = Tool::script("true");
    fs::remove_file(&gone.spec.program).unwrap();
    check_no_start(&gone, "No such file");
    let folder = Tool::script("true");
    fs::remove_file(&folder.spec.program).unwrap();
    fs::create_dir(&folder.spec.program).unwrap();
    check_no_start(&folder, "not a regular file");
    let name = Tool::script("true").with(|spec| spec.env.push(("A\0B".into(), "x".into())));
    check_no_start(&name, "nul byte");
}

#[test]
fn an_interpreter_that_is_not_granted_does_not_run() {
    let elsewhere = tempfile::tempdir().unwrap();
    let interpreter = elsewhere.path().join("sh");
    fs::copy("/bin/sh", &interpreter).unwrap();
    let tool = Tool::of("run", format!("#!{}\necho yes\n", interpreter.display()).as_bytes());
    check_no_start(&tool, "denied");
    let tool = tool.with(|spec| spec.reads.push(elsewhere.path().to_owned()));
    assert_eq!(tool.prints(), "yes\n");
}

#[test]
fn a_program_of_a_link_runs() {
    let other = Tool::script("echo yes");
    let tool = Tool::script("echo no");
    fs::remove_file(&tool.spec.program).unwrap();
    std::os::unix::fs::symlink(&other.spec.program, &tool.spec.program).unwrap();
    let tool = tool.with(|spec| spec.digest = other.spec.digest.clone());
    assert_eq!(tool.prints(), "yes\n");
}

#[test]
fn a_stage_that_is_none_is_told() {
    let tool = Tool::script("true");
    for program in ["/no/such/program", "/bin/true", "/bin/cat", "/bin/yes"] {
        let stage = StageExecutable::from_path(program.into());
        let error = runtime().block_on(run_program(&stage, &tool.spec, b"{}")).unwrap_err();
        assert!(matches!(error, RunError::Stage { .. }), "{program}: {error:?}");
    }
}

/// Runs a tool in a host whose kernel lacks a wall, and returns the result.
fn on_an_old_kernel(tool: &Tool, lack: &str) -> String {
    let mut host = host(tool, "", lack);
    let mut printed = String::new();
    host.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    host.wait().unwrap();
    printed
}

#[test]
fn without_a_wall_nothing_starts_unless_that_is_accepted() {
    let ended = format!("{:?}", ProcessExit::Code(0));
    for (lack, refused) in [
        ("without-landlock", "[Files, Signals]\nErr(NoWall { missing: [Files, Signals] })"),
        // The kernel reports seccomp as available, so only the starter detects that it is missing.
        ("without-seccomp", "[]\nErr(NoWall { missing: [Calls] })"),
    ] {
        let tool = Tool::script("echo yes");
        let printed = on_an_old_kernel(&tool, lack);
        assert!(printed.contains(refused), "{printed}");
        let accepted = tool.with(|spec| spec.walls = MissingWallPolicy::AsAvailable);
        let printed = on_an_old_kernel(&accepted, lack);
        assert!(printed.contains(&ended), "{printed}");
    }
}

#[test]
fn the_wall_that_there_is_stands_alone() {
    let (_folder, file) = secret();
    let read = Tool::script(&format!("! cat {}", shown(&file)));
    let connect = Tool::act("sockets");
    for (tool, lack, want) in [
        (read, "without-seccomp", format!("{:?}", ProcessExit::Code(0))),
        (connect, "without-landlock", format!("\"tcp connect\":{}", libc::EPERM)),
    ] {
        let tool = tool.with(|spec| spec.walls = MissingWallPolicy::AsAvailable);
        let printed = on_an_old_kernel(&tool, lack);
        assert!(printed.contains(&want), "{lack}: {printed}");
    }
}

#[test]
fn whoever_leaves_the_group_is_ended_too() {
    for body in ["setsid sleep 60 & echo done", "(setsid sh -c 'sleep 60 & sleep 60' &)"] {
        let (tool, mark) = marked(Tool::script(body));
        let tool = tool.with(|spec| spec.walls = MissingWallPolicy::AsAvailable);
        on_an_old_kernel(&tool, "without-seccomp");
        assert_eq!(alive(&mark), 0, "{body}");
    }
}
