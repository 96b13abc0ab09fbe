//! Standard output and standard error, with their write errors.
//!
//! Printing never fails at the call. A command has to reach its end in any case: the audit is
//! flushed and sessions are closed there. The first error is kept and ends all output to that
//! stream. It is reported at the end of the program.

use std::{
    fmt,
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
    sync::{Mutex, OnceLock, PoisonError},
};

use anstream::{AutoStream, ColorChoice};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use tokio::sync::Notify;

/// Standard output, for the answer of a command.
pub(super) static STDOUT: OutputStream = OutputStream::new(StreamKind::Stdout);

/// Standard error, for everything else.
pub(super) static STDERR: OutputStream = OutputStream::new(StreamKind::Stderr);

/// Identifies one of the two streams.
#[derive(Debug, Clone, Copy)]
enum StreamKind {
    Stdout,
    Stderr,
}

/// An output stream of the process. Its failure affects the whole process, so there is one static
/// value per stream.
#[derive(Debug)]
pub(super) struct OutputStream {
    kind: StreamKind,
    /// Held during a write, so that the lines of two threads do not mix.
    write_lock: Mutex<()>,
    colours: OnceLock<ColorChoice>,
    loss: OnceLock<io::Error>,
    loss_notify: Notify,
}

impl OutputStream {
    const fn new(kind: StreamKind) -> Self {
        Self {
            kind,
            write_lock: Mutex::new(()),
            colours: OnceLock::new(),
            loss: OnceLock::new(),
            loss_notify: Notify::const_new(),
        }
    }

    /// Writes text, with its colours if they are enabled.
    pub(super) fn write(&self, text: fmt::Arguments<'_>) {
        let mut rendered = AutoStream::new(Vec::new(), self.colour_choice());
        // Writing into memory cannot fail.
        let _ = rendered.write_fmt(text);
        self.write_bytes(&rendered.into_inner());
    }

    /// Writes bytes unchanged.
    pub(super) fn write_bytes(&self, bytes: &[u8]) {
        let _one_at_a_time = self.write_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if self.write_error().is_some() {
            return;
        }
        let written = match self.kind {
            StreamKind::Stdout => write_all(io::stdout().as_fd(), bytes),
            StreamKind::Stderr => write_all(io::stderr().as_fd(), bytes),
        };
        if let Err(error) = written {
            // Only the thread that holds the lock sets it.
            let _ = self.loss.set(error);
            self.loss_notify.notify_waiters();
        }
    }

    /// Returns the error that ended output to the stream.
    pub(super) fn write_error(&self) -> Option<&io::Error> {
        self.loss.get()
    }

    /// Waits until output to the stream ends with an error.
    pub(super) async fn wait_for_loss(&self) {
        let mut loss_notified = std::pin::pin!(self.loss_notify.notified());
        // Register first, because a loss after the check would otherwise be missed.
        loss_notified.as_mut().enable();
        if self.write_error().is_none() {
            loss_notified.await;
        }
    }

    /// Returns the colour setting of the stream.
    pub(super) fn colour_choice(&self) -> ColorChoice {
        *self.colours.get_or_init(|| match self.kind {
            StreamKind::Stdout => AutoStream::choice(&io::stdout()),
            StreamKind::Stderr => AutoStream::choice(&io::stderr()),
        })
    }
}

/// Writes all bytes.
///
/// It bypasses the standard library's streams because those lose data if another program has made
/// the stream non-blocking.
fn write_all(stream: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stream, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for_room(stream)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn wait_for_room(stream: BorrowedFd<'_>) -> io::Result<()> {
    match poll(&mut [PollFd::from_borrowed_fd(stream, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Read, os::fd::OwnedFd, thread};

    use super::*;

    #[test]
    fn what_a_stream_does_not_take_at_once_is_written_later() {
        let (from, to) = io::pipe().unwrap();
        let to = OwnedFd::from(to);
        let flags = rustix::fs::fcntl_getfl(&to).unwrap();
        rustix::fs::fcntl_setfl(&to, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
        // More than the capacity of any pipe.
        let bytes = vec![b'x'; 4 << 20];
        let reader = thread::spawn(move || {
            let mut read = Vec::new();
            File::from(OwnedFd::from(from)).read_to_end(&mut read).map(|_| read.len())
        });
        write_all(to.as_fd(), &bytes).unwrap();
        drop(to);
        assert_eq!(reader.join().unwrap().unwrap(), bytes.len());
    }

    #[test]
    fn a_stream_that_cannot_be_written_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_all(full.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let (from, to) = io::pipe().unwrap();
        drop(from);
        let error = write_all(to.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
