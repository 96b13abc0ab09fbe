//! Recordings of runs: their files, and their use during a run.

use std::{future, io::BufReader, path::Path};

use sallyport_model::UserInputMessage;
use sallyport_session::{
    SessionEvent,
    recording::{SessionRecorder, SessionRecording, SessionReplay},
};
use sallyport_untrusted_file as untrusted_file;

use super::exit::{CommandFailure, ExitStatus};

/// The recording of a run.
pub(super) enum RunRecording {
    /// No recording.
    None,
    /// The run is recorded.
    Recording(SessionRecorder),
    /// A recording is replayed.
    Replaying(SessionReplay),
}

/// Reads a recording.
///
/// # Errors
///
/// The file cannot be read or is not a recording.
pub(super) fn read_recording(path: &Path) -> Result<SessionRecording, CommandFailure> {
    let file = untrusted_file::open_regular(path).map_err(|error| {
        CommandFailure::new(ExitStatus::Usage, format!("cannot read {}: {error}", path.display()))
    })?;
    SessionRecording::read_from(BufReader::new(file)).map_err(|error| {
        let message = format!("{}: {error}", path.display());
        CommandFailure::new(ExitStatus::Failed, message).with_hint(error.hint())
    })
}

impl RunRecording {
    /// Records an input before it is submitted.
    pub(super) fn record_input(&self, message: &UserInputMessage) {
        if let Self::Recording(recording) = self {
            recording.record_input(message);
        }
    }

    /// Records that the turn is cancelled.
    pub(super) fn record_cancel(&self) {
        if let Self::Recording(recording) = self {
            recording.record_cancellation();
        }
    }

    /// Records an event. Returns the event to show.
    pub(super) fn record_event(&self, event: SessionEvent) -> SessionEvent {
        match self {
            Self::None => event,
            Self::Recording(recording) => {
                recording.record_event(&event);
                event
            }
            Self::Replaying(replay) => replay.adjust_event(event),
        }
    }

    /// Waits until the recording cancels the turn.
    pub(super) async fn wait_for_cancel(&self) {
        match self {
            Self::Replaying(replay) => replay.wait_for_cancellation().await,
            Self::None | Self::Recording(_) => future::pending().await,
        }
    }

    /// Finishes a recording, or checks that a replay matched it.
    ///
    /// # Errors
    ///
    /// The recording could not be written completely, or the replay differed from it.
    pub(super) fn finish_recording(&self) -> Result<(), CommandFailure> {
        match self {
            Self::None => Ok(()),
            Self::Recording(recording) => recording.finish().map_err(|error| {
                CommandFailure::new(
                    ExitStatus::Failed,
                    format!("the recording cannot be written: {error}"),
                )
            }),
            Self::Replaying(replay) => match replay.first_problem() {
                None => Ok(()),
                Some(problem) => Err(CommandFailure::new(ExitStatus::Failed, problem.to_string())),
            },
        }
    }
}
