//! Standard input as a connection: each line is a signal, and a listener's replies are printed.

use std::{
    io::{BufRead, Read},
    sync::Arc,
    thread,
};

use sallyport_contract::services::SessionInbox;
use sallyport_sandbox::roles::{ListenerReply, ListenerSignal};
use tokio::sync::{mpsc, oneshot};

use super::{
    ListenerConnection, SessionListener,
    inbox::{InputQueue, ReservedInputSlot},
};

/// Longest line in bytes: the limit of an input. A longer line is skipped and reported.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Most lines that are read ahead.
const LINES_WAITING_MAX: usize = 16;

/// A line of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputLine {
    /// A line of text.
    Text(String),
    /// A line that is not UTF-8.
    Binary(Vec<u8>),
    /// A line that was too long.
    TooLong,
}

/// Reads lines in a separate thread, because reading blocks.
pub fn spawn_line_reader() -> mpsc::Receiver<InputLine> {
    let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(line) = read_line(&mut input) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The next line without its line break; `None` at the end of the input or after an error.
fn read_line(input: &mut impl BufRead) -> Option<InputLine> {
    let mut bytes = Vec::new();
    let count =
        input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes).ok()?;
    if count == 0 {
        return None;
    }
    let is_whole = bytes.last() == Some(&b'\n');
    if is_whole {
        bytes.pop();
    } else if bytes.len() > LINE_BYTES_MAX {
        input.skip_until(b'\n').ok()?;
        return Some(InputLine::TooLong);
    }
    Some(
        String::from_utf8(bytes)
            .map_or_else(|error| InputLine::Binary(error.into_bytes()), InputLine::Text),
    )
}

/// Delivers each line to a listener and prints its replies, until the session ends. A line is read
/// only when an input has room to wait, so that piped lines do not overflow the queue.
pub async fn deliver_lines(
    listener: Arc<SessionListener>,
    mut lines: mpsc::Receiver<InputLine>,
    print: Arc<dyn Fn(&str) + Send + Sync>,
    ended: oneshot::Sender<()>,
) {
    let mut ended = Some(ended);
    let mut stdin_connection =
        StdinConnection { connection: listener.open_connection("stdin"), print };
    let input_queue: Arc<dyn SessionInbox> = Arc::new(listener.input_queue.clone());
    let mut is_open = stdin_connection
        .deliver_signal(ListenerSignal::Opened("standard input".to_owned()), &input_queue)
        .await;
    loop {
        let (signal, inbox) = tokio::select! {
            biased;
            answer = stdin_connection.connection.answers.recv() => match answer {
                Some(answer) => (ListenerSignal::Answered(answer), Arc::clone(&input_queue)),
                None => break,
            },
            heard = next_signal(&mut lines, &listener.input_queue), if is_open => match heard {
                Some((Some(signal), kept)) => (signal, Arc::new(kept) as Arc<dyn SessionInbox>),
                Some((None, _)) => {
                    (listener.message_sink)(&format!("a line of more than {LINE_BYTES_MAX} bytes is passed over"));
                    continue;
                }
                None => { is_open = false; continue; }
            },
            () = std::future::ready(()), if !is_open && ended.is_some() => {
                // The receiver is gone if the session is ending anyway.
                let _ = ended.take().map(|ended| ended.send(()));
                continue;
            }
        };
        is_open &= stdin_connection.deliver_signal(signal, &inbox).await;
    }
    stdin_connection.connection.deliver_signal(ListenerSignal::Closed).await;
}

/// The next line, with a reserved place for its input, and without a signal if it was too long.
/// Returns `None` at the end. No line is lost when the future is dropped.
async fn next_signal(
    lines: &mut mpsc::Receiver<InputLine>,
    input_queue: &InputQueue,
) -> Option<(Option<ListenerSignal>, ReservedInputSlot)> {
    let slot = input_queue.reserve_slot().await?;
    let signal = match lines.recv().await? {
        InputLine::Text(line) => Some(ListenerSignal::Text(line)),
        InputLine::Binary(bytes) => Some(ListenerSignal::Binary(bytes)),
        InputLine::TooLong => None,
    };
    Some((signal, slot))
}

struct StdinConnection {
    connection: ListenerConnection,
    print: Arc<dyn Fn(&str) + Send + Sync>,
}

impl StdinConnection {
    /// Delivers a signal. Returns whether more may follow.
    async fn deliver_signal(
        &mut self,
        signal: ListenerSignal,
        inbox: &Arc<dyn SessionInbox>,
    ) -> bool {
        for reply in self.connection.deliver_signal_to_inbox(signal, Arc::clone(inbox)).await {
            match reply {
                ListenerReply::Text(text) => (self.print)(&text),
                ListenerReply::Binary(data) => (self.print)(&String::from_utf8_lossy(&data)),
                ListenerReply::Close => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_whatever_they_hold_is_told() {
        let long = "x".repeat(LINE_BYTES_MAX);
        let text = [
            b"one\r\n\n".as_slice(),
            b"\xff\n",
            long.as_bytes(),
            b"\n",
            long.as_bytes(),
            b"y\nlast",
        ];
        let mut input = std::io::Cursor::new(text.concat());
        let found: Vec<InputLine> = std::iter::from_fn(|| read_line(&mut input)).collect();
        let line = |text: &str| InputLine::Text(text.to_owned());
        let binary = InputLine::Binary(vec![0xff]);
        assert_eq!(
            found,
            [line("one\r"), line(""), binary, line(&long), InputLine::TooLong, line("last")]
        );
    }
}
