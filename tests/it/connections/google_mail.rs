//! Mail is sent by a component that never holds a token, against a server that refuses as the real
//! service does.

use data_encoding::BASE64URL;
use serde_json::{Value, json};

use super::logins::connect_to;
use crate::support::{
    Home, Response,
    home::repository,
    identity::{CLIENT_SECRET, IdentityServer},
};

const SENT: &str = r#"{"id": "18c", "threadId": "18c", "labelIds": ["SENT"]}"#;

fn connected() -> (IdentityServer, Home) {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    connect_to("google-mail", &home, &identity);
    (identity, home)
}

/// The plugin with its sign-in and its service at the identity server.
fn home_of(identity: &IdentityServer) -> Home {
    let url = identity.server.url();
    let path = repository().join("plugins-src/google-mail/google-mail.json");
    let definition = std::fs::read_to_string(path)
        .unwrap()
        .replace("https://accounts.google.com/o/oauth2/v2/auth", &format!("{url}/authorize"))
        .replace("https://oauth2.googleapis.com/token", &format!("{url}/token"))
        .replace("https://www.googleapis.com/oauth2/v2/userinfo", &format!("{url}/profile"));
    Home::new()
        .plugins(&["google-mail"])
        .file("plugins/google-mail/google-mail.json", definition)
        .config(format!("[settings.google-mail]\ngmail_url = \"{url}\"\n"))
        .policy(format!(
            "[plugin.google-mail]\nnet = [{{ allow = \"POST {url}/gmail/v1/users/me/messages/send\", \
             to-private = true }}]\n[[rule]]\ntool = \"google-mail.*\"\ndecision = \"allow\"\n"
        ))
        .env("GOOGLE_CLIENT_ID", "the-client")
        .env("GOOGLE_CLIENT_SECRET", CLIENT_SECRET)
        .env("NEXT_PUBLIC_APP_URL", "https://app.example")
        .env("SALLYPORT_BROWSER", "none")
}

fn send(home: &Home) -> (Value, i32) {
    let mail = json!({
        "recipients": { "to": ["ann@example.com"], "cc": ["José <jose@example.com>"] },
        "content": { "subject": "Grüße", "body": "Hi!" },
    });
    home.call("google-mail.send_email", &mail)
}

#[test]
fn mail_is_sent_and_the_message_of_the_definition_counts_its_recipients() {
    let (identity, home) = connected();
    identity.with(|state| state.answers = vec![Response::ok(SENT)]);
    let (report, code) = send(&home);
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
    assert_eq!(report["result"]["data"]["id"], "18c", "{report}");
    assert!(report.to_string().contains("Email sent to 2 recipients"), "{report}");
    let accepted = identity.with(|state| state.accepted.clone());
    let [(what, body)] = accepted.as_slice() else { panic!("{accepted:?}") };
    assert_eq!(what, "POST /gmail/v1/users/me/messages/send");
    let raw = serde_json::from_str::<Value>(body).unwrap()["raw"].as_str().unwrap().to_owned();
    let mail = String::from_utf8(BASE64URL.decode(raw.as_bytes()).unwrap()).unwrap();
    for line in ["To: <ann@example.com>\r\n", "<jose@example.com>\r\n", "Subject: =?utf-8?"] {
        assert!(mail.contains(line), "{line} in {mail}");
    }
    home.run(&["audit", "show", "--output", "json"])
        .ended(0)
        .hides(&identity.secrets().iter().map(String::as_str).collect::<Vec<_>>());
}

/// A component got the 401, and the call failed although the account could be refreshed.
#[test]
fn a_401_in_a_components_request_refreshes_once_and_sends_once() {
    let (identity, home) = connected();
    identity.with(|state| {
        state.access.clear();
        state.answers = vec![Response::ok(SENT)];
    });
    let (report, code) = send(&home);
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
    assert_eq!(identity.with(|state| (state.refreshes, state.accepted.len())), (1, 1));
    // The renewed token is refused too, which ends the account and not only the call.
    identity.with(|state| state.refuses_all = true);
    let (report, _) = send(&home);
    let text = "Reconnect in Settings. To fix: sallyport connection add google-mail";
    assert!(report.to_string().contains(text), "{report}");
    assert_eq!(identity.with(|state| state.refreshes), 2);
    home.run(&["connection", "show", "google-mail"]).ended(0).answers(&["expired"]);
}

#[test]
fn each_refusal_of_the_service_is_told_in_the_definitions_words() {
    let (identity, home) = connected();
    let error = |reason: &str| {
        json!({"error": {"message": "refused", "errors": [{"reason": reason}]}}).to_string()
    };
    for (answer, want) in [
        (Response::with(403, &[], &error("insufficientPermissions")), "connection add google-mail"),
        (Response::with(403, &[], &error("dailyLimitExceeded")), "Daily sending limit reached."),
        (
            Response::with(429, &[("retry-after", "30")], &error("rateLimitExceeded")),
            "Daily sending limit reached.",
        ),
        (Response::with(502, &[], "<html>Bad Gateway</html>"), "the answer has status 502"),
        (Response::ok("<html>Sign in</html>"), "may have been sent"),
        (Response::with(400, &[], &error("invalidArgument")), "refused"),
    ] {
        identity.with(|state| state.answers = vec![answer]);
        let (report, _) = send(&home);
        assert_ne!(report["outcome"], "completed", "{report}");
        assert!(report.to_string().contains(want), "{want} in {report}");
        assert_eq!(identity.with(|state| state.answers.len()), 0, "it was asked once");
    }
    assert_eq!(identity.with(|state| state.refreshes), 0);
}
