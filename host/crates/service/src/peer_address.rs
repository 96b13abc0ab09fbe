//! The address that a request comes from. The server adds it to each request.

use std::net::IpAddr;

/// The address of the other side of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);
