//! The streams of a program as WASI's standard streams: what it reads and prints goes through them
//! into its [`ProgramStreams`], which keep it and make the result. They are here because what it
//! prints on standard error is in the log too, which stands above the links of a run.

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdinStream, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult, pipe::MemoryInputPipe},
};

use super::stdio::GuestOutput;
use crate::role_links::{OutputCapture, ProgramStreams};

/// Most bytes that a program may write at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

impl ProgramStreams {
    /// Standard input: the arguments, then the end of the stream.
    pub(crate) fn stdin(&self) -> impl StdinStream + use<> {
        MemoryInputPipe::new(self.arguments.clone())
    }

    /// Standard output: kept up to the limit of a result.
    pub(crate) fn stdout(&self) -> impl StdoutStream + use<> {
        CaptureStream { capture: self.captured_stdout.clone(), log: None }
    }

    /// Standard error: logged, and its end kept.
    pub(crate) fn stderr(&self, log: &GuestOutput) -> impl StdoutStream + use<> {
        CaptureStream { capture: self.captured_stderr.clone(), log: Some(log.clone()) }
    }
}

/// A standard stream that a program writes to. Clones are the same stream.
#[derive(Clone)]
struct CaptureStream {
    capture: OutputCapture,
    log: Option<GuestOutput>,
}

impl IsTerminal for CaptureStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for CaptureStream {
    /// Never used: only WASI 0.2 is linked, which calls [`StdoutStream::p2_stream`].
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for CaptureStream {
    async fn ready(&mut self) {}
}

impl OutputStream for CaptureStream {
    /// Stops the program if its output is too long: it can no longer become a result.
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !self.capture.append_bytes(&bytes) {
            return Err(StreamError::Trap(wasmtime::Error::msg("the result is too long")));
        }
        self.log.as_mut().map_or(Ok(()), |log| log.write(bytes))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_prints_too_much_is_stopped() {
        let program = ProgramStreams::new("{}", 64);
        let mut stdout = program.stdout().p2_stream();
        assert!(stdout.write(Bytes::from_static(&[b'1'; 64])).is_ok());
        assert!(matches!(stdout.write(Bytes::from_static(b"1")), Err(StreamError::Trap(_))));
    }
}
