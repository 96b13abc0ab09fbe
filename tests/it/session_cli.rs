//! Sessions that are kept: gone on with, looked at, forked, removed.

use std::io::{BufRead as _, BufReader, Write};

use sallyport_contract::LOCAL_USER;
use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Reply, Terminal, home::finish, patience::wait, transcript, warden::requests,
};

fn home(model: &OpenAi) -> Home {
    Home::new().plugins(&["clock"]).env("OPENAI_BASE_URL", model.base_url())
}

fn ask(home: &Home, question: &str, flags: &[&str]) {
    home.run(&[&["run", "-m", "scripted", question], flags].concat()).ended(0);
}

fn list(home: &Home) -> Vec<Value> {
    let list = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    list.as_array().unwrap().clone()
}

fn id(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

fn said(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    messages.filter_map(|message| message["content"].as_str()).collect()
}

#[test]
fn a_session_goes_on_where_it_was_left() {
    let model = OpenAi::start(vec![
        Reply::call("call_a", "clock__get_time", &json!({ "timezone": "UTC" })),
        Reply::Text("One."),
        Reply::Text("Two."),
        Reply::Text("Three."),
    ]);
    let home = home(&model);
    ask(&home, "first", &["--system", "Be brief."]);
    let sessions = list(&home);
    ask(&home, "second", &["--session", &id(&sessions[0])[..20]]);
    ask(&home, "third", &["--continue"]);
    let bodies = model.bodies();
    transcript::check(&bodies);
    let last = said(&bodies[3]);
    assert_eq!(last[0], "Be brief.");
    assert_eq!(last[last.len() - 4..], ["One.", "second", "Two.", "third"]);
    let sessions = list(&home);
    assert_eq!((sessions.len(), &sessions[0]["turns"]), (1, &json!(3)));
    assert_eq!(sessions[0]["title"], "first");
}

#[test]
fn a_session_that_another_program_had_open_was_answered_and_not_saved() {
    let model = OpenAi::start(vec![Reply::Text("One."), Reply::Text("Two.")]);
    let home = home(&model);
    ask(&home, "first", &[]);
    let session = id(&list(&home)[0]).to_owned();
    let args = ["chat", "-m", "scripted", "--session", &session];
    let mut chat = home.start(&args);
    // The chat has the session open when it greets.
    let mut greeting = BufReader::new(chat.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("/help for help") {
        line.clear();
        assert!(greeting.read_line(&mut line).unwrap() > 0, "the chat has ended");
    }
    let open = format!("another program has the session {session} open");
    let fork = format!("sallyport session fork {session}");
    for flags in [&["--session", session.as_str()][..], &["--continue"]] {
        let args = [&["run", "-m", "scripted", "second"], flags].concat();
        home.run(&args).ended(1).remarks(&[&open, &fork]);
    }
    home.run(&["session", "remove", "--yes", &session]).ended(1).remarks(&[&open]);
    assert_eq!(list(&home)[0]["turns"], 1);
    finish(chat, &args).ended(0);
    ask(&home, "third", &["--session", &session]);
    assert_eq!(list(&home)[0]["turns"], 2);
}

#[test]
fn what_is_not_to_be_kept_is_not() {
    let model = OpenAi::start(vec![Reply::Text("Aye.")]);
    let home = home(&model);
    ask(&home, "hush", &["--ephemeral"]);
    assert!(list(&home).is_empty());
    home.run(&["run", "-m", "scripted", "hi", "--continue"]).ended(2).remarks(&["no session"]);
    for both in [["--ephemeral", "--continue"], ["--session=x", "--continue"]] {
        home.run(&["run", "hi", both[0], both[1]]).ended(2);
    }
}

#[test]
fn a_chat_goes_on_with_a_session_too() {
    let model = OpenAi::start(vec![Reply::Text("One."), Reply::Text("Two.")]);
    let home = home(&model);
    ask(&home, "first", &[]);
    let sessions = list(&home);
    let resume = ["session", "resume", id(&sessions[0]), "-m", "scripted"];
    home.run_with_input(&resume, "second\n").ended(0).answers(&["Two."]);
    assert_eq!(said(&model.bodies()[1]), ["first", "One.", "second"]);
}

#[test]
fn sessions_are_listed_shown_found_and_exported() {
    let model = OpenAi::start(vec![
        Reply::call("call_a", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" })),
        Reply::Text("It is late \u{1b}[31min Tokyo."),
        Reply::Text("Something else."),
    ]);
    let home = home(&model);
    ask(&home, "what time is it?", &[]);
    ask(&home, "and now?", &[]);
    let sessions = list(&home);
    let first = id(&sessions[1]);
    home.run(&["session", "list"]).ended(0).answers(&[first, "1 turn", "what time is it?"]);
    home.run(&["session", "list", "-n", "1"]).ended(0).hides(&[first]);
    let shown = home.run(&["session", "show", first]).ended(0).hides(&["\u{1b}[31m"]);
    shown.answers(&["1. You", "clock.get_time", "→ completed", "It is late", "scripted at http"]);
    let json = home.run(&["session", "show", first, "--output", "json"]).ended(0).json();
    assert_eq!(json["turns"][0]["steps"][0]["outcome"], "completed");
    let exported = home.run(&["session", "export", first, "--format", "json"]).ended(0).json();
    assert_eq!(exported, json);
    let page = home.run(&["session", "export", first]).ended(0);
    page.answers(&["# what time is it", "Call of clock.get\\_time: completed"]);
    home.run(&["session", "search", "late", "tokyo"]).ended(0).answers(&[first]);
    let hits = home.run(&["session", "search", "else", "--output", "json"]).ended(0).json();
    assert_eq!(hits[0]["session_id"], sessions[0]["id"]);
    home.run(&["session", "search", "nowhere"]).ended(1).remarks(&["Nothing is found."]);
}

#[test]
fn a_fork_goes_another_way_and_leaves_its_parent_as_it_is() {
    let model =
        OpenAi::start(vec![Reply::Text("One."), Reply::Text("Two."), Reply::Text("Other.")]);
    let home = home(&model);
    ask(&home, "first", &[]);
    ask(&home, "second", &["--continue"]);
    let parent = list(&home)[0].clone();
    let fork = home.run(&["session", "fork", id(&parent), "--turn", "1"]).ended(0).stdout;
    ask(&home, "other", &["--session", fork.trim()]);
    assert_eq!(said(&model.bodies()[2]), ["first", "One.", "other"]);
    let now = list(&home);
    assert_eq!(now.iter().find(|session| session["id"] == parent["id"]), Some(&parent));
    assert_eq!(now[0]["parent_id"], parent["id"]);
    home.run(&["session", "fork", id(&parent), "--turn", "9"]).ended(2).remarks(&["has 2 turns"]);
}

#[test]
fn sessions_are_removed_when_somebody_agrees() {
    let model = OpenAi::start(vec![Reply::Text("Aye.")]);
    let home = home(&model);
    for question in ["one", "two", "three"] {
        ask(&home, question, &[]);
    }
    let sessions = list(&home);
    home.run(&["session", "remove", id(&sessions[0])]).ended(6).remarks(&["--yes"]);
    let remove = ["session", "remove", "--yes", id(&sessions[0]), &id(&sessions[0])[..20]];
    home.run(&remove).ended(0).answers(&["1 session removed."]);
    home.run(&["session", "remove", "--yes", "1"]).ended(2).remarks(&["several sessions"]);
    home.run(&["session", "show", id(&sessions[0])]).ended(2).remarks(&["no session"]);
    assert_eq!(list(&home).len(), 2);
    let home = home.config("[sessions]\nkeep_max = 1\n");
    home.run(&["session", "prune", "--yes"]).ended(0).answers(&["1 session removed."]);
    assert_eq!(list(&home)[0]["title"], "two");
}

#[test]
fn what_was_agreed_to_for_a_session_holds_when_it_goes_on_and_in_no_other() {
    let echo = || Reply::call("call_a", "hostile__echo", &json!({ "text": "hi" }));
    let answer = || Reply::Text("Done.");
    let script = [echo(), answer(), echo(), answer(), echo(), answer(), echo(), answer()];
    let model = OpenAi::start(script.to_vec());
    let home = Home::new()
        .guest("hostile", &requests(&["GET https://hostile.example/"]))
        .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
        .env("OPENAI_BASE_URL", model.base_url());
    let mut terminal = Terminal::start(&home, &["run", "-m", "scripted", "go"]);
    terminal.read_to("no, REASON: ");
    writeln!(terminal.outer, "s").unwrap();
    terminal.read_to("Done.");
    assert!(terminal.ends().success());
    ask(&home, "again", &["--continue"]);
    home.run(&["run", "-m", "scripted", "a new one"]).ended(6);
    let first = list(&home)[1].clone();
    let fork = home.run(&["session", "fork", id(&first)]).ended(0).stdout;
    home.run(&["run", "-m", "scripted", "go", "--session", fork.trim()]).ended(6);
}

#[test]
fn records_that_cannot_be_read_cost_nobody_the_rest() {
    let model = OpenAi::start(vec![Reply::Text("One."), Reply::Text("Two.")]);
    let home = home(&model);
    ask(&home, "first", &[]);
    let store = sallyport_store::HostStore::open(&home.path("state")).unwrap();
    let session = list(&home)[0].clone();
    let newer = sallyport_store::NewRecord {
        kind: "of-tomorrow".to_owned(),
        body: r#"{"kind":"of-tomorrow","x":1}"#.to_owned(),
        search_text: String::new(),
        at_ms: 1,
        used: sallyport_store::StoredUsage::default(),
    };
    let count = session["records"].as_u64().unwrap();
    wait(store.sessions.append_records(LOCAL_USER, id(&session), count, vec![newer])).unwrap();
    let ran = home.run(&["run", "-m", "scripted", "second", "--continue"]).ended(0);
    ran.remarks(&["1 records of this session cannot be read"]);
    assert_eq!(said(&model.bodies()[1]), ["first", "One.", "second"]);
}
