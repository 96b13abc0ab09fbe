//! The network: which requests a plugin may send, and to which addresses.
//!
//! The checks run in this order. [`parse_request`] and [`rebuild_url`] refuse a URL that two
//! parsers could read differently. [`NetGrant::check_request`](crate::NetGrant::check_request)
//! checks method, scheme, host, port and path before anything is resolved.
//! [`Grant::check_request`](crate::Grant::check_request) also checks the address if the host
//! determines it. [`NetPermit::allows_address`](crate::NetPermit::allows_address) checks the
//! address that would be dialled, after resolution. All of them have to pass, for every request and
//! every hop of a redirect.

pub mod address;
pub(crate) mod entry;
pub mod host;
pub mod method;
pub mod origin;
pub mod path;
pub mod pattern;
pub(crate) mod port;
pub(crate) mod request_text;
pub mod request_url;

pub use address::{is_public_address, is_this_machine, literal_addresses};
pub use origin::{UrlOrigin, UrlOriginError};
pub use path::is_plain_path;
pub use pattern::{NetPattern, NetPatternError};
pub use request_text::url_without_secrets;
pub use request_url::{RequestFormError, parse_request, rebuild_url};
