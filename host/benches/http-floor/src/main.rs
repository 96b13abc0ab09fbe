//! axum alone, on the routes of the service that are measured: each request is read and parsed, and
//! gets an answer of the same length. It has no users, no policy, no sandbox and no audit.
//!
//! The first argument is the answer to a call. It prints its address, and serves until it is killed.
#![expect(clippy::print_stdout, reason = "the task that measures reads the address")]

use std::{convert::Infallible, env, io, net::SocketAddr};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hyper::{StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tower_service::Service as _;

fn main() -> io::Result<()> {
    let answer = env::args().nth(1).unwrap_or_default();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(answer))
}

async fn serve(answer: String) -> io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(health))
        .route("/v1/tools/{tool}/call", post(call))
        .with_state(Bytes::from(answer));
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let router = router.clone();
        let answer = service_fn(move |request: hyper::Request<Incoming>| {
            let mut router = router.clone();
            async move {
                let answered = router.call(request.map(Body::new)).await;
                Ok::<_, Infallible>(answered.unwrap_or_else(|never| match never {}))
            }
        });
        // A client that breaks its connection has ended it.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

async fn health() -> Response {
    json("{\"status\":\"ok\"}".into())
}

async fn call(State(answer): State<Bytes>, Path(_): Path<String>, body: Bytes) -> Response {
    match serde_json::from_slice::<Value>(&body) {
        Ok(_) => json(answer),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

fn json(bytes: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}
