//! A key stands for one request, which is done once, whatever happens to its process.

use super::*;
use crate::{
    IdempotencyKey, KeyState, KeyedReply, KnownKey, StoreError,
    idempotency::{KEY_AGE_MS_MAX, KEYS_OF_USER_MAX, REPLY_BYTES_MAX},
};

const NOW_MS: u64 = 1_800_000_000_000;

fn key(user: &str, key: &str) -> IdempotencyKey {
    IdempotencyKey { user: user.to_owned(), key: key.to_owned() }
}

fn reply(body: Option<&str>) -> KeyedReply {
    KeyedReply { status: 200, body: body.map(|body| body.as_bytes().to_vec()) }
}

fn known(state: KeyState) -> Option<KnownKey> {
    Some(KnownKey { fingerprint: [1; 32], state })
}

#[test]
fn a_key_is_begun_once_and_is_its_users_alone() {
    let fixture = Fixture::new();
    let keys = &fixture.store.idempotency;
    let begin =
        |of: &IdempotencyKey, print| keys.begin_key(of, [print; 32], NOW_MS).wait().unwrap();
    let find = |of: &IdempotencyKey| keys.find_key(of, NOW_MS).wait().unwrap();
    let ann = key("ann", "k");
    assert_eq!(find(&ann), None);
    assert_eq!(begin(&ann, 1), None);
    assert_eq!(begin(&ann, 2), known(KeyState::BegunHere), "the first fingerprint stays");
    assert_eq!(begin(&key("ben", "k"), 2), None);
    keys.end_key(&ann, reply(Some("{}"))).wait().unwrap();
    assert_eq!(begin(&ann, 1), known(KeyState::Done(reply(Some("{}")))));
    assert_eq!(find(&ann), known(KeyState::Done(reply(Some("{}")))));
    keys.release_key(&key("ben", "k")).wait().unwrap();
    assert_eq!(find(&key("ben", "k")), None, "it was not done");
    assert_eq!(begin(&key("ben", "k"), 1), None);
    keys.cut_off_key(&key("ben", "k")).wait().unwrap();
    assert_eq!(begin(&key("ben", "k"), 1), known(KeyState::CutOff));
    keys.end_key(&key("eve", "k"), reply(None)).wait().unwrap();
    assert_eq!(find(&key("eve", "k")), None, "what was never begun has no end");
}

#[test]
fn a_key_of_a_process_that_is_gone_is_cut_off_unless_it_was_done() {
    let rows = [
        (Other::Ended, KeyState::CutOff),
        (Other::Replaced, KeyState::CutOff),
        (Other::BeforeTheStart, KeyState::CutOff),
        (Other::Elsewhere, KeyState::Running),
    ];
    for (other, want) in rows {
        let fixture = Fixture::new();
        let keys = &fixture.store.idempotency;
        for name in ["running", "done"] {
            keys.begin_key(&key("ann", name), [1; 32], NOW_MS).wait().unwrap();
        }
        keys.end_key(&key("ann", "done"), reply(None)).wait().unwrap();
        fixture.hand_over("idempotency_key", other);
        let begin = |name| keys.begin_key(&key("ann", name), [1; 32], NOW_MS).wait().unwrap();
        assert_eq!(begin("running"), known(want));
        assert_eq!(begin("done"), known(KeyState::Done(reply(None))));
    }
}

/// A process may come late with the end of its request, when another one has the key.
#[test]
fn the_end_of_a_request_changes_no_key_of_another_process() {
    let fixture = Fixture::new();
    let keys = &fixture.store.idempotency;
    let ann = key("ann", "k");
    keys.begin_key(&ann, [1; 32], NOW_MS).wait().unwrap();
    fixture.hand_over("idempotency_key", Other::Elsewhere);
    keys.end_key(&ann, reply(None)).wait().unwrap();
    keys.release_key(&ann).wait().unwrap();
    keys.cut_off_key(&ann).wait().unwrap();
    assert_eq!(keys.find_key(&ann, NOW_MS).wait().unwrap(), known(KeyState::Running));
}

#[test]
fn keys_are_bounded_in_age_number_and_size() {
    let fixture = Fixture::new();
    let keys = &fixture.store.idempotency;
    let begin = |name: &str, at_ms| keys.begin_key(&key("ann", name), [1; 32], at_ms).wait();
    begin("old", NOW_MS - KEY_AGE_MS_MAX).unwrap();
    assert_eq!(keys.find_key(&key("ann", "old"), NOW_MS).wait().unwrap(), None);
    for number in 0..KEYS_OF_USER_MAX {
        assert_eq!(begin(&number.to_string(), NOW_MS + number as u64).unwrap(), None);
    }
    let refused = begin("one more", NOW_MS + 1000);
    assert!(matches!(refused, Err(StoreError::TooManyKeys { .. })), "all run: {refused:?}");
    let long = "x".repeat(REPLY_BYTES_MAX + 1);
    keys.end_key(&key("ann", "7"), reply(Some(&long))).wait().unwrap();
    let kept = keys.find_key(&key("ann", "7"), NOW_MS + 1000).wait().unwrap();
    assert_eq!(kept, known(KeyState::Done(reply(None))));
    assert_eq!(begin("one more", NOW_MS + 1000).unwrap(), None, "the one that ended made room");
    assert_eq!(keys.find_key(&key("ann", "7"), NOW_MS + 1000).wait().unwrap(), None);
    assert!(begin(&"k".repeat(2000), NOW_MS).is_err());
    let short = if fixture.is_sqlite() { "x'00'" } else { "'\\x00'" };
    fixture.sql(&format!("UPDATE idempotency_key SET fingerprint = {short}"));
    assert!(keys.find_key(&key("ann", "8"), NOW_MS + 1000).wait().is_err());
}

#[test]
fn of_many_that_begin_at_the_same_time_one_does() {
    let fixture = Fixture::new();
    let begun = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let other = fixture.reopen();
                scope.spawn(move || {
                    let ann = key("ann", "k");
                    other.idempotency.begin_key(&ann, [1; 32], NOW_MS).wait().unwrap().is_none()
                })
            })
            .collect();
        threads.into_iter().map(|one| usize::from(one.join().unwrap())).sum::<usize>()
    });
    assert_eq!(begun, 1);
}
