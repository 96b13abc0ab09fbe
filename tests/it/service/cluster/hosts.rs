//! The hosts of a cluster, which are killed and started again while users ask them.

use std::{
    fs,
    io::Write,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Scope},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    super::{
        EventReader, HttpReply, ServiceProgram, bearer, connect,
        machines::{elsewhere, machines_of},
        read_reply, request_text, token,
    },
    Trial,
};
use crate::support::{
    Home, Server,
    database::Database,
    dice::Dice,
    living::REQUESTS,
    patience::until,
    warden::{entry, requests},
};

const HOSTS: usize = 3;

/// Sessions of one user: a host opens no more for one.
const SESSIONS_OF_USER: usize = 10;

/// Most milliseconds until the next kill, and until a killed host is started again.
const LIFE_MS_MAX: u64 = 8_000;
const DEATH_MS_MAX: u64 = 15_000;

/// How often it is looked for questions.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One of so many questions is answered with no.
const QUESTIONS_TO_A_NO: u64 = 8;

/// The time in milliseconds after which what a dead machine holds is free.
const LEASE_MS: i64 = 6_000;

/// The longest time that a machine's lease still lasts, by the clock of the server.
const LEASE_LEFT_SQL: &str = "SELECT coalesce(max(until_ms), 0) \
    - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM sallyport.holder";

/// The hosts, with the tokens of their users.
pub(super) struct Hosts<'d> {
    pub(super) homes: [Home; HOSTS],
    hosts: [Mutex<Host>; HOSTS],
    database: &'d Database,
    users: Vec<String>,
    approver: String,
    launcher: &'static [&'static str],
    has_ended_talks: AtomicBool,
    has_ended: AtomicBool,
}

/// A host, which runs or does not.
struct Host {
    program: Option<ServiceProgram>,
    address: String,
    /// How often it was killed.
    deaths: u64,
    killed: Instant,
}

/// Ends everything that waits for the end, also if the test fails.
pub(super) struct End<'h>(&'h Hosts<'h>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.has_ended_talks.store(true, Ordering::SeqCst);
        self.0.has_ended.store(true, Ordering::SeqCst);
    }
}

impl<'d> Hosts<'d> {
    /// Starts the hosts. Every user has the same token on each.
    #[expect(clippy::print_stdout, reason = "a condition of the trial")]
    pub(super) fn start(
        database: &'d Database,
        model: &Server,
        pages: &Server,
        trial: Trial,
    ) -> Self {
        let homes: [Home; HOSTS] = machines_of(database, || home(model, pages));
        let users = (0..trial.sessions.div_ceil(SESSIONS_OF_USER))
            .map(|number| token(&homes[0], &format!("user{number}"), "user"))
            .collect();
        let approver = token(&homes[0], "amy", "approver");
        for other in &homes[1..] {
            let file = "service-tokens.toml";
            fs::copy(homes[0].path(file), other.path(file)).unwrap();
        }
        let launcher = elsewhere().unwrap_or_else(|| {
            println!("the hosts see each other's processes: this system makes no namespaces");
            &[]
        });
        let hosts = homes.each_ref().map(|home| Mutex::new(Host::start(home, launcher)));
        let (has_ended_talks, has_ended) = Default::default();
        Self { homes, hosts, database, users, approver, launcher, has_ended_talks, has_ended }
    }

    fn host(&self, at: usize) -> MutexGuard<'_, Host> {
        self.hosts[at].lock().unwrap()
    }

    /// The name and the token of the user of a session.
    pub(super) fn user_of(&self, session: usize) -> (String, &str) {
        let number = session / SESSIONS_OF_USER;
        (format!("user{number}"), &self.users[number])
    }

    /// Another host than this one.
    pub(super) fn other(&self, at: usize, dice: &mut Dice) -> usize {
        (at + 1 + dice.roll(HOSTS as u64 - 1) as usize) % HOSTS
    }

    /// How often a host was killed, and when it was last.
    pub(super) fn deaths(&self, at: usize) -> (u64, Instant) {
        let host = self.host(at);
        (host.deaths, host.killed)
    }

    /// Asks a host; `None` if it does not reply.
    pub(super) fn ask(
        &self,
        at: usize,
        target: [&str; 2],
        lines: &str,
        body: &str,
    ) -> Option<HttpReply> {
        let address = self.host(at).address.clone();
        let mut stream = connect(&address).ok()?;
        stream.write_all(request_text(&address, target, lines, body).as_bytes()).ok()?;
        Some(read_reply(stream)).filter(is_whole)
    }

    /// Streams the events of a session.
    pub(super) fn stream(&self, at: usize, session: &str, lines: &str) -> Option<EventReader> {
        let address = self.host(at).address.clone();
        EventReader::open(&address, session, lines).ok()
    }

    /// Kills hosts, each for a while, and returns when all run again.
    pub(super) fn kill_at_random<'s>(
        &'s self,
        kills: usize,
        mut dice: Dice,
        scope: &'s Scope<'s, '_>,
    ) {
        for _ in 0..kills {
            thread::sleep(Duration::from_millis(dice.roll(LIFE_MS_MAX)));
            let dead = self.next_to_die(&mut dice);
            self.kill(dead);
            let pause = Duration::from_millis(dice.roll(DEATH_MS_MAX));
            scope.spawn(move || {
                thread::sleep(pause);
                self.restart(dead);
            });
        }
        self.wait_for(HOSTS);
    }

    /// A host that runs, when it is not the only one.
    fn next_to_die(&self, dice: &mut Dice) -> usize {
        let running = self.wait_for(2);
        running[dice.roll(running.len() as u64) as usize]
    }

    /// Waits until so many hosts run, and returns those that do.
    fn wait_for(&self, count: usize) -> Vec<usize> {
        until("a host that runs", || {
            let runs = |at: &usize| self.host(*at).program.is_some();
            let running: Vec<usize> = (0..HOSTS).filter(runs).collect();
            (running.len() >= count).then_some(running)
        })
    }

    fn kill(&self, at: usize) {
        let left: i64 = self.database.sql(LEASE_LEFT_SQL).parse().unwrap();
        assert!(left <= LEASE_MS, "a lease lasts {left} ms");
        let mut host = self.host(at);
        host.program = None;
        host.deaths += 1;
        host.killed = Instant::now();
    }

    fn restart(&self, at: usize) {
        let started = Host::start(&self.homes[at], self.launcher);
        let mut host = self.host(at);
        host.program = started.program;
        host.address = started.address;
    }

    /// Answers questions about calls, mostly on other hosts than those on which the calls wait.
    pub(super) fn answer_questions(&self, mut dice: Dice) {
        while !self.has_ended.load(Ordering::SeqCst) {
            for at in 0..HOSTS {
                self.answer_all(at, &mut dice);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn answer_all(&self, at: usize, dice: &mut Dice) {
        let lines = bearer(&self.approver);
        let listed = self.ask(at, ["GET", "/v1/approvals"], &lines, "");
        let Some(listed) = listed.filter(|reply| reply.status == 200) else { return };
        for card in listed.json()["approvals"].as_array().unwrap() {
            let path = format!("/v1/approvals/{}/answer", card["id"].as_str().unwrap());
            let word = if dice.roll(QUESTIONS_TO_A_NO) == 0 { "no" } else { "once" };
            let answer = json!({ "answer": word, "hash": card["hash"] }).to_string();
            // It may be answered, or its host dead.
            let _ = self.ask(self.other(at, dice), ["POST", &path], &lines, &answer);
        }
    }

    /// Whether users ask for no further turn.
    pub(super) fn has_ended_talks(&self) -> bool {
        self.has_ended_talks.load(Ordering::SeqCst)
    }

    pub(super) fn end_talks(&self) {
        self.has_ended_talks.store(true, Ordering::SeqCst);
    }

    pub(super) fn end_when_dropped(&self) -> End<'_> {
        End(self)
    }

    /// What a session has, as one of the hosts tells it.
    pub(super) fn export(&self, at: usize, token: &str, session: &str) -> Option<HttpReply> {
        let path = format!("/v1/sessions/{session}/export");
        self.ask(at, ["GET", &path], &bearer(token), "")
    }

    /// Fails unless each machine finds the audit of all whole.
    pub(super) fn check_audit(&self) {
        for home in &self.homes {
            home.run(&["audit", "verify"]).ended(0);
        }
    }

    /// All records of the audit.
    pub(super) fn audit(&self) -> Vec<Value> {
        let shown = self.homes[0].run(&["audit", "show", "--output", "json", "-n", "1000000"]);
        let shown = shown.ended(0).stdout;
        let entry = |line| serde_json::from_str::<Value>(line).unwrap()["record"].take();
        shown.lines().map(entry).collect()
    }
}

impl Host {
    fn start(home: &Home, launcher: &[&str]) -> Self {
        let program = ServiceProgram::start_by(home, launcher, &[]);
        let address = program.address.clone();
        Self { program: Some(program), address, deaths: 0, killed: Instant::now() }
    }
}

/// Whether all of a reply came before its host was killed.
fn is_whole(reply: &HttpReply) -> bool {
    let lines = reply.head.lines();
    let length = lines.filter_map(|line| line.strip_prefix("content-length: ")).next();
    length.is_some_and(|length| length.trim() == reply.body.len().to_string())
}

/// A home whose tools set timers and count without asking, and fetch pages with an approval.
fn home(model: &Server, pages: &Server) -> Home {
    let url = pages.url();
    let policy = format!(
        "[plugin.hostile]\nnet = [{}]\n\
         [plugin.living]\nstate = true\nschedule = {{ timers = 512 }}\n\
         [[rule]]\ntool = \"living.acts\"\ndecision = \"allow\"\n",
        entry(pages, "")
    );
    Home::new()
        .env("OPENAI_BASE_URL", format!("{}/v1", model.url()))
        .env("SALLYPORT_MODEL", "m")
        .plugins(&["clock"])
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {url}/**")]))
        .guest("living", REQUESTS)
        .policy(policy)
}
