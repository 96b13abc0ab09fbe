//! Plugins that are one JSON file, and the accounts that users connect them to.

mod calendar;
mod chat;
mod definitions;
mod github;
mod google_mail;
mod home_assistant;
pub(crate) mod logins;
mod refreshes;
mod requests;
mod research;
mod spotify;
