//! Tests of programs that run until their host lets go of them.

use std::{io::Read, time::Duration};

use sallyport_process::{
    ProcessExit, ReachedProcessLimit, RunError, ServiceExit, ServicePipes, StageExecutable,
    start_service,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    time::timeout,
};

use crate::{HOSTILE, RUN_TIME_MAX, Tool, alive, host, marked, runtime, soon};

/// Answers each line.
const ECHO: &str = "while read -r line; do echo \"got $line\"; done";

/// How long a program gets to end by itself.
const GRACE: Duration = Duration::from_secs(20);

/// Starts it, talks to it, and closes it.
fn serve(
    tool: &Tool,
    grace: Duration,
    talk: impl AsyncFnOnce(&mut ServicePipes),
) -> Result<ServiceExit, RunError> {
    let stage = StageExecutable::from_path(HOSTILE.into());
    let served = async {
        let (service, mut pipes) = start_service(&stage, &tool.spec).await?;
        talk(&mut pipes).await;
        drop(pipes);
        service.close(grace).await
    };
    runtime().block_on(async { timeout(RUN_TIME_MAX, served).await.expect("it hangs") })
}

async fn ask(pipes: &mut ServicePipes, line: &str) -> String {
    pipes.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    BufReader::with_capacity(1, &mut pipes.output).read_line(&mut answer).await.unwrap();
    answer
}

#[test]
fn it_answers_until_its_input_ends() {
    let ended = serve(&Tool::script(ECHO), GRACE, async |pipes| {
        for word in ["one", "two"] {
            assert_eq!(ask(pipes, word).await, format!("got {word}\n"));
        }
    });
    assert_eq!(ended.unwrap(), ServiceExit { exit: ProcessExit::Code(0), stderr: String::new() });
}

#[test]
fn it_has_arguments_and_starts_in_its_private_folder() {
    let tool = Tool::script("echo \"$1 $2 $HOME\"; pwd").with(|spec| {
        spec.arguments = vec!["a b".into(), "$HOME".into()];
        spec.folder = None;
    });
    let ended = serve(&tool, GRACE, async |pipes| {
        let mut printed = String::new();
        pipes.output.read_to_string(&mut printed).await.unwrap();
        let (first, second) = printed.trim().split_once('\n').unwrap();
        assert_eq!(first, format!("a b $HOME {second}"));
    });
    assert_eq!(ended.unwrap().exit, ProcessExit::Code(0));
}

#[test]
fn the_end_of_its_errors_is_reported() {
    let body = "echo first >&2; head -c 300000 /dev/zero | tr '\\0' x >&2; echo last >&2; exit 3";
    let ended = serve(&Tool::script(body), GRACE, async |_| {}).unwrap();
    assert_eq!(ended.exit, ProcessExit::Code(3));
    assert!(ended.stderr.ends_with("xlast\n") && ended.stderr.len() < 100_000);
}

#[test]
fn one_that_cannot_be_executed_is_told() {
    let ended = serve(&Tool::of("run", b"#!/no/such/interpreter\n"), GRACE, async |_| {});
    assert!(ended.unwrap_err().to_string().contains("No such file"));
    let missing = Tool::script("true").with(|spec| spec.reads.push("/no/such/folder".into()));
    let ended = serve(&missing, GRACE, async |_| {});
    assert!(matches!(ended, Err(RunError::Grant { .. })), "{ended:?}");
}

#[test]
fn limits_hold_for_as_long_as_it_runs() {
    let tool = Tool::script("i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; wait");
    let tool = tool.with(|spec| spec.limits.processes = 20);
    let ended = serve(&tool, RUN_TIME_MAX, async |_| {}).unwrap();
    assert_eq!(ended.exit, ProcessExit::Limit(ReachedProcessLimit::Processes(20)));
}

/// However a service ends, none of its processes is left.
#[test]
fn h69_a_service_leaves_no_process() {
    let bodies = [
        ECHO,
        "exit 0",
        "kill -9 $$",
        "sleep 60 & sleep 60",
        "trap '' TERM HUP INT; (sleep 60 &); while :; do sleep 60; done",
        "setsid sleep 60 2>/dev/null & exec >&- 2>&- <&-; sleep 60",
        "while :; do echo flood; done",
    ];
    for body in bodies {
        let (tool, mark) = marked(Tool::script(body));
        // It may be closed before the program begins, which its report then says.
        let _ = serve(&tool, Duration::from_millis(50), async |_| {});
        assert_eq!(alive(&mark), 0, "{body}");
        let stage = StageExecutable::from_path(HOSTILE.into());
        drop(runtime().block_on(start_service(&stage, &tool.spec)).unwrap());
        soon("processes are left", || alive(&mark) == 0);
    }
}

#[test]
fn h68_a_host_that_is_killed_takes_its_services_along() {
    let (tool, mark) = marked(Tool::script("trap '' TERM HUP; (sleep 60) & sleep 60"));
    let mut host = host(&tool, "", "service");
    let mut begun = [0; 1];
    host.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
    soon("it does not start", || alive(&mark) >= 3);
    host.kill().unwrap();
    host.wait().unwrap();
    soon("processes are left", || alive(&mark) == 0);
}
