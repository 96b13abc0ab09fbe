//! What `run --output jsonl` and `--output json` print, read as another program would: against the
//! published form, and to the one event that ends it.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use super::{Home, Ran};

/// The published forms, as the program prints them.
struct Forms {
    events: Validator,
    result: Validator,
}

fn forms() -> &'static Forms {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    FORMS.get_or_init(|| {
        let home = Home::new();
        let form = |name| {
            let schema = home.run(&["schema", name]).ended(0).json();
            jsonschema::validator_for(&schema).unwrap()
        };
        Forms { events: form("events"), result: form("result") }
    })
}

/// All events of a run. Each has the published form; the last one alone ends it, with the code that
/// the program ended with.
#[track_caller]
pub(crate) fn events(ran: &Ran) -> Vec<Value> {
    let events: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        assert_fits(&forms().events, event);
    }
    let (last, earlier) = events.split_last().unwrap_or_else(|| panic!("no event in {ran:#?}"));
    assert!(is_last(last) && !earlier.iter().any(is_last), "{ran:#?}");
    assert_eq!(last["exit_code"], ran.code, "{ran:#?}");
    events
}

/// The whole of a run, in the published form.
#[track_caller]
pub(crate) fn result(ran: &Ran) -> Value {
    let result = ran.json();
    assert_fits(&forms().result, &result);
    assert!(is_last(&result), "{ran:#?}");
    assert_eq!(result["exit_code"], ran.code, "{ran:#?}");
    result
}

/// The events of one kind.
pub(crate) fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn is_last(event: &Value) -> bool {
    event["type"] == "turn-ended" || event["type"] == "error"
}

#[track_caller]
fn assert_fits(form: &Validator, value: &Value) {
    if let Err(error) = form.validate(value) {
        panic!("{error} in {value:#}");
    }
}
