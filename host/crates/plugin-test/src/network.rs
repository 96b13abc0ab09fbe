//! Servers that answer from a script, without any network.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use sallyport_sandbox::{BoxedConnection, SimulatedNetwork};
use serde_json::Value;
use url::Url;

use crate::{
    case_file::{RequestLine, ScriptedAnswer},
    json_values::{same_json, spaced},
};

/// Bytes that a connection holds in each direction until they are read.
const CONNECTION_BYTES: usize = 64 * 1024;

/// The scripted servers of one case. Clones share the script.
#[derive(Clone)]
pub(crate) struct ScriptedNetwork(Arc<Mutex<NetworkScript>>);

struct NetworkScript {
    /// The answers that are left, in order.
    answers: Vec<ScriptedAnswer>,
    objections: Vec<String>,
}

impl ScriptedNetwork {
    pub(crate) fn new(answers: Vec<ScriptedAnswer>) -> Self {
        Self(Arc::new(Mutex::new(NetworkScript { answers, objections: Vec::new() })))
    }

    /// What was requested and is not in the script, and what nothing requested.
    pub(crate) fn objections(&self) -> Vec<String> {
        let script = self.script();
        let unused = script
            .answers
            .iter()
            .map(|answer| format!("never requested: {}", answer.request.as_str()));
        script.objections.iter().cloned().chain(unused).collect()
    }

    /// No code panics while it holds the lock, so that the script is whole in any case.
    fn script(&self) -> MutexGuard<'_, NetworkScript> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(
        self,
        url: Url,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Closed> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
        let line = RequestLine::new(head.method.as_str(), url.as_str());
        let answer = self.take_answer(&line, &head.headers, &body).ok_or(Closed)?;
        if answer.fails {
            return Err(Closed);
        }
        respond(&answer).ok_or(Closed)
    }

    fn take_answer(
        &self,
        line: &RequestLine,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<ScriptedAnswer> {
        let mut script = self.script();
        let Some(index) = script.answers.iter().position(|answer| answer.request == *line) else {
            script.objections.push(format!("not in the script: {}", line.as_str()));
            return None;
        };
        let answer = script.answers.remove(index);
        let objections = request_objections(&answer, headers, body);
        let objections = objections.into_iter().map(|what| format!("{}: {what}", line.as_str()));
        script.objections.extend(objections);
        Some(answer)
    }
}

/// Closes a connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed")]
struct Closed;

impl SimulatedNetwork for ScriptedNetwork {
    fn connect(&self, url: &Url) -> BoxedConnection {
        let (client, server) = tokio::io::duplex(CONNECTION_BYTES);
        let (network, url) = (self.clone(), url.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| network.clone().answer(url.clone(), request));
            // A connection that breaks is an error of the request, which the plugin sees.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(server), service).await;
        });
        Box::new(client)
    }
}

/// What a request lacks.
fn request_objections(answer: &ScriptedAnswer, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
    let mut objections = Vec::new();
    for (name, wanted) in &answer.sent_headers {
        let sent = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if sent.as_deref() != Some(wanted.as_str()) {
            let sent = sent.map_or("none".to_owned(), |sent| format!("{sent:?}"));
            objections.push(format!("the header {name} is {sent}, and not {wanted:?}"));
        }
    }
    let text = String::from_utf8_lossy(body);
    if let Some(wanted) = answer.sent_body.as_ref().filter(|wanted| **wanted != text) {
        objections.push(format!("the body is {text:?}, and not {wanted:?}"));
    }
    if let Some(wanted) = &answer.sent_json {
        let sent: Option<Value> = serde_json::from_str(&text).ok();
        if !sent.is_some_and(|sent| same_json(wanted, &sent)) {
            objections.push(format!("the body is {text}, and not {}", spaced(wanted)));
        }
    }
    objections
}

fn respond(answer: &ScriptedAnswer) -> Option<Response<Full<Bytes>>> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let has_type = answer.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"));
    let body = match (&answer.json, &answer.body) {
        (Some(json), _) => {
            if !has_type {
                response = response.header("content-type", "application/json");
            }
            json.to_string()
        }
        (None, body) => body.clone().unwrap_or_default(),
    };
    response.body(Full::new(Bytes::from(body))).ok()
}
