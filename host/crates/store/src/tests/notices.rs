//! Messages wait, come once, and are not lost.

use std::time::Duration;

use sallyport_contract::services::{NoticeAudience, PluginNotice};

use super::*;
use crate::{NoticeBatch, StoreError};

const NOW_MS: u64 = 1_800_000_000_000;

pub(super) fn notice(session_id: &str, text: &str, audience: NoticeAudience) -> PluginNotice {
    PluginNotice {
        plugin: "timer".parse().unwrap(),
        session_id: session_id.to_owned(),
        text: text.to_owned(),
        speech: Some("said".to_owned()),
        audience,
        late: true,
    }
}

impl Fixture {
    fn keep(&self, session_id: &str, text: &str, audience: NoticeAudience) {
        self.store.notices.store_notice("me", &notice(session_id, text, audience)).wait().unwrap();
    }

    fn take(&self, session_id: &str) -> NoticeBatch {
        self.store.notices.take_batch("me", session_id, NOW_MS).wait().unwrap()
    }
}

/// What was taken, as texts.
fn texts(taken: &NoticeBatch) -> Vec<&str> {
    taken.notices.iter().map(|notice| notice.text.as_str()).collect()
}

#[test]
fn a_message_comes_once_and_as_it_was() {
    let fixture = Fixture::new();
    fixture.keep("s-1", "first", NoticeAudience::Conversation);
    fixture.keep("s-1", "second", NoticeAudience::Conversation);
    let taken = fixture.take("s-1");
    assert_eq!(taken.notices[0], notice("s-1", "first", NoticeAudience::Conversation));
    assert_eq!((texts(&taken), taken.discarded_count), (vec!["first", "second"], 0));
    assert!(fixture.take("s-1").is_empty(), "while they are being shown");
    fixture.store.notices.confirm_shown(&taken).wait().unwrap();
    assert!(fixture.take("s-1").is_empty());
    fixture.store.notices.confirm_shown(&taken).wait().unwrap();
    fixture.store.notices.confirm_shown(&NoticeBatch::default()).wait().unwrap();
}

#[test]
fn what_was_not_shown_waits_again() {
    let fixture = Fixture::new();
    fixture.keep("s-1", "a", NoticeAudience::Conversation);
    let taken = fixture.take("s-1");
    fixture.store.notices.release_batch(&taken).wait().unwrap();
    assert_eq!(texts(&fixture.take("s-1")), ["a"]);
}

/// Between taking and confirming a process may end; nothing is lost with it.
#[test]
fn what_a_process_had_taken_comes_again_when_it_is_gone() {
    let rows = [
        (Other::Ended, 0),
        (Other::Replaced, 0),
        (Other::BeforeTheStart, 0),
        (Other::Elsewhere, 60_000),
    ];
    for (other, wait_ms) in rows {
        let fixture = Fixture::new();
        fixture.keep("s-1", "a", NoticeAudience::Conversation);
        fixture.take("s-1");
        fixture.hand_over("notice", other);
        let take = |now_ms| fixture.store.notices.take_batch("me", "s-1", now_ms).wait().unwrap();
        if wait_ms > 0 {
            assert!(take(NOW_MS + wait_ms - 1).is_empty());
        }
        assert_eq!(texts(&take(NOW_MS + wait_ms)), ["a"]);
        assert!(take(NOW_MS + 10 * wait_ms).is_empty());
    }
}

#[test]
fn a_message_comes_to_those_it_is_for() {
    let fixture = Fixture::new();
    fixture.keep("s-1", "to one", NoticeAudience::Conversation);
    fixture.keep("s-1", "to me", NoticeAudience::User);
    fixture
        .store
        .notices
        .store_notice("you", &notice("s-2", "to you", NoticeAudience::User))
        .wait()
        .unwrap();
    let taken = fixture.take("s-2");
    assert_eq!(texts(&taken), ["to me"]);
    fixture.store.notices.release_batch(&taken).wait().unwrap();
    // Its own session is open, and will show it.
    fixture.store.presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
    assert!(fixture.take("s-2").is_empty());
    assert_eq!(texts(&fixture.take("s-1")), ["to one", "to me"]);
    let yours = fixture.store.notices.take_batch("you", "s-9", NOW_MS).wait().unwrap();
    assert_eq!(texts(&yours), ["to you"]);
}

/// The lines of all messages, in their order.
fn lines(taken: &NoticeBatch) -> Vec<&str> {
    taken.notices.iter().flat_map(|notice| notice.text.lines()).collect()
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[test]
fn of_too_many_none_is_lost_because_the_oldest_are_gathered() {
    let fixture = Fixture::new();
    for n in 0..1000 {
        fixture.keep("s-1", &n.to_string(), NoticeAudience::Conversation);
    }
    fixture.keep("s-2", "elsewhere", NoticeAudience::Conversation);
    let taken = fixture.take("s-1");
    assert_eq!((taken.discarded_count, taken.notices.len()), (0, 64));
    assert_eq!(lines(&taken), numbers(0..1000));
    // What is being shown is left as it is, and what comes meanwhile has its own room.
    for n in 0..65 {
        fixture.keep("s-1", &format!("new {n}"), NoticeAudience::Conversation);
    }
    let new = fixture.take("s-1");
    assert_eq!((new.discarded_count, texts(&new)[0], new.notices.len()), (0, "new 0\nnew 1", 64));
    fixture.store.notices.release_batch(&taken).wait().unwrap();
    assert_eq!(
        (fixture.take("s-1").discarded_count, texts(&fixture.take("s-2"))),
        (0, vec!["elsewhere"])
    );
}

#[test]
fn of_what_is_longer_than_all_messages_may_be_the_number_is_left() {
    let fixture = Fixture::new();
    let long = |n: u32| format!("{n} {}", "x".repeat(60_000));
    for n in 0..100 {
        fixture.keep("s-1", &long(n), NoticeAudience::Conversation);
    }
    let taken = fixture.take("s-1");
    assert_eq!((taken.discarded_count, taken.notices.len()), (37, 63));
    assert!(texts(&taken)[0].starts_with("37 "));
}

#[test]
fn messages_of_two_plugins_are_never_one() {
    let fixture = Fixture::new();
    for n in 0..200 {
        let text = format!("{n}");
        let plugin = if n % 2 == 0 { "even" } else { "odd" };
        let notice = PluginNotice {
            plugin: plugin.parse().unwrap(),
            ..notice("s-1", &text, NoticeAudience::Conversation)
        };
        fixture.store.notices.store_notice("me", &notice).wait().unwrap();
    }
    let taken = fixture.take("s-1");
    for notice in &taken.notices {
        let rest = u32::from(notice.plugin.as_str() == "odd");
        let numbers = notice.text.lines().map(|line| line.parse::<u32>().unwrap());
        assert!(numbers.into_iter().all(|n| n % 2 == rest), "{notice:?}");
    }
    assert_eq!((taken.discarded_count, lines(&taken).len()), (0, 200));
}

#[test]
fn what_is_gathered_comes_as_one_message_when_its_time_has_come() {
    let fixture = Fixture::new();
    let (notices, minute) = (fixture.store.notices, Duration::from_secs(60));
    let gather = |text: &str, now_ms| {
        notices
            .store_or_merge("me", &notice("s-1", text, NoticeAudience::User), now_ms, minute)
            .wait()
            .unwrap()
    };
    let take = |now_ms| notices.take_batch("me", "s-1", now_ms).wait().unwrap();
    for n in 0..25 {
        assert!(gather(&n.to_string(), NOW_MS + n));
    }
    assert!(take(NOW_MS + 59_999).is_empty());
    let taken = take(NOW_MS + 60_000);
    assert_eq!(taken.notices.len(), 1);
    assert_eq!(lines(&taken), numbers(0..25));
    // What is being shown takes nothing in any more.
    assert!(gather("next", NOW_MS + 60_000));
    notices.release_batch(&taken).wait().unwrap();
    let again = take(NOW_MS + 120_000);
    assert_eq!((again.notices.len(), lines(&again).len()), (2, 26));
    // A clock that was put back holds nothing for longer than a few minutes.
    assert!(gather("later", NOW_MS));
    assert_eq!(lines(&take(NOW_MS - 86_400_000)), ["later"]);
}

#[test]
fn what_does_not_fit_into_one_message_is_refused_and_not_cut() {
    let fixture = Fixture::new();
    let (notices, minute) = (fixture.store.notices, Duration::from_secs(60));
    let long = notice("s-1", &"x".repeat(40_000), NoticeAudience::User);
    for want in [true, false, false] {
        assert_eq!(notices.store_or_merge("me", &long, NOW_MS, minute).wait().unwrap(), want);
    }
    assert!(notices.store_or_merge("me", &long, NOW_MS + 60_000, minute).wait().unwrap());
}

#[test]
fn messages_to_the_user_do_not_pile_up_though_each_is_of_another_session() {
    let fixture = Fixture::new();
    for n in 0..100 {
        fixture.keep(&format!("s-{n}"), &n.to_string(), NoticeAudience::User);
        fixture.keep(&format!("s-{n}"), "own", NoticeAudience::Conversation);
    }
    let taken = fixture.take("s-99");
    let lines = lines(&taken);
    assert_eq!((taken.discarded_count, lines.len(), taken.notices.len()), (0, 101, 65));
    assert_eq!(lines.iter().filter(|line| **line == "own").count(), 1);
    assert_eq!(texts(&fixture.take("s-0")), ["own"]);
}

#[test]
fn a_great_many_are_handed_out_in_turn() {
    let fixture = Fixture::new();
    for n in 0..128 {
        let audience = if n % 2 == 0 { NoticeAudience::User } else { NoticeAudience::Conversation };
        fixture.keep("s-1", &n.to_string(), audience);
    }
    let mut seen = Vec::new();
    for want in [100, 28, 0] {
        let taken = fixture.take("s-1");
        assert_eq!(taken.notices.len(), want);
        seen.extend(taken.notices.into_iter().map(|notice| notice.text));
    }
    assert_eq!(seen, (0..128).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_message_that_is_too_long_is_refused() {
    let fixture = Fixture::new();
    let long = notice("s-1", &"x".repeat(65_533), NoticeAudience::User);
    let error = fixture.store.notices.store_notice("me", &long).wait().unwrap_err();
    assert!(matches!(error, StoreError::TooLong { what: "a message", bytes: 65_537, .. }));
}

#[test]
fn the_messages_of_a_session_go_with_it() {
    let fixture = Fixture::new();
    let new = crate::NewSession {
        user: USER.to_owned(),
        id: "s-1".to_owned(),
        title: "".to_owned(),
        model: "".to_owned(),
        folder: None,
        created_ms: 0,
    };
    fixture.store.sessions.create(new).wait().unwrap();
    fixture.keep("s-1", "to one", NoticeAudience::Conversation);
    fixture.keep("s-1", "to me", NoticeAudience::User);
    fixture.keep("s-2", "other", NoticeAudience::Conversation);
    fixture.store.sessions.remove(USER, "s-1").wait().unwrap();
    assert_eq!(texts(&fixture.take("s-1")), ["to me"]);
    assert_eq!(texts(&fixture.take("s-2")), ["other"]);
}
