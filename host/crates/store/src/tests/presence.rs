//! A session is open while a process that lives says so.

use super::*;
use crate::{OpenSession, SessionClaim};

const NOW_MS: u64 = 1_800_000_000_000;

fn open(session_id: &str, user: &str) -> OpenSession {
    OpenSession { session_id: session_id.to_owned(), user: user.to_owned() }
}

#[test]
fn sessions_are_open_from_entering_to_leaving() {
    let fixture = Fixture::new();
    let presence = &fixture.store.presence;
    assert!(!presence.has_open_session("me", NOW_MS).wait().unwrap());
    presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
    presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
    presence.mark_open("you", "s-2", NOW_MS).wait().unwrap();
    assert_eq!(presence.list_open(NOW_MS).wait().unwrap(), [open("s-1", "me"), open("s-2", "you")]);
    let is_open = |session| presence.is_open(session, NOW_MS).wait().unwrap();
    assert!(is_open("s-1") && is_open("s-2") && !is_open("s-3"));
    presence.mark_closed("s-2").wait().unwrap();
    presence.mark_closed("s-2").wait().unwrap();
    assert!(is_open("s-1") && !is_open("s-2"));
    assert!(presence.has_open_session("me", NOW_MS).wait().unwrap());
    assert!(!presence.has_open_session("you", NOW_MS).wait().unwrap());
}

#[test]
fn a_process_that_beats_no_more_does_not_count_for_long() {
    let fixture = Fixture::new();
    let presence = &fixture.store.presence;
    presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
    presence.mark_open("me", "s-2", NOW_MS).wait().unwrap();
    let is_open = |now_ms| presence.is_open("s-1", now_ms).wait().unwrap();
    assert!(is_open(NOW_MS + 40_000) && !is_open(NOW_MS + 40_001));
    presence.send_heartbeat("me", "s-1", NOW_MS + 60_000).wait().unwrap();
    assert!(is_open(NOW_MS + 100_000) && !is_open(NOW_MS + 100_001));
    // The clock steps back.
    assert!(is_open(NOW_MS - 1_000_000));
}

#[test]
fn a_session_that_was_left_behind_stayed_open_with_the_heartbeats_of_others() {
    let fixture = Fixture::new();
    let presence = &fixture.store.presence;
    presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
    presence.mark_open("me", "s-2", NOW_MS).wait().unwrap();
    presence.send_heartbeat("me", "s-1", NOW_MS + 60_000).wait().unwrap();
    assert_eq!(presence.list_open(NOW_MS + 60_000).wait().unwrap(), [open("s-1", "me")]);
}

#[test]
fn a_session_whose_entry_was_lost_was_never_open_again() {
    for (is_open_elsewhere, want) in
        [(false, SessionClaim::Claimed), (true, SessionClaim::OpenElsewhere)]
    {
        let fixture = Fixture::new();
        let presence = &fixture.store.presence;
        let beat = || presence.send_heartbeat("me", "s-1", NOW_MS).wait().unwrap();
        if is_open_elsewhere {
            presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
            fixture.hand_over("presence", Other::Elsewhere);
        }
        assert_eq!((beat(), beat()), (want, want));
        assert_eq!(presence.list_open(NOW_MS).wait().unwrap(), [open("s-1", "me")]);
        assert_eq!(fixture.count("SELECT count(*) FROM presence"), 1);
    }
}

#[test]
fn a_process_that_is_gone_does_not_count() {
    let rows = [
        (Other::Ended, false),
        (Other::Replaced, false),
        (Other::BeforeTheStart, false),
        (Other::Elsewhere, true),
    ];
    for (other, counts) in rows {
        let fixture = Fixture::new();
        let presence = &fixture.store.presence;
        presence.mark_open("me", "s-1", NOW_MS).wait().unwrap();
        fixture.hand_over("presence", other);
        assert_eq!(presence.is_open("s-1", NOW_MS).wait().unwrap(), counts);
        // The next to enter clears away what is left.
        presence.mark_open("me", "s-2", NOW_MS).wait().unwrap();
        assert_eq!(fixture.count("SELECT count(*) FROM presence"), 1 + u64::from(counts));
        presence.mark_closed("s-1").wait().unwrap();
        assert_eq!(presence.is_open("s-1", NOW_MS).wait().unwrap(), counts, "it is not this one's");
    }
}

#[test]
fn a_session_is_claimed_unless_another_process_runs_that_has_it_open() {
    let rows = [
        (Other::Ended, SessionClaim::Claimed),
        (Other::Replaced, SessionClaim::Claimed),
        (Other::BeforeTheStart, SessionClaim::Claimed),
        (Other::Elsewhere, SessionClaim::OpenElsewhere),
    ];
    for (other, want) in rows {
        let fixture = Fixture::new();
        let presence = &fixture.store.presence;
        let claim = |session, now_ms| presence.claim_session("me", session, now_ms).wait().unwrap();
        assert_eq!(claim("s-1", NOW_MS), SessionClaim::Claimed);
        assert_eq!(claim("s-1", NOW_MS), SessionClaim::Claimed, "its own");
        fixture.hand_over("presence", other);
        assert_eq!(claim("s-2", NOW_MS), SessionClaim::Claimed);
        assert_eq!(claim("s-1", NOW_MS), want);
        assert_eq!(claim("s-1", NOW_MS + 60_000), SessionClaim::Claimed, "it beats no more");
        presence.mark_closed("s-1").wait().unwrap();
    }
}
