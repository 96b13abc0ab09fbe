//! Listeners: what comes in by a web hook, a web socket or standard input becomes input, and nobody
//! else gets in.

use std::{net::TcpListener, thread, time::Duration};

use futures::{SinkExt, StreamExt};
use rustix::process::Signal;
use serde_json::json;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::{authority, home, post, token};
use crate::support::{Home, Person, Running, client, patience};

const WEBHOOK: &str = "[plugin.webhook]\nlisten = [\"http://127.0.0.1:0/hooks\"]\n";
const WS_CHAT: &str = "[plugin.ws-chat]\nlisten = [\"ws://127.0.0.1:0/chat\"]\n";
const STDIN: &str = "[plugin.stdin-lines]\nlisten = [\"stdin\"]\n";

/// How many records of the audit hold a text.
fn records(home: &Home, text: &str) -> usize {
    let shown = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
    shown.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn a_web_hook_becomes_input_with_its_origin() {
    let home = home(&["webhook", "clock"], WEBHOOK);
    let twice = ["--listener", "webhook", "--listener", "webhook"];
    let program = Running::start(&home, &[&["listen", "--model", "offline"], &twice[..]].concat());
    let at = program.behind("webhook listens at ");
    let bearer = program.behind("Bearer ");
    let body = json!({ "text": "what time is it", "from": "Kim" }).to_string();
    let answer = post(&authority(&at), "/hooks", &bearer, &body);
    assert_eq!((answer.status, answer.body.as_str()), (202, "{\"accepted\":true}"));
    program.answers("UTC.");
    program.remarks("> Kim, by webhook: what time is it");
    let (code, stdout, stderr) = program.interrupted();
    assert_eq!((code, stdout.lines().count()), (0, 1), "{stdout}");
    let kept = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    let id = kept[0]["id"].as_str().unwrap();
    let back = format!("Resume with: sallyport listen --listener webhook --session {id}");
    assert!(stderr.contains(&back), "{stderr}");
    home.run(&["session", "show", id]).ended(0).answers(&["1. Kim, by webhook\n"]);
    assert_eq!(records(&home, "\"role:http\""), 2, "the decision, and the run");
    assert_eq!(records(&home, "input (15 bytes)"), 1);
    assert_eq!(records(&home, "\"role:listener\""), 4, "its start, and its end");
}

#[test]
fn h70_the_outside_gets_no_further_than_the_door() {
    let home = home(&["webhook", "clock"], WEBHOOK);
    let program = Running::start(&home, &["listen", "--model", "offline"]);
    let at = authority(&program.behind("webhook listens at "));
    let bearer = program.behind("Bearer ");
    let auth = format!("Bearer {bearer}");
    let ask = |headers: &[(&str, &str)], body: &str| {
        client::ask(&at, "POST", "/hooks", headers, body).status
    };
    let known = ("Authorization", auth.as_str());
    let text = ("Content-Type", "text/plain");
    assert_eq!(ask(&[text], "hello"), 401);
    assert_eq!(ask(&[text, ("Authorization", "Bearer 0")], "hello"), 401);
    assert_eq!(ask(&[text, known, ("Origin", "http://evil.example")], "hello"), 403);
    assert_eq!(ask(&[text, known, ("Host", "evil.example")], "hello"), 403);
    assert_eq!(client::ask(&at, "POST", "/other", &[text, known], "hello").status, 404);
    assert_eq!(ask(&[text, known], &"x".repeat(1024 * 1024 + 1)), 413);
    assert_eq!(ask(&[text, known], ""), 400);
    // More than one input may have.
    assert_eq!(ask(&[text, known], &"x".repeat(100_000)), 400);
    let (code, stdout, stderr) = program.interrupted();
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert!(!stderr.contains("> "), "{stderr}");
}

#[test]
fn a_rule_denies_a_role_and_the_plugin_does_not_run() {
    let rule = "[[rule]]\ntool = \"webhook.role:http\"\ndecision = \"deny\"\n";
    let home = home(&["webhook"], &format!("{WEBHOOK}{rule}"));
    let program = Running::start(&home, &["listen", "--model", "offline"]);
    let at = authority(&program.behind("webhook listens at "));
    let answer = post(&at, "/hooks", &program.behind("Bearer "), "{\"text\":\"hello\"}");
    assert_eq!(answer.status, 403);
    program.remarks("webhook: a request was refused");
    program.interrupted();
}

/// Requests that only look share a decision, but only where rules cannot tell them apart, and only
/// for as long as the policy stays as it is.
#[test]
fn h67_a_decision_holds_for_no_other_path_and_under_no_other_policy() {
    let rule =
        |rest: &str| format!("[[rule]]\ntool = \"webhook.role:http\"\ndecision = \"deny\"\n{rest}");
    let policy = format!("{WEBHOOK}{}", rule("when = \"args.path == '/hooks/own/health'\"\n"));
    let home = home(&["webhook"], &policy);
    let program = Running::start(&home, &["listen", "--model", "offline"]);
    let at = authority(&program.behind("webhook listens at "));
    let auth = format!("Bearer {}", program.behind("Bearer "));
    let look =
        |path: &str| client::ask(&at, "GET", path, &[("Authorization", auth.as_str())], "").status;
    assert_eq!(
        ["/hooks/own/health", "/hooks/health", "/hooks/own/health"].map(look),
        [403, 200, 403]
    );
    for (now, status) in
        [(format!("{WEBHOOK}{}", rule("")), 403), (WEBHOOK.to_owned(), 200), (String::new(), 403)]
    {
        std::fs::write(home.path("policy.toml"), &now).unwrap();
        // The file is looked at once a millisecond.
        thread::sleep(Duration::from_millis(5));
        assert_eq!(look("/hooks/health"), status, "{now}");
    }
    let auth = auth.trim_start_matches("Bearer ");
    assert_eq!(post(&at, "/hooks", auth, "{\"text\":\"hello\"}").status, 403);
    program.remarks("does not grant \"listen\"");
    program.interrupted();
    // Each of them, and that it may not be told of its end.
    assert_eq!(records(&home, "\"decision\":\"deny\""), 6);
}

#[test]
fn a_token_of_the_users_own_is_used_and_not_shown() {
    let secret = "[secret.hook]\nenv = \"HOOK_TOKEN\"\n";
    let home = home(&["webhook", "clock"], &format!("{WEBHOOK}{secret}"));
    let home = home.env("HOOK_TOKEN", "my-own-token-0123456789");
    let args = ["listen", "--model", "offline", "--token", "hook"];
    let program = Running::start(&home, &args);
    let at = authority(&program.behind("webhook listens at "));
    let body = "{\"text\":\"what time is it\"}";
    assert_eq!(post(&at, "/hooks", "my-own-token-0123456789", body).status, 202);
    program.answers("UTC.");
    let (code, _, stderr) = program.interrupted();
    assert!(code == 0 && !stderr.contains("my-own"), "{stderr}");
    let weak = home.env("HOOK_TOKEN", "short");
    weak.run(&args).ended(3).remarks(&["at least 16", "sallyport secret set hook"]);
    weak.run(&["listen", "--token", "other"]).ended(3).remarks(&["no secret \"other\""]);
}

#[test]
fn what_cannot_be_listened_to_is_told_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let at = |name: &str, at: &str| format!("[plugin.{name}]\nlisten = [\"{at}\"]\n");
    let in_use = at("webhook", &format!("http://{taken}/hooks"));
    let both = format!(
        "{}{}",
        at("webhook", "http://127.0.0.1:0/a"),
        at("second", "http://127.0.0.1:0/a")
    );
    let rows: [(&str, &[&str], i32, &[&str]); 6] = [
        (&in_use, &[], 1, &["webhook cannot listen at", "already in use", "line 2"]),
        ("", &[], 3, &["no plugin has a `listen` grant"]),
        (
            "",
            &["--listener", "webhook"],
            3,
            &["policy grant webhook --grant listen=http://127.0.0.1:0/"],
        ),
        ("", &["--listener", "clock"], 3, &["clock is not a listener"]),
        ("", &["--listener", "webhok"], 3, &["did you mean webhook?"]),
        (&both, &[], 3, &["second and webhook both listen at http://127.0.0.1:0/a"]),
    ];
    for (policy, flags, code, words) in rows {
        let manifest = std::fs::read_to_string("../plugins-wasm/webhook/plugin.toml").unwrap();
        let second = manifest.replace("name = \"webhook\"", "name = \"second\"");
        let home = home(&["webhook", "clock"], policy);
        let home =
            home.component("second", &second, &crate::support::home::plugin_component("webhook"));
        home.run(&[&["listen", "--model", "offline"], flags].concat()).ended(code).remarks(words);
    }
}

#[test]
fn lines_of_standard_input_are_answered_and_the_end_is_the_end() {
    let home = home(&["stdin-lines", "clock"], STDIN);
    let input = format!("what time is it\n\n{}\nwhat time is it\n", "x".repeat(70_000));
    let ran = home.run_with_input(&["listen", "--model", "offline"], &input).ended(0);
    assert_eq!(ran.stdout.matches("UTC.").count(), 2, "{}", ran.stdout);
    ran.remarks(&["a line of more than 65536 bytes is passed over"]);
}

#[test]
fn more_lines_than_can_wait_are_all_heard_and_answered() {
    let lines = "what time is it\n".repeat(150);
    let listener = home(&["stdin-lines", "clock"], STDIN);
    let ui = home(&["ui-lines", "clock"], "[plugin.ui-lines]\nui = true\n");
    let rows: [(&Home, &[&str]); 2] =
        [(&listener, &["listen"]), (&ui, &["chat", "--ui", "ui-lines"])];
    for (home, command) in rows {
        let args = [command, &["--model", "offline"]].concat();
        let ran = home.run_with_input(&args, &lines).ended(0);
        assert_eq!(ran.stdout.matches("UTC.").count(), 150, "{command:?}: {}", ran.stderr);
    }
}

#[test]
fn the_end_of_standard_input_is_not_the_end_of_what_others_feed() {
    let page = "[plugin.ui-html]\nui = true\nlisten = [\"http://127.0.0.1:0/ui\"]\n";
    let home = home(&["webhook", "ui-html", "clock"], &format!("{WEBHOOK}{page}"));
    let rows: [&[&str]; 2] = [&["listen", "--ui", "ui-html"], &["chat", "--ui", "ui-html"]];
    for command in rows {
        let mut program = Running::start(&home, &[command, &["--model", "offline"]].concat());
        program.hangs_up();
        let url = program.behind("ui-html shows the session at ");
        // Time enough for one that would end.
        thread::sleep(Duration::from_millis(500));
        let body = "{\"text\":\"what time is it\"}";
        assert_eq!(post(&authority(&url), "/ui/input", &token(&url), body).status, 202);
        assert_eq!(program.interrupted().0, 0);
    }
}

/// `listen` ended with standard input although its one plugin still took input by HTTP.
#[test]
fn the_end_of_standard_input_is_not_the_end_of_a_plugin_with_an_address() {
    let manifest = std::fs::read_to_string("../plugins-wasm/webhook/plugin.toml").unwrap();
    let manifest = format!("{manifest}\n[[request.listen]]\nkind = \"stdin\"\nwhy = \"w\"\n");
    let policy = WEBHOOK.replace("hooks\"]", "hooks\", \"stdin\"]");
    let component = crate::support::home::plugin_component("webhook");
    let home = home(&["clock"], &policy).component("webhook", &manifest, &component);
    let mut program = Running::start(&home, &["listen", "--model", "offline"]);
    let (at, bearer) = (program.behind("webhook listens at "), program.behind("Bearer "));
    program.hangs_up();
    // Time enough for one that would end.
    thread::sleep(Duration::from_millis(500));
    let body = "{\"text\":\"what time is it\"}";
    assert_eq!(post(&authority(&at), "/hooks", &bearer, body).status, 202);
    program.answers("UTC.");
    assert_eq!(program.interrupted().0, 0);
}

/// A person at a terminal, and where the web hook listens.
fn attended(home: &Home) -> (Person, String) {
    let person = Person::start(home, &["listen", "--model", "offline", "--token", "hook"]);
    person.sees("TOKEN");
    let screen = person.screen();
    let url = screen.lines().find_map(|line| line.split_once("webhook listens at "));
    (person, authority(url.unwrap().1))
}

fn asking(run: &str) -> Home {
    let secret = "[secret.hook]\nenv = \"HOOK_TOKEN\"\n";
    let rule = format!("[[rule]]\ntool = \"webhook.role:{run}\"\ndecision = \"ask\"\n");
    let home = home(&["webhook", "clock"], &format!("{WEBHOOK}{secret}{rule}"));
    home.env("HOOK_TOKEN", "my-own-token-0123456789")
}

#[test]
fn questions_at_the_terminal_wait_for_each_other_and_each_is_answered() {
    let home = asking("http");
    let (mut person, at) = attended(&home);
    let posts = ["approved", "denied"].map(|text| {
        let (at, body) = (at.clone(), json!({ "text": text }).to_string());
        thread::spawn(move || post(&at, "/hooks", "my-own-token-0123456789", &body).status)
    });
    person.sees("allow?");
    thread::sleep(Duration::from_millis(500));
    assert_eq!(person.screen().matches("allow?").count(), 1, "{}", person.screen());
    person.types("y\r");
    person.sees_count("allow?", 2);
    person.types("n\r");
    let mut codes = posts.map(|post| post.join().unwrap());
    codes.sort_unstable();
    assert_eq!(codes, [202, 403]);
    person.sends(Signal::INT);
    assert_eq!(person.ends(), 0);
}

#[test]
fn inputs_that_still_wait_at_the_end_are_told() {
    let secret = "[secret.hook]\nenv = \"HOOK_TOKEN\"\n";
    let rule = "[[rule]]\ntool = \"clock.*\"\ndecision = \"ask\"\n";
    let home = home(&["webhook", "clock"], &format!("{WEBHOOK}{secret}{rule}"));
    let home = home.env("HOOK_TOKEN", "my-own-token-0123456789");
    let (mut person, at) = attended(&home);
    for _ in 0..3 {
        let body = "{\"text\":\"what time is it\"}";
        assert_eq!(post(&at, "/hooks", "my-own-token-0123456789", body).status, 202);
    }
    person.sees("allow?");
    person.sends(Signal::INT);
    assert_eq!(person.ends(), 0);
    person.sees("2 accepted inputs got no answer");
}

#[test]
fn a_listener_that_needs_an_approval_to_begin_gets_it_at_the_terminal() {
    let home = asking("listener");
    let (mut person, at) = attended(&home);
    person.sees("allow?");
    person.types("y\r");
    let body = "{\"text\":\"what time is it\"}";
    assert_eq!(post(&at, "/hooks", "my-own-token-0123456789", body).status, 202);
    person.sees("UTC.");
    person.sends(Signal::INT);
    assert_eq!(person.ends(), 0);
    // Whoever does not want to say so can leave.
    let (mut person, _) = attended(&home);
    person.sees("allow?");
    person.sends(Signal::INT);
    assert_eq!(person.ends(), 0);
}

/// A client at the web socket of the program.
struct Client {
    socket: WebSocketStream<tokio::net::TcpStream>,
    /// With which the other side closed.
    code: Option<u16>,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    fn connect(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let socket = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(authority(url)).await.unwrap();
            tokio_tungstenite::client_async(url, stream).await.unwrap().0
        });
        Self { socket, code: None, runtime }
    }

    fn sends(&mut self, message: Message) {
        patience::run(&self.runtime, self.socket.send(message)).unwrap();
    }

    /// The next text, or why the connection was closed.
    fn hears(&mut self) -> String {
        loop {
            match patience::run(&self.runtime, self.socket.next()) {
                Some(Ok(Message::Text(text))) => return text.as_str().to_owned(),
                Some(Ok(Message::Close(Some(frame)))) => {
                    self.code = Some(frame.code.into());
                    return format!("closed: {}", frame.reason);
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return "closed".to_owned(),
            }
        }
    }
}

#[test]
fn a_web_socket_hears_the_answers_to_its_own_words() {
    let home = home(&["ws-chat", "clock"], WS_CHAT);
    let program = Running::start(&home, &["listen", "--model", "offline"]);
    let url = program.behind("ws-chat listens at ");
    let (mut one, mut other) = (Client::connect(&url), Client::connect(&url));
    one.sends("what time is it".into());
    assert!(one.hears().contains("UTC."));
    other.sends(Message::Binary(vec![1, 2, 3].into()));
    assert_eq!(other.hears(), "This chat takes text messages only.");
    other.sends(" ".into());
    assert!(other.hears().starts_with("Sorry, "));
    other.sends("what time is it".into());
    assert!(other.hears().contains("UTC."));
    drop(other);
    let ended = thread::spawn(move || program.interrupted());
    assert_eq!(one.hears(), "closed: the session has ended");
    assert_eq!(ended.join().unwrap().0, 0);
}

#[test]
fn h70_a_web_socket_needs_the_token_and_floods_nobody() {
    let home = home(&["ws-chat"], WS_CHAT);
    let program = Running::start(&home, &["listen", "--model", "offline"]);
    let url = program.behind("ws-chat listens at ");
    let handshake = |path: &str, more: &[(&str, &str)]| {
        let usual = [
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        client::ask(&authority(&url), "GET", path, &[&usual, more].concat(), "").status
    };
    assert_eq!(handshake("/chat", &[]), 401);
    let known = format!("/chat?token={}", token(&url));
    assert_eq!(handshake(&known, &[("Origin", "http://evil.example")]), 403);
    let mut client = Client::connect(&url);
    for _ in 0..200 {
        let _ = client.runtime.block_on(client.socket.send(Message::Binary(vec![0].into())));
    }
    let heard: Vec<String> = (0..200).map(|_| client.hears()).collect();
    assert!(heard.iter().any(|heard| heard == "closed: too many messages"), "{heard:?}");
    assert_eq!(program.interrupted().0, 0);
}

/// The bytes of a frame: with a mask of zeros, unless it is to have none.
fn frame(first: u8, is_masked: bool, payload: &[u8]) -> Vec<u8> {
    let mask = if is_masked { 0x80 } else { 0 };
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(mask | u8::try_from(length).unwrap()),
        length => {
            bytes.push(mask | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(is_masked.then_some([0; 4]).into_iter().flatten());
    bytes.extend(payload);
    bytes
}

/// What each kind of frame that may not be ends with, and that the others are served all the same.
#[test]
fn h86_a_frame_that_may_not_be_is_answered_with_its_code() {
    const TEXT: u8 = 0x81;
    let home = home(&["ws-chat", "clock"], WS_CHAT);
    let program = Running::start(&home, &["listen", "--model", "offline"]);
    let url = program.behind("ws-chat listens at ");
    let long = vec![b'x'; 65_537];
    let first_piece = frame(0x01, true, &long[..60_000]);
    let fragments = [first_piece, frame(0x80, true, &long[..60_000])].concat();
    let floods = frame(0x89, true, b"ping").repeat(500);
    for (what, bytes, code, reason) in [
        ("a long one", frame(TEXT, true, &long), 1009, "65536 bytes"),
        ("a length alone", frame(TEXT, true, &long)[..20].to_vec(), 1009, "65536 bytes"),
        ("a long one in pieces", fragments, 1009, "65536 bytes"),
        ("no mask", frame(TEXT, false, b"hello"), 1002, "not a frame"),
        ("an opcode that is none", frame(0x83, true, b"hello"), 1002, "not a frame"),
        ("a piece of nothing", frame(0x80, true, b"hello"), 1002, "not a frame"),
        ("a long ping", frame(0x89, true, &[0; 126]), 1002, "not a frame"),
        ("no UTF-8", frame(TEXT, true, b"\xff"), 1007, "UTF-8"),
        ("a flood of pings", floods, 1008, "too many messages"),
    ] {
        let mut client = Client::connect(&url);
        let stream = client.socket.get_mut();
        client.runtime.block_on(async {
            let _ = tokio::io::AsyncWriteExt::write_all(stream, &bytes).await;
        });
        let heard = client.hears();
        assert!(heard.contains(reason), "{what}: {heard}");
        assert_eq!(client.code, Some(code), "{what}");
    }
    let mut honest = Client::connect(&url);
    honest.sends("what time is it".into());
    assert!(honest.hears().contains("UTC."));
    assert_eq!(program.interrupted().0, 0);
}

#[test]
fn a_web_hook_and_a_web_socket_cannot_have_one_address() {
    let home = |at: &str| {
        let listen = |name, kind| format!("[plugin.{name}]\nlisten = [\"{kind}://{at}\"]\n");
        home(
            &["webhook", "ws-chat"],
            &[listen("webhook", "http"), listen("ws-chat", "ws")].concat(),
        )
    };
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let words = ["webhook and ws-chat both listen at", "grant one of them another path"];
    home(&format!("{free}/in")).run(&["listen", "--model", "offline"]).ended(3).remarks(&words);
    // A port that is free is looked for together, and who asks says what for.
    let shared = home("127.0.0.1:0/in");
    let program = Running::start(&shared, &["listen", "--model", "offline"]);
    let mut client = Client::connect(&program.behind("ws-chat listens at "));
    client.sends(" ".into());
    assert!(client.hears().starts_with("Sorry, "));
    assert_eq!(program.interrupted().0, 0);
}
