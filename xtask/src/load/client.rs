//! A client of one kept connection, for what oha cannot do: a session is opened and then closed by its
//! ID.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{oha::LoadFigures, servers::LoadedService};

/// A connection that is kept.
pub(super) struct HttpClient {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl HttpClient {
    pub(super) fn connect(url: &str, token: &str) -> Result<Self> {
        let host = url.strip_prefix("http://").context("an address without TLS")?.to_owned();
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host, token: token.to_owned() })
    }

    /// Posts a body, and returns that of the answer, which has to have this status.
    pub(super) fn post(&mut self, path: &str, body: &str, status: u16) -> Result<String> {
        let Self { host, token, .. } = self;
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (found, answer) = self.read_answer()?;
        ensure!(found == status, "{path} answers {found}: {answer}");
        Ok(answer)
    }

    fn read_answer(&mut self) -> Result<(u16, String)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).context("no status")?.parse()?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body)?))
    }
}

/// Opens and closes sessions for some time, by some connections. The times are those of a pair.
pub(super) fn measure_sessions(
    service: &LoadedService,
    connections: usize,
    time: Duration,
) -> Result<LoadFigures> {
    let began = Instant::now();
    let pairs = || {
        let mut client = service.client()?;
        let mut times = Vec::new();
        while began.elapsed() < time {
            let start = Instant::now();
            let opened = client.post("/v1/sessions", "{}", 201)?;
            let opened: Value = serde_json::from_str(&opened)?;
            let id = opened["id"].as_str().context("a session without an ID")?;
            client.post(&format!("/v1/sessions/{id}/close"), "", 204)?;
            times.push(start.elapsed().as_secs_f64());
        }
        Ok::<_, anyhow::Error>(times)
    };
    let threads = thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(pairs)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|times| times.map_err(|_| anyhow::anyhow!("a client broke"))?).collect()
    });
    let times: Result<Vec<Vec<f64>>> = threads;
    let mut times = times?.concat();
    let elapsed = began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied();
    Ok(LoadFigures {
        per_second: times.len() as f64 / elapsed,
        p50: at(0.5).context("no session was opened")?,
        p99: at(0.99).context("no session was opened")?,
    })
}
