//! The network: which requests a plugin may send, and to which addresses.
//!
//! What is checked where: [`NetGrant::check`] looks at method, scheme, host, port and path before
//! anything is resolved; [`NetPermit::allows_address`] looks at the address that would be dialled,
//! after resolving. Both have to agree, for every request and every hop of a redirect.

pub mod address;
pub(crate) mod entry;
pub mod grant;
pub mod host;
pub mod method;
pub mod origin;
pub mod path;
pub mod pattern;
pub(crate) mod port;

pub use address::is_public;
pub use grant::{NetGrant, NetPermit};
pub use origin::{Origin, OriginError};
pub use pattern::{NetPattern, PatternError};
