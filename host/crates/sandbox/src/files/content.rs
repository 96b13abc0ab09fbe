//! The contents of an open file.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{Timestamps, fdatasync, fsync, ftruncate, futimens},
    io::{Errno, pread, pwrite},
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{
    convert::to_error_code,
    file_handle::FileHandle,
    folder_usage::{FolderWriteGuard, quota_cost},
    measure::file_length,
    mount::GrantedMount,
};

/// Most bytes that one host call reads. A guest that wants more calls again.
pub(super) const READ_BYTES_MAX: usize = 64 * 1024;

/// Where bytes are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum FileWriteTarget {
    /// At this offset, in bytes.
    At(u64),
    /// At the end of the file at the time of the write.
    End,
}

/// Reads from an offset. The result is empty at the end of the file.
pub(super) fn read_bytes(
    file: &FileHandle,
    offset: u64,
    most_bytes: usize,
) -> Result<Vec<u8>, ErrorCode> {
    let mut bytes = vec![0; most_bytes.min(READ_BYTES_MAX)];
    loop {
        match pread(&file.fd, &mut bytes[..], offset) {
            Ok(n) => {
                bytes.truncate(n);
                return Ok(bytes);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(to_error_code(error)),
        }
    }
}

/// Writes all bytes.
pub(super) fn write_bytes(
    granted_mount: &GrantedMount,
    file: &FileHandle,
    target: FileWriteTarget,
    bytes: &[u8],
) -> Result<(), ErrorCode> {
    let write_guard = granted_mount.lock_for_write();
    keep_before_change(granted_mount, file);
    let old_bytes = file_length(&file.fd).map_err(to_error_code)?;
    let begin = match target {
        FileWriteTarget::At(offset) => offset,
        FileWriteTarget::End => old_bytes,
    };
    let end = begin.checked_add(bytes.len() as u64).ok_or(ErrorCode::FileTooLarge)?;
    let new_bytes = if bytes.is_empty() { old_bytes } else { end.max(old_bytes) };
    resize_file(granted_mount, &write_guard, file, old_bytes, new_bytes, || match target {
        FileWriteTarget::At(_) => write_at(&file.fd, bytes, begin),
        FileWriteTarget::End => append(&file.fd, bytes, begin),
    })
}

/// Sets the length of the file, in bytes.
pub(super) fn set_size(
    granted_mount: &GrantedMount,
    file: &FileHandle,
    size: u64,
) -> Result<(), ErrorCode> {
    let write_guard = granted_mount.lock_for_write();
    keep_before_change(granted_mount, file);
    let old_bytes = file_length(&file.fd).map_err(to_error_code)?;
    resize_file(granted_mount, &write_guard, file, old_bytes, size, || ftruncate(&file.fd, size))
}

/// Keeps the file for undo, unless that was done when this run opened it.
fn keep_before_change(granted_mount: &GrantedMount, file: &FileHandle) {
    if !granted_mount.is_same_run(&file.run) {
        granted_mount.keep_open_file(file.path());
    }
}

/// Performs an operation that changes the length of the file, and charges the difference. The
/// growth is charged first, because the quota must never be exceeded; the part that did not happen
/// is refunded.
fn resize_file(
    granted_mount: &GrantedMount,
    write_guard: &FolderWriteGuard<'_>,
    file: &FileHandle,
    old_bytes: u64,
    new_bytes: u64,
    act: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), ErrorCode> {
    granted_mount
        .charge_growth(write_guard, quota_cost(new_bytes).saturating_sub(quota_cost(old_bytes)))?;
    let result = act();
    let expected = new_bytes.max(old_bytes);
    let actual_bytes =
        if result.is_ok() { new_bytes } else { file_length(&file.fd).unwrap_or(expected) };
    granted_mount
        .refund_bytes(write_guard, quota_cost(expected).saturating_sub(quota_cost(actual_bytes)));
    result.map_err(to_error_code)
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

pub(super) fn sync_file(file: &FileHandle, with_metadata: bool) -> Result<(), ErrorCode> {
    let done = if with_metadata { fsync(&file.fd) } else { fdatasync(&file.fd) };
    done.map_err(to_error_code)
}

pub(super) fn set_times(
    granted_mount: &GrantedMount,
    file: &FileHandle,
    times: &Timestamps,
) -> Result<(), ErrorCode> {
    futimens(&file.fd, times).map_err(to_error_code)?;
    granted_mount.record_change(file.path());
    Ok(())
}
