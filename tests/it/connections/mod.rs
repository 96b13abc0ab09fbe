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

/// A policy that lets a plugin send these requests, such as `GET /items/*`, to a server of the test,
/// and call its tools without a question.
fn policy_of(plugin: &str, url: &str, requests: &[&str]) -> String {
    let entry = |request: &&str| {
        let address = request.replacen(' ', &format!(" {url}"), 1);
        format!("{{ allow = \"{address}\", to-private = true }}")
    };
    let net: Vec<String> = requests.iter().map(entry).collect();
    format!(
        "[plugin.{plugin}]\nnet = [{}]\n[[rule]]\ntool = \"{plugin}.*\"\ndecision = \"allow\"\n",
        net.join(", ")
    )
}
