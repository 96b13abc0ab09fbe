//! A person at a terminal: what they see, and what they type.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{Read, Write},
    num::NonZeroU16,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use vt100::Parser;

use super::{
    Home,
    patience::{end_of, until_so},
};

/// The last key that a card names.
pub(crate) const CARD_KEYS: &str = "[?] more";

/// Longest wait for something to appear, unless the program hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the screen is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a program asks in order to know where the cursor is.
const WHERE: &[u8] = b"\x1b[6n";

/// Lines that have scrolled up and are still looked at.
const SCROLLBACK: usize = 1000;

/// A person with the program at a terminal of their own.
pub(crate) struct Person {
    outer: File,
    /// Open as long as more may be shown.
    inner: Option<OwnedFd>,
    eye: JoinHandle<()>,
    screen: Arc<Mutex<Parser>>,
    pub(crate) child: Child,
}

impl Person {
    /// Starts the program at a terminal of 24 rows and 80 columns, which is the one that its
    /// signals come from.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_sized(home, args, 24, 80)
    }

    /// Starts the program at a terminal of another size.
    pub(crate) fn start_sized(home: &Home, args: &[&str], rows: u16, columns: u16) -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let path = ptsname(&outer, Vec::new()).unwrap();
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let inner: OwnedFd = OpenOptions::new().read(true).write(true).open(path).unwrap().into();
        tcsetwinsize(&outer, size(rows, columns)).unwrap();
        let side = || Stdio::from(inner.try_clone().unwrap());
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_sallyport")]).args(args);
        command.env_clear().env("TERM", "xterm").envs(home.environment());
        command.current_dir(home.folder.path());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let screen = Arc::new(Mutex::new(Parser::new(cells(rows), cells(columns), SCROLLBACK)));
        let outer: File = outer.into();
        let (eye, seen) = (outer.try_clone().unwrap(), Arc::clone(&screen));
        let eye = thread::spawn(move || watch(eye, &seen));
        Self { outer, inner: Some(inner), eye, screen, child }
    }

    /// Types keys.
    pub(crate) fn types(&mut self, keys: &str) {
        self.outer.write_all(keys.as_bytes()).unwrap();
    }

    /// Begins a turn, and waits until its first card can be answered.
    #[track_caller]
    pub(crate) fn asked(mut self) -> Self {
        self.types("go\r");
        self.sees(CARD_KEYS);
        self
    }

    /// Waits until a text is on the screen, also if it is folded between two words.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        self.waits_for(text, |screen| screen.contains(text) || unfolded(screen).contains(text));
    }

    /// Waits until the last line on the screen is one.
    #[track_caller]
    pub(crate) fn sees_last(&self, text: &str) {
        self.waits_for(text, |screen| screen.lines().next_back() == Some(text));
    }

    /// Waits until a text is on the screen so many times.
    #[track_caller]
    pub(crate) fn sees_count(&self, text: &str, count: usize) {
        self.waits_for(text, |screen| screen.matches(text).count() >= count);
    }

    /// Waits until the last line on the screen has a text in it.
    #[track_caller]
    pub(crate) fn sees_last_with(&self, text: &str) {
        self.waits_for(text, |screen| screen.lines().next_back().is_some_and(|l| l.contains(text)));
    }

    #[track_caller]
    fn waits_for(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        while !is_there(&self.screen()) {
            assert!(begin.elapsed() < PATIENCE, "no {what:?} on\n{}", self.screen());
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The screen as it is, without the spaces at the ends of its lines.
    pub(crate) fn screen(&self) -> String {
        let screen = self.screen.lock().unwrap().screen().contents();
        screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// The rows of the screen, as wide as the terminal: a line that wraps is several rows.
    pub(crate) fn rows(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        let rows = screen.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// The screen with its colours and other codes.
    pub(crate) fn codes(&self) -> String {
        self.screen.lock().unwrap().screen().contents_formatted()
    }

    /// Makes the terminal another size.
    pub(crate) fn resizes(&self, rows: u16, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.outer, size(rows, columns)).unwrap();
    }

    /// Whether the terminal is as a shell leaves it: lines are edited and shown by it, and Ctrl-C
    /// is a signal.
    pub(crate) fn has_usual_modes(&self) -> bool {
        let usual = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcgetattr(&self.outer).unwrap().local_modes.contains(usual)
    }

    /// Sends a signal to the program.
    pub(crate) fn sends(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the program, and returns its code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        let screen = Arc::clone(&self.screen);
        let status = end_of(&mut self.child, || screen.lock().unwrap().screen().contents());
        // With nobody left to write, what comes has an end, and the screen shows all of it.
        self.inner = None;
        until_so("the last word", || self.eye.is_finished());
        status.code().unwrap_or(-1)
    }
}

/// The screen with each indented line behind the one that it continues.
fn unfolded(screen: &str) -> String {
    screen.lines().fold(String::new(), |text, line| match line.trim_start() {
        rest if rest.len() < line.len() => format!("{text} {rest}"),
        _ => format!("{text}\n{line}"),
    })
}

impl Drop for Person {
    fn drop(&mut self) {
        // Of a test that failed; one that passed has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Draws what comes, and answers where the cursor is, as a terminal does.
fn watch(mut outer: File, screen: &Mutex<Parser>) {
    let mut bytes = [0; 4096];
    let mut end = Vec::new();
    while let Ok(count @ 1..) = outer.read(&mut bytes) {
        let mut parser = screen.lock().unwrap();
        parser.process(&bytes[..count]);
        end.extend_from_slice(&bytes[..count]);
        let asked = end.windows(WHERE.len()).filter(|window| *window == WHERE).count();
        let (row, column) = parser.screen().cursor_position();
        drop(parser);
        for _ in 0..asked {
            // One write, because keys that are typed at the same time must not come between.
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            let _ = outer.write_all(answer.as_bytes());
        }
        // What may be the beginning of the question is kept.
        let kept = if asked > 0 { 0 } else { end.len().min(WHERE.len() - 1) };
        end.drain(..end.len() - kept);
    }
}
