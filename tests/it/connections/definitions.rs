//! Definitions as plugins: two that others wrote, unmodified, with their rules.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Home, home::repository};

/// A definition that others wrote, byte for byte.
fn written_definition(name: &str) -> Vec<u8> {
    let path = format!("host/crates/connections/testdata/{name}.json");
    fs::read(repository().join(path)).unwrap()
}

/// A definition with an action that says its request.
const OTHER: &str = r#"{"plugin": {"name": "other", "version": "1.0.0", "description": "Others."},
    "actions": {"find": {"description": "Finds.", "parameters": {"type": "object"},
    "request": {"url": "https://other.example/"}}}}"#;

fn home_with_mail() -> Home {
    Home::new()
        .plugins(&["google-mail"])
        .file("plugins/google-mail/google-mail.json", written_definition("google-mail"))
        .env("GOOGLE_CLIENT_ID", "the-client")
        .env("GOOGLE_CLIENT_SECRET", "the-client-secret-4711")
        .env("NEXT_PUBLIC_APP_URL", "https://app.example")
}

fn mail(recipients: usize, subject: usize) -> Value {
    let to: Vec<String> = (0..recipients).map(|n| format!("user{n}@example.com")).collect();
    json!({"recipients": {"to": to}, "content": {"subject": "s".repeat(subject), "body": "hi"}})
}

fn check_mail(home: &Home, arguments: &Value) -> (Value, i32) {
    let text = arguments.to_string();
    let ran = home.run(&["tool", "check", "google-mail.send_email", &text, "--output", "json"]);
    (ran.json(), ran.code)
}

#[test]
fn mail_blocks_asks_and_refuses_by_its_own_rules() {
    let home = home_with_mail();
    home.run(&["tool", "list"])
        .ended(0)
        .answers(&["google-mail.send_email", "Compose and send an email message"]);
    for (recipients, valid, blocked, errors, confirmations) in [
        (2, true, false, vec![], vec![]),
        (10, true, false, vec![], vec![]),
        (11, true, false, vec![], vec!["Send email to 11 recipients?"]),
        (50, true, false, vec![], vec!["Send email to 50 recipients?"]),
        (
            51,
            false,
            true,
            vec!["Cannot send to more than 50 recipients"],
            vec!["Send email to 51 recipients?"],
        ),
    ] {
        let want = json!({
            "valid": valid, "blocked": blocked, "errors": errors,
            "confirmations_required": confirmations,
        });
        let (found, code) = check_mail(&home, &mail(recipients, 5));
        assert_eq!((found, code), (want, i32::from(!valid)), "{recipients}");
    }
    // Copies count too, although the definition does not name their list.
    let mut with_copies = mail(2, 5);
    with_copies["recipients"]["bcc"] = mail(49, 5)["recipients"]["to"].clone();
    assert_eq!(check_mail(&home, &with_copies).0["blocked"], true);
    let (found, _) = check_mail(&home, &mail(2, 201));
    let errors = found["errors"].as_array().unwrap();
    assert!(errors.len() == 1 && errors[0].as_str().unwrap().contains("content"), "{found}");
    assert!(
        errors[0].to_string().contains("subject") && found["blocked"] == json!(false),
        "{found}"
    );
    let (found, _) = check_mail(&home, &json!({"content": {}}));
    assert_eq!(found["errors"].as_array().unwrap().len(), 2, "{found}");
}

/// The check and the call are the same.
#[test]
fn a_call_meets_the_same_rules_as_its_check() {
    let home = home_with_mail();
    let (report, code) = home.call("google-mail.send_email", &mail(51, 5));
    assert_eq!((report["outcome"].as_str(), code), (Some("denied"), 3), "{report}");
    assert!(report.to_string().contains("Cannot send to more than 50 recipients"), "{report}");
    let (report, code) = home.call("google-mail.send_email", &mail(11, 5));
    assert_eq!(code, 6, "nobody is there to confirm: {report}");
    assert!(report.to_string().contains("Send email to 11 recipients?"), "{report}");
    let (report, _) = home.call("google-mail.send_email", &mail(2, 5));
    assert_eq!(report["outcome"], "failed", "{report}");
    // Its own message, since nobody is connected; the raw one is for the user.
    let text = mail(2, 5).to_string();
    home.run(&["call", "google-mail.send_email", &text, "-v"]).ended(7).remarks(&[
        "Gmail connection expired. Reconnect in Settings.",
        "sallyport connection add google-mail",
    ]);
}

/// `plugin list` called it ready, and the model was offered what nothing runs.
#[test]
fn an_action_that_nothing_runs_is_no_tool_and_its_plugin_says_what_would_run_it() {
    let why = "nothing runs research_topic. Put a component that exports research_topic next to";
    let home =
        Home::new().file("plugins/chatgpt-research.json", written_definition("chatgpt-research"));
    home.run(&["plugin", "list"]).ended(0).answers(&["disabled", why]);
    home.run(&["plugin", "show", "chatgpt-research"]).ended(0).answers(&[why]);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains(why), "{}", doctor.stdout);
    home.run(&["tool", "list"]).hides(&["research_topic"]);
    // The other actions of a plugin work without it.
    let idle = r#""idle": {"description": "Idles.", "parameters": {"type": "object"}}, "find""#;
    let home = Home::new().file("plugins/other.json", OTHER.replace(r#""find""#, idle));
    home.run(&["tool", "list"]).ended(0).answers(&["other.find"]).hides(&["other.idle"]);
    home.run(&["plugin", "show", "other"]).ended(0).answers(&["nothing runs idle"]);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("nothing runs idle"), "{}", doctor.stdout);
    home.run(&["call", "other.idle", "{}"]).ended(2).remarks(&["other has no tool \"idle\""]);
}

#[test]
fn a_missing_variable_disables_the_plugin_and_no_other() {
    let home = Home::new()
        .file("plugins/google-mail.json", written_definition("google-mail"))
        .file("plugins/other.json", OTHER)
        .env("GOOGLE_CLIENT_ID", "the-client");
    home.run(&["plugin", "list"]).ended(0).answers(&[
        "google-mail",
        "environment variables are not set: GOOGLE_CLIENT_SECRET, NEXT_PUBLIC_APP_URL",
        "other",
    ]);
    let ran = home.run(&["tool", "list"]).ended(0).answers(&["other.find"]);
    ran.hides(&["google-mail.send_email"]);
}

#[test]
fn a_mistake_in_a_definition_is_reported_with_its_place_and_spares_the_others() {
    let broken = String::from_utf8(written_definition("google-mail")).unwrap();
    let broken = broken.replacen("total_recipients > 50", "total_recipient_list > 50", 1);
    let home = Home::new()
        .file("plugins/google-mail.json", broken)
        .file("plugins/empty.json", "")
        .file("plugins/other.json", OTHER);
    home.run(&["tool", "list"]).ended(0).answers(&["other.find"]).remarks(&[
        "line 59, column",
        "nothing defines \"total_recipient_list\"",
        "EOF while parsing a value",
    ]);
}
