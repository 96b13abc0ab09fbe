//! The code interpreter: the first `execute("1+1")` of a conversation, and the second.
//!
//! The first call instantiates the compiled component from a warm cache. The figure is a time, not
//! a ratio: the goal is that a waiting user does not notice it.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]

mod ground;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sallyport_benchmark_floor::measure::print_time;
use sallyport_contract::{Outcome, RequestedCall, ToolCallContext};
use sallyport_runtime::Host;

/// Number of conversations.
const CONVERSATIONS: usize = 101;

/// The promised times of the first call of a conversation, and of each later one.
const FIRST_MAX: Duration = Duration::from_micros(2500);
const LATER_MAX: Duration = Duration::from_micros(300);

fn main() {
    let home = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(bench(home.path()));
}

async fn bench(home: &Path) {
    let host = ground::host(home, &["python"]).await;
    // The very first call compiles the component.
    execute(&host, "warm").await;
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for conversation in 0..CONVERSATIONS {
        let session = conversation.to_string();
        first.push(execute(&host, &session).await);
        later.push(execute(&host, &session).await);
        host.sandbox().end_session(&session).await;
    }
    print_time("Python 1+1, first call of a conversation", FIRST_MAX, &mut first);
    print_time("Python 1+1, later call", LATER_MAX, &mut later);
}

/// Runs the code in a session and returns the elapsed time.
async fn execute(host: &Host, session: &str) -> Duration {
    let context = ToolCallContext { session_id: session.to_owned(), ..ToolCallContext::default() };
    let call = RequestedCall {
        context,
        tool: "python.execute".parse().expect("a tool"),
        arguments: r#"{"code":"1+1"}"#.to_owned(),
    };
    let begin = Instant::now();
    let report = host.call_tool(call).await;
    let elapsed = begin.elapsed();
    let Outcome::Completed(output) = &report.outcome else {
        panic!("run `cargo xtask plugins` first: {report:?}")
    };
    assert_eq!(output.data["result"], 2, "{report:?}");
    elapsed
}
