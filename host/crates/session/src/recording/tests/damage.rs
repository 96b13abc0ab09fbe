//! Tapes that end too early, have another source or were made by a newer program.

use proptest::{collection::vec, prelude::*};
use tokio::runtime::Builder;

use super::{
    cast::Line::{Calls, Says},
    *,
};
use crate::recording::RecordingError;

async fn tape() -> String {
    let script = [Calls(&[("t__echo", r#"{"x":"é"}"#)]), Says("All done."), Says("Bye.")];
    record(Actor::new(script), &["do it", "thanks"], Redactor::empty()).await.0
}

#[tokio::test(start_paused = true)]
async fn a_tape_that_is_cut_anywhere_plays_up_to_there() {
    let whole = tape().await;
    let (all, _) = play(&whole, options(), |_| {}).await;
    let begin = whole.find('\n').unwrap() + 1;
    for end in (begin..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
        let cut = &whole[..end];
        let is_input_whole = cut.contains("\"thanks\"}}\n");
        let (heard, problem) = play(cut, options(), |_| {}).await;
        let lines = cut.lines().count() - usize::from(!cut.ends_with('\n'));
        match problem {
            None => assert!(!heard.is_empty() || !cut.contains("\"do it\"}}\n"), "{cut}"),
            Some(ReplayError::Truncated { line, .. } | ReplayError::Ended { line, .. }) => {
                assert_eq!(line, lines, "{cut}");
            }
            Some(other) => panic!("{other}: {cut}"),
        }
        let same = heard.iter().zip(&all).take_while(|(a, b)| a == b).count();
        assert!(same + 8 >= heard.len(), "{cut}");
        assert!(is_input_whole || heard.len() < all.len(), "{cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_tape_is_cut_is_told() {
    let whole = tape().await;
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let rows = [
        (2, "the tape is cut off after line 2, before another request to the model"),
        (3, "the tape is cut off after line 3, before the answer to request 1"),
        (4, "the tape is cut off after line 4, before the decision about call \"c00\""),
        (5, "the tape is cut off after line 5, before the end of call \"c00\""),
        (6, "the tape is cut off after line 6, before another request to the model"),
    ];
    for (count, expected) in rows {
        let cut = format!("{}{{\"line\":", lines[..count].concat());
        let (_, problem) = play(&cut, options(), |_| {}).await;
        assert_eq!(problem.unwrap().to_string(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Lines that are missing, doubled or moved: the tape is read or refused, and a tape that is
    /// read can be replayed to some end.
    #[test]
    fn no_order_of_lines_breaks_anything(order in vec(1..12usize, 0..20), cut: bool) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let whole = tape().await;
            let lines: Vec<&str> = whole.split_inclusive('\n').collect();
            let mut text = lines[0].to_owned();
            text.extend(order.iter().map(|number| lines[*number]));
            text.truncate(text.len() - usize::from(cut));
            if SessionRecording::read_from(text.as_bytes()).is_ok() {
                play(&text, options(), |_| {}).await;
            }
        });
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let error = SessionRecording::read_from(text.as_bytes()).unwrap_err();
    let shown = error.to_string();
    assert!(shown.starts_with(expected), "{shown}");
    assert!(!error.hint().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_tape_is_refused() {
    let whole = tape().await;
    check("", "this is not a tape: it is empty");
    check("hello\n", "this is not a tape: expected value");
    check("{\"line\":\"cancel\"}\n", "this is not a tape: missing field `version`");
    check(
        "{\"line\":\"input\",\"version\":{\"major\":2,\"minor\":0}}\n",
        "this is not a tape: missing",
    );
    check("\u{0}\n\u{ff}", "this is not a tape: ");
    check(&whole[..20], "this is not a tape: EOF");
    check(&"[".repeat(100_000), "this is not a tape: ");
    let second = |line: &str| whole.replacen('\n', &format!("\n{line}\n"), 1);
    check(&second("{}"), "line 2 of the tape is damaged: missing field `line`");
    check(
        &second("{\"line\":\"dance\"}"),
        "line 2 of the tape is damaged: unknown variant `dance`",
    );
    check(
        &second("{\"line\":\"input\"}"),
        "line 2 of the tape is damaged: missing field `message`",
    );
    check(&second(&"{\"a\":".repeat(9_999)), "line 2 of the tape is damaged: ");
    check(&second(whole.lines().next().unwrap()), "line 2 of the tape is damaged: a second beginn");
    let orphan = "{\"line\":\"answer\",\"request\":0,\"end\":\"dropped\"}";
    check(&second(orphan), "line 2 of the tape is damaged: an answer to no request");
    for (number, same) in [(1, 0), (0, 1), (usize::MAX, usize::MAX)] {
        let jump = format!(
            "{{\"line\":\"request\",\"number\":{number},\"digest\":\"\",\"same\":{same},\
             \"messages\":[],\"tools\":[]}}"
        );
        check(&second(&jump), "line 2 of the tape is damaged: a request that does not follow");
    }
}

#[tokio::test(start_paused = true)]
async fn newer_tapes_are_read_as_far_as_they_are_known() {
    let whole = tape().await;
    let version = |version: &str| whole.replacen("{\"major\":2,\"minor\":0}", version, 1);
    check(
        &version("{\"major\":3,\"minor\":7}"),
        "the tape has format 3.7, this program reads format 2",
    );
    let newer = version("{\"major\":2,\"minor\":3,\"patch\":1}");
    assert_eq!(play(&newer, options(), |_| {}).await, play(&whole, options(), |_| {}).await);
    check(
        &newer.replacen('\n', "\n{\"line\":\"dance\"}\n", 1),
        "line 2 of the tape is of a kind that this program does not know: the tape has format 2.3, \
         known is up to 2.0",
    );
    check(&newer.replacen('\n', "\n{\"line\":\"input\"}\n", 1), "line 2 of the tape is damaged");
}

#[test]
fn what_cannot_be_written_or_read_is_told() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let recording =
        SessionRecorder::start(Full, Redactor::empty(), &options(), &Actor::new([]), &Stage::new());
    recording.record_input(&"hello".into());
    assert_eq!(recording.finish().unwrap_err().to_string(), "full");
    struct Gone;
    impl io::Read for Gone {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    let error = SessionRecording::read_from(io::BufReader::new(Gone)).unwrap_err();
    assert!(matches!(error, RecordingError::Read(_)), "{error}");
}
