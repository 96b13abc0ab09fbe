//! Calls for a long time, over several plugins: what a host keeps must not grow with what it has
//! done.
//!
//! Its argument is the time in seconds. The first calls fill what is filled once; from then on the
//! memory, the descriptors and the threads are compared.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod ground;

use std::{
    fs,
    time::{Duration, Instant},
};

use sallyport_contract::{Outcome, RequestedCall, ToolCallContext};
use sallyport_runtime::Host;

/// How long the soak takes without an argument.
const USUAL_SECONDS: u64 = 60;

/// Calls before the first measurement.
const WARM_UP_CALLS: u64 = 10_000;

/// Calls of a session. The next ones belong to another one, as in a host that serves many.
const SESSION_CALLS: u64 = 1_000;

/// Calls at the same time, more than the machine has processors.
const PARALLEL_CALLS: u64 = 8;

/// The promised largest growth of the resident memory.
const GROWTH_MAX: f64 = 1.02;

/// What the process holds.
struct Holding {
    calls: u64,
    resident_bytes: u64,
    descriptors: usize,
    threads: usize,
}

impl Holding {
    fn of_this_process(calls: u64) -> Self {
        let status = fs::read_to_string("/proc/self/status").expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let count = |folder: &str| fs::read_dir(folder).expect("a folder").count();
        Self {
            calls,
            resident_bytes: kib.expect("a resident size") * 1024,
            descriptors: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
        }
    }

    fn print(&self) {
        let Self { calls, resident_bytes, descriptors, threads } = self;
        let megabytes = *resident_bytes as f64 / 1e6;
        println!(
            "{calls:>9} calls: {megabytes:6.1} MB, {descriptors} descriptors, {threads} threads"
        );
    }
}

fn main() {
    // Cargo adds an argument of its own.
    let seconds = std::env::args().skip(1).find_map(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(USUAL_SECONDS));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(soak(time));
}

async fn soak(time: Duration) {
    let home = tempfile::tempdir().expect("a folder");
    let host = ground::host(home.path(), &["clock", "echo", "echo-kept"]).await;
    let mut calls = 0;
    while calls < WARM_UP_CALLS {
        calls = run_round(&host, calls).await;
    }
    let first = Holding::of_this_process(calls);
    first.print();
    let began = Instant::now();
    let mut next_print = Duration::from_secs(1);
    while began.elapsed() < time {
        calls = run_round(&host, calls).await;
        if began.elapsed() >= next_print {
            Holding::of_this_process(calls).print();
            next_print *= 2;
        }
    }
    let last = Holding::of_this_process(calls);
    last.print();
    check_growth(&first, &last);
}

/// Makes some calls at the same time, and returns how many there have been.
async fn run_round(host: &Host, calls: u64) -> u64 {
    let round = (calls..calls + PARALLEL_CALLS).map(|number| run_call(host, number));
    futures::future::join_all(round).await;
    calls + PARALLEL_CALLS
}

async fn run_call(host: &Host, number: u64) {
    let (tool, arguments) = match number % 4 {
        0 => ("clock.get_time", r#"{"timezone":"Asia/Tokyo"}"#),
        1 => ("echo.echo", r#"{"text":"once"}"#),
        2 => ("echo-kept.echo", r#"{"text":"kept"}"#),
        // It is refused, which leaves a trace as well.
        _ => ("echo.echo", r#"{"text":1}"#),
    };
    let call = RequestedCall {
        context: ToolCallContext {
            call_id: number.to_string(),
            session_id: (number / SESSION_CALLS).to_string(),
            ..ToolCallContext::default()
        },
        tool: tool.parse().expect("a tool"),
        arguments: arguments.to_owned(),
    };
    let outcome = host.call_tool(call).await.outcome;
    let is_expected = match number % 4 {
        3 => matches!(outcome, Outcome::InvalidArguments(_)),
        _ => matches!(outcome, Outcome::Completed(_)),
    };
    assert!(is_expected, "{tool}: {outcome:?}");
}

fn check_growth(first: &Holding, last: &Holding) {
    let growth = last.resident_bytes as f64 / first.resident_bytes as f64;
    println!("the memory is {growth:.3} times that of the first {} calls", first.calls);
    assert!(growth <= GROWTH_MAX, "the memory has grown more than {GROWTH_MAX} times");
    assert!(last.descriptors <= first.descriptors, "there are more descriptors");
    assert!(last.threads <= first.threads, "there are more threads");
}
