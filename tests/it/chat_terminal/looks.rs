//! What is seen while an answer arrives.

use serde_json::json;

use super::{PROMPT, chat, chat_with, echoing, home, told};
use crate::support::{
    Home, OpenAi, Person, Reply, Response, Server,
    warden::{entry, policy, requests},
};

#[test]
fn markdown_is_laid_out() {
    let answer = "# Plan\n\n- *first* step\n- **second** step\n\n```rust\nfn main() {}\n```\n";
    let model = OpenAi::start(vec![Reply::Text(answer)]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("fn main()");
    person.sees_last(PROMPT);
    insta::assert_snapshot!(told(&person), @"
    openai/m> go
    # Plan

    • first step
    • second step

    ── rust
      fn main() {}
    openai/m>
    ");
}

#[test]
fn an_answer_that_is_arriving_survives_another_size() {
    let model =
        OpenAi::start(vec![Reply::Stalls("one two three four five six seven eight nine ten")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("eight nine ten");
    person.resizes(12, 30);
    person.sees("six\nseven eight nine ten");
    person.resizes(24, 80);
    person.sees("six seven eight nine ten");
    person.types("\u{3}");
    person.sees_last(PROMPT);
}

#[test]
fn a_provider_that_could_not_answer_is_asked_again() {
    let model = OpenAi::start(vec![Reply::Status(503), Reply::Text("Here I am.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("retrying in ");
    person.sees("Here I am.");
    person.sees_last(PROMPT);
    insta::assert_snapshot!(told(&person), @"
    openai/m> go
    Here I am.
    openai/m>
    ");
}

#[test]
fn the_status_names_the_host_that_a_tool_waits_for() {
    let silent = Server::start(|_| Response::Silence);
    let call = Reply::call("a", "hostile__fetches", &json!({ "authority": silent.authority() }));
    let model = OpenAi::start(vec![call]);
    let home =
        home(&model).guest("hostile", &requests(&[&format!("GET {}/**", silent.url())])).policy(
            policy(&[entry(&silent, "")], "")
                + "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n",
        );
    let mut person = chat(&home);
    person.types("go\r");
    person.sees(" · waits for 127.0.0.1 · ");
    person.types("\u{3}");
    person.sees("cancelled");
    person.sees_last(PROMPT);
}

#[test]
fn reasoning_is_shown_to_whoever_wants_it() {
    for (config, is_shown) in [("", false), ("[chat]\nshow_reasoning = true\n", true)] {
        let model = OpenAi::start(vec![Reply::Thoughts("Let me see.", "So it is.")]);
        let home = home(&model).config(config);
        let mut person = chat(&home);
        person.types("go\r");
        person.sees("So it is.");
        person.sees_last(PROMPT);
        let screen = person.screen();
        assert_eq!(screen.contains("Let me see."), is_shown, "{screen}");
    }
}

#[test]
fn every_call_is_shown_to_whoever_wants_it() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat_with(&home, &["-v"]);
    person.types("go\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    let told = told(&person);
    assert!(told.contains("→ hostile.echo {\"text\":\"hi\"}"), "{told}");
    assert!(told.contains("← hostile.echo completed"), "{told}");
}

#[test]
fn a_sentence_that_a_tool_gives_is_said_once() {
    let home = Home::new().plugins(&["clock"]);
    let mut person = Person::start(&home, &["chat", "--model", "offline"]);
    person.sees_last("offline>");
    person.types("what time is it in Tokyo?\r");
    person.sees("✓ clock.get_time Tokyo · ");
    person.sees_last("offline>");
    let told = person.screen();
    let answers = told.lines().filter(|line| line.contains("in Tokyo") && !line.contains('>'));
    assert_eq!(answers.count(), 1, "{told}");
}
