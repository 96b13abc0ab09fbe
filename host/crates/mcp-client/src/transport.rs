//! A server's messages as lines, with a limit to each line and to their rate.

use std::{io, sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::Mutex,
    time::Instant,
};

use crate::{
    journal::ConnectionJournal,
    lines::{BoundedLines, LineEnd},
};

/// Longest message in bytes. The largest result that a policy usually lets through is an eighth.
pub(crate) const MESSAGE_BYTES_MAX: usize = 8 << 20;

/// Most messages within a second. A server with progress reports for many calls stays far below.
pub(crate) const MESSAGES_PER_SECOND_MAX: u32 = 2000;

/// The window in which messages are counted.
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// Shown of a line that is not a message, in characters.
const NOISE_CHARS_MAX: usize = 120;

/// Messages of a server in lines.
pub(crate) struct ServerLines<R, W> {
    lines: BoundedLines<R>,
    /// Closed when it is `None`.
    input: Arc<Mutex<Option<W>>>,
    rate: MessageRate,
    journal: Arc<ConnectionJournal>,
}

impl<R: AsyncRead + Unpin, W> ServerLines<R, W> {
    /// Reads what the server writes to `output`, and writes to its `input`.
    pub(crate) fn new(output: R, input: W, journal: Arc<ConnectionJournal>) -> Self {
        Self {
            lines: BoundedLines::new(output, MESSAGE_BYTES_MAX),
            input: Arc::new(Mutex::new(Some(input))),
            rate: MessageRate::new(),
            journal,
        }
    }

    /// Parses the line that was read. A line that is not a message is usually a log.
    fn take_message(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = serde_json::from_slice(&self.lines.line).ok();
        if message.is_none() {
            let line = String::from_utf8_lossy(&self.lines.line);
            let line = self.journal.redact(line.trim());
            let excerpt: String = line.chars().take(NOISE_CHARS_MAX).collect();
            let what = "the server printed something that is not a message to its standard output";
            self.journal.add_remark(what, &format!("{excerpt:?}"));
        }
        self.lines.line.clear();
        message
    }
}

impl<R, W> Transport<RoleClient> for ServerLines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let Some(input) = input.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.lines.read_line().await {
                LineEnd::Whole => {}
                LineEnd::TooLong => {
                    let fault = format!("it sent a message of more than {MESSAGE_BYTES_MAX} bytes");
                    self.journal.set_fault(fault);
                    return None;
                }
                LineEnd::Cut | LineEnd::Ended => return None,
            }
            if !self.rate.admits_one_more() {
                let fault = format!("it sent more than {MESSAGES_PER_SECOND_MAX} lines a second");
                self.journal.set_fault(fault);
                return None;
            }
            if let Some(message) = self.take_message() {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A write that the server does not take holds the lock; its end closes the pipe as well.
        if let Ok(mut input) = self.input.try_lock() {
            *input = None;
        }
        Ok(())
    }
}

/// Counts messages within a window of time.
pub(crate) struct MessageRate {
    begun: Instant,
    count: u32,
}

impl MessageRate {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), count: 0 }
    }

    pub(crate) fn admits_one_more(&mut self) -> bool {
        if self.begun.elapsed() >= RATE_WINDOW {
            *self = Self::new();
        }
        self.count += 1;
        self.count <= MESSAGES_PER_SECOND_MAX
    }
}
