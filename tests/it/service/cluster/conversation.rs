//! What one user does in one session, and what the user was told.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    super::{HttpReply, bearer},
    TIMER_MS_MAX,
    hosts::Hosts,
    input_text, turn_name,
};
use crate::support::dice::Dice;

/// Most milliseconds between two turns.
const PAUSE_MS_MAX: u64 = 30_000;

/// How often a user who waits looks whether the host runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often a user tries to open a session that another host holds.
const TRY_EVERY_MS: u64 = 500;

/// After one of so many turns, the user also makes a call, with a key.
const TURNS_TO_A_CALL: u64 = 3;

/// The user does not wait longer for a host that holds a session.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a user of one session was told, which must be so from then on.
#[derive(Default)]
pub(super) struct Told {
    pub(super) number: usize,
    pub(super) session: Option<String>,
    pub(super) turns: Vec<ToldTurn>,
    pub(super) calls: Vec<ToldCall>,
    /// How long it took until the session was open again after its host was killed.
    pub(super) takeovers: Vec<Duration>,
}

/// What a user was told of a turn.
pub(super) struct ToldTurn {
    pub(super) name: String,
    pub(super) has_begun: bool,
    /// The calls whose results were shown.
    pub(super) results: usize,
    pub(super) has_ended: bool,
}

/// A call with a key that was made again until there was a reply.
pub(super) struct ToldCall {
    pub(super) name: String,
    /// The reply of the call; `None` if nobody knows whether it ran.
    pub(super) outcome: Option<String>,
}

/// A session at one of the hosts.
pub(super) struct Conversation<'h> {
    hosts: &'h Hosts<'h>,
    token: &'h str,
    told: Told,
    dice: Dice,
    at: usize,
    /// How often the host had died when it opened the session.
    open_since: Option<u64>,
    /// When the host died that had the session.
    lost: Option<Instant>,
}

impl<'h> Conversation<'h> {
    pub(super) fn new(hosts: &'h Hosts<'h>, number: usize, dice: Dice) -> Self {
        let (_, token) = hosts.user_of(number);
        let told = Told { number, ..Told::default() };
        let at = hosts.other(number, &mut Dice(number as u64 + 1));
        Self { hosts, token, told, dice, at, open_since: None, lost: None }
    }

    /// Talks until the trial ends.
    pub(super) fn talk(mut self) -> Told {
        for turn in 0.. {
            self.open();
            self.pause();
            if self.hosts.has_ended_talks() {
                break;
            }
            let name = turn_name(self.told.number, turn);
            self.turn(&name);
            if self.dice.roll(TURNS_TO_A_CALL) == 0 {
                self.call(&name);
            }
        }
        self.told
    }

    /// Waits, and opens the session elsewhere when its host is killed meanwhile.
    fn pause(&mut self) {
        let end = Instant::now() + Duration::from_millis(self.dice.roll(PAUSE_MS_MAX));
        while Instant::now() < end && !self.hosts.has_ended_talks() {
            thread::sleep(LOOK_EVERY);
            if self.is_host_dead() {
                self.leave();
                self.open();
            }
        }
    }

    fn is_host_dead(&self) -> bool {
        self.open_since.is_some_and(|deaths| self.hosts.deaths(self.at).0 != deaths)
    }

    /// Leaves a host that has died, or that does not run the session any more.
    fn leave(&mut self) {
        if self.is_host_dead() {
            self.lost = Some(self.hosts.deaths(self.at).1);
        }
        self.open_since = None;
        self.at = self.hosts.other(self.at, &mut self.dice);
    }

    fn ask(&self, target: [&str; 2], lines: &str, body: &Value) -> Option<HttpReply> {
        let lines = bearer(self.token) + lines;
        self.hosts.ask(self.at, target, &lines, &body.to_string())
    }

    /// Opens the session, at whichever host does.
    fn open(&mut self) {
        let begin = Instant::now();
        while self.open_since.is_none() {
            assert!(begin.elapsed() < PATIENCE, "{:?} is not opened", self.told.session);
            let (deaths, _) = self.hosts.deaths(self.at);
            let reply = self.try_to_open();
            if matches!(reply, Some(200 | 201)) {
                self.open_since = Some(deaths);
                break;
            }
            if reply.is_none() {
                // Such a host may have held the session for a moment.
                let (_, killed) = self.hosts.deaths(self.at);
                self.lost = self.lost.map(|lost| lost.max(killed));
                self.at = self.hosts.other(self.at, &mut self.dice);
            }
            let pause = TRY_EVERY_MS / 2 + self.dice.roll(TRY_EVERY_MS / 2);
            thread::sleep(Duration::from_millis(pause));
        }
        self.told.takeovers.extend(self.lost.take().map(|lost| lost.elapsed()));
        self.check();
    }

    /// The status of the reply; `None` if there is none.
    fn try_to_open(&mut self) -> Option<u16> {
        let body = self.told.session.as_ref().map_or(json!({}), |id| json!({ "resume": id }));
        let reply = self.ask(["POST", "/v1/sessions"], "", &body)?;
        match reply.status {
            200 | 201 => self.told.session = reply.json()["id"].as_str().map(str::to_owned),
            // Nothing of it was acknowledged but its name.
            404 if self.told.is_empty() => self.told.session = None,
            409 => assert_eq!(reply.problem(), "session-elsewhere"),
            429 | 503 => {}
            _ => panic!("{:?}: {reply:#?}", self.told.session),
        }
        Some(reply.status)
    }

    /// Fails unless the session has all that the user was told.
    fn check(&self) {
        let session = self.told.session.as_deref().unwrap();
        let Some(reply) = self.hosts.export(self.at, self.token, session) else { return };
        match reply.status {
            200 => self.told.check(&reply.json()),
            404 => assert!(self.told.is_empty(), "{session} is lost"),
            429 | 503 => {}
            _ => panic!("{reply:#?}"),
        }
    }

    fn turn(&mut self, name: &str) {
        let session = self.told.session.clone().unwrap();
        let text = input_text(name, 1 + self.dice.roll(TIMER_MS_MAX));
        let command = json!({ "type": "submit-input", "input": { "text": text } });
        let path = format!("/v1/sessions/{session}/commands");
        let Some(reply) = self.ask(["POST", &path], "", &command) else { return self.leave() };
        match reply.status {
            202 => {}
            429 | 503 => return,
            // The host lost it: to another one while it was slow, or by its own end.
            _ if ["session-elsewhere", "session-not-open"].contains(&&*reply.problem()) => {
                return self.leave();
            }
            _ => panic!("{session}: {reply:#?}"),
        }
        let reply = reply.json();
        let after = reply["last_event_id"].as_str().unwrap();
        let lines = format!("{}Last-Event-ID: {after}\r\n", bearer(self.token));
        let Some(mut events) = self.hosts.stream(self.at, &session, &lines) else {
            return self.leave();
        };
        let has_ended = events.reaches("\"type\":\"turn-ended\"");
        self.told.turns.push(ToldTurn {
            name: name.to_owned(),
            has_begun: events.text.contains("\"type\":\"turn-started\""),
            results: events.text.matches("\"type\":\"call-finished\"").count(),
            has_ended,
        });
        if !has_ended {
            self.leave();
        }
    }

    /// Makes a call with a key, again and again at any host until there is a reply.
    fn call(&mut self, name: &str) {
        let key = format!("Idempotency-Key: {name}\r\n");
        let body = json!({ "arguments": { "steps": [format!("bump call-{name}")] } });
        let begin = Instant::now();
        let outcome = loop {
            assert!(begin.elapsed() < PATIENCE, "no reply to the call {name}");
            match self.ask(["POST", "/v1/tools/living.acts/call"], &key, &body) {
                None => {
                    self.leave();
                    self.open();
                }
                Some(reply) if reply.status == 200 => {
                    break reply.json()["outcome"].as_str().map(str::to_owned);
                }
                Some(reply) if [429, 503].contains(&reply.status) => {}
                Some(reply) => match &*reply.problem() {
                    "request-running" => {}
                    "outcome-unknown" => break None,
                    _ => panic!("{name}: {reply:#?}"),
                },
            }
            thread::sleep(Duration::from_millis(TRY_EVERY_MS));
        };
        self.told.calls.push(ToldCall { name: name.to_owned(), outcome });
    }
}

impl Told {
    /// Whether the user knows of nothing that is stored.
    fn is_empty(&self) -> bool {
        self.turns.iter().all(|turn| !turn.has_begun)
    }

    /// Fails unless an export of the session has all of it, in order and once.
    pub(super) fn check(&self, export: &Value) {
        let stored = export["turns"].as_array().unwrap();
        let inputs: Vec<&str> = stored.iter().map(input_name).collect();
        let mut at = 0;
        for told in self.turns.iter().filter(|turn| turn.has_begun) {
            let found = inputs[at..].iter().position(|name| *name == told.name);
            let found = found.unwrap_or_else(|| panic!("{} is lost: {inputs:?}", told.name));
            at += found + 1;
            told.check(&stored[at - 1]);
        }
        let mut once = inputs.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), inputs.len(), "an input is there twice: {inputs:?}");
    }
}

impl ToldTurn {
    fn check(&self, stored: &Value) {
        let ended = calls_of(stored).filter(|call| !call["outcome"].is_null()).count();
        assert!(ended >= self.results, "{} lost a result: {stored:#}", self.name);
        assert!(!self.has_ended || !stored["end"].is_null(), "{} lost its end", self.name);
    }
}

/// The name of a stored turn.
pub(super) fn input_name(turn: &Value) -> &str {
    let text = turn["input"]["text"].as_str().unwrap_or_default();
    text.split(' ').nth(1).unwrap_or_default()
}

/// The calls of a stored turn.
pub(super) fn calls_of(turn: &Value) -> impl Iterator<Item = &Value> {
    let steps = turn["steps"].as_array().map_or(&[][..], Vec::as_slice);
    steps.iter().filter(|step| step["kind"] == "called")
}
