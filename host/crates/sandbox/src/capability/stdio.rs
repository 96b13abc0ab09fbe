//! Standard output and standard error of a guest: lines of its log, never bytes of the host's own
//! output.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use sallyport_contract::{LogLevel, RedactStream};
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use crate::{current_run::CurrentRun, mutex::lock_mutex};

/// Most bytes that a guest may write at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// A line that is longer than this is logged even if it is not finished.
const PENDING_BYTES_MAX: usize = 8 * 1024;

/// One of the two output streams, written line by line into the effect log of the current run.
/// Clones are the same stream.
#[derive(Clone)]
pub(crate) struct GuestOutput(Arc<GuestOutputState>);

struct GuestOutputState {
    current_run: Arc<CurrentRun>,
    level: LogLevel,
    pending: Mutex<PendingOutput>,
}

/// Output that has not been logged yet.
#[derive(Default)]
struct PendingOutput {
    /// The unfinished line.
    line: Vec<u8>,
    /// Removes secrets, including those that are split across two writes or by cutting a long line.
    /// `None` if nothing was written in this run.
    redaction: Option<RedactStream>,
}

impl GuestOutput {
    pub(crate) fn new(current_run: &Arc<CurrentRun>, level: LogLevel) -> Self {
        let current_run = Arc::clone(current_run);
        Self(Arc::new(GuestOutputState { current_run, level, pending: Mutex::default() }))
    }

    fn buffer_bytes(&self, bytes: &[u8]) {
        let mut pending = lock_mutex(&self.0.pending);
        let redactor = || self.0.current_run.context().authorizer().redactor().redact_stream();
        let clean = pending.redaction.get_or_insert_with(redactor).push(bytes);
        pending.line.extend_from_slice(&clean);
        let whole = pending.line.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = pending.line.split_off(whole);
        let lines = mem::replace(&mut pending.line, rest);
        lines.split_inclusive(|byte| *byte == b'\n').for_each(|line| self.log_line(line));
        if pending.line.len() > PENDING_BYTES_MAX {
            self.log_line(&mem::take(&mut pending.line));
        }
    }

    /// Logs the last line of a run, which often has no line end.
    pub(crate) fn log_last_line(&self) {
        let PendingOutput { mut line, redaction: clean } =
            mem::take(&mut *lock_mutex(&self.0.pending));
        line.extend(clean.map(RedactStream::finish).unwrap_or_default());
        line.split_inclusive(|byte| *byte == b'\n').for_each(|line| self.log_line(line));
    }

    fn log_line(&self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.0
            .current_run
            .context()
            .effect_log
            .log_line(self.0.level, &String::from_utf8_lossy(line));
    }
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    /// Never used: only WASI 0.2 is linked, which calls [`StdoutStream::p2_stream`].
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for GuestOutput {
    async fn ready(&mut self) {}
}

impl OutputStream for GuestOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.buffer_bytes(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}
