//! The address on this machine that the service sends the browser back to.
//!
//! It listens on a port of the loopback that is free at that moment, for one sign-in. Anything on
//! this machine can call it, so an answer with another state is refused and does not end the wait.

use std::time::Duration;

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::BrowserLogin;

/// Longest head of a request in bytes. A code and a state have some hundred.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Longest wait for the head of one request. Browsers open connections that they do not use.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);

/// Most connections at the same time.
const CONNECTIONS_MAX: usize = 32;

/// The pause after a connection that could not be accepted, which happens when files run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// The port is taken.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port; 0 for any.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
    /// The browser did not come back.
    #[error("nobody signed in within {0:?}")]
    TimedOut(Duration),
    /// The user or the service refused.
    #[error("the sign-in was refused: {0}")]
    Refused(String),
}

/// Waits for the browser.
#[derive(Debug)]
pub struct CallbackListener {
    listener: TcpListener,
    redirect: String,
    path: String,
}

/// What the browser brings.
enum CallbackAnswer {
    Code(String),
    Refused(String),
}

impl CallbackListener {
    /// Listens for the answer to a sign-in of a plugin. A definition whose own address is on this
    /// machine says the port and the path; otherwise any free port is used.
    ///
    /// # Errors
    ///
    /// The port is taken.
    pub async fn open(plugin: &str, own_address: Option<&str>) -> Result<Self, CallbackError> {
        let own = own_address.and_then(|text| Url::parse(text).ok()).filter(|url| {
            url.scheme() == "http" && matches!(url.host_str(), Some("127.0.0.1" | "localhost"))
        });
        let port = own.as_ref().and_then(Url::port).unwrap_or(0);
        let failed = |source| CallbackError::Listen { port, source };
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let (redirect, path) = match own {
            Some(url) if url.port().is_some() => (url.to_string(), url.path().to_owned()),
            _ => {
                let path = format!("/callback/{plugin}");
                (format!("http://127.0.0.1:{port}{path}"), path)
            }
        };
        Ok(Self { listener, redirect, path })
    }

    /// The address that the service has to send the browser to.
    pub fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Waits for the code of a sign-in.
    ///
    /// # Errors
    ///
    /// The sign-in is refused, or nobody came within `time_max`.
    pub async fn wait_for_code(
        &self,
        login: &BrowserLogin,
        time_max: Duration,
    ) -> Result<String, CallbackError> {
        let answer = tokio::time::timeout(time_max, self.wait_for_answer(login)).await;
        match answer.map_err(|_| CallbackError::TimedOut(time_max))? {
            CallbackAnswer::Code(code) => Ok(code),
            CallbackAnswer::Refused(reason) => Err(CallbackError::Refused(reason)),
        }
    }

    /// Serves all connections at the same time, because a browser opens some that it does not use,
    /// and the one with the answer must not wait for them.
    async fn wait_for_answer(&self, login: &BrowserLogin) -> CallbackAnswer {
        let mut requests = FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if requests.len() < CONNECTIONS_MAX => {
                    match accepted {
                        Ok((stream, _)) => requests.push(self.answer_request(login, stream)),
                        Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    }
                }
                Some(answer) = requests.next() => {
                    if let Some(answer) = answer {
                        return answer;
                    }
                }
            }
        }
    }

    /// Answers one request. Returns what it brings, if it belongs to the sign-in.
    async fn answer_request(
        &self,
        login: &BrowserLogin,
        mut stream: TcpStream,
    ) -> Option<CallbackAnswer> {
        let head = tokio::time::timeout(HEAD_TIME_MAX, read_target(&mut stream)).await;
        let target = head.ok().flatten()?;
        let (status, text, answer) = self.read_answer(login, &target);
        write_page(&mut stream, status, text).await;
        answer
    }

    /// The status and the text of the page, and the answer if it belongs to the sign-in.
    fn read_answer(
        &self,
        login: &BrowserLogin,
        target: &str,
    ) -> (&'static str, &'static str, Option<CallbackAnswer>) {
        let url = Url::parse("http://127.0.0.1").and_then(|base| base.join(target));
        let Some(url) = url.ok().filter(|url| url.path() == self.path) else {
            return ("404 Not Found", "There is nothing here.", None);
        };
        let value = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs.find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
        };
        if !value("state").is_some_and(|state| login.has_state(&state)) {
            let text = "This answer does not belong to the sign-in that is waiting. Begin again in \
                        the terminal.";
            return ("400 Bad Request", text, None);
        }
        if !login.accepts_issuer(value("iss").as_deref()) {
            let reason = "the answer is not from the service that was asked".to_owned();
            let text = "This answer is from another service. Begin again in the terminal.";
            return ("400 Bad Request", text, Some(CallbackAnswer::Refused(reason)));
        }
        if let Some(error) = value("error") {
            let reason = value("error_description").unwrap_or(error);
            let reason = sallyport_contract::text::escape_excerpt(&reason, 200);
            let text = "The sign-in was refused. You can close this page.";
            return ("200 OK", text, Some(CallbackAnswer::Refused(reason)));
        }
        match value("code") {
            Some(code) => {
                let text = "You are signed in. Close this page and return to the terminal.";
                ("200 OK", text, Some(CallbackAnswer::Code(code)))
            }
            None => ("400 Bad Request", "This answer has no code.", None),
        }
    }
}

/// Reads the target of a GET request; `None` if it is none.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await.ok()?;
        if count == 0 || head.len() + count > HEAD_BYTES_MAX {
            return None;
        }
        head.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8(head).ok()?;
    let target = text.strip_prefix("GET ")?.split(' ').next()?;
    Some(target.to_owned())
}

/// Writes a page. Its text is ours, so nothing of the request is in it.
async fn write_page(stream: &mut TcpStream, status: &str, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>Sallyport</title><p>{text}</p>");
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // The browser may be gone; the code is what counts.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
}
