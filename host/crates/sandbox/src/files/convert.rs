//! Conversions between the system's types and those of `wasi:filesystem`.

use std::io;

use rustix::{
    fs::{FileType, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT},
    io::Errno,
};
use wasmtime_wasi::p2::bindings::{
    clocks::wall_clock::Datetime,
    filesystem::types::{
        DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, NewTimestamp,
    },
};

use super::folder_usage::FileIdentity;

pub(super) fn to_error_code(error: Errno) -> ErrorCode {
    match error {
        Errno::XDEV => ErrorCode::CrossDevice,
        error => ErrorCode::from(io::Error::from(error)),
    }
}

pub(super) fn file_type_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether a regular file has more than one name. The link count of a folder is not looked at,
/// because it usually includes the folders inside.
pub(super) fn has_hard_links(stat: &Stat) -> bool {
    file_type_of(stat) == FileType::RegularFile && stat.st_nlink > 1
}

#[expect(clippy::unnecessary_cast, reason = "its width differs between systems")]
pub(super) fn file_identity(stat: &Stat) -> FileIdentity {
    FileIdentity(stat.st_dev as u64, stat.st_ino as u64)
}

#[expect(clippy::unnecessary_cast, reason = "their width differs between systems")]
pub(super) fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    DescriptorStat {
        type_: descriptor_type(file_type_of(stat)),
        link_count: stat.st_nlink as u64,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        data_access_timestamp: to_datetime(stat.st_atime as i64, stat.st_atime_nsec as i64),
        data_modification_timestamp: to_datetime(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        status_change_timestamp: to_datetime(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    }
}

pub(super) fn descriptor_type(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// A hash of the file's identity, which does not change with its contents: programs use it like an
/// inode number.
pub(super) fn metadata_hash(stat: &Stat) -> MetadataHashValue {
    let FileIdentity(device, inode) = file_identity(stat);
    let hash = blake3::hash(&[device.to_le_bytes(), inode.to_le_bytes()].concat());
    let half = |at: usize| {
        hash.as_bytes()[at..at + 8].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
    };
    MetadataHashValue { lower: half(0), upper: half(8) }
}

/// Converts a time. Times before 1970 have no representation.
fn to_datetime(seconds: i64, nanoseconds: i64) -> Option<Datetime> {
    let seconds = u64::try_from(seconds).ok()?;
    Some(Datetime { seconds, nanoseconds: u32::try_from(nanoseconds).ok()? })
}

pub(super) fn to_timestamps(
    access: NewTimestamp,
    modification: NewTimestamp,
) -> Result<Timestamps, ErrorCode> {
    Ok(Timestamps {
        last_access: to_timespec(access)?,
        last_modification: to_timespec(modification)?,
    })
}

fn to_timespec(time: NewTimestamp) -> Result<Timespec, ErrorCode> {
    Ok(match time {
        NewTimestamp::NoChange => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        NewTimestamp::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        NewTimestamp::Timestamp(Datetime { nanoseconds: 1_000_000_000.., .. }) => {
            return Err(ErrorCode::Invalid);
        }
        NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }) => Timespec {
            tv_sec: seconds.try_into().map_err(|_| ErrorCode::Overflow)?,
            tv_nsec: nanoseconds.into(),
        },
    })
}
