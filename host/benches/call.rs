//! Calls and starts, each as a ratio to bare wasmtime measured in the same run.
//!
//! The host and the baseline alternate in small batches. The figure is the median of the batches'
//! ratios, so the machine's noise affects both alike.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]

mod ground;

use std::{
    future::Future,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use sallyport_contract::{Outcome, RequestedCall, ToolCallContext};
use sallyport_policy::Manifest;
use sallyport_runtime::Host;
use sallyport_sandbox::{
    ComponentFile, FixedGrantAuthorizer, PluginParts, Sandbox, raw::BareComponent,
};

/// Batches per measurement. The number is odd, so the median is one of them.
const BATCHES: usize = 101;

/// Calls per batch.
const CALLS: usize = 50;

/// Total compilations. Each takes a good part of a second.
const COMPILATIONS: usize = 5;

fn main() {
    let home = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(bench(home.path()));
}

async fn bench(home: &Path) {
    let host = ground::host(home, "clock").await;
    let sandbox = host.sandbox();
    let wasm = ground::plugins().join("clock/clock.wasm");
    let file = ComponentFile::read(&wasm).expect("run `cargo xtask plugins` first");
    let raw = BareComponent::new(sandbox, &file);
    for (what, arguments) in [("small arguments", small()), ("1 KiB of arguments", kilobyte())] {
        isolated(&host, &raw, what, &arguments).await;
    }
    start(sandbox, &raw, &file);
}

fn small() -> String {
    r#"{"timezone":"Asia/Tokyo"}"#.to_owned()
}

/// Pads with white space, which is checked, copied and parsed like any other text.
fn kilobyte() -> String {
    format!(r#"{{"timezone":"Asia/Tokyo"{}}}"#, " ".repeat(1000))
}

/// One call in a fresh instance: through the whole host ÷ `InstancePre`, call, drop.
async fn isolated(host: &Host, raw: &BareComponent, what: &str, arguments: &str) {
    let ours = async || {
        let call = RequestedCall {
            context: ToolCallContext { call_id: "bench".into(), ..ToolCallContext::default() },
            tool: "clock.get_time".parse().expect("a tool"),
            arguments: arguments.to_owned(),
        };
        let report = host.call_tool(call).await;
        assert!(matches!(report.outcome, Outcome::Completed(_)), "{report:?}");
    };
    let baseline = async || {
        raw.instantiate().await.call("get_time", arguments).await;
    };
    let mut rows = Vec::new();
    for _ in 0..BATCHES {
        rows.push((batch(&ours).await, batch(&baseline).await));
    }
    print(&format!("isolated call, {what}: whole host ÷ bare wasmtime"), &mut rows);
}

async fn batch<F: Future<Output = ()>>(work: impl Fn() -> F) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        work().await;
    }
    begin.elapsed().as_secs_f64() / CALLS as f64
}

/// Loading a plugin from the warm cache ÷ compiling its component.
fn start(sandbox: &Arc<Sandbox>, raw: &BareComponent, file: &ComponentFile) {
    let manifest = Manifest::for_bare_component("clock".parse().expect("a name"));
    let mut rows = Vec::new();
    for _ in 0..COMPILATIONS {
        let begin = Instant::now();
        for _ in 0..CALLS {
            load(sandbox, &manifest, file.path().to_owned());
        }
        let warm = begin.elapsed().as_secs_f64() / CALLS as f64;
        let begin = Instant::now();
        raw.compile(file);
        rows.push((warm, begin.elapsed().as_secs_f64()));
    }
    print("start: plugin from the warm cache ÷ compiling it", &mut rows);
}

fn load(sandbox: &Arc<Sandbox>, manifest: &Manifest, path: PathBuf) {
    let file = ComponentFile::read(&path).expect("a component");
    let grant = sallyport_policy::Grant::empty(manifest.name.clone());
    let parts = PluginParts {
        manifest,
        file: &file,
        authorizer: Arc::new(FixedGrantAuthorizer::new(Arc::new(grant))),
        settings: serde_json::Map::new(),
    };
    sandbox.load_plugin(parts).expect("a plugin");
}

fn print(what: &str, rows: &mut [(f64, f64)]) {
    rows.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (ours, baseline) = rows[rows.len() / 2];
    let ratio = ours / baseline;
    let times = format!("{:.1} µs ÷ {:.1} µs", ours * 1e6, baseline * 1e6);
    if ratio < 0.1 {
        println!("{what}\n  {times} = 1/{:.0}", 1.0 / ratio);
    } else {
        println!("{what}\n  {times} = {ratio:.2}");
    }
}
