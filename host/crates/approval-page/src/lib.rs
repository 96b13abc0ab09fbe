//! A page on the local network on which the user answers questions, from a phone.
//!
//! The questions are those that wait in the store, and an answer takes the same step there as one of
//! any other program. So the first one counts, and it is bound to the hash of what was shown.
//!
//! One browser uses the page: the one that opens the link first. The link is a secret, so it is shown
//! at the terminal and never stored. The connection is encrypted under a certificate that is made for
//! it; a browser cannot know it, so its fingerprint is shown beside the link.
//!
//! [`ApprovalPage`] is the only entry point. Start reading there.

mod access;
mod certificate;
mod html;
mod routes;
mod server;

pub use certificate::CertificateError;
pub use server::{ApprovalPage, PageError};
