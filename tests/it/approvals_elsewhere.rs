//! Questions that are answered elsewhere: in another terminal, or by the operator's hook.

use std::{fs, os::unix::fs::PermissionsExt, thread};

use serde_json::{Value, json};

use crate::support::{
    AcpClient, Home, OpenAi, Ran, Reply,
    patience::{until, until_so},
    warden::requests,
};

/// A home whose tool has to be approved, with a model that calls it once a turn.
fn home(model: &OpenAi) -> Home {
    Home::new()
        .env("OPENAI_BASE_URL", model.base_url())
        .env("SALLYPORT_MODEL", "m")
        .guest("hostile", &requests(&["GET https://hostile.example/"]))
        .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
}

fn model() -> OpenAi {
    let call = |id| Reply::call(id, "hostile__echo", &json!({ "text": id }));
    OpenAi::start(vec![call("c1"), Reply::Text("done"), call("c2"), Reply::Text("done")])
}

/// The open questions, as the program lists them.
#[track_caller]
fn open(home: &Home) -> Vec<Value> {
    let listed = home.run(&["approval", "list", "--output", "json"]).ended(0).json();
    listed["questions"].as_array().unwrap().clone()
}

/// Waits for the only open question.
#[track_caller]
fn only_question(home: &Home) -> (String, String) {
    let question = until("a question in the list", || open(home).pop());
    let text = |key: &str| question[key].as_str().unwrap().to_owned();
    (text("id"), text("hash"))
}

fn answer(home: &Home, id: &str, word: &str, hash: &str) -> Ran {
    home.run(&["approval", "answer", id, word, "--hash", hash])
}

/// The completed calls on record.
fn completed(home: &Home) -> usize {
    let args = ["audit", "show", "--kind", "call", "--outcome", "completed", "--output", "json"];
    home.run(&args).ended(0).stdout.lines().count()
}

/// Writes a hook, and configures it.
fn with_hook(home: Home, script: &str) -> Home {
    let home = home.file("hook.sh", format!("#!/bin/sh\n{script}\n"));
    let hook = home.path("hook.sh");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
    home.config(format!("[approvals]\nhook = [{hook:?}]\n"))
}

#[test]
fn a_question_is_answered_in_another_terminal() {
    let rows = [("once", "completed", "Allowed: once"), ("no", "failed", "Refused: no")];
    for (word, status, told) in rows {
        let model = model();
        let home = home(&model);
        let mut client = AcpClient::greeted(&home);
        let session = client.new_session("/");
        let turn = client.prompt(&session, "go");
        let asked = client.question(0);
        let (id, hash) = only_question(&home);
        let shown = home.run(&["approval", "show", &id[..4]]).ended(0);
        shown.answers(&["Allow hostile.echo to run?", "argument: text = \"c1\"", &hash]);
        home.run(&["approval", "list"]).ended(0).answers(&[&id, "hostile.echo"]);
        answer(&home, &id, word, &hash).ended(0).answers(&[told]);
        assert_eq!(client.stop_reason(turn), "end_turn");
        let call = asked["params"]["toolCall"]["toolCallId"].as_str().unwrap();
        assert_eq!(client.finished_call(call)["status"], status);
        let withdrawn = client.of_method("$/cancel_request");
        assert_eq!(withdrawn["params"]["requestId"], asked["id"], "the client's own is withdrawn");
        // The same answer again, and another one from the client, change nothing.
        answer(&home, &id, "once", &hash).ended(1).remarks(&["was answered before", word]);
        client.choose(&asked, "once");
        assert_eq!(open(&home), Vec::<Value>::new());
        assert_eq!(client.close(), 0);
        assert_eq!(completed(&home), usize::from(word == "once"));
    }
}

#[test]
fn only_the_question_that_was_shown_is_answered() {
    let model = model();
    let home = home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let turn = client.prompt(&session, "go");
    let asked = client.question(0);
    let (id, hash) = only_question(&home);
    let mut changed = hash.clone().into_bytes();
    changed[20] = if changed[20] == b'0' { b'1' } else { b'0' };
    let changed = String::from_utf8(changed).unwrap();
    answer(&home, &id, "once", &changed).ended(1).remarks(&["not the one of this question"]);
    answer(&home, &id, "once", &hash[..8]).ended(1).remarks(&["not the one of this question"]);
    answer(&home, &id, "yes", &hash).ended(2);
    answer(&home, "zz", "once", &hash).ended(1).remarks(&["no question zz waits"]);
    answer(&home, "", "once", &hash).ended(1);
    home.run(&["approval", "answer", &id, "once"]).ended(2).remarks(&["needs the hash"]);
    home.run(&["approval", "answer", &id]).ended(6);
    let folder = ["approval", "answer", &id, "once", "--hash", &hash, "--folder", "/tmp"];
    home.run(&folder).ended(2).remarks(&["a folder only for a grant"]);
    assert_eq!(open(&home).len(), 1, "none of it was an answer");
    // A second question does not take the answer to the first one.
    client.choose(&asked, "once");
    assert_eq!(client.stop_reason(turn), "end_turn");
    let turn = client.prompt(&session, "again");
    client.question(1);
    let (second, second_hash) = until("another question", || {
        let question = open(&home).pop()?;
        let text = |key: &str| question[key].as_str().unwrap().to_owned();
        (question["id"] != id.as_str()).then(|| (text("id"), text("hash")))
    });
    answer(&home, &second, "once", &hash).ended(1).remarks(&["not the one of this question"]);
    answer(&home, &id, "once", &second_hash).ended(1).remarks(&["was answered before"]);
    client.cancel_turn(&session);
    assert_eq!(client.stop_reason(turn), "cancelled");
    until_so("the question is gone", || open(&home).is_empty());
    answer(&home, &second, "once", &second_hash).ended(1);
    assert_eq!(client.close(), 0);
    assert_eq!(completed(&home), 1);
}

#[test]
fn a_program_that_was_killed_takes_no_answer() {
    let model = model();
    let home = home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    client.prompt(&session, "go");
    client.question(0);
    let (id, hash) = only_question(&home);
    client.signal(rustix::process::Signal::KILL);
    client.ends();
    answer(&home, &id, "once", &hash).ended(1).remarks(&["did not take the answer"]);
    assert_eq!(completed(&home), 0);
}

#[test]
fn a_hook_answers_for_a_program_without_a_terminal() {
    let reply = |answer: &str| {
        format!(
            "hash=$(sed 's/.*\"hash\":\"\\([0-9a-f]*\\)\".*/\\1/')\n\
             printf '{{\"hash\":\"%s\",\"answer\":\"{answer}\"}}' \"$hash\""
        )
    };
    let call = ["call", "hostile.echo", r#"{"text":"hi there"}"#];
    let model = model();
    for (script, code) in [(reply("once"), 0), (reply("no"), 3), (reply("always"), 0)] {
        let home = with_hook(home(&model), &script);
        home.run(&call).ended(code);
        let policy = fs::read_to_string(home.path("policy.toml")).unwrap();
        assert_eq!(policy.contains("[[rule]]"), script.contains("always"), "{policy}");
    }
}

#[test]
fn a_hook_that_answers_nothing_useful_leaves_the_question_open() {
    let model = model();
    for script in [
        "cat >/dev/null",
        "exit 1",
        "echo garbage",
        "echo '{\"hash\":\"00\",\"answer\":\"once\"}'",
        "yes | head -c 100000",
        "sleep 1000",
    ] {
        let home = with_hook(home(&model), script);
        let child = home.start(&["call", "hostile.echo", r#"{"text":"hi there"}"#]);
        let (id, hash) = only_question(&home);
        answer(&home, &id, "once", &hash).ended(0).answers(&["Allowed: once"]);
        crate::support::home::finish(child, &["call"]).ended(0).answers(&["hi there"]);
    }
    let home = home(&model).config("[approvals]\nhook = [\"/there/is/no/such/program\"]\n");
    let child = home.start(&["call", "hostile.echo", r#"{"text":"hi there"}"#]);
    let (id, hash) = only_question(&home);
    answer(&home, &id, "no", &hash).ended(0);
    let ran = crate::support::home::finish(child, &["call"]).ended(3);
    ran.remarks(&["/there/is/no/such/program"]);
}

#[test]
fn three_carriers_answer_at_once_and_one_counts() {
    let model = model();
    let home = home(&model);
    // The hook answers as soon as the file is there, and notes that it tried.
    let go = home.path("go");
    let script = format!(
        "hash=$(sed 's/.*\"hash\":\"\\([0-9a-f]*\\)\".*/\\1/')\n\
         while [ ! -e {go:?} ]; do sleep 0.01; done\n\
         printf '{{\"hash\":\"%s\",\"answer\":\"once\"}}' \"$hash\""
    );
    let home = with_hook(home, &script);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let turn = client.prompt(&session, "go");
    let asked = client.question(0);
    let (id, hash) = only_question(&home);
    let ran = thread::scope(|scope| {
        let terminal = scope.spawn(|| answer(&home, &id, "once", &hash));
        fs::write(&go, "").unwrap();
        client.choose(&asked, "once");
        terminal.join().unwrap()
    });
    match ran.code {
        0 => drop(ran.answers(&["Allowed: once"])),
        _ => drop(ran.ended(1).remarks(&["was answered before, by"])),
    }
    assert_eq!(client.stop_reason(turn), "end_turn");
    assert_eq!(client.close(), 0);
    assert_eq!(completed(&home), 1, "one answer, one call");
}
