//! The code interpreter: a first `execute("1+1")` of a conversation, and the next.
//!
//! The first one begins with a fresh instance of the compiled component from a warm cache; a person
//! who waits for it should not notice. It is a time and no ratio: what it is compared with is that
//! person.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use sallyport::{
    config::{Env, Flags, Settings},
    gate::{Gate, GateParts},
    lock::Lock,
    registry::{LoadParts, Registry, Selection},
};
use sallyport_contract::{CallContext, Outcome, Services, ToolCall, Toolbox};
use sallyport_sandbox::{Compiler, Sandbox, SandboxOptions, SystemResolver};
use sallyport_session::NobodyToAsk;

/// Conversations that are begun.
const CONVERSATIONS: usize = 101;

/// What a fresh one may take.
const GOAL: Duration = Duration::from_millis(5);

fn main() {
    let home = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(bench(home.path()));
}

async fn bench(home: &Path) {
    let (sandbox, _) = Sandbox::new(SandboxOptions {
        cache_dir: Some(home.join("cache")),
        compiler: Compiler::InProcess,
        resolver: Arc::new(SystemResolver::default()),
    });
    let registry = registry(&sandbox, home).await;
    // The first of all compiles.
    execute(&registry, "warm").await;
    let (mut fresh, mut warm) = (Vec::new(), Vec::new());
    for conversation in 0..CONVERSATIONS {
        let session = conversation.to_string();
        fresh.push(execute(&registry, &session).await);
        warm.push(execute(&registry, &session).await);
        sandbox.end_session(&session).await;
    }
    println!("execute(\"1+1\"), {CONVERSATIONS} conversations");
    print("the first call of a conversation", &mut fresh);
    print("the second", &mut warm);
    println!("  goal for the first: {GOAL:.0?}");
}

async fn registry(sandbox: &Arc<Sandbox>, home: &Path) -> Registry {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let flags = Flags { plugin_dirs: vec![root.join("plugins-wasm")], ..Flags::default() };
    let home = home.to_str().expect("a plain path");
    let settings = Settings::resolve(&flags, Env::of([("SALLYPORT_HOME", home)]));
    let settings = settings.expect("settings");
    let gate = Gate::open(GateParts {
        files: settings.policy.clone(),
        env: settings.env.clone(),
        consent: Arc::new(NobodyToAsk),
        store: None,
        tell: Arc::new(|_| {}),
        activity: Arc::new(|_, _| {}),
        services: Services::default(),
    });
    let lock = Lock::read(&settings.paths.lock()).expect("a lock");
    let registry = Registry::load(LoadParts {
        sandbox: Arc::clone(sandbox),
        settings: &settings,
        gate: gate.expect("a policy"),
        selection: Selection::Only("python".parse().expect("a name")),
        lock: &lock,
        pins: false,
        agrees: &|_, _| false,
    });
    registry.await.expect("a registry")
}

/// Runs the code in a session, and returns how long that took.
async fn execute(registry: &Registry, session: &str) -> Duration {
    let context = CallContext { session_id: session.to_owned(), ..CallContext::default() };
    let call = ToolCall {
        context,
        tool: "python.execute".parse().expect("a tool"),
        arguments: r#"{"code":"1+1"}"#.to_owned(),
    };
    let begin = Instant::now();
    let admitted = registry.admit(call).await.expect("run `cargo xtask plugins` first");
    let report = registry.run(admitted).await;
    let elapsed = begin.elapsed();
    let Outcome::Completed(output) = &report.outcome else { panic!("{report:?}") };
    assert_eq!(output.data["result"], 2, "{report:?}");
    elapsed
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("  {what}: median {:.2?}, fastest tenth {:.2?}", at(50), at(10));
}
