//! Standard input as a connection: each line is a signal, and text that a listener replies is
//! printed.

use std::{
    io::{BufRead, Read},
    sync::Arc,
    thread,
};

use sallyport_contract::services::Inbox;
use sallyport_sandbox::roles::{Reply, Signal};
use tokio::sync::{mpsc, oneshot};

use super::{
    Connection, Ear,
    inbox::{Kept, Tray},
};

/// Longest line: as much as an input may have. What is longer is passed over, and told.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Lines that may be read ahead.
const LINES_WAITING_MAX: usize = 16;

/// Something that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line of text.
    Text(String),
    /// It is no UTF-8.
    Binary(Vec<u8>),
    /// It was longer than a line may be.
    TooLong,
}

/// Reads lines in a thread of its own, since reading blocks.
pub fn lines() -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(line) = next(&mut input) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The next line without its end; nothing at the end, and where reading fails.
fn next(input: &mut impl BufRead) -> Option<Line> {
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
        return Some(Line::TooLong);
    }
    Some(String::from_utf8(bytes).map_or_else(|error| Line::Binary(error.into_bytes()), Line::Text))
}

/// Tells a listener of each line, and prints what it replies, until the session ends. A line waits
/// until there is room for what it may become: whoever pipes in more is not heard sooner.
pub async fn attend(
    ear: Arc<Ear>,
    mut lines: mpsc::Receiver<Line>,
    print: Arc<dyn Fn(&str) + Send + Sync>,
    ended: oneshot::Sender<()>,
) {
    let mut ended = Some(ended);
    let mut desk = Desk { connection: ear.connect("stdin"), print };
    let tray: Arc<dyn Inbox> = Arc::new(ear.tray.clone());
    let mut is_open = desk.tell(Signal::Opened("standard input".to_owned()), &tray).await;
    loop {
        let (signal, inbox) = tokio::select! {
            biased;
            answer = desk.connection.answers.recv() => match answer {
                Some(answer) => (Signal::Answered(answer), Arc::clone(&tray)),
                None => break,
            },
            heard = next_signal(&mut lines, &ear.tray), if is_open => match heard {
                Some((Some(signal), kept)) => (signal, Arc::new(kept) as Arc<dyn Inbox>),
                Some((None, _)) => {
                    (ear.tell)(&format!("a line of more than {LINE_BYTES_MAX} bytes is passed over"));
                    continue;
                }
                None => { is_open = false; continue; }
            },
            () = std::future::ready(()), if !is_open && ended.is_some() => {
                // Nobody waits for it when the session ends anyway.
                let _ = ended.take().map(|ended| ended.send(()));
                continue;
            }
        };
        is_open &= desk.tell(signal, &inbox).await;
    }
    desk.connection.hear(Signal::Closed).await;
}

/// The next line, once there is a place for it; of one that was too long there is only that place.
/// Nothing when no more come. Nothing is lost when the future is dropped.
async fn next_signal(
    lines: &mut mpsc::Receiver<Line>,
    tray: &Tray,
) -> Option<(Option<Signal>, Kept)> {
    let kept = tray.keep().await?;
    let signal = match lines.recv().await? {
        Line::Text(line) => Some(Signal::Text(line)),
        Line::Binary(bytes) => Some(Signal::Binary(bytes)),
        Line::TooLong => None,
    };
    Some((signal, kept))
}

struct Desk {
    connection: Connection,
    print: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Desk {
    /// Whether more may come.
    async fn tell(&mut self, signal: Signal, inbox: &Arc<dyn Inbox>) -> bool {
        for reply in self.connection.hear_into(signal, Arc::clone(inbox)).await {
            match reply {
                Reply::Text(text) => (self.print)(&text),
                Reply::Binary(data) => (self.print)(&String::from_utf8_lossy(&data)),
                Reply::Close => return false,
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
        let found: Vec<Line> = std::iter::from_fn(|| next(&mut input)).collect();
        let line = |text: &str| Line::Text(text.to_owned());
        let binary = Line::Binary(vec![0xff]);
        assert_eq!(
            found,
            [line("one\r"), line(""), binary, line(&long), Line::TooLong, line("last")]
        );
    }
}
