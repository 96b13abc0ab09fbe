//! Listeners: signals go in, replies and inputs come out, and no flood of either.

use std::sync::{Arc, Mutex};

use sallyport_contract::services::{InputOrigin, SessionInbox, SubmissionError};
use sallyport_sandbox::roles::{ListenerReply, ListenerSignal, SignalResult};

use super::{GRANTS, LIMITS, admitted, refused, used, warden};
use crate::support::{Guarded, registry::told};

/// Keeps what is handed in, as much as it has room for.
#[derive(Default)]
pub(super) struct Tray {
    pub(super) inputs: Mutex<Vec<(String, InputOrigin)>>,
    refuses: Option<SubmissionError>,
}

impl SessionInbox for Tray {
    fn submit_input(&self, text: String, origin: InputOrigin) -> Result<(), SubmissionError> {
        if let Some(error) = &self.refuses {
            return Err(error.clone());
        }
        self.inputs.lock().unwrap().push((text, origin));
        Ok(())
    }
}

fn signal(player: &Guarded, tray: &Arc<Tray>, signal: ListenerSignal) -> SignalResult {
    let listener =
        player.plugin.create_listener(admitted(player, "listener"), Arc::clone(tray) as _);
    player.wait(listener.handle_signal("ws-1", signal))
}

fn text(player: &Guarded, tray: &Arc<Tray>, text: &str) -> SignalResult {
    signal(player, tray, ListenerSignal::Text(text.to_owned()))
}

/// The one reply of a signal, as text.
#[track_caller]
fn reply(handled: &SignalResult) -> &str {
    match &handled.replies[..] {
        [ListenerReply::Text(text)] => text,
        other => panic!("{other:?} {:?}", handled.report),
    }
}

#[test]
fn a_listener_is_told_every_signal() {
    let (player, tray) = (Guarded::by(warden("")), Arc::default());
    let listener =
        player.plugin.create_listener(admitted(&player, "listener"), Arc::clone(&tray) as _);
    assert_eq!(player.wait(listener.start()).outcome.as_str(), "completed");
    for (told, want) in [
        (ListenerSignal::Opened("127.0.0.1:9".to_owned()), "ws-1: opened 127.0.0.1:9"),
        (ListenerSignal::Binary(vec![0; 3]), "ws-1: binary 3"),
        (ListenerSignal::Answered("yes".to_owned()), "ws-1: answered yes"),
        (ListenerSignal::Closed, "ws-1: closed"),
    ] {
        assert_eq!(reply(&signal(&player, &tray, told)), want);
    }
    assert_eq!(player.wait(listener.stop()).outcome.as_str(), "completed");
}

#[test]
fn what_it_hands_in_has_its_origin() {
    let (player, tray) = (Guarded::by(warden("")), Arc::<Tray>::default());
    let handled = text(&player, &tray, "submit turn on the light");
    assert_eq!(reply(&handled), "taken");
    assert_eq!(used(&handled.report), ["input (17 bytes)"]);
    let (input, origin) = tray.inputs.lock().unwrap()[0].clone();
    assert_eq!(input, "turn on the light");
    assert_eq!(origin.plugin.as_str(), "player");
    assert_eq!(origin.label.as_deref(), Some("Ada"));
    assert_eq!(origin.connection.as_deref(), Some("ws-1"));
}

#[test]
fn input_that_is_not_taken_is_told() {
    let player = Guarded::by(warden(""));
    for (refuses, told, want) in [
        (None, "submit  ", "invalid: the input is empty"),
        (None, "large", "invalid: the input has 100000 bytes, at most 65536 are taken"),
        (Some(SubmissionError::Full), "submit x", "full: too much is waiting already"),
        (Some(SubmissionError::Ended), "submit x", "full: the session has ended"),
        (Some(SubmissionError::Invalid("odd".to_owned())), "submit x", "invalid: odd"),
    ] {
        let tray = Arc::new(Tray { refuses, ..Tray::default() });
        assert_eq!(reply(&text(&player, &tray, told)), want);
    }
}

#[test]
fn a_flood_of_input_ends() {
    let (player, tray) = (Guarded::by(warden("")), Arc::<Tray>::default());
    let handled = text(&player, &tray, "flood");
    let said = reply(&handled);
    assert!(said.starts_with("16 taken, then full: the limit of 16 inputs"), "{said}");
    assert_eq!(tray.inputs.lock().unwrap().len(), 16);
    assert_eq!(reply(&text(&player, &tray, "submit again")), "taken", "the next run may go on");
}

#[test]
fn h67_without_the_grant_of_the_moment_nothing_is_handed_in() {
    let (player, tray) = (Guarded::by(warden("")), Arc::<Tray>::default());
    assert_eq!(reply(&text(&player, &tray, "submit x")), "taken");
    player.warden.change("[plugin.player]\nschedule = true\n");
    let handled = text(&player, &tray, "submit x");
    assert_eq!(reply(&handled), "not granted");
    assert_eq!(refused(&handled.report), ["player may not hand input to the session"]);
    player.warden.change(GRANTS);
    assert_eq!(reply(&text(&player, &tray, "submit x")), "taken");
    assert_eq!(tray.inputs.lock().unwrap().len(), 2);
}

#[test]
fn replies_are_taken_in_their_order_and_not_without_end() {
    let (player, tray) = (Guarded::by(warden(LIMITS)), Arc::<Tray>::default());
    let kinds = text(&player, &tray, "kinds").replies;
    assert_eq!(
        kinds,
        [
            ListenerReply::Text("text".into()),
            ListenerReply::Binary(vec![1, 2, 3]),
            ListenerReply::Close
        ]
    );
    assert_eq!(text(&player, &tray, "replies 256").replies.len(), 256);
    for (told_it, want) in [
        ("replies 257", "failed: it gave 257 replies"),
        ("reply 65537", "failed: its replies have 65537 bytes"),
        ("fail with words", "failed: with words"),
        ("trap", "failed: the plugin trapped"),
        ("loop", "timed-out"),
    ] {
        let handled = text(&player, &tray, told_it);
        assert_eq!(handled.replies, []);
        assert!(told(&handled.report).starts_with(want), "{}", told(&handled.report));
    }
    assert_eq!(text(&player, &tray, "reply 65536").replies.len(), 1);
}

#[test]
fn no_secret_is_handed_in_or_replied() {
    let secret = "hunter2-hunter2-hunter2";
    let player = Guarded::by(warden("").secret("key", Ok(secret)));
    let tray = Arc::<Tray>::default();
    text(&player, &tray, &format!("submit {secret}"));
    let inputs = format!("{:?}", tray.inputs.lock().unwrap());
    assert!(!inputs.contains(secret), "{inputs}");
    let replied = signal(&player, &tray, ListenerSignal::Opened(secret.to_owned()));
    assert!(!reply(&replied).contains(secret));
}
