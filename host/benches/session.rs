//! What an answer with one tool call costs in a long session: processor time of the whole process, all
//! threads, beyond what plain sockets need for the same requests.
//!
//! The model is a server on loopback, in a process of its own so that its time is not counted. It asks
//! for one call when a user speaks, and ends the turn when it gets the result.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
#![expect(clippy::disallowed_methods, reason = "it starts itself as the server of the model")]

mod ground;

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use sallyport_benchmark_floor::measure::print_time;
use sallyport_contract::Principal;
use sallyport_model::UserInputMessage;
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, Env, HostSettings},
    session::{
        self, Events, HostSession, ModelHandle, SessionConfig, SessionOverrides, SessionSelector,
        SessionSpec,
    },
};
use sallyport_session::{FrontEndCommand, SessionEvent, TurnEnd};

/// Calls that the session holds when it is measured.
const LENGTHS: [usize; 3] = [100, 1000, 2000];

/// Answers that are measured at each length.
const ANSWERS: u32 = 50;

/// The promised time for an answer.
const GOAL: Duration = Duration::from_micros(400);

/// The argument with which this program is the model's server.
const SERVER: &str = "serve-model";

/// Asks for one call.
const CALL: &str = concat!(
    r#"data: {"id":"1","object":"chat.completion.chunk","model":"bench","choices":[{"index":0,"#,
    r#""delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call","type":"function","#,
    r#""function":{"name":"clock__get_time","arguments":"{\"timezone\":\"Asia/Tokyo\"}"}}]},"#,
    r#""finish_reason":"tool_calls"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

/// Ends the turn.
const TEXT: &str = concat!(
    r#"data: {"id":"1","object":"chat.completion.chunk","model":"bench","choices":[{"index":0,"#,
    r#""delta":{"role":"assistant","content":"Now you know."},"finish_reason":"stop"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

fn main() {
    if std::env::args().nth(1).as_deref() == Some(SERVER) {
        return serve_model();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(bench());
}

async fn bench() {
    let home = tempfile::tempdir().expect("a folder");
    let server = ModelServer::start();
    let host = ground::host(home.path(), &["clock"]).await;
    let (session, mut events) = open_session(&host, home.path(), &server.address).await;
    let mut calls = 0;
    for length in LENGTHS {
        while calls < length {
            answer(&session, &mut events).await;
            calls += 1;
        }
        let began = processor_time();
        for _ in 0..ANSWERS {
            answer(&session, &mut events).await;
            calls += 1;
        }
        let ours = processor_time() - began;
        let floor = plain_requests(&server.address);
        let name = format!("processor time of an answer with a call, after {length} calls");
        print_time(&name, GOAL, &mut [ours.saturating_sub(floor) / ANSWERS]);
    }
    session.close(events).await;
}

/// Opens a session with the model of the server.
async fn open_session(host: &Host, home: &Path, server: &str) -> (HostSession, Events) {
    let home = home.to_str().expect("a plain path");
    let url = format!("http://{server}/v1");
    let env = Env::from_pairs([
        ("SALLYPORT_HOME", home),
        ("OPENAI_BASE_URL", &url),
        ("OPENAI_API_KEY", "bench"),
        ("SALLYPORT_MODEL", "openai/bench"),
    ]);
    let settings = HostSettings::resolve(&ConfigFlags::default(), env).expect("settings");
    let principal = Principal::local();
    let new = SessionSelector::New;
    let opened = session::open_session(host.store(), settings.sessions, &principal, &new).await;
    let overrides = SessionOverrides::default();
    let config = SessionConfig::from_settings(&overrides, &settings, host, &principal).await;
    let model = ModelHandle::from_choice(&settings.chosen_model).expect("a model");
    let spec = SessionSpec {
        opened: opened.expect("a session"),
        config: &config.expect("a configuration"),
        model: &model,
        answers_questions: false,
        receives_notices: false,
    };
    host.session(spec).expect("a session")
}

/// One turn: a question, a call, an answer.
async fn answer(session: &HostSession, events: &mut Events) {
    let input = UserInputMessage::from("What time is it in Tokyo?");
    session.handle.send(FrontEndCommand::SubmitInput { input }).await.expect("a session");
    while let Some(event) = events.recv().await {
        if let SessionEvent::TurnEnded { reason, .. } = event {
            assert!(matches!(reason, TurnEnd::Answered { .. }), "{reason:?}");
            return;
        }
    }
    panic!("the session has ended");
}

/// The processor time of as many requests, of the size of the last two, with plain sockets.
fn plain_requests(server: &str) -> Duration {
    let mut stream = TcpStream::connect(server).expect("a server");
    let sizes = exchange(&mut stream, "GET", "/sizes", 0);
    let sizes: Vec<usize> = sizes.split(' ').map(|size| size.parse().expect("a size")).collect();
    let began = processor_time();
    for _ in 0..ANSWERS {
        for size in &sizes {
            exchange(&mut stream, "POST", "/plain", *size);
        }
    }
    processor_time() - began
}

/// Sends a request with a body of this size, and returns the body of the answer.
fn exchange(stream: &mut TcpStream, method: &str, path: &str, size: usize) -> String {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-length: {size}\r\n\r\n");
    let mut request = head.into_bytes();
    request.resize(request.len() + size, b' ');
    stream.write_all(&request).expect("a server");
    read_message(&mut BufReader::new(stream)).expect("an answer").1
}

/// Reads a message of HTTP: the first line and the body.
fn read_message(reader: &mut impl BufRead) -> Option<(String, String)> {
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, String::from_utf8(body).ok()?))
}

/// Processor time of this process, with all of its threads.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("a time");
    Duration::new(seconds, u32::try_from(time.tv_nsec).expect("a time"))
}

/// The process of the model.
struct ModelServer {
    process: Child,
    address: String,
}

impl ModelServer {
    fn start() -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut command = Command::new(program);
        let process = command.arg(SERVER).stdout(Stdio::piped()).spawn();
        let mut process = process.expect("a process");
        let mut address = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut address).expect("an address");
        Self { process, address: address.trim().to_owned() }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Answers requests until it is killed.
#[expect(clippy::print_stdout, reason = "its parent reads the address")]
fn serve_model() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let sizes = Arc::default();
    for stream in listener.incoming() {
        let (stream, sizes) = (stream.expect("a connection"), Arc::clone(&sizes));
        thread::spawn(move || serve_connection(&stream, &sizes));
    }
}

/// Answers the requests of a connection, and keeps the sizes of the last two that are for the model.
fn serve_connection(mut stream: &TcpStream, sizes: &Mutex<[usize; 2]>) {
    let mut reader = BufReader::new(stream);
    while let Some((first, body)) = read_message(&mut reader) {
        let mut sizes = sizes.lock().expect("no panic");
        let reply = if first.starts_with("GET") {
            format!("{} {}", sizes[0], sizes[1])
        } else if first.contains("/plain") {
            TEXT.to_owned()
        } else {
            *sizes = [sizes[1], body.len()];
            let is_result = body.rfind(r#""role":"tool""#) > body.rfind(r#""role":"user""#);
            if is_result { TEXT } else { CALL }.to_owned()
        };
        let length = reply.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        if stream.write_all(format!("{head}{reply}").as_bytes()).is_err() {
            return;
        }
    }
}
