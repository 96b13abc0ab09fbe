//! Reads files that another user may have put in place.
//!
//! Anyone who can write to a folder decides what its names refer to: a named pipe blocks its reader
//! for ever, a device may act when it is opened, and a file may be endless. So this crate opens
//! only regular files, without blocking, and reads them up to a length that the caller sets.
//!
//! A project's file counts only if no other user could have put it there, see [`foreign_owner`].

mod access_list;
mod stamp;

use std::{
    fmt, fs,
    fs::{File, FileType, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

pub use self::stamp::FileStamp;

/// The permission to write for all users.
const WRITABLE_BY_ALL: u32 = 0o002;

/// The permission to write for the group.
const WRITABLE_BY_GROUP: u32 = 0o020;

/// The path is not a regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is {0}, not a regular file")]
struct NotRegularFileError(&'static str);

/// The path is a symbolic link without a target. It is not reported as a missing file, because a
/// caller that does without the file would silently lose what the user keeps at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is a symbolic link whose target does not exist")]
struct DanglingLinkError;

/// The file is longer than the caller accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is longer than {bytes_max} bytes")]
struct FileTooLongError {
    bytes_max: u64,
}

/// Why a file or folder is treated as foreign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignOwner {
    /// It belongs to another user, except root.
    User {
        /// The id of that user.
        uid: u32,
    },
    /// The members of a group can write to it.
    Group {
        /// The id of that group.
        gid: u32,
    },
    /// It has an access list, which can let users write whom its mode does not show.
    AccessList,
    /// All users can write to it.
    Everybody,
}

impl fmt::Display for ForeignOwner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { uid } => write!(formatter, "belongs to another user (uid {uid})"),
            Self::Group { gid } => {
                write!(formatter, "can be written by a group of users (gid {gid})")
            }
            Self::AccessList => {
                formatter.write_str("can be written by the users that its access list names")
            }
            Self::Everybody => formatter.write_str("can be written by everybody"),
        }
    }
}

/// Opens a regular file for reading. Follows symbolic links and never blocks.
///
/// # Errors
///
/// The file cannot be opened, or is not a regular file, or is a symbolic link whose target does not
/// exist ([`io::ErrorKind::InvalidInput`] for both).
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Check before opening, because opening a device may already have an effect.
    check_regular(&fs::metadata(path).map_err(|error| explain_missing_file(path, error))?)?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    // Check again: another file may have replaced it in between.
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most `bytes_max` bytes.
///
/// # Errors
///
/// As with [`open_regular`], or the file is longer ([`io::ErrorKind::FileTooLarge`]).
pub fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_open_file(&open_regular(path)?, bytes_max)
}

/// Reads a regular file of at most `bytes_max` bytes as text.
///
/// # Errors
///
/// As with [`read_bytes`], or the file is not UTF-8 ([`io::ErrorKind::InvalidData`]).
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_from_utf8(read_bytes(path, bytes_max)?)
}

/// Reads text like [`read_text`], but only from a file that is not foreign: see
/// [`foreign_owner`] for what that can and cannot tell.
///
/// # Errors
///
/// As with [`read_text`], or the file is foreign ([`io::ErrorKind::PermissionDenied`]).
pub fn read_own_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = open_regular(path)?;
    let has_list = || access_list::file_has_list(&file);
    if let Some(owner) = foreign_owner_from(&file.metadata()?, has_list) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it {owner}")));
    }
    text_from_utf8(read_open_file(&file, bytes_max)?)
}

/// Returns why a file or folder is foreign: it belongs neither to the user nor to root, or its mode
/// or its access list lets other users write to it.
///
/// The group of a file may write to it if the group has the number of the owner. Most Linux systems
/// create such a private group with each user, and their default mode lets it write. The members of
/// the group are not looked up, because that can need a server of the network. So a group with the
/// owner's number that has other members counts as private, and a private group with another number
/// does not.
///
/// # Errors
///
/// The path does not exist, or cannot be reached.
pub fn foreign_owner(path: &Path) -> io::Result<Option<ForeignOwner>> {
    let has_list = || access_list::path_has_list(path);
    Ok(foreign_owner_from(&fs::metadata(path)?, has_list))
}

fn foreign_owner_from(info: &Metadata, has_list: impl FnOnce() -> bool) -> Option<ForeignOwner> {
    let own_uid = rustix::process::geteuid().as_raw();
    foreign_owner_of(own_uid, info.uid(), info.gid(), info.mode(), has_list)
}

/// `has_list` is asked last: the group's part of a mode limits what an access list lets users do,
/// so that a list means nothing where the group cannot write.
fn foreign_owner_of(
    own_uid: u32,
    uid: u32,
    gid: u32,
    mode: u32,
    has_list: impl FnOnce() -> bool,
) -> Option<ForeignOwner> {
    let can_group_write = mode & WRITABLE_BY_GROUP != 0;
    if uid != own_uid && uid != 0 {
        Some(ForeignOwner::User { uid })
    } else if mode & WRITABLE_BY_ALL != 0 {
        Some(ForeignOwner::Everybody)
    } else if can_group_write && gid != uid {
        Some(ForeignOwner::Group { gid })
    } else {
        (can_group_write && has_list()).then_some(ForeignOwner::AccessList)
    }
}

/// Reads an open file of at most `bytes_max` bytes, for a caller that checks its metadata first.
///
/// # Errors
///
/// The file cannot be read, or is longer ([`io::ErrorKind::FileTooLarge`]).
pub fn read_open_file(file: &File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, FileTooLongError { bytes_max });
    let length = file.metadata()?.len();
    if length > bytes_max {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file may grow while it is read.
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_long()) } else { Ok(bytes) }
}

fn text_from_utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Tells a symbolic link without a target from a missing file.
fn explain_missing_file(path: &Path, error: io::Error) -> io::Error {
    let is_link = || fs::symlink_metadata(path).is_ok_and(|info| info.is_symlink());
    match error.kind() {
        io::ErrorKind::NotFound if is_link() => {
            io::Error::new(io::ErrorKind::InvalidInput, DanglingLinkError)
        }
        _ => error,
    }
}

fn check_regular(info: &Metadata) -> io::Result<()> {
    match special_file_kind(info.file_type()) {
        None => Ok(()),
        Some(kind) => Err(io::Error::new(io::ErrorKind::InvalidInput, NotRegularFileError(kind))),
    }
}

/// Returns the kind of a file; `None` for a regular one.
fn special_file_kind(file: FileType) -> Option<&'static str> {
    let kinds: [(bool, &str); 6] = [
        (file.is_file(), ""),
        (file.is_dir(), "a folder"),
        (file.is_fifo(), "a named pipe"),
        (file.is_socket(), "a socket"),
        (file.is_char_device() || file.is_block_device(), "a device"),
        (true, "something else"),
    ];
    let (_, kind) = kinds.into_iter().find(|(is_so, _)| *is_so)?;
    (!kind.is_empty()).then_some(kind)
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::{
            fs::{PermissionsExt, symlink},
            net::UnixListener,
        },
        path::PathBuf,
    };

    use super::*;

    fn pipe(path: &Path) {
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn what_is_not_a_regular_file_is_named_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        pipe(&path("pipe"));
        symlink(path("pipe"), path("link")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        symlink(path("nothing"), path("dangling")).unwrap();
        let rows: [(PathBuf, &str); 7] = [
            (path("dangling"), "it is a symbolic link whose target does not exist"),
            (path("pipe"), "it is a named pipe, not a regular file"),
            (path("link"), "it is a named pipe, not a regular file"),
            (path("socket"), "it is a socket, not a regular file"),
            (folder.path().to_owned(), "it is a folder, not a regular file"),
            ("/dev/zero".into(), "it is a device, not a regular file"),
            ("/dev/tty".into(), "it is a device, not a regular file"),
        ];
        for (path, want) in rows {
            let error = read_bytes(&path, 10).unwrap_err();
            assert_eq!(
                (error.kind(), error.to_string()),
                (io::ErrorKind::InvalidInput, want.into())
            );
        }
        assert_eq!(open_regular(&path("nothing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "0123456789");
        let error = read_bytes(&path, 9).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it is longer than 9 bytes");
        // The length of a kernel file is not known in advance.
        assert_eq!(
            read_bytes(Path::new("/proc/self/status"), 9).unwrap_err().to_string(),
            error.to_string()
        );
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, 10).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    /// A file of mode 664 counted regardless of its group, whose members could all write it.
    #[test]
    fn a_file_that_a_group_can_write_counts_only_if_the_group_is_the_owners_own() {
        let group = |gid| Some(ForeignOwner::Group { gid });
        let rows = [
            (1000, 1000, 1000, 0o100_664, None),
            (1000, 1000, 100, 0o100_644, None),
            (1000, 1000, 100, 0o100_664, group(100)),
            (1000, 1000, 0, 0o40_775, group(0)),
            (1000, 0, 0, 0o40_775, None),
            (1000, 0, 50, 0o40_2775, group(50)),
            (0, 0, 1000, 0o100_660, group(1000)),
            (1000, 1001, 1001, 0o100_644, Some(ForeignOwner::User { uid: 1001 })),
            (1000, 1000, 1000, 0o100_666, Some(ForeignOwner::Everybody)),
        ];
        for (own_uid, uid, gid, mode, want) in rows {
            let owner = foreign_owner_of(own_uid, uid, gid, mode, || false);
            assert_eq!(owner, want, "{own_uid} {uid}:{gid} {mode:o}");
            // A list does not change why a file is foreign, and needs the group's permission.
            let with_list = foreign_owner_of(own_uid, uid, gid, mode, || true);
            let own_list = (mode & WRITABLE_BY_GROUP != 0).then_some(ForeignOwner::AccessList);
            assert_eq!(with_list, want.or(own_list), "{own_uid} {uid}:{gid} {mode:o}");
        }
    }

    /// With an access list the mode 664 of a user's own file can mean that another user writes it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_an_access_list_lets_another_user_write_is_foreign() {
        /// A list that lets the owner, one more user and the group read and write.
        const LIST: [(u16, u32); 5] = [
            (0x01, u32::MAX),
            (0x02, 65_534),
            (0x04, u32::MAX),
            (0x10, u32::MAX),
            (0x20, u32::MAX),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        let info = fs::metadata(&path).unwrap();
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (kind, id) in LIST {
            let permissions: u16 = if kind == 0x20 { 4 } else { 6 };
            list.extend(kind.to_le_bytes());
            list.extend(permissions.to_le_bytes());
            list.extend(id.to_le_bytes());
        }
        let flags = rustix::fs::XattrFlags::empty();
        let is_set = rustix::fs::setxattr(&path, access_list::ATTRIBUTE, &list, flags).is_ok();
        // Not every file system has access lists, and not every user has a private group.
        if is_set && info.gid() == info.uid() {
            assert_eq!(foreign_owner(&path).unwrap(), Some(ForeignOwner::AccessList));
            let error = read_own_text(&path, 10).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(error.to_string().contains("access list"), "{error}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        assert_eq!(foreign_owner(&path).unwrap(), None);
        assert_eq!(read_own_text(&path, 10).unwrap(), "x");
    }

    #[test]
    fn what_others_can_write_is_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "x").unwrap();
        for (mode, want) in [
            (0o600, None),
            (0o644, None),
            (0o666, Some(ForeignOwner::Everybody)),
            (0o602, Some(ForeignOwner::Everybody)),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(foreign_owner(&path).unwrap(), want, "{mode:o}");
            assert_eq!(read_own_text(&path, 10).is_ok(), want.is_none());
        }
        assert_eq!(foreign_owner(Path::new("/")).unwrap(), None, "root's");
        // Only root can change the owner of a file; otherwise the file is not foreign.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let given = std::os::unix::fs::chown(&path, Some(65_534), None);
        let refused =
            read_own_text(&path, 10).is_err_and(|error| error.to_string().contains("65534"));
        assert_eq!(refused, given.is_ok());
    }
}
