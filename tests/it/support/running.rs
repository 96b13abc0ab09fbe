//! The program while it runs: what it has said so far, and how it is made to end.

use std::{
    io::Read,
    process::Child,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::Home;

/// Longest wait for the program to say or do something, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A run of the program that has not ended.
pub(crate) struct Running {
    child: Child,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl Running {
    /// Starts the program.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut child = home.start(args);
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// All that it has said so far: standard output, standard error.
    pub(crate) fn said(&self) -> (String, String) {
        (self.stdout.lock().unwrap().clone(), self.stderr.lock().unwrap().clone())
    }

    /// Waits until a text is on standard output.
    #[track_caller]
    pub(crate) fn answers(&self, text: &str) {
        self.waits_for(text, |(stdout, _)| stdout.contains(text));
    }

    /// Waits until a text is on standard error.
    #[track_caller]
    pub(crate) fn remarks(&self, text: &str) {
        self.waits_for(text, |(_, stderr)| stderr.contains(text));
    }

    #[track_caller]
    fn waits_for(&self, text: &str, is_there: impl Fn(&(String, String)) -> bool) {
        let begin = Instant::now();
        while !is_there(&self.said()) {
            assert!(begin.elapsed() < PATIENCE, "no {text:?} in {:#?}", self.said());
            thread::sleep(LOOK_EVERY);
        }
    }

    /// What stands behind a text on a line of standard error.
    #[track_caller]
    pub(crate) fn behind(&self, text: &str) -> String {
        self.remarks(text);
        let (_, stderr) = self.said();
        let line = stderr.lines().find_map(|line| line.split_once(text));
        line.unwrap().1.trim().to_owned()
    }

    /// Closes its standard input.
    pub(crate) fn hangs_up(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Interrupts it, and returns its code with all that it has said.
    #[track_caller]
    pub(crate) fn interrupted(mut self) -> (i32, String, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.ends()
    }

    /// Waits for its end, and returns its code with all that it has said.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> (i32, String, String) {
        drop(self.child.stdin.take());
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end: {:#?}", self.said());
            thread::sleep(LOOK_EVERY);
        };
        let (stdout, stderr) = self.said();
        (status.code().unwrap_or(-1), stdout, stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Of a test that failed; one that passed has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&said);
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    said
}
