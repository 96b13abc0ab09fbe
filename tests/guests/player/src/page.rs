//! A server that does what a path says.

use std::cell::Cell;

use wasip2::{
    exports::http::incoming_handler::Guest,
    http::types::{
        ErrorCode, Fields, IncomingRequest, OutgoingBody, OutgoingResponse, ResponseOutparam,
    },
    io::streams::StreamError,
};

use crate::{Player, listener, spin};

/// Bytes that one write may have, by WASI's word.
const WRITE_BYTES: usize = 4096;

thread_local! {
    /// An answer that was not given in its time.
    static KEPT: Cell<Option<ResponseOutparam>> = const { Cell::new(None) };

    /// A body that was not finished in its time.
    static KEPT_BODY: Cell<Option<OutgoingBody>> = const { Cell::new(None) };
}

impl Guest for Player {
    fn handle(request: IncomingRequest, out: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        match path.as_str() {
            "/told" => answer(out, 200, told(&request).as_bytes()),
            "/echo" => answer(out, 200, &body(&request)),
            "/submit" => {
                let text = String::from_utf8_lossy(&body(&request)).into_owned();
                answer(out, 202, listener::submit(&text).as_bytes());
            }
            "/empty" => answer(out, 204, b""),
            "/large" => answer(out, 200, &vec![b'x'; 3 << 20]),
            "/odd" => odd(out),
            "/informational" => answer(out, 103, b""),
            "/error" => ResponseOutparam::set(out, Err(ErrorCode::InternalError(None))),
            "/nothing" => {}
            "/traps" => core::arch::wasm32::unreachable(),
            "/loops" => spin(),
            "/traps_after_head" => {
                begin(out, 200);
                core::arch::wasm32::unreachable()
            }
            "/traps_in_body" => {
                let body = begin(out, 200);
                write(&body, b"the first half");
                core::arch::wasm32::unreachable()
            }
            "/loops_in_body" => {
                let body = begin(out, 200);
                write(&body, b"the first half");
                spin()
            }
            "/never_finishes" => {
                let body = begin(out, 200);
                write(&body, b"the first half");
                drop(body);
            }
            "/keeps" => KEPT.set(Some(out)),
            "/releases" => {
                if let Some(kept) = KEPT.take() {
                    answer(kept, 200, b"of another time");
                }
                answer(out, 200, b"of its own");
            }
            "/keeps_body" => {
                let body = begin(out, 200);
                write(&body, b"the first half");
                KEPT_BODY.set(Some(body));
            }
            "/submits_and_loops" => {
                listener::submit("before no answer");
                spin()
            }
            "/goes_on" => {
                answer(out, 200, b"done");
                listener::submit("after the answer");
            }
            _ => answer(out, 404, b"no such page"),
        }
    }
}

fn told(request: &IncomingRequest) -> String {
    let names = request.headers().entries();
    let headers: Vec<String> = names
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value)))
        .collect();
    format!(
        "{:?} {:?} {:?} {:?} {}",
        request.method(),
        request.scheme(),
        request.authority(),
        request.path_with_query(),
        headers.join(" ")
    )
}

/// The body, as far as it comes; an end before its time is said at its end.
fn body(request: &IncomingRequest) -> Vec<u8> {
    let Ok(body) = request.consume() else { return Vec::new() };
    let Ok(stream) = body.stream() else { return Vec::new() };
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(64 * 1024) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => return bytes,
            Err(error) => {
                bytes.extend(format!(" broken: {error}").bytes());
                return bytes;
            }
        }
    }
}

fn begin(out: ResponseOutparam, status: u16) -> OutgoingBody {
    let headers = Fields::new();
    let _ = headers.append("content-type", b"text/plain");
    let response = OutgoingResponse::new(headers);
    let _ = response.set_status_code(status);
    let body = response.body().unwrap_or_else(|()| core::arch::wasm32::unreachable());
    ResponseOutparam::set(out, Ok(response));
    body
}

fn answer(out: ResponseOutparam, status: u16, bytes: &[u8]) {
    let body = begin(out, status);
    write(&body, bytes);
    let _ = OutgoingBody::finish(body, None);
}

fn write(body: &OutgoingBody, bytes: &[u8]) {
    let Ok(stream) = body.write() else { return };
    for piece in bytes.chunks(WRITE_BYTES) {
        if stream.blocking_write_and_flush(piece).is_err() {
            return;
        }
    }
}

/// Says things in its head that are not for it to say.
fn odd(out: ResponseOutparam) {
    let headers = Fields::new();
    let names = ["connection", "transfer-encoding", "upgrade", "keep-alive", "via", "te"];
    let taken = names.iter().filter(|name| headers.append(name, b"x").is_ok()).count();
    let _ = headers.append("content-length", b"4");
    let _ = headers.append("x-taken", taken.to_string().as_bytes());
    let response = OutgoingResponse::new(headers);
    let Ok(body) = response.body() else { return };
    ResponseOutparam::set(out, Ok(response));
    write(&body, b"four");
    let _ = OutgoingBody::finish(body, None);
}
