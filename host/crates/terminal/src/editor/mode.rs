//! The modes of the terminal: as it was found, quiet while a turn runs, and for single keys.

use std::io::{self, Write};

use crossterm::{event::DisableBracketedPaste, terminal::disable_raw_mode};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// The modes in which the terminal was found. Whoever leaves the program in a hurry (a panic hook, a
/// handler of a signal) can keep a copy and restore them.
#[derive(Debug, Clone)]
pub struct Original(Termios);

impl Original {
    /// Reads the modes of the terminal that is standard input.
    ///
    /// # Errors
    ///
    /// Standard input is no terminal.
    pub fn read() -> io::Result<Self> {
        Ok(Self(tcgetattr(io::stdin())?))
    }

    /// Gives the terminal its modes back. What cannot be restored is gone, so nobody is told.
    pub fn restore(&self) {
        let _ = disable_raw_mode();
        let _ = crossterm::execute!(io::stderr(), DisableBracketedPaste);
        let _ = io::stderr().flush();
        let _ = set(&self.0);
    }

    /// Nothing that is typed is shown, and lines are not waited for; Ctrl-C is still a signal, so
    /// that it ends what runs.
    pub(super) fn quiet(&self) -> io::Result<()> {
        let mut modes = self.0.clone();
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON);
        modes.local_modes.insert(LocalModes::ISIG);
        one_by_one(&mut modes);
        set(&modes)
    }

    /// Every key arrives by itself, also Ctrl-C. What is written still ends its lines as usual.
    pub(super) fn single_keys(&self) -> io::Result<()> {
        let mut modes = self.0.clone();
        modes.local_modes.remove(
            LocalModes::ECHO
                | LocalModes::ECHONL
                | LocalModes::ICANON
                | LocalModes::ISIG
                | LocalModes::IEXTEN,
        );
        modes.input_modes.remove(InputModes::IXON);
        one_by_one(&mut modes);
        set(&modes)
    }
}

/// A read returns as soon as there is a byte, and Enter is the same byte as while a line is typed:
/// what is typed ahead would otherwise be read as Ctrl-J.
fn one_by_one(modes: &mut Termios) {
    modes.input_modes.remove(InputModes::ICRNL);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
}

fn set(modes: &Termios) -> io::Result<()> {
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, modes)?)
}
