//! A plugin without the SDK: whatever it answers, the model gets something that it can read.

use serde_json::{Value, json};

use sallyport_contract::Outcome;

use crate::support::{
    Home, Tools,
    registry::{data, told},
};

fn tools() -> Tools {
    Tools::of(&Home::new().guest("raw", ""))
}

#[test]
fn h62_output_that_breaks_its_promise_is_refused() {
    let tools = tools();
    assert_eq!(data(&tools.call("raw.data_good", &json!({}))), &json!({ "n": 1 }));
    for (name, words) in [
        ("no_json", "not valid JSON"),
        ("empty", "not valid JSON"),
        ("cut", "not valid JSON"),
        ("twice", "stands twice"),
        ("not_a_number", "not valid JSON"),
        ("two_documents", "not valid JSON"),
        ("other_type", "does not match its schema"),
        ("no_object", "does not match its schema"),
    ] {
        let text = told(&tools.call(&format!("raw.data_{name}"), &json!({})));
        assert!(text.starts_with("failed: ") && text.contains(words), "{name}: {text}");
    }
}

#[test]
fn every_error_of_the_contract_becomes_an_outcome_with_its_words() {
    let tools = tools();
    for (name, word, words) in [
        ("invalid_arguments", "invalid-arguments", "the words of invalid_arguments"),
        ("not_found", "failed", "the words of not_found"),
        ("denied", "denied", "the words of denied"),
        ("auth_required", "failed", "the words of auth_required"),
        ("unavailable", "failed", "the words of unavailable"),
        ("failed", "failed", "the words of failed"),
        ("other", "failed", "the words of other"),
    ] {
        let report = tools.call(&format!("raw.error_{name}"), &json!({}));
        let text = told(&report);
        assert!(report.outcome.as_str() == word && text.contains(words), "{name}: {text}");
    }
    let other = told(&tools.call("raw.error_other", &json!({})));
    let Outcome::Failed(failure) = tools.call("raw.error_auth_required", &json!({})).outcome else {
        panic!("it is no failure");
    };
    assert_eq!(failure.detail.as_deref(), Some("connection google-mail; scopes send, read"));
    assert!(!other.contains("kind"), "a person reads the message, not the JSON around it: {other}");
}

#[test]
fn every_part_of_an_output_is_read() {
    let tools = tools();
    let part = |name: &str| -> Value {
        tools.call(&format!("raw.content_{name}"), &json!({})).outcome.to_model_value()["content"]
            [0]
        .clone()
    };
    assert_eq!(part("text"), json!({ "type": "text", "text": "some words" }));
    assert_eq!(part("image"), json!({ "type": "image", "media_type": "image/png", "bytes": 3 }));
    assert_eq!(part("audio"), json!({ "type": "audio", "media_type": "audio/ogg", "bytes": 3 }));
    assert_eq!(part("link")["uri"], "https://example.com/a");
    assert!(part("other_part").to_string().contains("chart"));
    let held = |media_type: &str, key: &str, value: Value| json!({ "type": "resource", "uri": "raw://held", "media_type": media_type, key: value });
    assert_eq!(part("embedded_text"), held("text/plain", "text", json!("held words")));
    assert_eq!(part("embedded_image"), held("image/png", "bytes", json!(3)));
    assert_eq!(part("embedded_audio"), held("audio/ogg", "bytes", json!(3)));
    assert_eq!(part("embedded_bytes"), held("application/zip", "bytes", json!(3)));
    assert_eq!(part("embedded_other"), held("a/b", "text", json!("{\"later\":1}")));
    let broken = told(&tools.call("raw.content_broken_part", &json!({})));
    assert!(broken.starts_with("failed: "), "{broken}");
}

#[test]
fn a_title_is_kept_and_shortened_to_what_it_says() {
    let tools = tools();
    let titles: Vec<_> = tools.registry.tools().iter().filter_map(|t| t.title.clone()).collect();
    assert_eq!(titles.len(), 1, "{titles:?}");
    assert!(titles[0].starts_with("Who asks"), "{titles:?}");
}
