//! Sessions that end and go on, slash commands, and files that go along.

use std::fs;

use rustix::process::Signal;
use sallyport_contract::LOCAL_USER;
use sallyport_store::HostStore;
use sallyport_terminal::{editor::KEYS, slash};
use serde_json::json;

use super::{END, PROMPT, chat, chat_with, echoing, home, told};
use crate::support::{OpenAi, Person, Reply, home::repository, patience::wait, transcript};

#[test]
fn a_session_goes_on_where_it_ended() {
    let model = OpenAi::start([echoing(), vec![Reply::Text("Still done.")]].concat());
    let home = home(&model);
    let mut person = chat(&home);
    person.types("say hi\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    person.types(END);
    assert_eq!(person.ends(), 0);
    let mut person = chat_with(&home, &["--continue"]);
    person.sees("> say hi");
    person.types("and now?\r");
    person.sees("Still done.");
    person.sees_last(PROMPT);
    let bodies = model.bodies();
    transcript::check(&bodies);
    let last = bodies.last().unwrap()["messages"].to_string();
    assert!(last.contains("say hi") && last.contains("and now?"), "{last}");
    let screen = person.screen();
    let shown: Vec<&str> = screen.lines().skip_while(|line| !line.starts_with("> say")).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    > say hi
    ✓ hostile.echo hi
    All done.
    openai/m> and now?
    Still done.
    openai/m>
    ");
}

#[test]
fn a_session_that_was_removed_while_it_is_open_is_not_offered_on_leaving() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home);
    person.types("say hi\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    let list = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    let id = list[0]["id"].as_str().unwrap().to_owned();
    home.run(&["session", "remove", &id, "--yes"]).ended(1).remarks(&["has the session"]);
    // Such as by a program that keeps fewer sessions.
    let store = HostStore::open(&home.path("state")).unwrap();
    wait(store.sessions.remove(LOCAL_USER, &id)).unwrap();
    person.types("/session\r");
    person.sees("This session was removed.");
    person.sees_last(PROMPT);
    person.types(END);
    assert_eq!(person.ends(), 0);
    assert!(!person.screen().contains("Resume with"), "{}", person.screen());
}

#[test]
fn an_unknown_command_is_never_sent() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home);
    person.types("/qiut\r");
    person.sees("did you mean /quit?");
    person.sees_last(PROMPT);
    insta::assert_snapshot!(told(&person), @"
    openai/m> /qiut
    error: there is no command /qiut
    hint: did you mean /quit? (a second slash in front sends the line as text)
    openai/m>
    ");
    assert!(model.bodies().is_empty());
}

#[test]
fn commands_tell_what_there_is() {
    let rows = [
        ("/help", "write the session to a .md or .json file"),
        ("/help save", "/save [FILE]"),
        ("/tools echo", "hostile.echo"),
        ("/tools no such thing", "No tool matches."),
        ("/plugins", "1.0.0"),
        ("/plugins hostlie", "did you mean hostile?"),
        ("/grants", "missing"),
        ("/grants hostile", "nothing granted"),
        ("/model", "* openai/m"),
        ("/model offline", "Now talking to offline."),
        ("/session", "This session is saved from its first message on."),
        ("/undo", "nothing has been said yet"),
        ("/retry", "nothing has been said yet"),
        ("/pin", "nothing has been said yet"),
        ("/compact", "there is nothing to sum up"),
        ("/cost", "session"),
        ("/save", "Nothing to save yet: this session has no messages."),
        ("/memory", "The model gets the whole session."),
        ("/new", "New session."),
    ];
    let model = OpenAi::start(echoing());
    let home = home(&model);
    for (line, want) in rows {
        let mut person = chat(&home);
        person.types(&format!("{line}\r"));
        person.sees(want);
        person.sees_last(if line == "/model offline" { "offline>" } else { PROMPT });
        person.types(END);
        assert_eq!(person.ends(), 0, "{line}");
    }
    assert!(model.bodies().is_empty());
}

#[test]
fn turns_are_taken_back_pinned_asked_again_and_saved() {
    let script = vec![Reply::Text("One."), Reply::Text("Two."), Reply::Text("Three.")];
    let model = OpenAi::start(script);
    let home = home(&model);
    let mut person = chat(&home);
    for (line, want) in [
        ("first", "One."),
        ("/pin", "Pinned turn 1."),
        ("/memory", "pinned 1  first"),
        ("/undo", "Took back: first"),
        ("/pin second", "Pinned turn 1."),
        ("/retry", "Three."),
        ("/session", "sallyport chat --session "),
        ("/cost", "1 answer, 0 calls"),
        ("/save out.md", "written to "),
        ("/save out.md", "nothing is overwritten"),
        ("/save out.json", "out.json"),
    ] {
        person.types(&format!("{line}\r"));
        person.sees(want);
        person.sees_last(PROMPT);
    }
    let saved = fs::read_to_string(home.user_path("out.md")).unwrap();
    assert!(
        saved.contains("second") && saved.contains("Three.") && !saved.contains("One."),
        "{saved}"
    );
    let bodies = model.bodies();
    assert_eq!(bodies.len(), 3);
    assert!(!bodies[2]["messages"].to_string().contains("first"), "{}", bodies[2]);
}

#[test]
fn files_go_with_the_message_that_names_them() {
    let model = OpenAi::start(vec![Reply::Text("Read.")]);
    let home = home(&model)
        .user_file("notes.md", "remember the milk")
        .user_file("flag.txt", "from the flag");
    let mut person = chat_with(&home, &["--attach", "flag.txt"]);
    person.types("@gone.md and @notes.md please\r");
    person.sees("Read.");
    person.sees_last(PROMPT);
    insta::assert_snapshot!(told(&person), @"
    openai/m> @gone.md and @notes.md please
    @gone.md: no such file
    attached: notes.md, flag.txt
    Read.
    openai/m>
    ");
    let sent = model.bodies()[0].to_string();
    assert!(sent.contains("remember the milk") && sent.contains("from the flag"), "{sent}");
}

#[test]
fn what_was_interrupted_is_told() {
    let hang = Reply::call("a", "hostile__sleeps_an_hour", &json!({}));
    let model = OpenAi::start(vec![hang, Reply::Text("Better now.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("hostile.sleeps_an_hour ·");
    person.sends(Signal::KILL);
    person.ends();
    let mut person = chat_with(&home, &["--continue"]);
    person.sees("the end of hostile__sleeps_an_hour is not known");
    person.sees("✗ hostile__sleeps_an_hour · interrupted");
    person.types("again\r");
    person.sees("Better now.");
    person.sees_last(PROMPT);
    let bodies = model.bodies();
    transcript::check(&bodies);
    assert_eq!(transcript::result(&bodies, "a")["outcome"], "cancelled");
}

#[test]
fn another_model_takes_over_and_a_new_session_keeps_it() {
    let (first, second) = (
        OpenAi::start(vec![Reply::Text("I am one.")]),
        OpenAi::start(vec![Reply::Text("I am two."), Reply::Text("Still two.")]),
    );
    let table = |name: &str, url: String| {
        format!("[model.{name}]\nprovider = 'openai'\nmodel = 'm'\nbase_url = '{url}'\n")
    };
    let config = table("one", first.base_url()) + &table("two", second.base_url());
    let home = home(&first).config(format!("default_model = 'one'\n{config}"));
    let mut person = Person::start(&home, &["chat"]);
    person.sees_last("one>");
    for (line, want, prompt) in [
        ("hello", "I am one.", "one>"),
        ("/model tw\t", "Now talking to m at", "two>"),
        ("hello again", "I am two.", "two>"),
        ("/new", "New session.", "two>"),
        ("and now?", "Still two.", "two>"),
    ] {
        person.types(&format!("{line}\r"));
        person.sees(want);
        person.sees_last(prompt);
    }
    assert_eq!(second.bodies()[0]["messages"].as_array().unwrap().len(), 3);
    assert_eq!(second.bodies()[1]["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn old_turns_are_summed_up_when_that_is_asked() {
    let said = ["One.", "Two.", "Three.", "They counted to three."];
    let model = OpenAi::start(said.map(Reply::Text).to_vec());
    let home = home(&model);
    let mut person = chat(&home);
    for (line, want) in [
        ("first", "One."),
        ("second", "Two."),
        ("third", "Three."),
        ("/compact", "Replaced 6 messages with a summary"),
    ] {
        person.types(&format!("{line}\r"));
        person.sees(want);
        person.sees_last(PROMPT);
    }
}

#[test]
fn a_message_is_written_in_the_editor_of_the_person() {
    let model = OpenAi::start(vec![Reply::Text("Read.")]);
    let home = home(&model).env("EDITOR", "sed -i s/old/new/");
    let mut person = chat(&home);
    person.types("/edit something old\r");
    person.sees_last("openai/m> something new");
    person.types("\r");
    person.sees("Read.");
    person.sees_last(PROMPT);
    assert_eq!(model.bodies()[0]["messages"][0]["content"], "something new");
}

#[test]
fn the_manual_has_every_command_and_every_key() {
    let manual = fs::read_to_string(repository().join("docs/chat.md")).unwrap();
    let commands = slash::TABLE.iter().map(|entry| format!("| `{}` |", entry.usage()));
    let keys = KEYS.iter().flat_map(|(keys, _)| keys.split(", ").map(str::to_owned));
    for wanted in commands.chain(keys) {
        assert!(manual.contains(&wanted), "docs/chat.md lacks {wanted}");
    }
}
