//! Files as streams. Every read and write of a guest asks the current grant.

use std::{mem, sync::Arc};

use bytes::Bytes;
use wasmtime_wasi::{
    async_trait,
    p2::{
        InputStream, OutputStream, Pollable, StreamError, StreamResult,
        bindings::filesystem::types::ErrorCode,
    },
    runtime::{AbortOnDropJoinHandle, spawn_blocking},
};

use super::{
    content::{self, READ_BYTES_MAX, Target},
    opened::Opened,
};

/// Most bytes that are written at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read ahead for a guest that waits before it has read any.
const READ_AHEAD_BYTES: usize = 4096;

/// The background work of a stream.
enum Work<T> {
    Idle,
    Under(AbortOnDropJoinHandle<Result<T, ErrorCode>>),
    Done(Result<T, ErrorCode>),
    /// The end was reached, or an error was reported.
    Over,
}

impl<T: Send + 'static> Work<T> {
    fn begin(&mut self, work: impl FnOnce() -> Result<T, ErrorCode> + Send + 'static) {
        *self = Self::Under(spawn_blocking(work));
    }

    /// Waits until no work is running.
    async fn settle(&mut self) {
        if let Self::Under(task) = self {
            let done = task.await;
            *self = Self::Done(done);
        }
    }

    /// Aborts the work and waits until it has released the file.
    async fn cancel(&mut self) {
        if let Self::Under(task) = mem::replace(self, Self::Over) {
            task.cancel().await;
        }
    }
}

fn failed(error: ErrorCode) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}

/// A file that is read from an offset.
pub(super) struct FileInput {
    file: Arc<Opened>,
    offset: u64,
    work: Work<Bytes>,
}

impl FileInput {
    pub(super) fn new(file: Arc<Opened>, offset: u64) -> Self {
        Self { file, offset, work: Work::Idle }
    }

    fn begin(&mut self, most_bytes: usize) {
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        self.work.begin(move || content::read(&file, offset, most_bytes).map(Bytes::from));
    }

    /// Returns the bytes that were read, up to `most_bytes`, and keeps the rest.
    fn take(&mut self, mut bytes: Bytes, most_bytes: usize) -> StreamResult<Bytes> {
        if bytes.is_empty() {
            self.work = Work::Over;
            return Err(StreamError::Closed);
        }
        let taken = bytes.split_to(bytes.len().min(most_bytes));
        self.offset += taken.len() as u64;
        self.work = if bytes.is_empty() { Work::Idle } else { Work::Done(Ok(bytes)) };
        Ok(taken)
    }
}

#[async_trait]
impl InputStream for FileInput {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.file.present().map_err(failed)?;
        match mem::replace(&mut self.work, Work::Over) {
            Work::Idle if size == 0 => self.work = Work::Idle,
            Work::Idle => self.begin(size.min(READ_BYTES_MAX)),
            Work::Done(Ok(bytes)) => return self.take(bytes, size),
            Work::Done(Err(error)) => return Err(failed(error)),
            under @ Work::Under(_) => self.work = under,
            Work::Over => return Err(StreamError::Closed),
        }
        Ok(Bytes::new())
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if matches!(self.work, Work::Idle) {
            self.read(size)?;
        }
        self.work.settle().await;
        self.read(size)
    }

    async fn cancel(&mut self) {
        self.work.cancel().await;
    }
}

#[async_trait]
impl Pollable for FileInput {
    async fn ready(&mut self) {
        if matches!(self.work, Work::Idle) {
            self.begin(READ_AHEAD_BYTES);
        }
        self.work.settle().await;
    }
}

/// A file that is written to.
pub(super) struct FileOutput {
    file: Arc<Opened>,
    target: Target,
    work: Work<()>,
}

impl FileOutput {
    pub(super) fn new(file: Arc<Opened>, target: Target) -> Self {
        Self { file, target, work: Work::Idle }
    }
}

#[async_trait]
impl OutputStream for FileOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.check_write()? < bytes.len() {
            return Err(StreamError::trap("more was written than check-write had allowed"));
        }
        let present = self.file.present_for_change().map_err(failed)?;
        let (file, target) = (Arc::clone(&self.file), self.target);
        if let Target::At(offset) = &mut self.target {
            *offset = offset.saturating_add(bytes.len() as u64);
        }
        self.work.begin(move || content::write(&present, &file, target, &bytes));
        Ok(())
    }

    /// Writes are not buffered, so there is nothing to flush.
    fn flush(&mut self) -> StreamResult<()> {
        self.check_write().map(drop)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match mem::replace(&mut self.work, Work::Over) {
            Work::Idle | Work::Done(Ok(())) => {
                self.work = Work::Idle;
                Ok(WRITE_BYTES_MAX)
            }
            under @ Work::Under(_) => {
                self.work = under;
                Ok(0)
            }
            Work::Done(Err(error)) => Err(failed(error)),
            Work::Over => Err(StreamError::Closed),
        }
    }

    async fn cancel(&mut self) {
        self.work.cancel().await;
    }
}

#[async_trait]
impl Pollable for FileOutput {
    async fn ready(&mut self) {
        self.work.settle().await;
    }
}
