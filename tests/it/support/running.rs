//! The program while it runs: what it has said so far, and how it is made to end.

use std::{
    io::Write,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    Home,
    patience::{Heard, end_of},
};

/// Longest wait for the program to say or do something, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A run of the program that has not ended.
pub(crate) struct Running {
    child: Child,
    stdout: Heard,
    stderr: Heard,
}

impl Running {
    /// Starts the program.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_by(home, &[], args)
    }

    /// Starts the program by way of another one, see [`Home::start_by`].
    pub(crate) fn start_by(home: &Home, launcher: &[&str], args: &[&str]) -> Self {
        let mut child = home.start_by(launcher, args);
        let stdout = Heard::of(child.stdout.take().unwrap());
        let stderr = Heard::of(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// All that it has said so far: standard output, standard error.
    pub(crate) fn said(&self) -> (String, String) {
        (self.stdout.so_far(), self.stderr.so_far())
    }

    /// The program's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
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

    /// Writes to its standard input.
    pub(crate) fn says(&mut self, text: &str) {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Closes its standard input.
    pub(crate) fn hangs_up(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Interrupts it, and returns its code with all that it has said.
    #[track_caller]
    pub(crate) fn interrupted(self) -> (i32, String, String) {
        self.stopped_by(Signal::INT)
    }

    /// Sends it a signal, and returns its code with all that it has said.
    #[track_caller]
    pub(crate) fn stopped_by(mut self, signal: Signal) -> (i32, String, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.ends()
    }

    /// Waits for its end, and returns its code with all that it has said.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> (i32, String, String) {
        drop(self.child.stdin.take());
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        let said = || format!("{}\n{}", stdout.so_far(), stderr.so_far());
        let status = end_of(&mut self.child, said);
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
