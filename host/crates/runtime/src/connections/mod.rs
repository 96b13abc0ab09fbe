//! Users' accounts at outside services.
//!
//! [`ConnectionDesk`] keeps them: it seals tokens, refreshes them ahead of their end with one refresh
//! for all processes, and hands out the token of one user to one plugin. `login` makes a
//! connection, and `context` is what a model is told about them.

pub mod context;
mod desk;
mod error;
mod key;
pub mod login;

pub use desk::{ConnectionDesk, ConnectionFacts};
pub use error::{AccountError, connect_advice};
pub use key::KEY_FILE;
pub use login::SignInPresenter;
