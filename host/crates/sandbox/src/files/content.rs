//! The contents of an open file.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Timestamps, fdatasync, fsync, ftruncate, futimens},
    io::{Errno, pread, pwrite},
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    convert::code,
    measure::length,
    mount::Present,
    opened::Opened,
    shelf::{Turn, cost},
};

/// Most bytes that one host call reads. A guest that wants more calls again.
pub(super) const READ_BYTES_MAX: usize = 64 * 1024;

/// Where bytes are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    /// At this offset, in bytes.
    At(u64),
    /// At the end of the file at the time of the write.
    End,
}

/// Reads from an offset. The result is empty at the end of the file.
pub(super) fn read(file: &Opened, offset: u64, most_bytes: usize) -> Result<Vec<u8>, ErrorCode> {
    let mut bytes = vec![0; most_bytes.min(READ_BYTES_MAX)];
    loop {
        match pread(&file.fd, &mut bytes[..], offset) {
            Ok(n) => {
                bytes.truncate(n);
                return Ok(bytes);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(code(error)),
        }
    }
}

/// Writes all bytes.
pub(super) fn write(
    present: &Present,
    file: &Opened,
    target: Target,
    bytes: &[u8],
) -> Result<(), ErrorCode> {
    let turn = present.turn();
    let old_bytes = length(&file.fd).map_err(code)?;
    let begin = match target {
        Target::At(offset) => offset,
        Target::End => old_bytes,
    };
    let end = begin.checked_add(bytes.len() as u64).ok_or(ErrorCode::FileTooLarge)?;
    let new_bytes = if bytes.is_empty() { old_bytes } else { end.max(old_bytes) };
    resize(present, &turn, file, old_bytes, new_bytes, || match target {
        Target::At(_) => write_at(&file.fd, bytes, begin),
        Target::End => append(&file.fd, bytes, begin),
    })
}

/// Sets the length of the file, in bytes.
pub(super) fn set_size(present: &Present, file: &Opened, size: u64) -> Result<(), ErrorCode> {
    let turn = present.turn();
    let old_bytes = length(&file.fd).map_err(code)?;
    resize(present, &turn, file, old_bytes, size, || ftruncate(&file.fd, size))
}

/// Performs an operation that changes the length of the file, and charges the difference. The
/// growth is charged first, because the quota must never be exceeded; the part that did not happen
/// is refunded.
fn resize(
    present: &Present,
    turn: &Turn<'_>,
    file: &Opened,
    old_bytes: u64,
    new_bytes: u64,
    act: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), ErrorCode> {
    present.grow(turn, cost(new_bytes).saturating_sub(cost(old_bytes)))?;
    let result = act();
    let expected = new_bytes.max(old_bytes);
    let is_bytes = if result.is_ok() { new_bytes } else { length(&file.fd).unwrap_or(expected) };
    present.shrink(turn, cost(expected).saturating_sub(cost(is_bytes)));
    result.map_err(code)
}

fn write_at(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match pwrite(file, bytes, offset) {
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Appends in one step: other programs may append to the same file.
#[cfg(target_os = "linux")]
fn append(file: &OwnedFd, mut bytes: &[u8], end: u64) -> rustix::io::Result<()> {
    use std::io::IoSlice;

    use rustix::io::{ReadWriteFlags, pwritev2};

    while !bytes.is_empty() {
        match pwritev2(file, &[IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            // Some file systems do not support appending in one step.
            Err(Errno::NOTSUP | Errno::NOSYS) => return write_at(file, bytes, end),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn append(file: &OwnedFd, bytes: &[u8], end: u64) -> rustix::io::Result<()> {
    write_at(file, bytes, end)
}

pub(super) fn sync(file: &Opened, with_metadata: bool) -> Result<(), ErrorCode> {
    let done = if with_metadata { fsync(&file.fd) } else { fdatasync(&file.fd) };
    done.map_err(code)
}

pub(super) fn set_times(
    present: &Present,
    file: &Opened,
    times: &Timestamps,
) -> Result<(), ErrorCode> {
    futimens(&file.fd, times).map_err(code)?;
    present.changed(file.path());
    Ok(())
}
