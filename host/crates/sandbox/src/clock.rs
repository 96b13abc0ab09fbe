//! The clock of one run: how long the guest may still run, and how much processor time it has used.
//!
//! The clock pauses while the user is asked, because that time is not the guest's. The guest is
//! suspended in the meantime, so it cannot compute for free.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Notify;

/// The clock of one run. Clones show the same time.
#[derive(Clone)]
pub(crate) struct Clock(Arc<Inner>);

struct Inner {
    wall: Duration,
    times: Mutex<Times>,
    resumed: Notify,
    cpu: CpuMeter,
}

struct Times {
    /// The start time, moved forward by every pause.
    begun: Instant,
    /// When the current pause began, and how many holds keep the clock paused.
    held: Option<(Instant, usize)>,
}

/// The reason why a guest has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The wall-clock limit is reached.
    Wall,
    /// The processor time limit is reached.
    Cpu,
}

/// Keeps a clock paused until dropped.
pub(crate) struct Hold(Clock);

impl Clock {
    /// Starts a clock with these limits.
    pub(crate) fn start(wall: Duration, cpu: Option<Duration>) -> Self {
        Self(Arc::new(Inner {
            wall,
            times: Mutex::new(Times { begun: Instant::now(), held: None }),
            resumed: Notify::new(),
            cpu: CpuMeter::new(cpu),
        }))
    }

    /// Pauses the clock until the hold is dropped.
    pub(crate) fn hold(&self) -> Hold {
        let mut times = self.times();
        let (since, holders) = times.held.unwrap_or((Instant::now(), 0));
        times.held = Some((since, holders + 1));
        drop(times);
        Hold(self.clone())
    }

    /// The wall-clock limit.
    pub(crate) fn wall(&self) -> Duration {
        self.0.wall
    }

    /// How long the clock has run.
    pub(crate) fn time(&self) -> Duration {
        let times = self.times();
        let now = times.held.map_or_else(Instant::now, |(since, _)| since);
        now.saturating_duration_since(times.begun)
    }

    /// The time until the guest is stopped.
    pub(crate) fn left(&self) -> Duration {
        self.0.wall.saturating_sub(self.time())
    }

    /// The reason to stop the guest now, if there is one.
    pub(crate) fn expired(&self) -> Option<Expired> {
        if self.left().is_zero() {
            return Some(Expired::Wall);
        }
        self.0.cpu.is_used_up().then_some(Expired::Cpu)
    }

    /// Waits until the wall-clock limit is reached.
    pub(crate) async fn wall_time_over(&self) {
        self.reach(self.0.wall).await;
    }

    /// Waits until the clock has run for this long.
    pub(crate) async fn reach(&self, time: Duration) {
        loop {
            self.going().await;
            let left = time.saturating_sub(self.time());
            if left.is_zero() {
                return;
            }
            // The clock may pause during the sleep; then some time is left afterwards.
            tokio::time::sleep(left).await;
        }
    }

    /// Waits while the clock is paused.
    pub(crate) async fn going(&self) {
        loop {
            let resumed = self.0.resumed.notified();
            if !self.is_held() {
                return;
            }
            resumed.await;
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.times().held.is_some()
    }

    /// Counts the processor time of this future's polls.
    pub(crate) fn metered<F>(&self, work: F) -> Metered<F> {
        Metered { work, clock: self.clone() }
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut times = self.0.times();
        if let Some((since, holders)) = times.held {
            if holders > 1 {
                times.held = Some((since, holders - 1));
                return;
            }
            times.held = None;
            times.begun += since.elapsed();
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

    fn begin(&self) {
        self.began_ns.store(thread_ns(), Ordering::Relaxed);
    }

    fn end(&self) {
        let spent = thread_ns().saturating_sub(self.began_ns.load(Ordering::Relaxed));
        self.used_ns.fetch_add(spent, Ordering::Relaxed);
    }

    /// Whether the limit is reached. Called from within a poll.
    fn is_used_up(&self) -> bool {
        if !self.is_limited() {
            return false;
        }
        let now = thread_ns().saturating_sub(self.began_ns.load(Ordering::Relaxed));
        self.used_ns.load(Ordering::Relaxed).saturating_add(now) >= self.limit_ns
    }
}

fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// A future whose polls are counted.
pub(crate) struct Metered<F> {
    work: F,
    clock: Clock,
}

impl<F: Future + Unpin> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let inner = Arc::clone(&self.clock.0);
        if !inner.cpu.is_limited() {
            return Pin::new(&mut self.work).poll(cx);
        }
        inner.cpu.begin();
        let result = Pin::new(&mut self.work).poll(cx);
        inner.cpu.end();
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
        let clock = Clock::start(Duration::from_millis(20), None);
        let (first, second) = (clock.hold(), clock.hold());
        let left = clock.left();
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(clock.left(), left);
        drop(first);
        assert!(clock.is_held(), "the second question is still open");
        drop(second);
        assert!(!clock.is_held() && clock.left() <= left);
        assert_eq!(clock.expired(), None);
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(clock.expired(), Some(Expired::Wall));
    }

    #[test]
    fn a_limit_beyond_the_system_clock_is_far_away() {
        assert!(Clock::start(Duration::MAX, None).left() > FAR / 2);
    }

    #[tokio::test]
    async fn only_computing_uses_processor_time() {
        let clock = Clock::start(FAR, Some(Duration::from_millis(20)));
        let sleep = Box::pin(tokio::time::sleep(Duration::from_millis(40)));
        clock.metered(sleep).await;
        assert_eq!(clock.expired(), None);
        let spin = Box::pin(async {
            let begun = thread_ns();
            while thread_ns() - begun < 30_000_000 {}
        });
        clock.metered(spin).await;
        assert_eq!(clock.expired(), Some(Expired::Cpu));
    }
}
