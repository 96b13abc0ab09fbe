//! A pseudo-terminal that runs this program.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{Read, Write},
    num::NonZero,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

/// Longest wait for a change on the screen. Only a failing test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The request for the cursor's position.
const WHERE: &[u8] = b"\x1b[6n";

/// A terminal that runs this program.
pub(crate) struct Terminal {
    outer: File,
    inner: OwnedFd,
    child: Child,
    shown: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    /// Starts this program again, with its own folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let path = ptsname(&outer, Vec::new()).unwrap();
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let inner: OwnedFd = OpenOptions::new().read(true).write(true).open(path).unwrap().into();
        tcsetwinsize(&inner, size(24, 80)).unwrap();
        let side = || Stdio::from(inner.try_clone().unwrap());
        let mut command = command(folder);
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let outer: File = outer.into();
        let shown = read_all(outer.try_clone().unwrap());
        let screen = vt100::Parser::new(count(24), count(80), 200);
        let mut terminal = Self { outer, inner, child, shown, screen };
        terminal.wait("test-model> ");
        terminal
    }

    /// Types keys.
    pub(crate) fn send(&mut self, keys: &str) {
        self.outer.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.send(line);
        self.send("\r");
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    pub(crate) fn wait(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until a text is gone from the screen.
    #[track_caller]
    pub(crate) fn wait_without(&mut self, text: &str) {
        self.wait_until(text, |screen| !screen.contains(text));
    }

    /// Waits until a text is on the screen more often than before.
    #[track_caller]
    pub(crate) fn wait_for_more(&mut self, text: &str, before: usize) {
        self.wait_until(text, |screen| screen.matches(text).count() > before);
    }

    /// Waits until a text is on the screen behind the last place of another one.
    #[track_caller]
    pub(crate) fn wait_behind(&mut self, first: &str, text: &str) {
        self.wait_until(text, |screen| {
            screen.rsplit_once(first).is_some_and(|(_, rest)| rest.contains(text))
        });
    }

    /// Presses Ctrl-C on an empty line until it leaves. The second one counts only soon after the
    /// first, which a busy machine may miss.
    #[track_caller]
    pub(crate) fn leave_line(&mut self) {
        let advice = "Press Ctrl-C again to leave.";
        let left = "input: Interrupted";
        while !self.screen().contains(left) {
            let before = self.screen().matches(advice).count();
            self.send("\x03");
            self.wait_until(left, |screen| {
                let is_again = screen.matches(advice).count() > before;
                let rest = screen.rsplit_once(advice).filter(|_| is_again);
                screen.contains(left) || rest.is_some_and(|(_, rest)| rest.contains("> "))
            });
        }
    }

    /// Lets time pass. Requests of the program are answered, because a line begins only after its
    /// request for the cursor's position was answered in time.
    pub(crate) fn pass_time(&mut self, duration: Duration) {
        let end = Instant::now() + duration;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if let Ok(bytes) = self.shown.recv_timeout(left) {
                self.show(&bytes);
            }
        }
    }

    /// Returns the contents of the screen.
    pub(crate) fn screen(&self) -> String {
        self.screen.screen().contents()
    }

    /// Resizes the window while a line is typed, and waits until it is repainted.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        while let Ok(bytes) = self.shown.try_recv() {
            self.show(&bytes);
        }
        self.screen.screen_mut().set_size(count(rows), count(columns));
        tcsetwinsize(&self.inner, size(rows, columns)).unwrap();
        let bytes = self.shown.recv_timeout(WAIT_MAX).unwrap();
        self.show(&bytes);
    }

    /// Whether echo, line buffering and signals are enabled.
    pub(crate) fn modes(&self) -> (bool, bool, bool) {
        let modes = tcgetattr(&self.inner).unwrap().local_modes;
        let has = |mode| modes.contains(mode);
        (has(LocalModes::ECHO), has(LocalModes::ICANON), has(LocalModes::ISIG))
    }

    #[track_caller]
    fn wait_until(&mut self, text: &str, done: impl Fn(&str) -> bool) {
        let end = Instant::now() + WAIT_MAX;
        while !done(&self.screen()) {
            let left = end.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.show(&bytes),
                Err(_) => panic!("waited for {text:?}:\n{}", self.screen()),
            }
        }
    }

    /// Shows bytes, and answers a program that asks for the cursor's position.
    fn show(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(at) = rest.windows(WHERE.len()).position(|window| window == WHERE) {
            self.screen.process(&rest[..at]);
            let (row, column) = self.screen.screen().cursor_position();
            self.send(&format!("\x1b[{};{}R", row + 1, column + 1));
            rest = &rest[at + WHERE.len()..];
        }
        self.screen.process(rest);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output of this program without a terminal.
pub(crate) fn without(folder: &Path) -> String {
    let output = command(folder).stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the program is this one, on a terminal")]
fn command(folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture"]);
    command.arg(format!("folder={}", folder.display()));
    command
}

fn count(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn read_all(mut outer: File) -> Receiver<Vec<u8>> {
    let (sender, shown) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = outer.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    shown
}
