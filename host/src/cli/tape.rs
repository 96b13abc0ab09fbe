//! Tapes of runs: the file that one is written to or read from, and what a run does with it.

use std::{
    fs::{File, OpenOptions},
    future,
    io::{self, BufReader},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use sallyport_model::UserMessage;
use sallyport_session::{
    Event,
    tape::{Recording, Replay, Tape},
};
use sallyport_untrusted_file as untrusted_file;

use super::exit::{Exit, Failure};

/// What tapes have to do with a run.
pub(super) enum Reel {
    /// Nothing.
    None,
    /// One is written.
    Records(Recording),
    /// One is played.
    Plays(Replay),
}

/// Makes the file of a tape: for this user alone, and never in place of another file.
///
/// # Errors
///
/// There is such a file, or it cannot be made.
pub(super) fn create(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|error| {
        let failure =
            Failure::new(Exit::Usage, format!("cannot create {}: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                failure.with_hint("choose another name; no file is overwritten")
            }
            _ => failure,
        }
    })
}

/// Reads a tape.
///
/// # Errors
///
/// The file cannot be read, or it is no tape.
pub(super) fn read(path: &Path) -> Result<Tape, Failure> {
    let file = untrusted_file::open(path).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display()))
    })?;
    Tape::read(BufReader::new(file)).map_err(|error| {
        let message = format!("{}: {error}", path.display());
        Failure::new(Exit::Failed, message).with_hint(error.hint())
    })
}

impl Reel {
    /// The person is about to say something.
    pub(super) fn input(&self, message: &UserMessage) {
        if let Self::Records(recording) = self {
            recording.input(message);
        }
    }

    /// The person is about to call the turn off.
    pub(super) fn cancel(&self) {
        if let Self::Records(recording) = self {
            recording.cancel();
        }
    }

    /// An event was told; returns it as it is to be shown.
    pub(super) fn event(&self, event: Event) -> Event {
        match self {
            Self::None => event,
            Self::Records(recording) => {
                recording.event(&event);
                event
            }
            Self::Plays(replay) => replay.event(event),
        }
    }

    /// Waits until the turn is to be called off, as it was on the tape.
    pub(super) async fn cancel_due(&self) {
        match self {
            Self::Plays(replay) => replay.cancel_due().await,
            Self::None | Self::Records(_) => future::pending().await,
        }
    }

    /// Ends what is being written, or says whether all went as it is on the tape.
    ///
    /// # Errors
    ///
    /// The tape could not be written to its end, or something was different.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        match self {
            Self::None => Ok(()),
            Self::Records(recording) => recording.finish().map_err(|error| {
                Failure::new(Exit::Failed, format!("the tape cannot be written: {error}"))
            }),
            Self::Plays(replay) => match replay.problem() {
                None => Ok(()),
                Some(problem) => Err(Failure::new(Exit::Failed, problem.to_string())),
            },
        }
    }
}
