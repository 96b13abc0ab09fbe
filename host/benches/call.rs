//! Calls through the whole host, with policy, consent and audit in place, against the same component
//! in plain wasmtime.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]

mod ground;

use std::{path::Path, time::Instant};

use sallyport_benchmark_floor::{
    PlainComponent,
    measure::{compare, on_both_runtimes, print_median},
};
use sallyport_contract::{Outcome, RequestedCall, ToolCallContext};
use sallyport_runtime::Host;

/// Calls per batch.
const CALLS: usize = 50;

/// Total compilations. Each takes a good part of a second.
const COMPILATIONS: usize = 5;

/// The promised ratios of a call in a fresh instance, on one thread and on two.
const FRESH_MAX: [f64; 2] = [1.15, 1.3];

/// The promised ratio of a call to an instance that lives through the session.
const KEPT_MAX: f64 = 1.5;

/// The promised ratio of opening a host whose plugins are compiled.
const OPEN_MAX: f64 = 0.01;

fn main() {
    on_both_runtimes(bench);
}

async fn bench(runtime: &'static str) {
    let home = tempfile::tempdir().expect("a folder");
    let host = ground::host(home.path(), &["clock", "echo", "echo-kept"]).await;
    let goal = FRESH_MAX[usize::from(runtime != "one thread")];
    let clock = PlainComponent::compile(&ground::component("clock"));
    let echo = PlainComponent::compile(&ground::component("echo"));
    for (name, tool, plain, arguments) in [
        ("clock", "clock.get_time", &clock, r#"{"timezone":"Asia/Tokyo"}"#.to_owned()),
        ("echo", "echo.echo", &echo, text(1)),
        ("echo of 1 KiB", "echo.echo", &echo, text(1024)),
    ] {
        let name = format!("isolated call, {name}, {runtime}");
        let function = tool.split_once('.').expect("a plugin and a tool").1;
        let ours = async || call(&host, tool, &arguments).await;
        let floor = async || {
            plain.instantiate().await.call(function, &arguments).await;
        };
        compare(&name, goal, CALLS, ours, floor).await;
    }
    kept(&host, &echo, runtime).await;
    drop(host);
    if runtime == "one thread" {
        open(home.path()).await;
    }
}

fn text(bytes: usize) -> String {
    format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes))
}

/// Calls to an instance that lives through the session.
async fn kept(host: &Host, echo: &PlainComponent, runtime: &str) {
    let mut instance = echo.instantiate().await;
    let ours = async || call(host, "echo-kept.echo", &text(1)).await;
    let floor = async || {
        instance.call("echo", &text(1)).await;
    };
    compare(&format!("call of a kept instance, {runtime}"), KEPT_MAX, CALLS, ours, floor).await;
}

async fn call(host: &Host, tool: &str, arguments: &str) {
    let call = RequestedCall {
        context: ToolCallContext {
            call_id: "bench".into(),
            session_id: "bench".into(),
            ..ToolCallContext::default()
        },
        tool: tool.parse().expect("a tool"),
        arguments: arguments.to_owned(),
    };
    let report = host.call_tool(call).await;
    assert!(matches!(report.outcome, Outcome::Completed(_)), "{report:?}");
}

/// Opening a host with three plugins from the warm cache, against compiling one component.
async fn open(home: &Path) {
    let mut rows = Vec::new();
    for _ in 0..COMPILATIONS {
        let began = Instant::now();
        for _ in 0..CALLS {
            ground::open(home).await;
        }
        let warm = began.elapsed().as_secs_f64() / CALLS as f64;
        let began = Instant::now();
        PlainComponent::compile(&ground::component("clock"));
        rows.push((warm, began.elapsed().as_secs_f64()));
    }
    print_median("opening a host with three plugins ÷ compiling one", OPEN_MAX, &mut rows);
}
