//! Memory by meaning: an early turn comes back when it bears on what is said, and goes for good.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use crate::support::{Home, Response, Server, server::Request};

/// What a vector of the tests counts, one word family a number.
const MEANINGS: [&[&str]; 3] = [&["cat", "pet", "Miez"], &["train", "rail"], &["weather", "rain"]];

fn vector(text: &str) -> Vec<f32> {
    let count = |words: &&[&str]| words.iter().filter(|word| text.contains(**word)).count() as f32;
    MEANINGS.iter().map(count).chain([0.1]).collect()
}

fn embeddings(request: &Request) -> Response {
    vectors(request, |text| Some(vector(text)))
}

/// Answers with vectors, and refuses all when there is none of one text.
fn vectors(request: &Request, vector: impl Fn(&str) -> Option<Vec<f32>>) -> Response {
    let body: Value = serde_json::from_str(&request.body).unwrap();
    let texts = body["input"].as_array().unwrap().iter();
    let made: Option<Vec<_>> = texts.map(|text| vector(text.as_str().unwrap())).collect();
    let Some(made) = made else {
        return Response::with(400, &[], "{\"error\":{\"message\":\"an input is too long\"}}");
    };
    let data = made.iter().enumerate().map(
        |(index, vector)| json!({ "index": index, "embedding": vector, "object": "embedding" }),
    );
    Response::ok(&json!({ "data": data.collect::<Vec<_>>(), "model": "e" }).to_string())
}

fn answer() -> Response {
    let message = json!({ "role": "assistant", "content": "I see." });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    Response::ok(&json!({ "choices": [choice] }).to_string())
}

/// A server with a chat model, and with one that makes vectors if it may.
fn server(makes_vectors: bool) -> Server {
    Server::start(move |request| match request.target.ends_with("/embeddings") {
        true if makes_vectors => embeddings(request),
        true => Response::with(404, &[], "{\"error\":{\"message\":\"no such thing\"}}"),
        false => answer(),
    })
}

fn home(server: &Server, more: &str) -> Home {
    Home::new().config(format!(
        "[chat]\nmemory = 'vector-db'\nmemory_tokens = 40\n{more}\n\
         [model.m]\nprovider = 'openai'\nmodel = 'm'\nstream = false\nbase_url = '{}/v1'",
        server.url()
    ))
}

/// The conversation that the model was last sent.
fn last(server: &Server) -> String {
    let seen = server.seen();
    let chat = seen.iter().rfind(|request| request.target.ends_with("/chat/completions"));
    chat.unwrap().body.clone()
}

fn say(home: &Home, words: &str, flags: &[&str]) -> crate::support::Ran {
    home.run(&[&["run", words], flags].concat()).ended(0)
}

/// A conversation that is too long to be shown whole: only the first turn and the last ones are.
fn talk(home: &Home) {
    say(home, "hello", &[]);
    say(home, "my cat is called Miez", &["--continue"]);
    for words in ["the train was late again today", "and the rail was wet", "so it goes, you know"]
    {
        say(home, words, &["--continue"]);
    }
}

#[test]
fn an_early_turn_comes_back_by_its_meaning() {
    let server = server(true);
    let home = home(&server, "");
    talk(&home);
    say(&home, "now something else", &["--continue"]);
    say(&home, "what pet do I have?", &["--continue"]).hides(&["found by words"]);
    let sent = last(&server);
    assert!(sent.contains("Turn 2 of this conversation") && sent.contains("Miez"), "{sent}");
    let elsewhere = say(&home, "tell me of my pet", &[]);
    assert!(last(&server).contains("Known from before") && last(&server).contains("Miez"));
    elsewhere.hides(&["warning"]);
    let list = home.run(&["memory", "list", "--output", "json"]).ended(0).json();
    let embedders = list.as_array().unwrap().iter().map(|memory| memory["embedder"].as_str());
    assert!(embedders.flatten().any(|name| name.contains("text-embedding-3-small")));
}

#[test]
fn without_vectors_words_are_enough_and_the_person_is_told_once() {
    let refusing = server(false);
    let home = home(&refusing, "");
    talk(&home);
    let ran = say(&home, "what is my cat called?", &["--continue"]);
    assert!(last(&refusing).contains("Miez"), "{}", last(&refusing));
    assert_eq!(ran.stderr.matches("found by words only").count(), 1, "{ran:#?}");
    let other = self::server(true);
    let config = format!(
        "[chat]\nmemory = 'vector-db'\n\
         [model.m]\nprovider = 'vllm'\nmodel = 'm'\nstream = false\nbase_url = '{0}/v1'\n",
        other.url()
    );
    let home = home.config(&config);
    let ran = say(&home, "my cat", &[]).remarks(&["no embedding model is configured"]);
    assert!(last(&other).contains("Miez"), "{ran:#?}");
    let embedding =
        format!("[embedding]\nprovider = 'openai'\nmodel = 'e'\nbase_url = '{}/v1'\n", other.url());
    let home = home.config(config + &embedding);
    say(&home, "which pet?", &[]).hides(&["found by words"]);
    assert!(last(&other).contains("Miez"), "what had no vector has one now");
}

/// A server whose vectors are made by `vector`.
fn odd_server(vector: impl Fn(&str) -> Option<Vec<f32>> + Send + Sync + 'static) -> Server {
    Server::start(move |request| match request.target.ends_with("/embeddings") {
        true => vectors(request, &vector),
        false => answer(),
    })
}

#[test]
fn one_text_of_which_no_vector_is_made_keeps_none_from_the_others() {
    let zeros = |text: &str| match text.contains("nothing") {
        true => Some(vec![0.0; 4]),
        false => Some(vector(text)),
    };
    let short = |text: &str| (text.len() < 2000).then(|| vector(text));
    let rows = [
        (odd_server(zeros), "nothing at all".to_owned()),
        (odd_server(short), "blah ".repeat(1000)),
    ];
    for (server, odd) in rows {
        let home = home(&server, "");
        say(&home, "hello", &[]);
        say(&home, &odd, &["--continue"]).hides(&["warning"]);
        say(&home, "my cat is called Miez", &["--continue"]).hides(&["warning"]);
        for words in ["the train was late again today", "and the rail was wet", "now it rains"] {
            say(&home, words, &["--continue"]);
        }
        say(&home, "what pet do I have?", &["--continue"]).hides(&["warning"]);
        let sent = last(&server);
        assert!(sent.contains("Turn 3 of this conversation") && sent.contains("Miez"), "{sent}");
        say(&home, &odd, &["--continue"]).hides(&["warning"]);
    }
}

#[test]
fn vectors_of_another_length_are_made_anew() {
    let is_longer = Arc::new(AtomicBool::new(false));
    let longer = Arc::clone(&is_longer);
    let server = odd_server(move |text| {
        let more = longer.load(Ordering::Relaxed).then_some(0.0);
        Some(vector(text).into_iter().chain(more).collect())
    });
    let home = home(&server, "");
    talk(&home);
    is_longer.store(true, Ordering::Relaxed);
    say(&home, "what is the name of my cat?", &[]);
    assert!(last(&server).contains("Miez"), "found by its words: {}", last(&server));
    say(&home, "which pet?", &[]).hides(&["warning"]);
    assert!(last(&server).contains("Miez"), "found by its meaning: {}", last(&server));
}

#[test]
fn what_is_known_from_the_start_is_recalled_and_nobody_elses_is() {
    let server = server(true);
    let home = home(&server, "memories = ['The cat sleeps on the sofa.', 'The train is at noon.']");
    say(&home, "where is my pet?", &[]);
    assert!(last(&server).contains("sofa"));
    let other = home.config(format!(
        "[chat]\nmemory = 'vector-db'\n[model.m]\nprovider = 'openai'\nmodel = 'm'\n\
         stream = false\nbase_url = '{}/v1'",
        server.url()
    ));
    say(&other, "and my cat?", &[]);
    assert!(!last(&server).contains("\"| The cat sleeps"), "{}", last(&server));
}

#[test]
fn what_is_forgotten_does_not_come_back() {
    let server = server(true);
    let home = home(&server, "");
    talk(&home);
    let found = home.run(&["memory", "search", "Miez", "--output", "json"]).ended(0).json();
    let id = found[0]["id"].to_string();
    home.run(&["memory", "list"]).ended(0).answers(&["turn 2", "my cat is called Miez"]);
    home.run(&["memory", "forget", &id]).ended(0).answers(&["1 memory forgotten"]);
    home.run(&["memory", "forget", &id]).ended(1).remarks(&["no such memory"]);
    home.run(&["memory", "search", "Miez"]).ended(1).remarks(&["Nothing is found"]);
    say(&home, "tell me of my pet", &[]);
    assert!(!last(&server).contains("Miez"));
    home.run(&["memory", "forget", "--all"]).ended(6);
    home.run(&["memory", "forget", "--all", "--yes"]).ended(0).answers(&["memories forgotten"]);
    home.run(&["memory", "list"]).ended(0).remarks(&["Nothing is remembered"]);
}

#[test]
fn what_is_not_kept_is_not_remembered_and_a_session_takes_its_memories_along() {
    let server = server(true);
    let home = home(&server, "");
    say(&home, "hush, my cat is called Miez", &["--ephemeral"]);
    home.run(&["memory", "list"]).ended(0).remarks(&["Nothing is remembered"]);
    say(&home, "my cat is called Miez", &[]);
    let sessions = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    let id = sessions[0]["id"].as_str().unwrap();
    home.run(&["memory", "list", "--session", &id[..20]]).ended(0).answers(&["Miez"]);
    home.run(&["session", "remove", id, "--yes"]).ended(0);
    home.run(&["memory", "list"]).ended(0).remarks(&["Nothing is remembered"]);
}
