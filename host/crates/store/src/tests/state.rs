//! State: apart for every owner, counted, and never half of anything.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sallyport_contract::services::{StateStoreError, StateWrite, WriteCondition};

use super::*;
use crate::{PersistentStateStore, StateOwner};

/// More than any test here needs.
const PLENTY_BYTES: u64 = 1 << 20;

fn anything(value: &[u8]) -> StateWrite {
    let (expected, expires_in) = (WriteCondition::Anything, None);
    StateWrite { value: value.to_vec(), expected, expires_in, quota_bytes: PLENTY_BYTES }
}

struct Keeper {
    state: Arc<dyn PersistentStateStore>,
    hands: Hands,
    fixture: Fixture,
}

impl Keeper {
    fn new() -> Self {
        let (fixture, hands) = (Fixture::new(), Hands::default());
        Self { state: hands.store(&fixture).state, hands, fixture }
    }

    fn set(&self, key: &str, value: &str) -> u64 {
        self.state.set(&me(), key, anything(value.as_bytes())).wait().unwrap()
    }

    fn set_for(&self, key: &str, time: Duration) -> u64 {
        let write = StateWrite { expires_in: Some(time), ..anything(b"short") };
        self.state.set(&me(), key, write).wait().unwrap()
    }

    fn get(&self, key: &str) -> Option<(String, u64)> {
        let kept = self.state.get(&me(), key).wait().unwrap()?;
        Some((String::from_utf8(kept.value).unwrap(), kept.version))
    }

    fn keys(&self) -> Vec<String> {
        self.state.list_keys(&me(), "", None, 99).wait().unwrap()
    }

    /// What the owners keep by their own count, and by their rows.
    fn counted(&self) -> (u64, u64) {
        let one = |sql: &str| self.fixture.count(&format!("SELECT CAST({sql} AS bigint)"));
        (
            one("(SELECT coalesce(sum(bytes), 0) FROM state_owner)"),
            one("(SELECT coalesce(sum(length(name) + length(value)), 0) FROM state)"),
        )
    }
}

fn me() -> DataOwner {
    owner("notes", "me")
}

#[test]
fn what_is_kept_is_there_until_it_is_forgotten() {
    let keeper = Keeper::new();
    assert_eq!(keeper.get("a"), None);
    let first = keeper.set("a", "1");
    assert_eq!(keeper.get("a"), Some(("1".to_owned(), first)));
    let second = keeper.set("a", "");
    assert_eq!(keeper.get("a"), Some((String::new(), second)));
    assert!(keeper.state.delete(&me(), "a").wait().unwrap());
    assert!(!keeper.state.delete(&me(), "a").wait().unwrap());
    assert_eq!(keeper.get("a"), None);
    let again = keeper.fixture.reopen().state;
    again.set(&me(), "b\0c", anything(&[0, 255])).wait().unwrap();
    assert_eq!(keeper.state.get(&me(), "b\0c").wait().unwrap().unwrap().value, [0, 255]);
    assert_eq!(keeper.get("b"), None);
}

#[test]
fn no_version_comes_twice() {
    let keeper = Keeper::new();
    let mut seen = vec![keeper.set("a", "1"), keeper.set("a", "1"), keeper.set("b", "1")];
    keeper.state.delete(&me(), "a").wait().unwrap();
    seen.push(keeper.set("a", "1"));
    seen.push(keeper.set_for("a", Duration::ZERO));
    seen.push(keeper.set("a", "1"));
    keeper.state.clear_owner(&me()).wait().unwrap();
    seen.push(keeper.set("a", "1"));
    seen.push(keeper.set("b", "1"));
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
}

#[test]
fn a_key_that_is_not_as_expected_stays_as_it_is() {
    let keeper = Keeper::new();
    let set =
        |expected| keeper.state.set(&me(), "a", StateWrite { expected, ..anything(b"new") }).wait();
    let conflict = |present| Err(StateStoreError::Conflict { current_version: present });
    assert_eq!(set(WriteCondition::Version(1)), conflict(None));
    assert_eq!(set(WriteCondition::Version(0)), conflict(None));
    let first = set(WriteCondition::Nothing).unwrap();
    assert_eq!(set(WriteCondition::Nothing), conflict(Some(first)));
    assert_eq!(set(WriteCondition::Version(first + 1)), conflict(Some(first)));
    let second = set(WriteCondition::Version(first)).unwrap();
    assert_eq!(set(WriteCondition::Version(first)), conflict(Some(second)));
    assert_eq!(keeper.get("a"), Some(("new".to_owned(), second)));
    keeper.state.delete(&me(), "a").wait().unwrap();
    assert_eq!(set(WriteCondition::Version(second)), conflict(None));
    set(WriteCondition::Nothing).unwrap();
}

#[test]
fn a_quota_counts_keys_and_values_and_what_is_gone_counts_no_more() {
    let keeper = Keeper::new();
    let set = |key: &str, value: &[u8]| {
        keeper.state.set(&me(), key, StateWrite { quota_bytes: 10, ..anything(value) }).wait()
    };
    let full = |needed| Err(StateStoreError::QuotaReached { needed, quota: 10 });
    assert_eq!(set("key", &[0; 8]), full(11));
    assert_eq!(keeper.keys(), [""; 0]);
    let first = set("key", &[0; 7]).unwrap();
    assert_eq!(set("k", &[]), full(11));
    assert_eq!(set("key", &[0; 8]), full(11));
    assert_eq!(keeper.state.get(&me(), "key").wait().unwrap().unwrap().version, first);
    set("key", &[0; 6]).unwrap();
    set("k", &[]).unwrap();
    assert_eq!(set("é", &[]), full(12));
    keeper.state.delete(&me(), "key").wait().unwrap();
    set("é", &[0; 7]).unwrap();
    keeper.state.clear_owner(&me()).wait().unwrap();
    keeper.set_for("short", Duration::from_millis(5));
    assert_eq!(set("k", &[]), full(11));
    keeper.hands.set(5);
    set("k", &[0; 9]).unwrap();
    assert_eq!(
        keeper.state.set(&owner("notes", "you"), "k", anything(&[0; 10])).wait().unwrap(),
        1
    );
}

#[test]
fn what_has_expired_is_not_there() {
    let keeper = Keeper::new();
    keeper.hands.set(1000);
    keeper.set_for("a", Duration::from_millis(500));
    keeper.set("b", "");
    keeper.hands.set(1499);
    assert_eq!(keeper.keys(), ["a", "b"]);
    assert!(keeper.get("a").is_some());
    keeper.hands.set(1500);
    assert_eq!((keeper.keys(), keeper.get("a")), (vec!["b".to_owned()], None));
    assert_eq!(keeper.state.list_owners().wait().unwrap()[0].keys, 1);
    assert!(!keeper.state.delete(&me(), "a").wait().unwrap());
    let expected = WriteCondition::Nothing;
    keeper.state.set(&me(), "a", StateWrite { expected, ..anything(b"") }).wait().unwrap();
    // A value that is set anew without a time stays.
    keeper.set_for("c", Duration::from_millis(1));
    keeper.set("c", "");
    keeper.set_for("d", Duration::MAX);
    keeper.hands.set(u64::MAX / 2 - 1);
    assert_eq!(keeper.keys(), ["a", "b", "c", "d"]);
}

/// What has left the disk stays away, whatever the clock shows later.
#[test]
fn a_clock_that_steps_back_brings_nothing_back() {
    let keeper = Keeper::new();
    keeper.hands.set(1_000_000);
    keeper.set_for("a", Duration::from_millis(500));
    keeper.hands.set(1_000_500);
    keeper.set("b", "");
    keeper.hands.set(1000);
    assert_eq!(keeper.keys(), ["b"]);
    let version = keeper.set("a", "1");
    assert_eq!(keeper.get("a"), Some(("1".to_owned(), version)));
    assert_eq!(keeper.counted(), (3, 3));
}

#[test]
fn owners_are_apart() {
    let keeper = Keeper::new();
    let owners = [("notes", "me"), ("notes", "you"), ("other", "me"), ("notes", "")];
    for (number, (plugin, user)) in owners.into_iter().enumerate() {
        let value = number.to_string();
        keeper.state.set(&owner(plugin, user), "a", anything(value.as_bytes())).wait().unwrap();
    }
    for (number, (plugin, user)) in owners.into_iter().enumerate() {
        let kept = keeper.state.get(&owner(plugin, user), "a").wait().unwrap().unwrap();
        assert_eq!(kept.value, number.to_string().as_bytes());
    }
    let (keys, bytes) = (1, 2);
    let row = |plugin, user| StateOwner { owner: owner(plugin, user), keys, bytes };
    let want = [row("notes", ""), row("notes", "me"), row("notes", "you"), row("other", "me")];
    assert_eq!(keeper.state.list_owners().wait().unwrap(), want);
    assert_eq!(keeper.state.clear_owner(&owner("notes", "you")).wait().unwrap(), 1);
    assert_eq!(keeper.state.clear_owner(&owner("notes", "you")).wait().unwrap(), 0);
    assert_eq!(keeper.state.clear_owner(&owner("nobody", "me")).wait().unwrap(), 0);
    assert_eq!(keeper.state.list_owners().wait().unwrap().len(), 3);
    assert_eq!(keeper.keys(), ["a"]);
}

#[test]
fn keys_are_listed_in_the_order_of_their_bytes() {
    let keeper = Keeper::new();
    let last = "\u{10ffff}";
    for key in ["b/2", "a", "b/10", "b", "b/é", "c", "b/\u{10ffff}\u{10ffff}", last, "%", "B"] {
        keeper.set(key, "");
    }
    let under_b = ["b/10", "b/2", "b/é", "b/\u{10ffff}\u{10ffff}"];
    let rows: [(&str, Option<&str>, usize, &[&str]); 9] = [
        ("b/", None, 99, &under_b),
        ("b/", None, 2, &under_b[..2]),
        ("b/", Some("b/2"), 99, &under_b[2..]),
        ("b/", Some("b/11"), 1, &["b/2"]),
        ("b/", Some("a"), 1, &["b/10"]),
        ("b/", Some("c"), 99, &[]),
        ("%", None, 99, &["%"]),
        (last, None, usize::MAX, &[last]),
        ("", Some("b/10"), 1, &["b/2"]),
    ];
    for (prefix, after, limit, want) in rows {
        let keys = keeper.state.list_keys(&me(), prefix, after, limit).wait().unwrap();
        assert_eq!(keys, want, "{prefix:?} after {after:?}");
    }
    assert_eq!(keeper.keys().len(), 10);
    assert_eq!(keeper.state.list_keys(&me(), "", None, 0).wait().unwrap(), [""; 0]);
}

#[test]
fn a_store_that_cannot_be_used_is_unavailable() {
    let keeper = Keeper::new();
    keeper.set("a", "");
    keeper.fixture.sql(match keeper.fixture.is_sqlite() {
        true => "PRAGMA user_version = 99",
        false => "UPDATE store SET version = 99",
    });
    let state = keeper.fixture.reopen().state;
    assert!(matches!(state.get(&me(), "a").wait(), Err(StateStoreError::Unavailable(_))));
    assert!(matches!(
        state.set(&me(), "a", anything(b"")).wait(),
        Err(StateStoreError::Unavailable(_))
    ));
    assert!(matches!(state.delete(&me(), "a").wait(), Err(StateStoreError::Unavailable(_))));
    assert!(matches!(
        state.list_keys(&me(), "", None, 1).wait(),
        Err(StateStoreError::Unavailable(_))
    ));
}

/// A change to one of a few keys: its key, its length, and after which time it expires.
fn any_change() -> impl Strategy<Value = (u8, Option<usize>, Option<u64>)> {
    (0..4_u8, proptest::option::of(0..40_usize), proptest::option::of(0..20_u64))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_sum_is_always_that_of_the_rows(changes in proptest::collection::vec(any_change(), 1..30)) {
        let keeper = Keeper::new();
        let mut model: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for (now_ms, (key, len, expires)) in (0_u64..).zip(changes) {
            keeper.hands.set(now_ms);
            model.retain(|_, (_, until)| *until > now_ms);
            let key = "k".repeat(usize::from(key) + 1);
            if let Some(len) = len {
                let value = vec![7; len];
                let expires_in = expires.map(Duration::from_millis);
                let write = StateWrite { expires_in, quota_bytes: 60, ..anything(&value) };
                let others = model.iter().filter(|(name, _)| **name != key);
                let needed = others.map(|(name, (len, _))| name.len() + len).sum::<usize>() + key.len() + len;
                let set = keeper.state.set(&me(), &key, write).wait();
                prop_assert_eq!(set.is_ok(), needed <= 60);
                if set.is_ok() {
                    model.insert(key, (len, expires.map_or(u64::MAX, |ms| now_ms + ms)));
                }
            } else {
                prop_assert_eq!(keeper.state.delete(&me(), &key).wait().unwrap(), model.remove(&key).is_some());
            }
            model.retain(|_, (_, until)| *until > now_ms);
            prop_assert_eq!(keeper.keys(), model.keys().cloned().collect::<Vec<_>>());
            let (counted, rows) = keeper.counted();
            prop_assert_eq!(counted, rows);
        }
    }
}
