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
    content::{self, FileWriteTarget, READ_BYTES_MAX},
    file_handle::FileHandle,
};

/// Most bytes that are written at a time.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read ahead for a guest that waits before it has read any.
const READ_AHEAD_BYTES: usize = 4096;

/// The background work of a stream.
enum FileStreamWork<T> {
    Idle,
    Running(AbortOnDropJoinHandle<Result<T, ErrorCode>>),
    Done(Result<T, ErrorCode>),
    /// The end was reached, or an error was reported.
    Closed,
}

impl<T: Send + 'static> FileStreamWork<T> {
    fn start_work(&mut self, work: impl FnOnce() -> Result<T, ErrorCode> + Send + 'static) {
        *self = Self::Running(spawn_blocking(work));
    }

    /// Waits until no work is running.
    async fn wait_until_done(&mut self) {
        if let Self::Running(task) = self {
            let done = task.await;
            *self = Self::Done(done);
        }
    }

    /// Aborts the work and waits until it has released the file.
    async fn cancel_and_wait(&mut self) {
        if let Self::Running(task) = mem::replace(self, Self::Closed) {
            task.cancel().await;
        }
    }
}

fn to_stream_error(error: ErrorCode) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}

/// A file that is read from an offset.
pub(super) struct FileInputStream {
    file: Arc<FileHandle>,
    offset: u64,
    work: FileStreamWork<Bytes>,
}

impl FileInputStream {
    pub(super) fn new(file: Arc<FileHandle>, offset: u64) -> Self {
        Self { file, offset, work: FileStreamWork::Idle }
    }

    fn start_read(&mut self, most_bytes: usize) {
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        self.work
            .start_work(move || content::read_bytes(&file, offset, most_bytes).map(Bytes::from));
    }

    /// Returns the bytes that were read, up to `most_bytes`, and keeps the rest.
    fn take_bytes(&mut self, mut bytes: Bytes, most_bytes: usize) -> StreamResult<Bytes> {
        if bytes.is_empty() {
            self.work = FileStreamWork::Closed;
            return Err(StreamError::Closed);
        }
        let taken = bytes.split_to(bytes.len().min(most_bytes));
        self.offset += taken.len() as u64;
        self.work =
            if bytes.is_empty() { FileStreamWork::Idle } else { FileStreamWork::Done(Ok(bytes)) };
        Ok(taken)
    }
}

#[async_trait]
impl InputStream for FileInputStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.file.check_grant().map_err(to_stream_error)?;
        match mem::replace(&mut self.work, FileStreamWork::Closed) {
            FileStreamWork::Idle if size == 0 => self.work = FileStreamWork::Idle,
            FileStreamWork::Idle => self.start_read(size.min(READ_BYTES_MAX)),
            FileStreamWork::Done(Ok(bytes)) => return self.take_bytes(bytes, size),
            FileStreamWork::Done(Err(error)) => return Err(to_stream_error(error)),
            running @ FileStreamWork::Running(_) => self.work = running,
            FileStreamWork::Closed => return Err(StreamError::Closed),
        }
        Ok(Bytes::new())
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if matches!(self.work, FileStreamWork::Idle) {
            self.read(size)?;
        }
        self.work.wait_until_done().await;
        self.read(size)
    }

    async fn cancel(&mut self) {
        self.work.cancel_and_wait().await;
    }
}

#[async_trait]
impl Pollable for FileInputStream {
    async fn ready(&mut self) {
        if matches!(self.work, FileStreamWork::Idle) {
            self.start_read(READ_AHEAD_BYTES);
        }
        self.work.wait_until_done().await;
    }
}

/// A file that is written to.
pub(super) struct FileOutputStream {
    file: Arc<FileHandle>,
    target: FileWriteTarget,
    work: FileStreamWork<()>,
}

impl FileOutputStream {
    pub(super) fn new(file: Arc<FileHandle>, target: FileWriteTarget) -> Self {
        Self { file, target, work: FileStreamWork::Idle }
    }
}

#[async_trait]
impl OutputStream for FileOutputStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.check_write()? < bytes.len() {
            return Err(StreamError::trap("more was written than check-write had allowed"));
        }
        let granted_mount = self.file.check_change_grant().map_err(to_stream_error)?;
        let (file, target) = (Arc::clone(&self.file), self.target);
        if let FileWriteTarget::At(offset) = &mut self.target {
            *offset = offset.saturating_add(bytes.len() as u64);
        }
        self.work.start_work(move || content::write_bytes(&granted_mount, &file, target, &bytes));
        Ok(())
    }

    /// Writes are not buffered, so there is nothing to flush.
    fn flush(&mut self) -> StreamResult<()> {
        self.check_write().map(drop)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match mem::replace(&mut self.work, FileStreamWork::Closed) {
            FileStreamWork::Idle | FileStreamWork::Done(Ok(())) => {
                self.work = FileStreamWork::Idle;
                Ok(WRITE_BYTES_MAX)
            }
            running @ FileStreamWork::Running(_) => {
                self.work = running;
                Ok(0)
            }
            FileStreamWork::Done(Err(error)) => Err(to_stream_error(error)),
            FileStreamWork::Closed => Err(StreamError::Closed),
        }
    }

    async fn cancel(&mut self) {
        self.work.cancel_and_wait().await;
    }
}

#[async_trait]
impl Pollable for FileOutputStream {
    async fn ready(&mut self) {
        self.work.wait_until_done().await;
    }
}
