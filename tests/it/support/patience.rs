//! How long tests wait. Nothing is waited for without end: what hangs fails its test, and says
//! first where it hangs.

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::AsRawFd,
    path::PathBuf,
    process::{self, Child, ExitStatus},
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

use super::process::{doing, family, holders};

/// Nothing takes this long unless it hangs, on however slow a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// No whole test takes this long. What a test waits for inside its own process, such as the end of
/// a runtime whose thread is stuck, has no other bound.
const TEST_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// How often something is looked at, at first and after a while.
const LOOK_EVERY: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(100)];

/// How often it is looked for tests that hang.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// The tests that run, by the names of their threads.
static TESTS: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());

thread_local! {
    static TEST: Test = Test::begin();
}

/// Waits until there is something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what} does not come");
        pause(begin);
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until_so(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || is_so().then_some(()));
}

/// Runs a future to its end.
#[track_caller]
pub(crate) fn run<T>(runtime: &Runtime, future: impl Future<Output = T>) -> T {
    let in_time = runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await });
    in_time.unwrap_or_else(|_| panic!("it does not end:\n{}", doing(process::id())))
}

/// Waits for what the store, or a stand-in for it, does.
#[track_caller]
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    run(&tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(), future)
}

/// Waits for the end of a process. One that hangs is killed, and its test fails with what it has
/// said and what it was doing.
#[track_caller]
pub(crate) fn end_of(child: &mut Child, said: impl Fn() -> String) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > PATIENCE {
            let doing = doing(child.id());
            family(child.id()).into_iter().for_each(kill);
            panic!("it does not end:\n{}\n{doing}", said());
        }
        pause(begin);
    }
}

/// What comes out of a pipe, while it comes.
pub(crate) struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    ear: JoinHandle<()>,
    pipe: PathBuf,
}

impl Heard {
    /// Listens from now on.
    pub(crate) fn of(mut from: impl Read + AsRawFd + Send + 'static) -> Self {
        let pipe = fs::read_link(format!("/proc/self/fd/{}", from.as_raw_fd())).unwrap();
        let bytes = Arc::<Mutex<Vec<u8>>>::default();
        let heard = Arc::clone(&bytes);
        let ear = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                heard.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Self { bytes, ear, pipe }
    }

    /// All that has come.
    pub(crate) fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    /// All that comes until nobody is left who could write.
    #[track_caller]
    pub(crate) fn whole(&self) -> String {
        let begin = Instant::now();
        while !self.ear.is_finished() {
            let is_late = begin.elapsed() > PATIENCE;
            let said = || format!("{}\n{}", self.so_far(), holders(&self.pipe));
            assert!(!is_late, "somebody else holds what it writes to:\n{}", said());
            pause(begin);
        }
        self.so_far()
    }
}

/// Sees to it that the test of this thread ends: else all tests end, saying which one hangs.
pub(crate) fn watch() {
    TEST.with(|_| ());
}

/// A test that runs. Its thread ends with it.
struct Test(String);

impl Test {
    fn begin() -> Self {
        static WATCH: Once = Once::new();
        WATCH.call_once(|| drop(thread::spawn(watch_all)));
        // Threads that tests start have no name, and the first one of the process runs all tests.
        let name = thread::current().name().unwrap_or("main").to_owned();
        if name != "main" {
            tests().push((name.clone(), Instant::now()));
        }
        Self(name)
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        tests().retain(|(name, _)| *name != self.0);
    }
}

fn tests() -> MutexGuard<'static, Vec<(String, Instant)>> {
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch_all() {
    loop {
        thread::sleep(WATCH_EVERY);
        let late = |(_, begin): &&(String, Instant)| begin.elapsed() > TEST_TIME_MAX;
        let Some((name, _)) = tests().iter().find(late).cloned() else { continue };
        let words = format!("\n{name} does not end:\n{}", doing(process::id()));
        // What is printed in the usual way belongs to a test, and is lost with it.
        let _ = io::stderr().write_all(words.as_bytes());
        family(process::id()).into_iter().skip(1).for_each(kill);
        process::abort();
    }
}

fn kill(pid: u32) {
    // Whoever has ended meanwhile needs no killing.
    let _ = Pid::from_raw(pid.cast_signed()).map(|pid| kill_process(pid, Signal::KILL));
}

fn pause(begin: Instant) {
    thread::sleep((begin.elapsed() / 20).clamp(LOOK_EVERY[0], LOOK_EVERY[1]));
}
