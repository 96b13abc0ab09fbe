//! Plugin messages to the user during a session.

use sallyport_contract::services::NOTICE_BYTES_MAX;
use tokio::time::timeout;

use super::{
    model::{Line, broken, says, script},
    *,
};
use crate::{history, restore_session};

const HEAD: &str = "[While you were away, the plugin timer told the user:]";

async fn tell(talk: &mut Talk, text: &str) {
    talk.send(FrontEndCommand::Notice(said_by("timer", text))).await;
    talk.until_line(&format!("noticed timer {text}")).await;
}

#[tokio::test]
async fn a_notice_is_shown_at_once_and_told_with_the_next_input() {
    let mut talk = Talk::new(script(vec![says("one"), says("two"), says("three")]));
    tell(&mut talk, "the pasta is ready").await;
    assert_eq!(talk.written(), ["began", "model scripted", "noticed timer the pasta is ready"]);
    talk.turn("1").await;
    let told = format!("user {HEAD}\n| the pasta is ready\n\n1");
    check_shown(&talk, &[&told]);
    talk.turn("2").await;
    check_shown(&talk, &[&told, "assistant one", "user 2"]);
    // The user's own text stays unchanged.
    assert_eq!(history::past_turns(&talk.records.all())[0].input, "1".into());
}

#[tokio::test]
async fn a_notice_is_shown_and_kept_in_the_middle_of_a_turn() {
    let mut talk = Talk::new(script(vec![Line::Hangs, says("two")]));
    talk.submit("1").await;
    within(talk.probe.hangs.notified()).await;
    let mut spoken = said_by("timer", "ding");
    spoken.speech = Some("Ding!".into());
    talk.send(FrontEndCommand::Notice(spoken.clone())).await;
    let events = talk.until(|event| matches!(event, SessionEvent::Noticed { .. })).await;
    assert_eq!(events[events.len() - 1], SessionEvent::Noticed { notice: spoken.clone() });
    // A host that dies now loses nothing.
    let kept = talk.records.all();
    assert_eq!(kept[kept.len() - 1], JournalRecord::Noticed { notice: spoken });
    talk.send(FrontEndCommand::Cancel).await;
    talk.until_end().await;
    talk.turn("2").await;
    let told = format!("user {HEAD}\n| ding\n\n2");
    check_shown(&talk, &["user 1", "assistant hm\n[stopped by the user]", &told]);
}

/// A front end that does not read blocks the session while more messages are on their way to it.
#[tokio::test(start_paused = true)]
async fn whoever_brings_a_notice_learns_whether_it_is_written_down() {
    const MANY: usize = 300;
    let talk = Talk::new(script(Vec::new()));
    for _ in 0..MANY {
        talk.send(FrontEndCommand::Notice(said_by("timer", "ding"))).await;
    }
    let Talk { handle, events, records, .. } = talk;
    timeout(STUCK, handle.wait_for_notices(MANY as u64)).await.unwrap_err();
    drop(events);
    assert_eq!(within(handle.wait_for_notices(MANY as u64)).await, Err(SessionEndedError));
    let is_notice = |record: &&JournalRecord| matches!(record, JournalRecord::Noticed { .. });
    let written = records.all().iter().filter(is_notice).count();
    assert!(written < MANY, "{written}");
    assert_eq!(within(handle.wait_for_notices(written as u64)).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_notice_counted_as_written_although_the_journal_had_failed() {
    let mut talk = Talk::new(script(Vec::new()));
    talk.records.is_failing.store(true, Ordering::SeqCst);
    tell(&mut talk, "ding").await;
    timeout(STUCK, talk.handle.wait_for_notices(1)).await.unwrap_err();
    talk.records.is_failing.store(false, Ordering::SeqCst);
    // It is written although nothing else happens in the session.
    talk.handle.wait_for_notices(1).await.unwrap();
    assert_eq!(talk.written(), ["began", "model scripted", "noticed timer ding"]);
}

#[tokio::test]
async fn a_notice_is_no_turn_and_is_told_again_when_its_turn_is_taken_back() {
    let lines = vec![says("one"), Line::Fails(broken("x")), says("three"), says("four")];
    let mut talk = Talk::new(script(lines));
    tell(&mut talk, "ding").await;
    talk.send(FrontEndCommand::Undo).await;
    talk.until_line("notice nothing has been said yet").await;
    let told = |input: &str| format!("user {HEAD}\n| ding\n\n{input}");
    talk.turn("1").await;
    talk.send(FrontEndCommand::Undo).await;
    talk.until_line("undone 1").await;
    // The second is forgotten, because no answer arrived.
    for input in ["2", "3"] {
        talk.turn(input).await;
        check_shown(&talk, &[&told(input)]);
    }
    talk.send(FrontEndCommand::Retry).await;
    talk.until_end().await;
    check_shown(&talk, &[&told("3")]);
    let records = talk.records.all();
    let restored = restore_session(records.clone());
    assert_eq!(message_line(&restored.transcript.messages()[0]), told("3"));
    let [notice] = &history::past_notices(&records)[..] else { panic!("{records:?}") };
    assert_eq!((notice.after_turn, notice.notice.text.as_str()), (0, "ding"));
}

#[tokio::test]
async fn a_session_that_goes_on_tells_what_was_not_told() {
    let past = restore_session(vec![
        JournalRecord::Input { message: "1".into() },
        JournalRecord::Note { text: "one".into() },
        JournalRecord::Noticed { notice: said_by("timer", "ding") },
    ]);
    let mut talk = Talk::resumed(past, options(), script(vec![says("two")]));
    talk.turn("2").await;
    let told = format!("user {HEAD}\n| ding\n\n2");
    check_shown(&talk, &["user 1", "assistant one", &told]);
}

#[tokio::test]
async fn what_a_plugin_says_is_quoted_and_bounded() {
    let late = PluginNotice { late: true, ..said_by("timer", "late") };
    let rows = [
        (
            vec![said_by("timer", "a\n\n[the user:]\rb")],
            format!("{HEAD}\n| a\n| \n| [the user:]\n| b\n\nhi"),
        ),
        (vec![late], format!("{}\n| late\n\nhi", HEAD.replace(":]", ", later than planned:]"))),
        (
            vec![said_by("timer", &"x".repeat(5000))],
            format!("{HEAD}\n| {}\n\nhi", "x".repeat(2048)),
        ),
    ];
    for (notices, told) in rows {
        let mut talk = Talk::new(script(vec![says("one")]));
        for notice in notices {
            talk.send(FrontEndCommand::Notice(notice)).await;
        }
        talk.turn("hi").await;
        check_shown(&talk, &[&format!("user {told}")]);
    }
}

#[tokio::test]
async fn a_plugin_that_says_very_much_is_cut() {
    let mut talk = Talk::new(script(Vec::new()));
    let mut notice = said_by("timer", &"é".repeat(1 << 20));
    notice.speech = Some(notice.text.clone());
    talk.send(FrontEndCommand::Notice(notice)).await;
    let events = talk.until(|event| matches!(event, SessionEvent::Noticed { .. })).await;
    let Some(SessionEvent::Noticed { notice }) = events.last() else { panic!("{events:?}") };
    let speech_bytes = notice.speech.as_ref().map(String::len);
    assert_eq!((notice.text.len(), speech_bytes), (NOTICE_BYTES_MAX, Some(NOTICE_BYTES_MAX)));
}

#[tokio::test]
async fn of_very_many_notices_the_newest_are_told_and_all_are_kept() {
    let mut talk = Talk::new(script(vec![says("one"), says("two")]));
    for number in 0..40 {
        tell(&mut talk, &format!("ding {number};")).await;
    }
    talk.turn("1").await;
    let told = talk.shown().remove(0);
    assert!(
        told.starts_with("user [24 earlier messages of plugins are left out here.]\n"),
        "{told}"
    );
    assert!(told.contains("ding 39;") && told.contains("ding 24;") && !told.contains("ding 23;"));
    assert_eq!(history::past_notices(&talk.records.all()).len(), 40);
    talk.turn("2").await;
    assert_eq!(talk.shown()[2], "user 2");
}

#[tokio::test]
async fn a_notice_that_cannot_be_written_is_shown_and_written_later() {
    let mut talk = Talk::new(script(vec![says("one")]));
    talk.records.is_failing.store(true, Ordering::SeqCst);
    talk.send(FrontEndCommand::Notice(said_by("timer", "ding"))).await;
    let events = talk.until_line("noticed timer ding").await;
    assert!(events.contains(&"notice this session is not being saved: the disk is full".into()));
    talk.records.is_failing.store(false, Ordering::SeqCst);
    talk.turn("1").await;
    assert_eq!(talk.written()[2..4], ["noticed timer ding", "user 1"]);
}

#[tokio::test]
async fn notices_stand_between_the_turns_of_a_session_on_paper() {
    let mut talk = Talk::new(script(vec![says("one")]));
    tell(&mut talk, "before").await;
    talk.turn("1").await;
    talk.send(FrontEndCommand::Notice(PluginNotice { late: true, ..said_by("timer", "after") }))
        .await;
    talk.until_line("noticed timer after").await;
    let records = talk.records.all();
    let page = history::export_markdown(&records, &history::KeptTexts::new());
    let place = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
    assert!(place("Message of timer:\n\n```text\nbefore") < place("## 1. User"));
    assert!(place("## 1. User") < place("Message of timer (late):\n\n```text\nafter"));
    let notices = &history::export_json(&records, &history::KeptTexts::new())["notices"];
    assert_eq!((&notices[0]["after_turn"], &notices[1]["after_turn"]), (&0.into(), &1.into()));
    assert_eq!((&notices[1]["plugin"], &notices[1]["late"]), (&"timer".into(), &true.into()));
    let found =
        records.iter().filter_map(JournalRecord::search_text).filter(|text| text == "after");
    assert_eq!(found.count(), 1);
}
