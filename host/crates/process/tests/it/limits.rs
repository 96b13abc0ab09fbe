//! Tests of the limits: reaching one kills the whole program.

use std::time::Duration;

use sallyport_process::{ProcessExit, ProcessLimits, ReachedProcessLimit, RunError};

use crate::{Tool, alive, marked};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a program that reaches a limit, and checks that no process of it is left.
#[track_caller]
fn check(tool: Tool, change: impl FnOnce(&mut ProcessLimits), want: ReachedProcessLimit) {
    let (tool, mark) = marked(tool.with(|spec| change(&mut spec.limits)));
    tool.ends(ProcessExit::Limit(want));
    assert_eq!(alive(&mark), 0, "something is left");
}

#[test]
fn h69_its_time_ends_it_whatever_it_ignores() {
    for body in [
        "sleep 60",
        "trap '' TERM HUP INT; sleep 60; sleep 60",
        "exec >&- 2>&- <&-; sleep 60",
        "cat; sleep 60",
        "kill -STOP $$",
        "(trap '' TERM HUP; (sleep 60) & sleep 60) & sleep 60",
    ] {
        check(Tool::script(body), |limits| limits.time = SECOND, ReachedProcessLimit::Time(SECOND));
    }
}

#[test]
fn its_processor_time_is_counted_over_all_its_processes() {
    let limit = ReachedProcessLimit::CpuTime(SECOND);
    let busy = "while :; do :; done";
    check(Tool::script(busy), |limits| limits.cpu_time = SECOND, limit);
    let together = format!("for i in 1 2 3 4; do ({busy}) & done; sleep 60");
    check(Tool::script(&together), |limits| limits.cpu_time = SECOND, limit);
}

#[test]
fn h69_a_flood_of_processes_is_ended() {
    let few = |limits: &mut ProcessLimits| limits.processes = 20;
    for body in [
        "f() { f | f & }; f; sleep 60",
        "while :; do sleep 60 & done",
        "i=0; while [ $i -lt 30 ]; do sleep 60 & i=$((i + 1)); done; sleep 60",
    ] {
        check(Tool::script(body), few, ReachedProcessLimit::Processes(20));
    }
    check(Tool::act("threads"), few, ReachedProcessLimit::Processes(20));
}

#[test]
fn h69_its_memory_is_counted_over_all_its_processes() {
    let some = |limits: &mut ProcessLimits| limits.memory_bytes = 64 << 20;
    check(Tool::act("shared memory"), some, ReachedProcessLimit::Memory(64 << 20));
    check(Tool::act("several"), some, ReachedProcessLimit::Memory(64 << 20));
}

#[test]
fn memory_past_the_limit_is_refused_to_one_process() {
    let tool = Tool::act("private memory").with(|spec| spec.limits.memory_bytes = 64 << 20);
    let finished = tool.run(b"{}").unwrap();
    assert_eq!(finished.exit, ProcessExit::Signal(libc::SIGABRT), "{finished:?}");
    assert!(finished.stderr.contains("memory allocation"), "{finished:?}");
}

#[test]
fn h69_endless_output_is_cut_off() {
    for tool in [Tool::act("print"), Tool::script("yes"), Tool::script("yes & sleep 60")] {
        let tool = tool.with(|spec| spec.limits.output_bytes = 100_000);
        let finished = tool.ends(ProcessExit::Limit(ReachedProcessLimit::Output(100_000)));
        assert_eq!(finished.stdout.len(), 100_000);
    }
}

#[test]
fn as_much_output_as_is_allowed_is_no_limit_reached() {
    let tool = Tool::script("head -c 100000 /dev/zero");
    let finished = tool.with(|spec| spec.limits.output_bytes = 100_000).ends(ProcessExit::Code(0));
    assert_eq!(finished.stdout.len(), 100_000);
}

#[test]
fn errors_are_cut_with_a_mark_and_hold_nobody_up() {
    let tool = Tool::script("yes | head -c 5000000 >&2; echo done");
    let finished = tool.with(|spec| spec.limits.errors_bytes = 1000).ends(ProcessExit::Code(0));
    assert_eq!(finished.stdout, b"done\n");
    assert!(finished.stderr.starts_with("y\ny\n") && finished.stderr.ends_with("[cut here]"));
    assert!(finished.stderr.len() < 1100, "{}", finished.stderr.len());
}

#[test]
fn a_file_has_a_largest_size() {
    let tool = Tool::script("exec head -c 3000000 /dev/zero > $TMPDIR/file");
    check(tool, |limits| limits.file_bytes = 1 << 20, ReachedProcessLimit::File(1 << 20));
}

#[test]
fn the_private_folder_is_counted_as_a_whole() {
    let some = |limits: &mut ProcessLimits| limits.scratch_bytes = 1 << 20;
    let files =
        "for i in 1 2 3 4 5 6 7 8 9; do head -c 200000 /dev/zero > $TMPDIR/$i; done; sleep 60";
    check(Tool::script(files), some, ReachedProcessLimit::Scratch(1 << 20));
    let deep = "mkdir -p $TMPDIR/$(printf 'd/%.0s' $(seq 100)); sleep 60";
    check(Tool::script(deep), some, ReachedProcessLimit::Scratch(1 << 20));
}

#[test]
fn open_files_are_few() {
    let tool = Tool::script("ulimit -n").with(|spec| spec.limits.open_files = 17);
    assert_eq!(tool.prints(), "17\n");
}

#[test]
fn a_part_of_a_second_of_processor_time_is_not_taken_away() {
    for (millis, seconds) in [(1, "1\n"), (1000, "1\n"), (1001, "2\n"), (2999, "3\n")] {
        let time = Duration::from_millis(millis);
        let tool = Tool::script("ulimit -t").with(|spec| spec.limits.cpu_time = time);
        assert_eq!(tool.prints(), seconds, "{millis} ms");
    }
}

#[test]
fn no_limit_can_be_raised_again() {
    let tool = Tool::script("ulimit -n 100000 2>/dev/null || echo no; ulimit -c");
    assert_eq!(tool.prints(), "no\n0\n");
}

#[test]
fn there_is_a_longest_input() {
    let tool = Tool::script("wc -c").with(|spec| spec.limits.input_bytes = 10);
    assert_eq!(tool.run(b"0123456789").unwrap().stdout, b"10\n");
    let error = tool.run(b"0123456789x").unwrap_err();
    assert_eq!(error, RunError::Input { bytes: 11, bytes_max: 10 });
}

#[test]
fn what_it_used_is_told() {
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let finished = Tool::script(busy).ends(ProcessExit::Code(0));
    assert!(finished.cpu_time > Duration::ZERO && finished.elapsed > Duration::ZERO);
}
