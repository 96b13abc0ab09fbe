//! Plugins that are one JSON file, and the accounts that users connect them to.

mod calendar;
mod chat;
mod definitions;
mod google_mail;
pub(crate) mod logins;
mod refreshes;
mod requests;
mod research;
mod spotify;
