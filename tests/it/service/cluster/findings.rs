//! What is there after the trial: in the database, in the audit, and at the server of the pages.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::{
    conversation::{Told, calls_of, input_name},
    hosts::Hosts,
    page_arguments,
};
use crate::support::{Server, database::Database, patience::until_so};

/// All that the plugin keeps, with the value behind each key.
const STATE_SQL: &str = "SELECT convert_from(name, 'UTF8') || '=' || convert_from(value, 'UTF8') \
    FROM sallyport.state";

/// How long it should take at most until a session continues elsewhere.
const PROMISED: Duration = Duration::from_secs(10);

/// What is there.
pub(super) struct Findings<'h> {
    hosts: &'h Hosts<'h>,
    authority: String,
    /// How often each page was fetched.
    pages: BTreeMap<String, usize>,
    /// What the plugin keeps, by key.
    state: BTreeMap<String, String>,
    /// The hashes of the arguments of all calls that were allowed.
    allowed: BTreeSet<String>,
}

/// How many there were of each.
#[derive(Debug, Default)]
struct Counts {
    turns: usize,
    cut_off: usize,
    fetches: usize,
    unknown_fetches: usize,
    denied: usize,
    timers: usize,
    timers_again: usize,
    keyed_calls: usize,
    unknown_keyed_calls: usize,
}

impl<'h> Findings<'h> {
    /// Waits until the last timer has fired, and gathers everything.
    pub(super) fn gather(hosts: &'h Hosts<'h>, database: &Database, pages: &Server) -> Self {
        until_so("the last timer has fired", || {
            database.sql("SELECT count(*) FROM sallyport.timer") == "0"
        });
        let mut fetched = BTreeMap::new();
        for request in pages.seen() {
            *fetched.entry(request.target).or_default() += 1;
        }
        let state = database.sql(STATE_SQL);
        let pair = |line: &str| line.split_once('=').map(|(key, value)| (key.into(), value.into()));
        let allowed = hosts.audit().into_iter().filter(is_allowed);
        let hash = |record: Value| record["arguments"].as_str().map(str::to_owned);
        Self {
            hosts,
            authority: pages.authority(),
            pages: fetched,
            state: state.lines().filter_map(pair).collect(),
            allowed: allowed.filter_map(hash).collect(),
        }
    }

    /// Fails if anything is lost, was done twice, or was done without a record.
    #[expect(clippy::print_stdout, reason = "the figures of the trial")]
    pub(super) fn check(&self, told: &[Told]) {
        for (page, count) in &self.pages {
            assert_eq!(*count, 1, "{page} was fetched twice");
            let arguments = page_arguments(&self.authority, &page[1..]).to_string();
            let hash = blake3::hash(arguments.as_bytes()).to_hex().to_string();
            assert!(self.allowed.contains(&hash), "{page} was fetched without a record");
        }
        for (key, value) in &self.state {
            match key.starts_with("fired-") {
                true => check_firings(key, value),
                false => assert_eq!(value, "1", "{key} was counted twice"),
            }
        }
        let counts = self.count(told);
        println!("{counts:?}");
        assert!(counts.turns > 0 && counts.timers > 0, "nothing was done");
    }

    /// Compares what each user was told with what is there.
    fn count(&self, told: &[Told]) -> Counts {
        let mut counts = Counts::default();
        for told in told {
            let Some(session) = &told.session else { continue };
            let (_, token) = self.hosts.user_of(told.number);
            let export = self.hosts.export(told.number % 3, token, session).unwrap();
            if export.status == 404 {
                continue;
            }
            let export = export.has(200).json();
            told.check(&export);
            for turn in export["turns"].as_array().unwrap() {
                self.check_turn(turn, &mut counts);
            }
            self.check_calls(told, &mut counts);
        }
        counts
    }

    fn check_turn(&self, turn: &Value, counts: &mut Counts) {
        counts.turns += 1;
        counts.cut_off += usize::from(turn["end"].is_null());
        let name = input_name(turn);
        let fetched = self.pages.contains_key(&format!("/{name}"));
        let counted = self.state.contains_key(name);
        for call in calls_of(turn) {
            let outcome = call["outcome"].as_str().unwrap_or_default();
            if call["tool"] == "living.acts" {
                assert!(outcome != "completed" || counted, "{name} was not counted");
                assert!(outcome != "denied" || !counted, "{name} was counted");
                self.check_timers(call, counts);
                continue;
            }
            assert!(outcome != "completed" || fetched, "{name} was not fetched: {turn:#}");
            assert!(outcome != "denied" || !fetched, "{name} was fetched: {turn:#}");
            counts.fetches += usize::from(fetched);
            counts.denied += usize::from(outcome == "denied");
            counts.unknown_fetches += usize::from(fetched && outcome != "completed");
        }
    }

    /// Fails unless each timer of a call whose result is stored has fired.
    fn check_timers(&self, call: &Value, counts: &mut Counts) {
        let text = call["result"].to_string();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        for id in words.filter(|word| word.starts_with("t-")) {
            let fired = self.state.get(&format!("fired-{id}"));
            let marks = fired.unwrap_or_else(|| panic!("{id} never fired: {call:#}"));
            counts.timers += 1;
            counts.timers_again += usize::from(marks.contains("fal"));
        }
    }

    fn check_calls(&self, told: &Told, counts: &mut Counts) {
        for call in &told.calls {
            let is_counted = self.state.contains_key(&format!("call-{}", call.name));
            let is_done = call.outcome.as_deref() == Some("completed");
            assert!(!is_done || is_counted, "the call {} was not counted", call.name);
            counts.keyed_calls += 1;
            counts.unknown_keyed_calls += usize::from(call.outcome.is_none());
        }
    }

    /// Prints how long it took until sessions were open again.
    #[expect(clippy::print_stdout, reason = "the figures of the trial")]
    pub(super) fn print(&self, told: &[Told]) {
        let mut times: Vec<Duration> =
            told.iter().flat_map(|told| told.takeovers.clone()).collect();
        times.sort_unstable();
        let Some(longest) = times.last() else { return };
        let part = |part: usize| times[times.len() * part / 100];
        let (half, most) = (part(50), part(95));
        let late = times.iter().filter(|time| **time > PROMISED).count();
        println!(
            "{} sessions continued elsewhere: half within {half:.1?}, 95 % within {most:.1?}, all \
             within {longest:.1?}; {late} later than {PROMISED:?}",
            times.len()
        );
    }
}

fn is_allowed(record: &Value) -> bool {
    record["kind"] == "decision" && record["decision"] == "allow"
}

/// Each firing has left `f`, with `a` when the plugin was told that it fires again, and `l` for late.
/// Only the first may lack the `a`, and what fires again is late.
fn check_firings(key: &str, marks: &str) {
    for (number, firing) in marks.split_whitespace().enumerate() {
        let is_first = number == 0 && ["f", "fl"].contains(&firing);
        assert!(is_first || firing == "fal", "{key}: {marks}");
    }
}
