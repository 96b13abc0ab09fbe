//! State, timers and messages: nothing is torn or lost by a kill, and nothing comes twice that does
//! not say so.

#![expect(clippy::print_stdout, reason = "the other processes say what they do")]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader, Read},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sallyport_contract::{
    DataOwner,
    services::{
        NoticeAudience, PluginNotice, StateStoreError, StateWrite, StoredTimer, TimerRequest,
        TimerSchedule, WriteCondition,
    },
};
use sallyport_store::{PersistentTimerStore, TimerClaim};
use tempfile::TempDir;

use super::*;

/// Processes that are killed, each at another moment.
const KILLS: u64 = 50;

/// Timers that two processes let fire.
const TIMERS: u32 = 200;

/// Changes that each of two processes makes to one key.
const CHANGES: u32 = 100;

/// Far longer than a process that is killed takes to end; a hanging test still ends.
const ENDING_MS_MAX: u32 = 60_000;

/// Longer than any of these tests.
const LEASE_MS: u64 = 3_600_000;

/// What a process says begins with this, since the test runner writes into the same lines.
const SAYS: char = '|';

fn me() -> DataOwner {
    DataOwner { plugin: "timer".parse().unwrap(), user: "me".to_owned() }
}

fn set(
    store: &HostStore,
    key: &str,
    value: &str,
    expected: WriteCondition,
) -> Result<u64, StateStoreError> {
    let quota_bytes = 1 << 20;
    let value = value.as_bytes().to_vec();
    let write = StateWrite { value, expected, expires_in: None, quota_bytes };
    store.state.set(&me(), key, write).wait()
}

fn get(store: &HostStore, key: &str) -> Option<(String, u64)> {
    let kept = store.state.get(&me(), key).wait().unwrap()?;
    Some((String::from_utf8(kept.value).unwrap(), kept.version))
}

fn add(store: &HostStore, moment: TimerSchedule) -> StoredTimer {
    let plan = TimerRequest {
        schedule: moment,
        label: None,
        payload: "null".to_owned(),
        session_id: "s-1".to_owned(),
        interval_ms_min: 0,
        timers_max: 1000,
    };
    store.timers.add_timer(&me(), plan).wait().unwrap()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// Claims all that is due at a moment, lets it fire and settles it, and says so in between.
fn fire(timers: &dyn PersistentTimerStore, now_ms: u64) {
    let due = timers.list_due(now_ms).wait().unwrap();
    let claim = |timer: &StoredTimer| timers.claim(&timer.id, now_ms, LEASE_MS).wait().unwrap();
    let claims: Vec<TimerClaim> = due.iter().filter_map(claim).collect();
    for TimerClaim { firing, .. } in &claims {
        println!("{SAYS}fired {} {} {}", firing.timer.id, firing.due_ms, firing.will_repeat);
    }
    for claim in &claims {
        assert!(timers.complete_claim(claim).wait().unwrap());
        println!("{SAYS}settled {} {}", claim.firing.timer.id, claim.firing.due_ms);
    }
}

/// Shows the messages that wait, as a conversation does.
fn show(store: &HostStore) {
    let taken = store.notices.take_batch("me", "s-1", now_ms()).wait().unwrap();
    for notice in &taken.notices {
        println!("{SAYS}shown {}", notice.text);
    }
    store.notices.confirm_shown(&taken).wait().unwrap();
    for notice in &taken.notices {
        println!("{SAYS}confirmed {}", notice.text);
    }
}

#[test]
#[ignore = "the process that is killed"]
fn does_everything_for_ever() {
    let store = store_of_parent();
    let timers = &store.timers;
    let first = get(&store, "number").map_or(0, |(value, _)| number_of(&value) + 1);
    for number in first.. {
        set(&store, "number", &text_of(number), WriteCondition::Anything).unwrap();
        println!("{SAYS}set {number}");
        if number % 3 == 0 {
            let timer = add(&store, TimerSchedule::InMs(number % 5000));
            println!("{SAYS}added {} {}", timer.id, timer.next_ms);
            keep(&store, &number.to_string());
            println!("{SAYS}kept {number}");
        }
        // The time goes on with the timers, so that each of their times comes.
        fire(&**timers, timers.all().wait().unwrap()[0].next_ms);
        show(&store);
    }
}

fn keep(store: &HostStore, text: &str) {
    let notice = PluginNotice {
        plugin: me().plugin,
        session_id: "s-1".to_owned(),
        text: text.to_owned(),
        speech: None,
        audience: NoticeAudience::Conversation,
        late: false,
    };
    store.notices.store_notice("me", &notice).wait().unwrap();
}

/// A value in which a torn write would show: of another length for each number.
fn text_of(number: u64) -> String {
    format!("{number} ").repeat(1 + usize::try_from(number % 700).unwrap())
}

fn number_of(value: &str) -> u64 {
    let number = value.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(value, text_of(number), "a torn value");
    number
}

/// What all processes have said together.
#[derive(Default)]
struct Seen {
    set: u64,
    added: BTreeMap<String, u64>,
    /// How often each time of a timer has come.
    fired: BTreeMap<(String, u64), u32>,
    settled: BTreeSet<(String, u64)>,
    kept: BTreeSet<String>,
    shown: BTreeSet<String>,
    confirmed: BTreeSet<String>,
}

impl Seen {
    /// Takes a line, and checks that what it says may come now.
    fn take(&mut self, line: &str) {
        let Some((_, said)) = line.split_once(SAYS) else { return };
        let parts: Vec<&str> = said.split(' ').collect();
        match parts[..] {
            ["set", number] => self.set = number.parse().unwrap(),
            ["added", id, due] => drop(self.added.insert(id.to_owned(), due.parse().unwrap())),
            ["fired", id, due, again] => self.fired(id, due.parse().unwrap(), again == "true"),
            ["settled", id, due] => {
                self.settled.insert((id.to_owned(), due.parse().unwrap()));
            }
            ["kept", text] => drop(self.kept.insert(text.to_owned())),
            ["shown", text] => {
                assert!(!self.confirmed.contains(text), "{text} is shown once more");
                self.shown.insert(text.to_owned());
            }
            ["confirmed", text] => drop(self.confirmed.insert(text.to_owned())),
            _ => {}
        }
    }

    fn fired(&mut self, id: &str, due_ms: u64, again: bool) {
        let key = (id.to_owned(), due_ms);
        assert!(!self.settled.contains(&key), "{key:?} is settled and fires once more");
        let count = self.fired.entry(key).or_default();
        assert!(*count == 0 || again, "{id} fires for {due_ms} once more and does not say so");
        *count += 1;
    }

    /// Checks that nothing was lost, once nothing is left to come.
    fn check_whole(&self, repeated: &StoredTimer) {
        for (id, due_ms) in &self.added {
            assert!(self.fired.contains_key(&(id.clone(), *due_ms)), "{id} never fired");
        }
        let times: Vec<u64> = self
            .fired
            .keys()
            .filter(|(id, _)| *id == repeated.id)
            .map(|(_, due_ms)| *due_ms)
            .collect();
        assert!(times.windows(2).all(|pair| pair[1] == pair[0] + 1000), "a time was left out");
        let lost: Vec<_> = self.kept.difference(&self.shown).collect();
        assert!(lost.is_empty(), "{lost:?} were kept and never shown");
    }
}

/// Kills processes at fifty moments while they write state, let timers fire and show messages.
#[test]
fn a_kill_tears_nothing_loses_nothing_and_doubles_nothing_unmarked() {
    let parent = TempDir::new().unwrap();
    let store = HostStore::open(&parent.path().join("store")).unwrap();
    let repeated = add(&store, TimerSchedule::EveryMs(1000));
    let (mut seen, mut number) = (Seen::default(), 0);
    for round in 0..KILLS {
        let test = "kept::does_everything_for_ever";
        let mut other = start(command(&own_binary()), test, &parent.path().join("store"));
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Every other round is killed on its way to the first change.
        if round % 2 == 1 {
            lines.by_ref().take(20).for_each(|line| seen.take(&line));
        }
        thread::sleep(Duration::from_millis(round * 37 % 50));
        other.kill().unwrap();
        other.wait().unwrap();
        lines.for_each(|line| seen.take(&line));
        // The last change may have been made without a word about it.
        let found = get(&store, "number").map_or(0, |(value, _)| number_of(&value));
        assert!((seen.set..=seen.set.max(number) + 1).contains(&found), "{found}");
        number = found;
    }
    // What the last one left is taken up by this process.
    let mut drain =
        start(command(&own_binary()), "kept::fires_what_is_left", &parent.path().join("store"));
    let mut said = String::new();
    drain.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(drain.wait().unwrap().success(), "{said}");
    said.lines().for_each(|line| seen.take(line));
    seen.check_whole(&repeated);
    assert!(seen.fired.len() > 50 && seen.shown.len() > 20, "{} times", seen.fired.len());
}

#[test]
#[ignore = "the process that comes after the kills"]
fn fires_what_is_left() {
    let store = store_of_parent();
    let timers = &store.timers;
    while timers.all().wait().unwrap().len() > 1 {
        fire(&**timers, timers.all().wait().unwrap()[0].next_ms);
    }
    show(&store);
}

/// Starts a process that is ready by the time this returns, and goes on when its input ends.
fn start_one_of_two(folder: &Path, test: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut program = command(&own_binary());
    program.stdin(Stdio::piped());
    let mut other = start(program, test, folder);
    let mut said = BufReader::new(other.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        assert!(said.read_line(&mut line).unwrap() > 0, "{line}");
    }
    (other, said)
}

/// Lets two processes go on at once, and returns all that they say.
fn said_by_two(folder: &Path, test: &str) -> Vec<String> {
    let mut others = [(); 2].map(|()| start_one_of_two(folder, test));
    others.iter_mut().for_each(|(other, _)| drop(other.stdin.take()));
    let mut said = Vec::new();
    for (other, lines) in &mut others {
        let mut text = String::new();
        lines.read_to_string(&mut text).unwrap();
        assert!(other.wait().unwrap().success(), "{text}");
        said.extend(text.lines().map(str::to_owned));
    }
    said
}

fn wait_until_told() {
    println!("ready");
    io::stdin().read_to_string(&mut String::new()).unwrap();
}

#[test]
fn of_two_processes_one_lets_a_timer_fire() {
    let parent = TempDir::new().unwrap();
    let store = HostStore::open(&parent.path().join("store")).unwrap();
    for n in 0..TIMERS {
        add(&store, TimerSchedule::InMs(n.into()));
    }
    let mut seen = Seen::default();
    let said = said_by_two(&parent.path().join("store"), "kept::fires_when_told");
    said.iter().for_each(|line| seen.take(line));
    assert_eq!(seen.fired.len(), TIMERS as usize);
    assert!(seen.fired.values().all(|count| *count == 1), "{:?}", seen.fired);
    assert_eq!(store.timers.all().wait().unwrap(), []);
}

#[test]
#[ignore = "one of the two processes"]
fn fires_when_told() {
    let store = store_of_parent();
    let timers = &store.timers;
    let now_ms = now_ms() + u64::from(TIMERS);
    wait_until_told();
    while !timers.list_due(now_ms).wait().unwrap().is_empty() {
        fire(&**timers, now_ms);
    }
}

/// Whoever compares and sets never writes over what another has just written.
#[test]
fn of_two_processes_none_undoes_what_the_other_has_set() {
    let parent = TempDir::new().unwrap();
    let store = HostStore::open(&parent.path().join("store")).unwrap();
    set(&store, "count", "0", WriteCondition::Nothing).unwrap();
    said_by_two(&parent.path().join("store"), "kept::counts_when_told");
    assert_eq!(get(&store, "count").unwrap().0, (2 * CHANGES).to_string());
}

#[test]
#[ignore = "one of the two processes"]
fn counts_when_told() {
    let store = store_of_parent();
    wait_until_told();
    let mut left = CHANGES;
    while left > 0 {
        let (value, version) = get(&store, "count").unwrap();
        let next = (value.parse::<u32>().unwrap() + 1).to_string();
        match set(&store, "count", &next, WriteCondition::Version(version)) {
            Ok(_) => left -= 1,
            Err(StateStoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits a moment if somebody is still there.
fn has_left(is_open: impl Fn() -> bool) -> bool {
    let left = !is_open();
    if !left {
        thread::sleep(Duration::from_millis(1));
    }
    left
}

/// A process that was killed has left every session that it had open.
#[test]
fn a_killed_process_has_nothing_open() {
    let parent = TempDir::new().unwrap();
    let store = HostStore::open(&parent.path().join("store")).unwrap();
    let (mut other, mut said) =
        start_one_of_two(&parent.path().join("store"), "kept::enters_and_stays");
    let is_open = || store.presence.is_open("s-1", now_ms()).wait().unwrap();
    assert!(is_open());
    other.kill().unwrap();
    // It has ended as soon as it can say no more, also while nobody has asked how.
    let ended = said.read_to_string(&mut String::new());
    assert!(ended.is_ok() && (0..ENDING_MS_MAX).any(|_| has_left(is_open)));
    other.wait().unwrap();
    assert!(!is_open());
}

#[test]
#[ignore = "the process that is killed"]
fn enters_and_stays() {
    store_of_parent().presence.mark_open("me", "s-1", now_ms()).wait().unwrap();
    wait_until_told();
}
