//! A terminal with the program in it, for what only happens where a person sits.

use std::{
    ffi::OsStr,
    fs::{File, OpenOptions},
    io::Read,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};

use super::Home;

/// A terminal with the program in it.
pub(crate) struct Terminal {
    /// Where a person would type and look.
    pub(crate) outer: File,
    inner: OwnedFd,
    pub(crate) child: Child,
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
        Self { outer: outer.into(), inner, child }
    }

    /// Whether what is typed now would be seen.
    pub(crate) fn shows_what_is_typed(&self) -> bool {
        tcgetattr(&self.inner).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Reads what is shown up to and with a text.
    pub(crate) fn read_to(&mut self, text: &str) -> String {
        let mut shown = Vec::new();
        while !String::from_utf8_lossy(&shown).contains(text) {
            let mut bytes = [0; 256];
            let count = self.outer.read(&mut bytes).unwrap();
            shown.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Sends a signal to the program.
    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}
