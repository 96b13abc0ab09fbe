//! The network: which requests a plugin may send, and to which addresses.
//!
//! What is checked where: [`read_request`] and [`rebuild_url`] refuse a URL that two readers could
//! read differently; [`NetGrant::check`] looks at method, scheme, host, port and path before
//! anything is resolved; [`Grant::check_request`](crate::Grant::check_request) looks also at the
//! address that a host can only mean; [`NetPermit::allows_address`] looks at the address that would
//! be dialled, after resolving. Both have to agree, for every request and every hop of a redirect.

pub mod address;
pub(crate) mod entry;
pub mod grant;
pub mod host;
pub mod method;
pub mod origin;
pub mod path;
pub mod pattern;
pub(crate) mod port;
pub mod request_url;

pub use address::is_public;
pub use grant::{NetGrant, NetPermit};
pub use origin::{Origin, OriginError};
pub use path::is_plain_path;
pub use pattern::{NetPattern, PatternError};
pub use request_url::{RequestFormError, read_request, rebuild_url};
