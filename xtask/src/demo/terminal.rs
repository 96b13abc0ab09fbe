//! A program in a pseudo-terminal, and the screen as a user sees it.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::{Read, Write},
    num::NonZero,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use super::film::Film;
use anyhow::{Context, Result, bail};
use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

/// Rows and columns of a window.
pub(super) type WindowSize = (u16, u16);

/// A window high enough for a whole session, and as wide as the documents.
pub(super) const TALL_WINDOW: WindowSize = (200, 92);

/// Longest wait for a text on the screen, even in a slow build.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A program that prints nothing for this long has finished painting.
const QUIET: Duration = Duration::from_millis(300);

/// How long a film shows each key that is typed.
const KEY_SHOWN: Duration = Duration::from_millis(70);

/// The request for the cursor's position.
const WHERE: &[u8] = b"\x1b[6n";

/// A terminal with a program that runs in it.
pub(super) struct DemoTerminal {
    outer: File,
    /// Kept open so that the program's last output is not lost when it ends.
    _inner: OwnedFd,
    child: Child,
    shown: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    film: Film,
    keys: usize,
}

impl DemoTerminal {
    /// Starts a program in a window.
    pub(super) fn start(command: &mut Command, (rows, columns): WindowSize) -> Result<Self> {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&outer)?;
        unlockpt(&outer)?;
        let path = ptsname(&outer, Vec::new())?;
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let inner: OwnedFd = OpenOptions::new().read(true).write(true).open(path)?.into();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&inner, size)?;
        command.stdin(inner.try_clone()?).stdout(inner.try_clone()?).stderr(inner.try_clone()?);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        // Release the terminal: the command keeps it open until it is given other streams.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let outer: File = outer.into();
        let shown = spawn_reader(outer.try_clone()?);
        let count = |number| NonZero::new(number).context("a window of no size");
        let screen = vt100::Parser::new(count(rows)?, count(columns)?, 0);
        let film = Film::default();
        Ok(Self { outer, _inner: inner, child, shown, screen, film, keys: 0 })
    }

    /// Types a line as a user does, and shows each key in the film.
    pub(super) fn type_visibly(&mut self, line: &str) -> Result<()> {
        for key in line.chars() {
            self.press_keys(key.encode_utf8(&mut [0; 4]))?;
            self.show_for(KEY_SHOWN)?;
        }
        Ok(())
    }

    /// Adds what is on the screen to the film, for as long as its reader needs.
    pub(super) fn show_for(&mut self, time: Duration) -> Result<()> {
        self.drain_output()?;
        self.film.add_screen(self.screen.screen(), time);
        Ok(())
    }

    /// The film so far, and the number of keys that were pressed.
    pub(super) fn take_film(&mut self) -> (Film, usize) {
        (std::mem::take(&mut self.film), self.keys)
    }

    /// Types a line.
    pub(super) fn type_line(&mut self, line: &str) -> Result<()> {
        self.press_keys(line)?;
        self.press_keys("\r")
    }

    /// Presses keys after the program has finished painting.
    pub(super) fn press_keys(&mut self, keys: &str) -> Result<()> {
        self.drain_output()?;
        self.keys += keys.chars().count();
        Ok(self.outer.write_all(keys.as_bytes())?)
    }

    /// Waits until a text is on the screen `times` times.
    pub(super) fn wait_for(&mut self, text: &str, times: usize) -> Result<()> {
        let end = Instant::now() + WAIT_MAX;
        while self.screen_text().matches(text).count() < times {
            let left = end.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.show_bytes(&bytes)?,
                Err(_) => bail!("waited for {text:?}:\n{}", self.screen_text()),
            }
        }
        Ok(())
    }

    /// Waits until the program has ended and returns the contents of the screen.
    pub(super) fn wait_for_exit(mut self) -> Result<String> {
        let end = Instant::now() + WAIT_MAX;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("the program does not end:\n{}", self.screen_text());
            }
            self.drain_output()?;
        }
        self.drain_output()?;
        let lines: Vec<String> =
            self.screen_text().lines().map(|line| line.trim_end().to_owned()).collect();
        Ok(lines.join("\n").trim_end().to_owned())
    }

    fn screen_text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Shows output until none has arrived for a moment.
    fn drain_output(&mut self) -> Result<()> {
        loop {
            match self.shown.recv_timeout(QUIET) {
                Ok(bytes) => self.show_bytes(&bytes)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// Shows bytes, and answers a program that asks for the cursor's position.
    fn show_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while let Some(at) = rest.windows(WHERE.len()).position(|window| window == WHERE) {
            self.screen.process(&rest[..at]);
            let (row, column) = self.screen.screen().cursor_position();
            self.outer.write_all(format!("\x1b[{};{}R", row + 1, column + 1).as_bytes())?;
            rest = &rest[at + WHERE.len()..];
        }
        self.screen.process(rest);
        Ok(())
    }
}

impl Drop for DemoTerminal {
    fn drop(&mut self) {
        // Either the program has ended, or the session failed and the program is not needed any
        // more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn_reader(mut outer: File) -> Receiver<Vec<u8>> {
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
