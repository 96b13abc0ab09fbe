//! Downloads a component from an address that the operator names.

use sallyport_packages::{DownloadRules, download_file};
use sallyport_policy::is_public_address;
use sallyport_sandbox::COMPONENT_BYTES_MAX;

pub use sallyport_packages::DownloadError;

/// Downloads a component into memory. `allows_private` allows addresses of the private network, and
/// `http` on this machine.
///
/// # Errors
///
/// The address is not allowed, the server cannot be reached or does not give the file, or the file
/// is larger than a component may be.
pub async fn download_component(
    address: &str,
    allows_private: bool,
) -> Result<Vec<u8>, DownloadError> {
    let rules = DownloadRules {
        bytes_max: COMPONENT_BYTES_MAX,
        is_public: is_public_address,
        allows_private,
    };
    download_file(address, rules).await
}
