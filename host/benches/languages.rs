//! A fresh call of a plugin in each language: a new instance from a warm cache, with policy and audit
//! in place.
//!
//! `cargo xtask bench languages` builds the plugins, one from each template, into
//! `target/languages/bench`. The figures are times, because there is nothing to compare a language
//! with.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]

#[expect(dead_code, reason = "the plugins of this benchmark are not those of the repository")]
mod ground;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sallyport_benchmark_floor::measure::print_time;
use sallyport_contract::{Outcome, RequestedCall, ToolCallContext};
use sallyport_runtime::Host;
use serde::Deserialize;

/// Calls of each language.
const CALLS: usize = 301;

/// A plugin, as the task describes it in `call.json` beside the component.
#[derive(Deserialize)]
struct LanguagePlugin {
    /// Name of the language.
    language: String,
    /// The tool, with its plugin.
    tool: String,
    arguments: serde_json::Value,
    /// The promised time of a call, in microseconds.
    goal_us: u64,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    for folder in plugin_folders() {
        runtime.block_on(bench(&folder));
    }
}

fn plugin_folders() -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let entries = fs::read_dir(repository.join("target/languages/bench"));
    let entries = entries.expect("the plugins; run `cargo xtask bench languages`");
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

async fn bench(folder: &Path) {
    let text = fs::read(folder.join("call.json")).expect("a description");
    let plugin: LanguagePlugin = serde_json::from_slice(&text).expect("a description");
    let home = tempfile::tempdir().expect("a folder");
    let name = plugin.tool.split_once('.').expect("a plugin and a tool").0;
    let plugins = home.path().join("plugins");
    fs::create_dir_all(&plugins).expect("a folder");
    let component = format!("{name}.wasm");
    fs::copy(folder.join(&component), plugins.join(&component)).expect("a component");
    let host = ground::open(home.path()).await;
    // The very first call compiles the component.
    call(&host, &plugin).await;
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        times.push(call(&host, &plugin).await);
    }
    let name = format!("fresh call of a plugin in {}", plugin.language);
    print_time(&name, Duration::from_micros(plugin.goal_us), &mut times);
}

/// Calls the tool and returns the elapsed time.
async fn call(host: &Host, plugin: &LanguagePlugin) -> Duration {
    let call = RequestedCall {
        context: ToolCallContext::default(),
        tool: plugin.tool.parse().expect("a tool"),
        arguments: plugin.arguments.to_string(),
    };
    let begin = Instant::now();
    let report = host.call_tool(call).await;
    let elapsed = begin.elapsed();
    assert!(matches!(report.outcome, Outcome::Completed(_)), "{report:?}");
    elapsed
}
