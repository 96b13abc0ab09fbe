//! Access lists of files and folders: POSIX ACLs, which Linux keeps in an attribute. On other systems
//! no list is found.

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{file_has_list, path_has_list};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::{file_has_list, path_has_list};

/// The attribute that holds the list.
#[cfg(target_os = "linux")]
pub(crate) const ATTRIBUTE: &str = "system.posix_acl_access";

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs::File, path::Path};

    use rustix::{
        fs::{fgetxattr, getxattr},
        io::Errno,
    };

    use super::ATTRIBUTE;

    pub(crate) fn path_has_list(path: &Path) -> bool {
        is_list(getxattr(path, ATTRIBUTE, &mut [0; 1]))
    }

    pub(crate) fn file_has_list(file: &File) -> bool {
        is_list(fgetxattr(file, ATTRIBUTE, &mut [0; 1]))
    }

    /// A list that is longer than the buffer is an error. Any other unexpected error counts as a list
    /// too, because there could be one.
    fn is_list(answer: rustix::io::Result<usize>) -> bool {
        !matches!(answer, Ok(0) | Err(Errno::NODATA | Errno::OPNOTSUPP))
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::{fs::File, path::Path};

    pub(crate) fn path_has_list(_path: &Path) -> bool {
        false
    }

    pub(crate) fn file_has_list(_file: &File) -> bool {
        false
    }
}
