//! The signals that ask a command to stop.

use std::future::{self, Future};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::output;

/// Receives a signal from its creation on: one that arrives while nothing waits is received by the
/// next wait.
pub(super) struct SignalListener {
    /// `None` if the signal cannot be handled: then the system's default action applies.
    signal: Option<Signal>,
}

impl SignalListener {
    pub(super) fn new(kind: SignalKind) -> Self {
        Self { signal: signal(kind).ok() }
    }

    /// Waits for the signal. Loses none if the future is dropped.
    pub(super) async fn recv(&mut self) {
        match &mut self.signal {
            Some(signal) => _ = signal.recv().await,
            None => future::pending().await,
        }
    }
}

/// What tells the program that it has to stop: SIGTERM, SIGHUP, or a lost standard output.
pub(super) struct TerminationListener([SignalListener; 2]);

impl TerminationListener {
    /// Listens from now on.
    pub(super) fn new() -> Self {
        Self([SignalKind::terminate(), SignalKind::hangup()].map(SignalListener::new))
    }

    /// Waits until the system asks the program to stop, or has asked since the last wait, or until
    /// standard output is lost.
    pub(super) async fn wait(&mut self) {
        let [terminate, hangup] = &mut self.0;
        tokio::select! {
            () = terminate.recv() => {}
            () = hangup.recv() => {}
            () = output::wait_for_stdout_loss() => {}
        }
    }
}

/// What asks the program to stop: Ctrl-C, or what a [`TerminationListener`] hears.
pub(super) struct InterruptListener {
    ctrl_c: SignalListener,
    terminations: TerminationListener,
}

impl InterruptListener {
    /// Listens from now on.
    pub(super) fn new() -> Self {
        Self {
            ctrl_c: SignalListener::new(SignalKind::interrupt()),
            terminations: TerminationListener::new(),
        }
    }

    /// Waits until the user or the system asks the program to stop, or has asked since the last
    /// wait.
    ///
    /// The caller ends a running guest first, so that nothing of it is left behind.
    pub(super) async fn wait(&mut self) {
        tokio::select! {
            () = self.ctrl_c.recv() => {}
            () = self.terminations.wait() => {}
        }
    }
}

/// Waits as [`InterruptListener::wait`] does, for the first signal from this call on. A command
/// that waits several times has to keep an [`InterruptListener`], or it misses signals in between.
pub(super) fn wait_for_interrupt() -> impl Future<Output = ()> {
    let mut listener = InterruptListener::new();
    async move { listener.wait().await }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_signal_that_came_between_two_waits_was_lost() {
        let mut listener = SignalListener::new(SignalKind::user_defined1());
        assert!(timeout(Duration::ZERO, listener.recv()).await.is_err());
        kill_process(getpid(), Signal::USR1).unwrap();
        timeout(Duration::from_secs(30), listener.recv()).await.unwrap();
    }
}
