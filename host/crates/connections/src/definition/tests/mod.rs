//! Definitions: two that others wrote, mistakes with their places, requests, answers, failures.

mod answers;
mod mistakes;
mod requests;

use sallyport_contract::FailureKind;
use serde_json::json;

use super::*;

const GOOGLE_MAIL: &str = include_str!("../../../testdata/google-mail.json");
const RESEARCH: &str = include_str!("../../../testdata/chatgpt-research.json");

/// Variables as a test sets them.
fn variable(name: &str) -> Option<String> {
    match name {
        "GOOGLE_CLIENT_ID" => Some("the-client".to_owned()),
        "GOOGLE_CLIENT_SECRET" => Some("the-secret".to_owned()),
        "NEXT_PUBLIC_APP_URL" => Some("https://app.example".to_owned()),
        "SERVICE_URL" => Some("https://service.example:8443/base".to_owned()),
        _ => None,
    }
}

/// A definition whose one action `do` has these fields.
fn with_action(fields: &str) -> String {
    format!(
        r#"{{"plugin": {{"name": "p", "version": "1.0.0", "description": "d"}},
 "actions": {{"do": {{"description": "d", "parameters": {{"type": "object",
  "required": ["id", "place"],
  "properties": {{"id": {{"type": "string"}}, "place": {{"type": "string"}},
   "n": {{"type": "integer"}}, "tags": {{"type": "array"}}, "size": {{"default": 7}}}}}},
  {fields}}}}}}}"#
    )
}

fn parse(text: &str) -> Definition {
    Definition::parse("p.json", text, &variable)
        .unwrap_or_else(|error| panic!("{error} {:?}\n{text}", error.hint))
}

#[test]
fn definitions_that_others_wrote_load_unmodified() {
    let mail = parse(GOOGLE_MAIL);
    let auth = &mail.account.as_ref().unwrap().auth;
    assert_eq!((mail.name.as_str(), mail.is_popular, mail.is_system), ("google-mail", true, false));
    assert_eq!(mail.category.as_deref(), Some("communication"));
    assert_eq!(mail.context.as_deref(), Some("Use for all Gmail email-related tasks"));
    assert_eq!((auth.auth_type, auth.client_id.as_str()), (AuthType::Google, "the-client"));
    assert_eq!(auth.client_secret.as_ref().map(|secret| secret.expose()), Some("the-secret"));
    let redirect = "https://app.example/oauth/callback/google-mail";
    assert_eq!(auth.redirect_uri.as_deref(), Some(redirect));
    assert_eq!(auth.token_url.as_ref().unwrap().as_str(), "https://oauth2.googleapis.com/token");
    assert_eq!(auth.required_scopes.len(), 5);
    assert!(mail.needs_connection() && mail.addresses().is_empty());
    let action = &mail.actions[0];
    assert_eq!(action.name.as_str(), "send_email");
    assert_eq!(
        action.text_for_model(),
        "Compose and send an email message\nWhen user wants to send a new message via Gmail"
    );
    assert_eq!(action.rules.conditions().count(), 2);
    let expired = FailureFacts::from_kind(FailureKind::AuthRequired);
    let message = "Gmail connection expired. Reconnect in Settings.";
    assert_eq!(action.guidance.message_about(&expired), Some(message));

    let research = parse(RESEARCH);
    let auth = &research.account.as_ref().unwrap().auth;
    assert!(research.is_system && !research.needs_connection());
    assert_eq!((auth.auth_type, &auth.client_secret), (AuthType::PlatformKey, &None));
    assert_eq!(research.actions[0].parameters["properties"]["topic"]["maxLength"], json!(500));
}

/// The definitions of the repository are as the page says.
#[test]
fn the_repositorys_own_definitions_load() {
    let github = include_str!("../../../../../../plugins-src/definitions/github.json");
    let home = include_str!("../../../../../../plugins-src/definitions/home-assistant.json");
    let set = |name: &str| match name.ends_with("_URL") {
        true => Some("http://homeassistant.local:8123".to_owned()),
        false => Some("value".to_owned()),
    };
    let github = Definition::parse("github.json", github, &set).unwrap();
    let want = [
        "GET https://api.github.com/repos/*/*/issues",
        "GET https://api.github.com/repos/*/*/pulls",
        "GET https://api.github.com/search/issues",
        "POST https://api.github.com/repos/*/*/issues",
    ];
    assert_eq!(github.addresses(), want);
    assert!(github.needs_connection());
    let home = Definition::parse("home-assistant.json", home, &set).unwrap();
    assert!(!home.needs_connection());
    assert_eq!(home.addresses().len(), 3);
    assert_eq!(home.addresses()[0], "GET http://homeassistant.local:8123/api/states");
}

/// The page lists the same words.
#[test]
fn the_page_lists_the_words_of_common_errors() {
    let page = include_str!("../../../../../../docs/definitions.md");
    for word in common_error_words() {
        assert!(page.contains(&format!("`{word}`")), "{word} is not in docs/definitions.md");
    }
}

#[test]
fn a_missing_variable_is_named_and_is_no_mistake() {
    let mail = Definition::parse("google-mail.json", GOOGLE_MAIL, &|_| None).unwrap();
    let all = ["GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET", "NEXT_PUBLIC_APP_URL"];
    assert_eq!(mail.missing_variables, all);
    assert!(
        mail.variables.len() == 3
            && all.iter().all(|name| mail.variables.iter().any(|own| own == name))
    );
    // An empty value is none.
    let empty = |name: &str| (name != "GOOGLE_CLIENT_ID").then_some(String::new());
    let mail = Definition::parse("google-mail.json", GOOGLE_MAIL, &empty).unwrap();
    assert_eq!(mail.missing_variables.len(), 3);
    let text = with_action(r#""request": {"url": "${NOT_SET}/a/{id}"}"#);
    let definition = parse(&text);
    assert_eq!(definition.missing_variables, ["NOT_SET"]);
}
