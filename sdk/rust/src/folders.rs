//! The folders that a plugin may open.
//!
//! Files themselves need no helper: `std::fs` reads and writes below a granted folder, and finds
//! nothing anywhere else.

/// Returns the paths at which folders and files are granted, sorted.
///
/// ```
/// use sallyport_sdk::{folders, testing};
///
/// testing::folders(["/notes", "/music"]);
/// assert_eq!(folders::granted(), ["/music", "/notes"]);
/// ```
pub fn granted() -> Vec<String> {
    let mut paths = crate::host::folders();
    paths.sort();
    paths.dedup();
    paths
}
