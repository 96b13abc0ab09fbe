//! Two sides measured in turns, and the figure that comes of it.

use std::{
    future::Future,
    time::{Duration, Instant},
};

/// Batches per measurement. The number is odd, so the median is one of them.
const BATCHES: usize = 101;

/// One row of the table that `cargo xtask bench` prints.
#[derive(Debug)]
pub struct Figure<'a> {
    /// What is measured; the row's name.
    pub name: &'a str,
    /// The host's side, in seconds.
    pub ours: f64,
    /// The floor's side in seconds, if there is one.
    pub floor: Option<f64>,
    /// The largest ratio that we promise ourselves; the largest time in seconds where there is no
    /// floor.
    pub goal: f64,
}

impl Figure<'_> {
    /// Prints the row as one line of JSON.
    #[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
    pub fn print(&self) {
        let Self { name, ours, floor, goal } = self;
        let row = serde_json::json!({ "name": name, "ours": ours, "floor": floor, "goal": goal });
        println!("{row}");
    }
}

/// Measures the two sides in turns, `calls` in a batch. Batches keep the clock out of the figure,
/// and the turns keep the machine's noise out of the ratio.
pub async fn compare(
    name: &str,
    goal: f64,
    calls: usize,
    mut ours: impl AsyncFnMut(),
    mut floor: impl AsyncFnMut(),
) {
    let mut rows = Vec::new();
    for _ in 0..BATCHES {
        rows.push((batch(calls, &mut ours).await, batch(calls, &mut floor).await));
    }
    print_median(name, goal, &mut rows);
}

/// Prints the batch whose ratio is in the middle.
pub fn print_median(name: &str, goal: f64, rows: &mut [(f64, f64)]) {
    rows.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (ours, floor) = rows[rows.len() / 2];
    Figure { name, ours, floor: Some(floor), goal }.print();
}

/// Prints a time that has no floor.
pub fn print_time(name: &str, goal: Duration, times: &mut [Duration]) {
    times.sort_unstable();
    let ours = times[times.len() / 2].as_secs_f64();
    Figure { name, ours, floor: None, goal: goal.as_secs_f64() }.print();
}

async fn batch(calls: usize, work: &mut impl AsyncFnMut()) -> f64 {
    let began = Instant::now();
    for _ in 0..calls {
        work().await;
    }
    began.elapsed().as_secs_f64() / calls as f64
}

/// Runs a benchmark on the runtime of a program that serves one call, and then on that of `chat`
/// and `run`, with two threads.
pub fn on_both_runtimes<F: Future<Output = ()>>(bench: impl Fn(&'static str) -> F) {
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build();
    one.expect("a runtime").block_on(bench("one thread"));
    let two = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    two.expect("a runtime").block_on(bench("two threads"));
}
