//! The protocol between the host, the watcher and the starter, over private pipes.
//!
//! ```text
//! host → watcher     orders  input
//! watcher → starter  orders  input, which is the program's from here on
//! starter → watcher  on standard error: its mark, and why it failed if it did
//! watcher → host     started  finished output errors | failed
//! ```
//!
//! A *frame* is a length of four bytes, little-endian, followed by that many bytes of JSON. The
//! length of raw bytes is part of the frame before them.

use std::{
    io::{self, Read, Write},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    error::RunError,
    spec::{ProcessExit, ProcessSpec, ServiceExit, paths},
};

/// The hidden first argument. The name of the stage follows.
pub(crate) const ARGUMENT: &str = "__script-stage";

/// The stage that stays outside the walls.
pub(crate) const WATCHER: &str = "watcher";

/// The stage that stays outside the walls of a service.
pub(crate) const SERVICE_WATCHER: &str = "service-watcher";

/// From the watcher of a service to its host: the program's pipes come with this byte.
pub(crate) const SERVICE_STARTED: u8 = b'+';

/// From the watcher of a service to its host: a [`ServiceResponse`] follows.
pub(crate) const SERVICE_ENDED: u8 = b'.';

/// The stage that becomes the program.
pub(crate) const STARTER: &str = "starter";

/// Maximum size of a frame, in bytes. A specification takes a few kilobytes.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// Follows a mark: the program runs from here on.
const READY: u8 = b'+';

/// Follows a mark: the program did not start, and a frame contains the error.
const FAILED: u8 = b'-';

/// The orders of a watcher. `input_bytes` bytes of input follow.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WatcherRequest {
    pub(crate) spec: ProcessSpec,
    /// Where temporary folders are made.
    #[serde(with = "paths::one")]
    pub(crate) temporary: PathBuf,
    pub(crate) input_bytes: u64,
}

/// The orders of a starter.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StarterRequest {
    pub(crate) spec: ProcessSpec,
    /// The private folder.
    #[serde(with = "paths::one")]
    pub(crate) scratch: PathBuf,
    /// The watcher's process id.
    pub(crate) watcher: i32,
    pub(crate) mark: StarterToken,
}

/// The answers of a watcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WatcherResponse {
    /// The program starts.
    Started(ProgramResources),
    /// The program ended; output and errors follow as bytes.
    Finished(ProgramExitReport),
    /// The program did not run.
    Failed(RunError),
}

/// The last message of a service's watcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ServiceResponse {
    /// The program ended or was killed.
    Ended(ServiceExit),
    /// The program did not run.
    Failed(RunError),
}

/// The resources to clean up once a program has started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProgramResources {
    /// The group id.
    pub(crate) group: i32,
    /// Its private folder.
    #[serde(with = "paths::one")]
    pub(crate) scratch: PathBuf,
}

/// How a program ended, without its output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProgramExitReport {
    pub(crate) exit: ProcessExit,
    pub(crate) cpu_time: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
}

/// A secret of the starter, so that a program cannot imitate its messages. It is random, and gone
/// from memory when the starter becomes the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StarterToken([u8; 16]);

/// The message of a starter at the beginning of standard error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StarterMessage<'a> {
    /// The program runs; the rest is its own output.
    Ready(&'a [u8]),
    /// The program did not start.
    Failed(RunError),
    /// The starter did not get that far.
    Nothing,
}

impl StarterToken {
    /// Creates a random mark.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(bytes))
    }

    /// Announces that the program starts next.
    pub(crate) fn write_ready(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(&self.tagged_bytes(READY))
    }

    /// Reports why the program did not start, even if it was announced.
    pub(crate) fn write_failure(&self, mut to: impl Write, error: &RunError) -> io::Result<()> {
        let words = [self.tagged_bytes(FAILED), encode_frame(error)?].concat();
        to.write_all(&words)
    }

    /// Parses the message at the beginning of standard error.
    pub(crate) fn parse_message<'a>(&self, stderr: &'a [u8]) -> StarterMessage<'a> {
        let rest = stderr.strip_prefix(&*self.tagged_bytes(READY));
        match rest.unwrap_or(stderr).strip_prefix(&*self.tagged_bytes(FAILED)).map(read_frame) {
            Some(Ok(error)) => StarterMessage::Failed(error),
            Some(Err(_)) => StarterMessage::Nothing,
            None => rest.map_or(StarterMessage::Nothing, StarterMessage::Ready),
        }
    }

    fn tagged_bytes(&self, what: u8) -> Vec<u8> {
        [self.0.as_slice(), &[what]].concat()
    }
}

/// Encodes a value as a frame.
pub(crate) fn encode_frame(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    if json.len() > FRAME_BYTES_MAX {
        return Err(io::Error::other("what is to be done takes more words than are read"));
    }
    let length = (json.len() as u32).to_le_bytes();
    Ok([length.as_slice(), &json].concat())
}

/// Reads one frame, and not a byte more.
pub(crate) fn read_frame<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(serde_json::from_slice(&read_exact_bytes(from, length as u64)?)?)
}

/// Reads this many bytes, and not one more.
pub(crate) fn read_exact_bytes(from: impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> RunError {
        RunError::Changed { program: "run".into() }
    }

    #[track_caller]
    fn check(write: impl Fn(&StarterToken, &mut Vec<u8>), want: StarterMessage<'_>) {
        let mark = StarterToken::random().unwrap();
        let mut stderr = Vec::new();
        write(&mark, &mut stderr);
        assert_eq!(mark.parse_message(&stderr), want);
    }

    #[test]
    fn what_a_starter_says_is_told_from_what_a_program_says() {
        check(|_, _| (), StarterMessage::Nothing);
        check(|_, to| to.extend(b"panicked"), StarterMessage::Nothing);
        check(|mark, to| mark.write_ready(to).unwrap(), StarterMessage::Ready(b""));
        check(
            |mark, to| {
                mark.write_ready(&mut *to).unwrap();
                to.extend(b"hello");
            },
            StarterMessage::Ready(b"hello"),
        );
        check(
            |mark, to| mark.write_failure(to, &failure()).unwrap(),
            StarterMessage::Failed(failure()),
        );
        check(
            |mark, to| {
                mark.write_ready(&mut *to).unwrap();
                mark.write_failure(to, &failure()).unwrap();
            },
            StarterMessage::Failed(failure()),
        );
        check(
            |_, to| StarterToken::random().unwrap().write_failure(to, &failure()).unwrap(),
            StarterMessage::Nothing,
        );
    }

    #[test]
    fn a_frame_is_read_to_its_end_and_no_further() {
        let mut bytes = encode_frame(&"one").unwrap();
        bytes.extend(b"rest");
        let mut from = bytes.as_slice();
        assert_eq!(read_frame::<String>(&mut from).unwrap(), "one");
        assert_eq!(from, b"rest");
        for end in 0..bytes.len() - 4 {
            assert!(read_frame::<String>(&bytes[..end]).is_err(), "cut at {end}");
        }
        assert!(read_frame::<String>(u32::MAX.to_le_bytes().as_slice()).is_err());
        assert!(encode_frame(&"x".repeat(FRAME_BYTES_MAX)).is_err());
    }
}
