//! Limits of tokens, money and time.

use std::time::Duration;

use sallyport_model::{TokenCost, TokenPrice};

use super::{
    model::{Line, calls, says, script, using},
    *,
};
use crate::SessionLimits;

/// A thousandth of a dollar for a thousand tokens.
const PRICE: TokenPrice =
    TokenPrice { input: 1.0, output: 1.0, cached_input: 1.0, cache_write: 1.0 };

fn limited_turn(limits: TurnLimits) -> SessionOptions {
    SessionOptions { limits, ..options() }
}

fn tokens(tokens_max: u64) -> SessionOptions {
    limited_turn(TurnLimits { tokens_max: Some(tokens_max), ..TurnLimits::default() })
}

fn cost(micro_usd: u64) -> SessionOptions {
    limited_turn(TurnLimits { cost_max: Some(TokenCost { micro_usd }), ..TurnLimits::default() })
}

fn session(tokens_max: Option<u64>, cost_max: Option<u64>) -> SessionOptions {
    let cost_max = cost_max.map(|micro_usd| TokenCost { micro_usd });
    SessionOptions { session_limits: SessionLimits { tokens_max, cost_max }, ..options() }
}

fn priced(options: SessionOptions, past: RestoredSession, lines: Vec<Line>) -> Talk {
    let probe = Arc::new(Probe::default());
    let model = Model::new(script(lines), Arc::default(), Arc::clone(&probe)).priced(PRICE);
    Talk::among(past, options, model, probe)
}

/// An answer with one call that uses 100 tokens, then a text answer that uses as many.
fn two_steps() -> Vec<Line> {
    vec![using(calls(&[("a", "t__echo", "")]), 90, 10), using(says("done"), 90, 10)]
}

#[tokio::test]
async fn what_is_used_up_ends_the_turn_before_another_call_or_request() {
    let rows = [
        (tokens(101), "end answered done"),
        (tokens(100), "end budget at most 100 tokens per turn"),
        (tokens(1), "end budget at most 1 tokens per turn"),
        (cost(101), "end answered done"),
        (cost(100), "end budget at most $0.0001 per turn"),
        (session(Some(101), None), "end answered done"),
        (session(Some(100), None), "end budget at most 100 tokens per session"),
        (session(None, Some(100)), "end budget at most $0.0001 per session"),
    ];
    for (options, end) in rows {
        let mut talk = priced(options, RestoredSession::default(), two_steps());
        let events = talk.turn("hello").await;
        assert_eq!(events[events.len() - 1], end);
        let is_stopped = end.starts_with("end budget");
        let refused = events.iter().any(|line| line.contains("not called: at most"));
        assert_eq!((refused, talk.shown().len() == 1), (is_stopped, is_stopped), "{events:?}");
        assert_eq!(talk.probe.runs.load(Ordering::SeqCst), usize::from(!is_stopped));
    }
}

#[tokio::test]
async fn a_limit_of_nothing_asks_nothing() {
    for options in [tokens(0), cost(0), session(Some(0), None), session(None, Some(0))] {
        let mut talk = priced(options, RestoredSession::default(), two_steps());
        let events = talk.turn("hello").await;
        assert!(events[0].starts_with("end budget"), "{events:?}");
        assert!(talk.requests.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_turn_begins_anew_and_a_session_does_not() {
    let lines = || [two_steps(), two_steps()].concat();
    let mut talk = priced(tokens(150), RestoredSession::default(), lines());
    assert_eq!(talk.turn("1").await.pop().unwrap(), "end answered done");
    assert_eq!(talk.turn("2").await.pop().unwrap(), "end answered done");

    let mut talk = priced(session(Some(200), None), RestoredSession::default(), lines());
    assert_eq!(talk.turn("1").await.pop().unwrap(), "end answered done");
    let over = "end budget at most 200 tokens per session";
    assert_eq!(talk.turn("2").await, [over]);

    // Usage before a session was restored counts as well.
    let past = crate::restore_session(talk.records.all());
    assert_eq!((past.spending().tokens, past.spending().cost.micro_usd), (200, 200));
    let mut talk = priced(session(Some(200), None), past, lines());
    assert_eq!(talk.turn("3").await, [over]);
}

#[tokio::test]
async fn a_cost_cannot_be_limited_where_no_price_is_known() {
    for options in [cost(1_000_000), session(None, Some(1_000_000))] {
        let mut talk = Talk::with(options, script(Vec::new()));
        let refused = "end refused the cost is limited, but the price of scripted is not known";
        assert_eq!(talk.turn("hello").await, [refused]);
        assert!(talk.written().is_empty());
    }
    let past = crate::restore_session(super::histories::records("i a e"));
    let mut talk = Talk::resumed(past, cost(1), script(Vec::new()));
    talk.send(FrontEndCommand::Summarize).await;
    let notice = "notice no summary was made: the cost is limited, but the price of scripted is \
        not known";
    talk.until_line(notice).await;
}

#[tokio::test]
async fn what_the_provider_does_not_say_is_estimated() {
    let mut talk = priced(options(), RestoredSession::default(), vec![says(&"word ".repeat(80))]);
    talk.submit(&"x".repeat(4000)).await;
    let Some(SessionEvent::TurnEnded { usage, .. }) = talk.until_end().await.pop() else {
        panic!()
    };
    let (read, written) = (usage.tokens.input_tokens, usage.tokens.output_tokens);
    assert!((900..1200).contains(&read) && (80..150).contains(&written), "{usage:?}");
    assert_eq!(usage.cost, Some(PRICE.of(&usage.tokens)));
    assert_eq!((usage.answers, usage.calls), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_time_is_up_is_stopped_at_every_wait() {
    let hung = [("a", "t__echo", "1"), ("b", "t__hangs", "")];
    let rows: [(Vec<Line>, &[&str]); 5] = [
        (vec![Line::Hangs], &[]),
        (vec![Line::Talks], &[]),
        (
            vec![calls(&[("a", "t__hangs_at_gate", "")])],
            &[
                r#"tool! a t__hangs_at_gate {"error":"the turn may take 5s at most; it was not made","outcome":"timed-out"}"#,
            ],
        ),
        (
            vec![calls(&[("a", "t__asks", "")])],
            &[
                r#"tool! a t__asks {"error":"the turn may take 5s at most; it was not made","outcome":"timed-out"}"#,
            ],
        ),
        (
            vec![calls(&hung)],
            &[
                "tool a t__echo 1",
                r#"tool! b t__hangs {"error":"the turn may take 5s at most; it may or may not have had its effect","outcome":"timed-out"}"#,
            ],
        ),
    ];
    for (mut lines, results) in rows {
        lines.push(says("again"));
        let time_max = Some(Duration::from_secs(5));
        let options = limited_turn(TurnLimits { time_max, ..TurnLimits::default() });
        let mut talk = Talk::with(options, script(lines));
        talk.submit("first").await;
        let mut events = talk.until_end().await;
        let Some(SessionEvent::TurnEnded { reason, usage }) = events.pop() else { panic!() };
        assert_eq!(end_line(&reason), "budget at most 5s per turn");
        assert_eq!(usage.elapsed, Duration::from_secs(5));
        assert_eq!(talk.turn("second").await, ["message again", "end answered again"]);
        let shown = talk.shown();
        let tools: Vec<&String> = shown.iter().filter(|line| line.starts_with("tool")).collect();
        assert_eq!(tools, results);
        assert_eq!(talk.probe.hanging(), 0);
    }
}

#[test]
fn money_is_written_as_people_write_it() {
    for (micro_usd, text) in [
        (0, "at most $0.00 per turn"),
        (1, "at most $0.000001 per turn"),
        (500_000, "at most $0.50 per turn"),
        (12_345_600, "at most $12.3456 per turn"),
    ] {
        let budget = crate::BudgetLimit::Cost { cost_max: TokenCost { micro_usd } };
        assert_eq!(budget.to_string(), text);
    }
}
