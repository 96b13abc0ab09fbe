//! A terminal with the program in it, for what only happens where a person sits.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::Read,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Instant,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};

use super::{
    Home,
    patience::{PATIENCE, end_of},
    process::doing,
};

/// A terminal with the program in it.
pub(crate) struct Terminal {
    /// Where a person would type and look.
    pub(crate) outer: File,
    inner: OwnedFd,
    shown: Receiver<Vec<u8>>,
    child: Child,
}

impl Terminal {
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&outer).unwrap();
        unlockpt(&outer).unwrap();
        let path = ptsname(&outer, Vec::new()).unwrap();
        let path = Path::new(OsStr::from_bytes(path.to_bytes()));
        let inner: OwnedFd = OpenOptions::new().read(true).write(true).open(path).unwrap().into();
        let side = || Stdio::from(inner.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_sallyport"));
        command.args(args).env_clear().envs(home.environment());
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let outer: File = outer.into();
        let shown = read_all(outer.try_clone().unwrap());
        Self { outer, inner, shown, child }
    }

    /// Whether what is typed now would be seen.
    pub(crate) fn shows_what_is_typed(&self) -> bool {
        tcgetattr(&self.inner).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Reads what is shown up to and with a text.
    #[track_caller]
    pub(crate) fn read_to(&mut self, text: &str) -> String {
        let (mut bytes, begin) = (Vec::new(), Instant::now());
        loop {
            let shown = String::from_utf8_lossy(&bytes);
            if shown.contains(text) {
                return shown.into_owned();
            }
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let Ok(more) = self.shown.recv_timeout(left) else {
                panic!("no {text:?} in {shown:?}\n{}", doing(self.child.id()));
            };
            bytes.extend(more);
        }
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let rest = || self.shown.try_iter().flatten().collect::<Vec<u8>>();
        end_of(&mut self.child, || String::from_utf8_lossy(&rest()).into_owned())
    }

    /// Ends the program.
    pub(crate) fn kills(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal to the program.
    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Of a test that failed; one that passed has ended already.
        self.kills();
    }
}

/// Passes on what comes, since reading a terminal that shows nothing more never ends.
fn read_all(mut outer: File) -> Receiver<Vec<u8>> {
    let (sender, shown) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 256];
        while let Ok(count @ 1..) = outer.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    shown
}
