//! The clock of one run: how long the guest may still run, and how much processor time it has used.
//!
//! The clock pauses while the user is asked, because that time is not the guest's. The guest is
//! suspended in the meantime, so it cannot compute for free.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

use crate::mutex::lock_mutex;

/// The clock of one run. Clones show the same time.
#[derive(Clone)]
pub(crate) struct RunClock(Arc<RunClockState>);

struct RunClockState {
    wall_time_max: Duration,
    times: Mutex<RunClockTimes>,
    resumed: Notify,
    cpu: CpuMeter,
}

struct RunClockTimes {
    /// The start time, moved forward by every pause.
    started: Instant,
    /// When the current pause began, and how many holds keep the clock paused.
    paused: Option<(Instant, usize)>,
}

/// The reason why a guest has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The wall-clock limit is reached.
    Wall,
    /// The processor time limit is reached.
    Cpu,
}

/// Keeps a clock paused until dropped.
pub(crate) struct ClockPause(RunClock);

impl RunClock {
    /// Starts a clock with these limits.
    pub(crate) fn start(wall_time_max: Duration, cpu: Option<Duration>) -> Self {
        Self(Arc::new(RunClockState {
            wall_time_max,
            times: Mutex::new(RunClockTimes { started: Instant::now(), paused: None }),
            resumed: Notify::new(),
            cpu: CpuMeter::new(cpu),
        }))
    }

    /// Pauses the clock until the hold is dropped.
    pub(crate) fn pause(&self) -> ClockPause {
        let mut times = lock_mutex(&self.0.times);
        let (since, pause_count) = times.paused.unwrap_or((Instant::now(), 0));
        times.paused = Some((since, pause_count + 1));
        drop(times);
        ClockPause(self.clone())
    }

    /// The wall-clock limit.
    pub(crate) fn wall_time_limit(&self) -> Duration {
        self.0.wall_time_max
    }

    /// How long the clock has run.
    pub(crate) fn elapsed_time(&self) -> Duration {
        let times = lock_mutex(&self.0.times);
        let now = times.paused.map_or_else(Instant::now, |(since, _)| since);
        now.saturating_duration_since(times.started)
    }

    /// The time until the guest is stopped.
    pub(crate) fn remaining_time(&self) -> Duration {
        self.0.wall_time_max.saturating_sub(self.elapsed_time())
    }

    /// The reason to stop the guest now, if there is one.
    pub(crate) fn expired_limit(&self) -> Option<TimeLimit> {
        if self.remaining_time().is_zero() {
            return Some(TimeLimit::Wall);
        }
        self.0.cpu.is_used_up().then_some(TimeLimit::Cpu)
    }

    /// Waits until the wall-clock limit is reached.
    pub(crate) async fn wait_for_wall_time_limit(&self) {
        self.wait_until(self.0.wall_time_max).await;
    }

    /// Waits until the clock has run for this long.
    pub(crate) async fn wait_until(&self, time: Duration) {
        loop {
            self.wait_while_paused().await;
            let left = time.saturating_sub(self.elapsed_time());
            if left.is_zero() {
                return;
            }
            // The clock may pause during the sleep; then some time is left afterwards.
            tokio::time::sleep(left).await;
        }
    }

    /// Waits while the clock is paused.
    pub(crate) async fn wait_while_paused(&self) {
        loop {
            let resumed = self.0.resumed.notified();
            if !self.is_paused() {
                return;
            }
            resumed.await;
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        lock_mutex(&self.0.times).paused.is_some()
    }

    /// Counts the processor time of this future's polls.
    pub(crate) fn meter_future<F>(&self, work: F) -> MeteredFuture<F> {
        MeteredFuture { work, clock: self.clone() }
    }
}

impl Drop for ClockPause {
    fn drop(&mut self) {
        let mut times = lock_mutex(&self.0.0.times);
        if let Some((since, pause_count)) = times.paused {
            if pause_count > 1 {
                times.paused = Some((since, pause_count - 1));
                return;
            }
            times.paused = None;
            times.started += since.elapsed();
        }
        drop(times);
        self.0.0.resumed.notify_waiters();
    }
}

/// Processor time of a guest. Each poll is counted separately: a task moves between threads.
struct CpuMeter {
    limit_ns: u64,
    used_ns: AtomicU64,
    /// The thread's processor time when the current poll began.
    began_ns: AtomicU64,
}

impl CpuMeter {
    fn new(limit: Option<Duration>) -> Self {
        let nanos = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self {
            limit_ns: limit.map_or(u64::MAX, nanos),
            used_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
        }
    }

    /// Without a limit nothing is measured: reading the clock would slow down small calls.
    fn is_limited(&self) -> bool {
        self.limit_ns != u64::MAX
    }

    fn begin_poll(&self) {
        self.began_ns.store(thread_cpu_ns(), Ordering::Relaxed);
    }

    fn end_poll(&self) {
        let spent = thread_cpu_ns().saturating_sub(self.began_ns.load(Ordering::Relaxed));
        self.used_ns.fetch_add(spent, Ordering::Relaxed);
    }

    /// Whether the limit is reached. Called from within a poll.
    fn is_used_up(&self) -> bool {
        if !self.is_limited() {
            return false;
        }
        let now = thread_cpu_ns().saturating_sub(self.began_ns.load(Ordering::Relaxed));
        self.used_ns.load(Ordering::Relaxed).saturating_add(now) >= self.limit_ns
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// A future whose polls are counted.
pub(crate) struct MeteredFuture<F> {
    work: F,
    clock: RunClock,
}

impl<F: Future + Unpin> Future for MeteredFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let inner = Arc::clone(&self.clock.0);
        if !inner.cpu.is_limited() {
            return Pin::new(&mut self.work).poll(cx);
        }
        inner.cpu.begin_poll();
        let result = Pin::new(&mut self.work).poll(cx);
        inner.cpu.end_poll();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough to be no limit in a test.
    const FAR: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn a_held_clock_stands_still() {
        let clock = RunClock::start(Duration::from_millis(20), None);
        let (first, second) = (clock.pause(), clock.pause());
        let left = clock.remaining_time();
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(clock.remaining_time(), left);
        drop(first);
        assert!(clock.is_paused(), "the second question is still open");
        drop(second);
        assert!(!clock.is_paused() && clock.remaining_time() <= left);
        assert_eq!(clock.expired_limit(), None);
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(clock.expired_limit(), Some(TimeLimit::Wall));
    }

    #[test]
    fn a_limit_beyond_the_system_clock_is_far_away() {
        assert!(RunClock::start(Duration::MAX, None).remaining_time() > FAR / 2);
    }

    #[tokio::test]
    async fn only_computing_uses_processor_time() {
        let clock = RunClock::start(FAR, Some(Duration::from_millis(20)));
        let sleep = Box::pin(tokio::time::sleep(Duration::from_millis(40)));
        clock.meter_future(sleep).await;
        assert_eq!(clock.expired_limit(), None);
        let spin = Box::pin(async {
            let begun = thread_cpu_ns();
            while thread_cpu_ns() - begun < 30_000_000 {}
        });
        clock.meter_future(spin).await;
        assert_eq!(clock.expired_limit(), Some(TimeLimit::Cpu));
    }
}
