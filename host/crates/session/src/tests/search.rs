//! Sessions with too many tools to list.

use super::{
    model::{calls, says, script},
    *,
};

fn many_tools() -> SessionOptions {
    SessionOptions { tool_tokens_max: Some(0), ..options() }
}

#[tokio::test]
async fn the_session_itself_answers_a_search() {
    let lines = vec![
        calls(&[("a", "search_tools", r#"{"query":"echo"}"#)]),
        calls(&[("b", "use_tool", r#"{"name":"t__echo","arguments":{"x":1}}"#)]),
        calls(&[("c", "t__echo", r#"{"x":2}"#)]),
        says("done"),
    ];
    let mut talk = Talk::with(many_tools(), script(lines));
    let events = talk.turn("hello").await;
    assert_eq!(events[1], r#"call a search_tools {"query":"echo"}"#);
    assert!(events[2].starts_with("finished a search_tools completed"), "{}", events[2]);
    assert_eq!(events[4], r#"call b t.echo {"x":1}"#);
    assert_eq!(events[5], r#"finished b t.echo completed {"x":1}"#);
    assert_eq!(events[8], r#"finished c t.echo completed {"x":2}"#);
    let shown = talk.shown();
    // The transcript contains the call as the model wrote it.
    let wrote = r#"assistant [b use_tool {"name":"t__echo","arguments":{"x":1}}] (opaque)"#;
    assert_eq!(shown[3..5], [wrote, r#"tool b use_tool {"x":1}"#]);
    let written = talk.written();
    assert!(written[4].starts_with("found t__echo"), "{}", written[4]);
    assert_eq!(written[5], "result a search_tools completed");
    assert_eq!(written[7], "result b t.echo completed");
}

#[tokio::test]
async fn budgets_and_repeats_see_the_real_tool() {
    let wrapped = r#"{"name":"t.echo","arguments":{"x":1}}"#;
    let mut talk = Talk::with(
        SessionOptions { limits: limited(9, 9, 2).limits, ..many_tools() },
        move |index| match index % 2 {
            0 => calls(&[("", "use_tool", wrapped)]),
            _ => calls(&[("", "t__echo", r#"{ "x": 1 }"#)]),
        },
    );
    let events = talk.turn("hello").await;
    let end = "end budget t.echo was called with the same arguments 2 times in this turn";
    assert_eq!(events[events.len() - 1], end);
}

#[tokio::test]
async fn what_cannot_be_made_out_is_told() {
    for (name, arguments, outcome) in [
        ("use_tool", "{}", "invalid-arguments"),
        ("use_tool", "{broken", "invalid-arguments"),
        ("search_tools", "[]", "invalid-arguments"),
        ("use_tool", r#"{"name":"nope","arguments":{}}"#, "failed"),
    ] {
        let mut talk =
            Talk::with(many_tools(), script(vec![calls(&[("a", name, arguments)]), says("done")]));
        let events = talk.turn("hello").await;
        assert!(events[2].contains(&format!(" {outcome} ")), "{name} {arguments}: {}", events[2]);
        assert_eq!(events[events.len() - 1], "end answered done");
    }
}

#[tokio::test]
async fn an_endless_search_is_stopped() {
    let mut talk = Talk::with(many_tools(), |_| calls(&[("", "search_tools", r#"{"query":"x"}"#)]));
    let end = "end budget search_tools was called with the same arguments 3 times in this turn";
    assert_eq!(talk.turn("hello").await.pop().unwrap(), end);
}
