//! Modes of the terminal: the original ones, quiet while a turn runs, and single keys.

use std::io::{self, Write};

use crossterm::{event::DisableBracketedPaste, terminal::disable_raw_mode};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// The original modes of the terminal.
///
/// A panic hook or a signal handler can keep a copy to restore them.
#[derive(Debug, Clone)]
pub struct TerminalModes(Termios);

impl TerminalModes {
    /// Reads the modes of the terminal on standard input.
    ///
    /// # Errors
    ///
    /// Standard input is not a terminal.
    pub fn read_modes() -> io::Result<Self> {
        Ok(Self(tcgetattr(io::stdin())?))
    }

    /// Restores the modes. Errors are ignored: a terminal that cannot be restored is gone.
    pub fn restore(&self) {
        let _ = disable_raw_mode();
        let _ = crossterm::execute!(io::stderr(), DisableBracketedPaste);
        let _ = io::stderr().flush();
        let _ = apply_modes(&self.0);
    }

    /// Disables echo and line buffering. Ctrl-C is still a signal, so it ends the running turn. It
    /// does not discard what was typed before.
    pub(super) fn disable_echo(&self) -> io::Result<()> {
        let mut modes = self.0.clone();
        modes.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON);
        modes.local_modes.insert(LocalModes::ISIG | LocalModes::NOFLSH);
        set_bytewise_read(&mut modes);
        apply_modes(&modes)
    }

    /// Delivers every key separately, including Ctrl-C. Output keeps its usual line endings.
    pub(super) fn enable_single_keys(&self) -> io::Result<()> {
        let mut modes = self.0.clone();
        modes.local_modes.remove(
            LocalModes::ECHO
                | LocalModes::ECHONL
                | LocalModes::ICANON
                | LocalModes::ISIG
                | LocalModes::IEXTEN,
        );
        modes.input_modes.remove(InputModes::IXON);
        set_bytewise_read(&mut modes);
        apply_modes(&modes)
    }
}

/// Makes a read return as soon as a byte arrives.
///
/// Enter stays the same byte as while a line is typed. Otherwise typed-ahead input would be read as
/// Ctrl-J.
fn set_bytewise_read(modes: &mut Termios) {
    modes.input_modes.remove(InputModes::ICRNL);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
}

fn apply_modes(modes: &Termios) -> io::Result<()> {
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, modes)?)
}
