//! Standard output and error of a guest: lines of its log, never bytes of ours.

use bytes::Bytes;
use sallyport_contract::LogLevel;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use crate::ledger::Ledger;

/// Bytes that a guest may write at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// A line is passed on when it is this long, finished or not.
const PENDING_BYTES_MAX: usize = 8 * 1024;

/// One of the two output streams, written line by line into the ledger.
#[derive(Debug, Clone)]
pub(crate) struct GuestOutput {
    pub(crate) ledger: Ledger,
    pub(crate) level: LogLevel,
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    /// Only WASI 0.2 is linked, which takes [`StdoutStream::p2_stream`].
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(LineWriter { output: self.clone(), pending: Vec::new() })
    }
}

/// Collects bytes until a line is whole.
struct LineWriter {
    output: GuestOutput,
    pending: Vec<u8>,
}

impl LineWriter {
    fn emit(&self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.output.ledger.log(self.output.level, &String::from_utf8_lossy(line));
    }

    fn take_lines(&mut self) {
        let whole = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.pending.split_off(whole);
        let lines = std::mem::replace(&mut self.pending, rest);
        lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| self.emit(line));
        if self.pending.len() > PENDING_BYTES_MAX {
            self.emit_pending();
        }
    }

    fn emit_pending(&mut self) {
        let line = std::mem::take(&mut self.pending);
        self.emit(&line);
    }
}

#[async_trait]
impl Pollable for LineWriter {
    async fn ready(&mut self) {}
}

impl OutputStream for LineWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.pending.extend_from_slice(&bytes);
        self.take_lines();
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

impl Drop for LineWriter {
    /// The last line often has no end.
    fn drop(&mut self) {
        if !self.pending.is_empty() {
            self.emit_pending();
        }
    }
}
