//! A slow server.

use std::time::Duration;

use sallyport_model::{ModelEndpoint, ModelError, connect_model};

use crate::{
    PATIENCE, ask, endpoint, model, scripts,
    server::{Server, chunk, in_chunks},
};

#[tokio::test]
async fn a_late_first_byte_is_waited_for() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let mut deltas = Vec::new();
        let mut on_delta = |delta| deltas.push(delta);
        let mut answer = Box::pin(ask(&*model, &mut on_delta));
        let mut caller = tokio::select! {
            reply = &mut answer => panic!("{reply:?}"),
            caller = server.accept() => caller,
        };
        for _ in 0..100 {
            assert!(futures::poll!(&mut answer).is_pending());
            tokio::task::yield_now().await;
        }
        caller.send(&in_chunks(script.content_type)).await;
        caller.send(&chunk(&script.bytes())).await;
        caller.send(b"0\r\n\r\n").await;
        let reply = answer.await.unwrap();
        script.check(&reply, &deltas);
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_in_time_cannot_be_reached() {
    for script in scripts::all() {
        let server = Server::start().await;
        let endpoint = ModelEndpoint { time_max: PATIENCE / 2, ..endpoint(&script, &server) };
        let model = connect_model(endpoint).unwrap();
        let mut on_delta = |delta| panic!("{delta:?}");
        let hold = async {
            let mut caller = server.accept().await;
            // From here on all tasks wait, so the clock jumps to the end of the wait.
            tokio::time::pause();
            caller.has_left().await;
        };
        let (got, ()) = tokio::join!(ask(&*model, &mut on_delta), hold);
        tokio::time::resume();
        assert!(matches!(got, Err(ModelError::TimedOut { .. })), "{got:?}");
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_in_the_middle_is_given_up() {
    for script in scripts::all() {
        let server = Server::start().await;
        let endpoint =
            ModelEndpoint { time_max: Duration::from_secs(3600), ..endpoint(&script, &server) };
        let model = connect_model(endpoint).unwrap();
        let (tell, seen) = tokio::sync::oneshot::channel::<()>();
        let mut tell = Some(tell);
        let mut on_delta = |_| drop(tell.take());
        let fall_silent = async {
            let mut caller = server.accept().await;
            caller.send(&in_chunks(script.content_type)).await;
            let (last, rest) = script.events[..script.whole_from].split_last().unwrap();
            for (event, _) in rest {
                caller.send(&chunk(event.as_bytes())).await;
            }
            let _ = seen.await;
            caller.send(&chunk(last.0.as_bytes())).await;
            // From here on all tasks wait, so the clock jumps to the end of the wait.
            tokio::time::pause();
            caller
        };
        let (got, caller) = tokio::join!(ask(&*model, &mut on_delta), fall_silent);
        tokio::time::resume();
        assert!(matches!(got, Err(ModelError::TimedOut { .. })), "{got:?}");
        drop(caller);
    }
}
