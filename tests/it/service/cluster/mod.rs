//! Three services of three machines with one database, which are killed at random moments while many
//! users talk: nothing that was acknowledged is lost, nothing is done twice, timers that fire twice
//! say so, and each session continues on another machine.

mod conversation;
mod findings;
mod hosts;

use std::{env, str::FromStr, thread, time::Duration};

use serde_json::{Value, json};

use self::{
    conversation::{Conversation, Told},
    findings::Findings,
    hosts::Hosts,
};
use crate::support::{Reply, Response, Server, database::Database, dice::Dice};

/// How much is done, and the seed of all random moments.
#[derive(Debug, Clone, Copy)]
struct Trial {
    sessions: usize,
    kills: usize,
    seed: u64,
}

impl Trial {
    /// As `cargo xtask postgres` was told.
    fn given() -> Self {
        Self {
            sessions: given("SALLYPORT_TEST_SESSIONS", 200),
            kills: given("SALLYPORT_TEST_KILLS", 30),
            seed: given("SALLYPORT_TEST_SEED", 0x5a11_7093),
        }
    }

    /// The moments of one part of the trial.
    fn dice(&self, part: usize) -> Dice {
        let part = (part as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Dice((self.seed ^ part).max(1))
    }
}

fn given<T: FromStr>(name: &str, usual: T) -> T {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
        Err(_) => usual,
    }
}

/// The names that belong to the turn of a session: its input, the path that it fetches, and the keys
/// that it counts.
fn turn_name(session: usize, turn: usize) -> String {
    format!("s{session:03}t{turn:03}")
}

/// How long a page takes.
const PAGE_TIME: Duration = Duration::from_millis(500);

/// Most milliseconds until a timer fires that a turn sets.
const TIMER_MS_MAX: u64 = 8_000;

/// The text with which a user asks for a turn. The model finds the name and the time in it.
fn input_text(name: &str, timer_ms: u64) -> String {
    format!("go {name} {timer_ms}")
}

/// A model that sets a timer, counts, and fetches a page in each turn, by what the input says.
fn scripted_model(pages: &Server) -> Server {
    let authority = pages.authority();
    Server::start(move |request| {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        reply_to(&body, &authority).render(body["stream"] == true)
    })
}

fn reply_to(body: &Value, authority: &str) -> Reply {
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    let Some(message) = last.filter(|message| message["role"] == "user") else {
        return Reply::Text("Done.");
    };
    let text = message["content"].to_string();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let Some(at) = words.iter().rposition(|word| *word == "go") else {
        return Reply::Text("Nothing to do.");
    };
    let (name, timer_ms) = (words[at + 1], words[at + 2]);
    let steps = [format!("doing {timer_ms} tally"), format!("bump {name}")];
    Reply::Calls(vec![
        ("c1", "living__acts", json!({ "steps": steps }).to_string()),
        ("c2", "hostile__fetches", page_arguments(authority, name).to_string()),
    ])
}

/// A server that takes a while, so that kills hit calls whose effect is there.
fn slow_pages() -> Server {
    Server::start(|_| {
        thread::sleep(PAGE_TIME);
        Response::ok("done")
    })
}

/// The arguments with which a turn fetches its page.
fn page_arguments(authority: &str, name: &str) -> Value {
    json!({ "authority": authority, "path": format!("/{name}") })
}

#[test]
#[ignore = "needs PostgreSQL and takes minutes: cargo xtask postgres"]
fn hosts_that_are_killed_lose_nothing_and_repeat_nothing() {
    let trial = Trial::given();
    println!("{trial:?}");
    let (database, pages) = (Database::new(), slow_pages());
    let model = scripted_model(&pages);
    let hosts = Hosts::start(&database, &model, &pages, trial);
    let told = talk_while_killed(&hosts, trial);
    let findings = Findings::gather(&hosts, &database, &pages);
    findings.check(&told);
    hosts.check_audit();
    findings.print(&told);
}

/// Lets all users talk while the hosts are killed, and returns what they were told.
fn talk_while_killed(hosts: &Hosts, trial: Trial) -> Vec<Told> {
    thread::scope(|scope| {
        let _end = hosts.end_when_dropped();
        let talks: Vec<_> = (0..trial.sessions)
            .map(|number| Conversation::new(hosts, number, trial.dice(number)))
            .map(|conversation| scope.spawn(move || conversation.talk()))
            .collect();
        scope.spawn(|| hosts.answer_questions(trial.dice(trial.sessions)));
        hosts.kill_at_random(trial.kills, trial.dice(trial.sessions + 1), scope);
        hosts.end_talks();
        let ended: Vec<_> = talks.into_iter().map(|talk| talk.join()).collect();
        ended.into_iter().map(Result::unwrap).collect()
    })
}
