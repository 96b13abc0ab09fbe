//! What a call allocates, in counts: a call that begins to copy or to parse twice is seen here, on any
//! machine. What plain wasmtime allocates for the same call is not ours, and is counted beside it.

use allocation_counter::AllocationInfo;
use sallyport_benchmark_floor::PlainComponent;
use sallyport_contract::{Outcome, RequestedCall, ToolCallContext};
use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    notice::no_notices,
    registry::PluginSelection,
};
use sallyport_sandbox::Compiler;
use tokio::runtime::Runtime;

use crate::support::Home;

/// Calls before the counted ones: they compile validators and begin to use the memory pool.
const WARM_UP_CALLS: usize = 10;

/// Counted calls. The cheapest counts, because a notice or a rotation may fall into one of them.
const COUNTED_CALLS: usize = 10;

async fn open(home: &Home) -> Host {
    let env = home.environment();
    let env = Env::from_pairs(env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let settings = HostSettings::resolve(&ConfigFlags::default(), env).unwrap();
    let options = HostOptions {
        compiler: Some(Compiler::InProcess),
        ..HostOptions::unattended(PluginSelection::All, no_notices())
    };
    Host::open(&settings, options).await.unwrap()
}

async fn call(host: &Host, tool: &str, arguments: &str) {
    let call = RequestedCall {
        context: ToolCallContext::default(),
        tool: tool.parse().unwrap(),
        arguments: arguments.to_owned(),
    };
    let report = host.call_tool(call).await;
    assert!(matches!(report.outcome, Outcome::Completed(_)), "{report:?}");
}

/// Does the same several times on one thread, and returns what the cheapest one allocates on it.
fn least(runtime: &Runtime, mut work: impl AsyncFnMut()) -> AllocationInfo {
    let mut count = || allocation_counter::measure(|| runtime.block_on(work()));
    for _ in 0..WARM_UP_CALLS {
        count();
    }
    (0..COUNTED_CALLS).map(|_| count()).min_by_key(|count| count.count_total).unwrap()
}

/// Compares what a call allocates beyond plain wasmtime with the budget.
#[track_caller]
fn check(plugin: &str, function: &str, arguments: &str, allocations_max: u64, bytes_max: u64) {
    let home = Home::new().plugins(&[plugin]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let host = runtime.block_on(open(&home));
    let tool = format!("{plugin}.{function}");
    let ours = least(&runtime, async || call(&host, &tool, arguments).await);
    let plain = PlainComponent::compile(&home.path(&format!("plugins/{plugin}/{plugin}.wasm")));
    let floor = least(&runtime, async || {
        plain.instantiate().await.call(function, arguments).await;
    });
    let allocations = ours.count_total.saturating_sub(floor.count_total);
    let bytes = ours.bytes_total.saturating_sub(floor.bytes_total);
    assert!(
        allocations <= allocations_max && bytes <= bytes_max,
        "{tool}: {allocations} allocations of {bytes} bytes beyond {floor:?}"
    );
}

#[test]
fn a_call_keeps_its_budget_of_allocations() {
    check("clock", "get_time", r#"{"timezone":"Asia/Tokyo"}"#, 62, 21_000);
}
