//! Accounts in a chat: a call that lacks one waits for it, and `/connect`.

use serde_json::json;

use super::logins::{connect, home_of, location};
use crate::support::{Home, OpenAi, Person, Reply, client, identity::IdentityServer, transcript};

const PROMPT: &str = "openai/m>";

/// Columns of the terminal: the address of a sign-in is on one row.
const COLUMNS: u16 = 600;

fn lists_items() -> OpenAi {
    let call = Reply::call("a", "service__list_items", &json!({}));
    OpenAi::start(vec![call, Reply::Text("Three items.")])
}

fn home(identity: &IdentityServer, model: &OpenAi) -> Home {
    home_of(identity).env("OPENAI_BASE_URL", model.base_url()).env("OPENAI_API_KEY", "k")
}

#[track_caller]
fn chat(home: &Home) -> Person {
    let person = Person::start_sized(home, &["chat", "--model", "m"], 50, COLUMNS);
    person.sees_last(PROMPT);
    person
}

/// Opens the page that the screen shows. `change` is what happens to the way back.
#[track_caller]
fn visit_page(person: &Person, identity: &IdentityServer, change: impl Fn(&str) -> String) {
    let start = format!("{}/authorize?", identity.server.url());
    person.sees(&start);
    let screen = person.screen();
    let address = &screen[screen.rfind(&start).unwrap()..];
    let address = address.split_whitespace().next().unwrap();
    let (authority, path) = location(identity, address);
    client::ask(&authority, "GET", &change(&path), &[], "");
}

/// The instructions in the latest request of the model.
fn instructions(model: &OpenAi) -> String {
    model.bodies().last().unwrap()["messages"][0]["content"].to_string()
}

fn result(model: &OpenAi) -> String {
    transcript::result(&model.bodies(), "a").to_string()
}

#[test]
fn a_call_that_lacks_its_account_waits_for_it_on_a_card_and_goes_on() {
    let (identity, model) = (IdentityServer::start(), lists_items());
    let home = home(&identity, &model);
    let mut person = chat(&home).asked();
    let card = person.screen();
    let page = format!("open the sign-in page of service ({}/authorize)", identity.server.url());
    for text in [page.as_str(), "service is not connected to an account"] {
        assert!(card.contains(text), "{text}: {card}");
    }
    person.types("y");
    visit_page(&person, &identity, str::to_owned);
    person.sees("Connected service.");
    person.sees("Three items.");
    person.sees_last(PROMPT);
    assert_eq!(result(&model), r#"["a","b","c"]"#);
    assert!(identity.with(|state| state.problems.is_empty()));
    // The model was told what could be connected; a new session has nothing to tell.
    let line = "- service (not connected): A service. sallyport connection add service";
    assert!(instructions(&model).contains(line), "{}", instructions(&model));
    home.run(&["run", "--model", "m", "go"]).ended(0);
    assert!(!instructions(&model).contains("not connected"), "{}", instructions(&model));
}

/// The call failed once, and only the next one asked.
#[test]
fn an_account_that_ends_during_a_call_is_connected_again_and_the_call_is_repeated() {
    let (identity, model) = (IdentityServer::start(), lists_items());
    let home = home(&identity, &model);
    connect(&home, &identity);
    identity.with(|state| {
        state.access.clear();
        state.refresh.clear();
    });
    let mut person = chat(&home).asked();
    let card = person.screen();
    assert!(card.contains("the connection of service has expired"), "{card}");
    person.types("y");
    visit_page(&person, &identity, str::to_owned);
    person.sees("Three items.");
    assert_eq!(result(&model), r#"["a","b","c"]"#);
}

#[test]
fn an_account_that_is_refused_or_not_had_is_told_to_the_model() {
    let denied = |path: &str| format!("{}&error=access_denied", path.replace("code=", "no="));
    for (key, want) in [
        ("n", "the user does not want to connect it now. To fix: sallyport connection add service"),
        ("y", "the sign-in was refused: access_denied. To fix: sallyport connection add service"),
    ] {
        let (identity, model) = (IdentityServer::start(), lists_items());
        let home = home(&identity, &model);
        let mut person = chat(&home).asked();
        person.types(key);
        if key == "y" {
            visit_page(&person, &identity, denied);
        }
        person.sees("Three items.");
        assert!(result(&model).contains(want), "{want} in {}", result(&model));
        home.run(&["connection", "list"]).ended(0).answers(&["not connected"]);
    }
}

#[test]
fn the_slash_command_lists_accounts_and_connects_one() {
    let (identity, model) = (IdentityServer::start(), lists_items());
    let home = home(&identity, &model);
    let mut person = chat(&home);
    person.types("/connect\r");
    person.sees("/connect service");
    person.types("/connect other\r");
    person.sees("there is no plugin \"other\"");
    person.types("/connect service\r");
    visit_page(&person, &identity, str::to_owned);
    person.sees("Connected service.");
    person.types("/connect\r");
    person.sees("ann@example.com");
    home.run(&["connection", "list"]).ended(0).answers(&["active"]);
}
