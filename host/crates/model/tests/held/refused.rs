//! A server that refuses at first.
//!
//! The waits between attempts are skipped: the clock is stopped when a wait is reported, jumps to
//! its end, and runs again before the next request.

use std::time::Duration;

use sallyport_model::{ModelEndpoint, ModelError, ModelReply, ReplyDelta, connect_model};

use crate::{
    ask, endpoint, model,
    scripts::{self, Script},
    server::{Server, refusal, until_close},
};

/// Most requests for one answer.
const ATTEMPTS: usize = 5;

/// A time limit that no wait reaches, so that another limit applies.
const TIME_MAX: Duration = Duration::from_secs(7200);

/// Refuses a number of times, then answers. Returns the result, the waits and the deltas.
async fn refuse(
    script: &Script,
    times: usize,
    status: u16,
    headers: &str,
) -> (Result<ModelReply, ModelError>, Vec<Duration>, Vec<ReplyDelta>) {
    let server = Server::start().await;
    let model =
        connect_model(ModelEndpoint { time_max: TIME_MAX, ..endpoint(script, &server) }).unwrap();
    let (mut waits, mut deltas) = (Vec::new(), Vec::new());
    let mut on_delta = |delta| match delta {
        ReplyDelta::Retry { attempt, wait, reason } => {
            assert!(attempt as usize == waits.len() + 2 && !reason.is_empty());
            waits.push(wait);
            skip(wait);
        }
        delta => deltas.push(delta),
    };
    let serve = async {
        for _ in 0..times {
            let mut caller = server.accept().await;
            caller.send(&refusal(status, headers)).await;
            caller.hang_up().await;
        }
        let mut caller = server.accept().await;
        caller.send(&until_close(script.content_type)).await;
        caller.send(&script.bytes()).await;
        caller.hang_up().await;
        std::future::pending().await
    };
    let end = tokio::select! {
        end = ask(&*model, &mut on_delta) => end,
        () = serve => unreachable!("it waits for ever"),
    };
    (end, waits, deltas)
}

/// Stops the clock until a wait that begins now is over.
fn skip(wait: Duration) {
    tokio::time::pause();
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        tokio::time::resume();
    });
}

/// True when the error is the refusal with that status.
fn is_refusal(error: &ModelError, status: u16) -> bool {
    match error {
        ModelError::RateLimited { message, .. } => status == 429 && message == "not now",
        ModelError::Refused { status: told, message, .. } => {
            *told == status && message == "not now"
        }
        _ => false,
    }
}

#[tokio::test]
async fn a_server_that_refuses_for_a_moment_is_asked_again() {
    for script in scripts::all() {
        for status in [429, 500, 503] {
            for (headers, asked) in
                [("", 0), ("retry-after: 0\r\n", 0), ("retry-after: 40\r\n", 40)]
            {
                let (end, waits, deltas) = refuse(&script, 1, status, headers).await;
                script.check(&end.unwrap(), &deltas);
                let [wait] = waits[..] else { panic!("{waits:?}") };
                assert!((asked..=asked + 1).contains(&wait.as_secs()), "{wait:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_goes_on_refusing_is_left_alone() {
    for script in scripts::all() {
        for status in [429, 500] {
            let (end, waits, deltas) = refuse(&script, ATTEMPTS - 1, status, "").await;
            script.check(&end.unwrap(), &deltas);
            assert_eq!(waits.len(), ATTEMPTS - 1);
            let (end, waits, deltas) = refuse(&script, ATTEMPTS, status, "").await;
            assert!(is_refusal(&end.unwrap_err(), status));
            assert_eq!((waits.len(), deltas.len()), (ATTEMPTS - 1, 0));
        }
    }
}

#[tokio::test]
async fn nobody_waits_for_an_hour() {
    for script in scripts::all() {
        for status in [429, 500] {
            let (end, waits, deltas) = refuse(&script, 1, status, "retry-after: 3600\r\n").await;
            let error = end.unwrap_err();
            assert!(is_refusal(&error, status), "{error:?}");
            let (ModelError::RateLimited { retry_after, .. }
            | ModelError::Refused { retry_after, .. }) = error
            else {
                panic!("{error:?}")
            };
            assert_eq!(retry_after, Some(Duration::from_secs(3600)));
            assert_eq!((waits.len(), deltas.len()), (0, 0));
        }
    }
}

#[tokio::test]
async fn what_will_not_change_is_not_asked_again() {
    for script in scripts::all() {
        for status in [400, 401, 403, 404, 413, 422] {
            let (end, waits, _) = refuse(&script, 1, status, "").await;
            let error = end.unwrap_err();
            let is_right = match error {
                ModelError::Credentials { .. } => matches!(status, 401 | 403),
                ref error => is_refusal(error, status),
            };
            assert!(is_right && waits.is_empty(), "{status}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_without_a_word_is_tried_again() {
    for script in scripts::all() {
        let server = Server::start().await;
        let model = model(&script, &server);
        let (mut retries, mut deltas) = (0, Vec::new());
        let mut on_delta = |delta| match delta {
            ReplyDelta::Retry { wait, .. } => {
                retries += 1;
                skip(wait);
            }
            delta => deltas.push(delta),
        };
        let serve = async {
            server.accept().await.hang_up().await;
            let mut caller = server.accept().await;
            caller.send(&until_close(script.content_type)).await;
            caller.send(&script.bytes()).await;
            caller.hang_up().await;
        };
        let (end, ()) = tokio::join!(ask(&*model, &mut on_delta), serve);
        script.check(&end.unwrap(), &deltas);
        assert_eq!(retries, 1);
    }
}
