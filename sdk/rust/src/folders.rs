//! The folders that a plugin may open.
//!
//! Reading and writing files needs no helper: `std::fs` can access the granted folders, and nothing
//! else.

/// Returns the guest paths of the granted folders and files, sorted and without duplicates.
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
