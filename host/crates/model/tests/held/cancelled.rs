//! Answers that are cancelled.

use tokio::sync::watch;

use crate::{
    ask, model,
    scripts::{self, Script},
    server::{Server, chunk, in_chunks},
    shown,
};

#[tokio::test]
async fn an_answer_can_be_cancelled_between_any_two_events() {
    for script in scripts::all() {
        let server = Server::start().await;
        for events in 0..script.whole_from {
            cancel_after(&script, &server, events).await;
        }
    }
}

#[tokio::test]
async fn an_answer_can_be_cancelled_before_its_first_byte() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let mut on_delta = |delta| panic!("{delta:?}");
        let mut caller = tokio::select! {
            reply = ask(&*model, &mut on_delta) => panic!("{reply:?}"),
            caller = server.accept() => caller,
        };
        caller.has_left().await;
    }
}

/// Sends some events, drops the answer, and checks that the connection is closed.
async fn cancel_after(script: &Script, server: &Server, events: usize) {
    let model = model(script, server);
    let (tell, mut seen) = watch::channel((String::new(), Vec::new()));
    let mut deltas = Vec::new();
    let mut on_delta = |delta| {
        deltas.push(delta);
        tell.send_replace(shown(&deltas));
    };
    let want = script.shown(events);
    let serve = async {
        let mut caller = server.accept().await;
        caller.send(&in_chunks(script.content_type)).await;
        for (event, _) in &script.events[..events] {
            caller.send(&chunk(event.as_bytes())).await;
        }
        seen.wait_for(|seen| *seen == want).await.unwrap();
        caller
    };
    let mut caller = tokio::select! {
        reply = ask(&*model, &mut on_delta) => panic!("{reply:?}"),
        caller = serve => caller,
    };
    caller.send(&chunk(script.events[events].0.as_bytes())).await;
    caller.has_left().await;
    assert_eq!(shown(&deltas), want);
}
