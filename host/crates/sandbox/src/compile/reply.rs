//! The reply of a worker on its standard output: a greeting that reports its walls, then the
//! result.
//!
//! ```text
//! greeting   "sallyport-compile 1\n"  Landlock: one byte  seccomp: one byte
//! answer     kind: one byte  length: eight bytes, little-endian  that many bytes
//! ```
//!
//! The component may have taken over the worker, so every byte is untrusted: a length is compared
//! with its limit before anything is read, and texts are made safe to show.

use std::io::{self, Read, Write};

use sallyport_contract::text;

use super::{CompilerIsolation, IsolationLayerStatus};

/// The first bytes of every worker. No other program writes them by accident.
const MAGIC: &[u8; 20] = b"sallyport-compile 1\n";

/// The kind of a reply with native code.
const CODE: u8 = 0;

/// The kind of a reply with the compiler's error.
const REFUSED: u8 = 1;

/// Longest error message that is passed on, in bytes. wasmtime's have a few lines.
const MESSAGE_BYTES_MAX: u64 = 1024;

/// The result of a compilation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CompileReply {
    /// The native code of the component.
    Code(Vec<u8>),
    /// The compiler's error, on one line.
    Refused(String),
}

/// The reason why a reply cannot be used.
#[derive(Debug)]
pub(super) enum CompileReplyError {
    /// The reply did not arrive, or not completely.
    Io(io::Error),
    /// The bytes are not the reply of a worker.
    Malformed,
    /// The code exceeds the limit.
    TooLarge,
}

impl From<io::Error> for CompileReplyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes the greeting.
pub(super) fn write_greeting(mut to: impl Write, isolation: CompilerIsolation) -> io::Result<()> {
    to.write_all(MAGIC)?;
    to.write_all(&[to_byte(isolation.landlock), to_byte(isolation.seccomp)])?;
    to.flush()
}

/// Writes the answer.
pub(super) fn write_reply(
    mut to: impl Write,
    compiled: &Result<Vec<u8>, String>,
) -> io::Result<()> {
    let (kind, bytes) = match compiled {
        Ok(code) => (CODE, code.as_slice()),
        Err(message) => (REFUSED, truncate_message(message).as_bytes()),
    };
    to.write_all(&[kind])?;
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Reads a greeting.
pub(super) fn read_greeting(mut from: impl Read) -> Result<CompilerIsolation, CompileReplyError> {
    let mut magic = [0; MAGIC.len()];
    from.read_exact(&mut magic)?;
    let mut isolation = [0; 2];
    from.read_exact(&mut isolation)?;
    match isolation.map(from_byte) {
        [Some(landlock), Some(seccomp)] if magic == *MAGIC => {
            Ok(CompilerIsolation { landlock, seccomp })
        }
        _ => Err(CompileReplyError::Malformed),
    }
}

/// Reads an answer with at most `code_bytes_max` bytes of code.
pub(super) fn read_reply(
    mut from: impl Read,
    code_bytes_max: u64,
) -> Result<CompileReply, CompileReplyError> {
    let mut kind = [0; 1];
    from.read_exact(&mut kind)?;
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    match kind[0] {
        CODE if length > code_bytes_max => Err(CompileReplyError::TooLarge),
        CODE => Ok(CompileReply::Code(read_body(from, length)?)),
        REFUSED if length <= MESSAGE_BYTES_MAX => {
            Ok(CompileReply::Refused(sanitize_worker_text(&read_body(from, length)?)))
        }
        _ => Err(CompileReplyError::Malformed),
    }
}

/// Converts a worker's text to one line that is safe to show.
pub(super) fn sanitize_worker_text(bytes: &[u8]) -> String {
    let lines = String::from_utf8_lossy(bytes);
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    text::escape_line(&lines.collect::<Vec<_>>().join(" "))
}

fn read_body(mut from: impl Read, length: u64) -> Result<Vec<u8>, CompileReplyError> {
    let mut bytes = Vec::new();
    from.by_ref().take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        false => Err(CompileReplyError::Io(io::ErrorKind::UnexpectedEof.into())),
    }
}

fn truncate_message(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX as usize)]
}

fn to_byte(layer: IsolationLayerStatus) -> u8 {
    match layer {
        IsolationLayerStatus::Missing => 0,
        IsolationLayerStatus::Partial => 1,
        IsolationLayerStatus::Active => 2,
    }
}

fn from_byte(byte: u8) -> Option<IsolationLayerStatus> {
    [IsolationLayerStatus::Missing, IsolationLayerStatus::Partial, IsolationLayerStatus::Active]
        .into_iter()
        .find(|layer| to_byte(*layer) == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLS: CompilerIsolation = CompilerIsolation {
        landlock: IsolationLayerStatus::Partial,
        seccomp: IsolationLayerStatus::Active,
    };

    fn conversation(compiled: &Result<Vec<u8>, String>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_greeting(&mut bytes, WALLS).unwrap();
        write_reply(&mut bytes, compiled).unwrap();
        bytes
    }

    fn hear(mut bytes: &[u8]) -> Result<(CompilerIsolation, CompileReply), CompileReplyError> {
        let isolation = read_greeting(&mut bytes)?;
        Ok((isolation, read_reply(bytes, 1000)?))
    }

    #[track_caller]
    fn check(compiled: Result<Vec<u8>, String>, want: CompileReply) {
        assert_eq!(hear(&conversation(&compiled)).unwrap(), (WALLS, want));
    }

    #[test]
    fn what_a_worker_says_is_what_is_heard() {
        check(Ok(vec![]), CompileReply::Code(vec![]));
        check(Ok(vec![7; 1000]), CompileReply::Code(vec![7; 1000]));
        check(Err("bad".into()), CompileReply::Refused("bad".into()));
        check(
            Err("one\n  two\n\n\x1b[31m".into()),
            CompileReply::Refused("one two \\u{1b}[31m".into()),
        );
        check(Err("ä".repeat(4000)), CompileReply::Refused("ä".repeat(512)));
    }

    #[test]
    fn a_reply_that_is_cut_anywhere_is_no_reply() {
        let whole = conversation(&Ok(vec![1, 2, 3]));
        for end in 0..whole.len() {
            assert!(matches!(hear(&whole[..end]), Err(CompileReplyError::Io(_))), "cut at {end}");
        }
    }

    #[test]
    fn what_no_worker_says_is_not_taken() {
        let good = conversation(&Ok(vec![1]));
        for (place, what) in [(0, "magic"), (20, "Landlock"), (21, "seccomp"), (22, "kind")] {
            let mut bad = good.clone();
            bad[place] = 9;
            assert!(matches!(hear(&bad), Err(CompileReplyError::Malformed)), "{what}");
        }
        let announces = |kind: u8, length: u64| {
            let mut bytes = good[..22].to_vec();
            bytes.push(kind);
            bytes.extend(length.to_le_bytes());
            hear(&bytes)
        };
        assert!(matches!(announces(CODE, 1001), Err(CompileReplyError::TooLarge)));
        assert!(matches!(announces(CODE, u64::MAX), Err(CompileReplyError::TooLarge)));
        assert!(matches!(
            announces(REFUSED, MESSAGE_BYTES_MAX + 1),
            Err(CompileReplyError::Malformed)
        ));
    }
}
