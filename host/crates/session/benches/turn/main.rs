//! A turn of a conversation with a thousand tools, as a ratio to reading and writing the same JSON.
//!
//! **Measured** is the processor time of one thread that runs the whole host side: a session as a
//! front end starts it, the OpenAI adapter with its retries, the journal (which keeps its records
//! in memory) and a front end that reads every event. It is not wall-clock time, so it contains
//! neither waits nor other programs. A turn is an input, an answer with one call, the call, and an
//! answer in text; both answers are streamed as providers do it, a few letters at a time.
//!
//! **Subtracted** is the transport of the bytes: the same bodies are sent and received again over
//! the same HTTP client and a separate connection, on the same thread, without being parsed or
//! serialized. The server runs on other threads and is in neither figure.
//!
//! **The floor** is the unavoidable work: serializing the turn's two request bodies from existing
//! JSON values, and parsing the content of each event of the two answers into such values. The
//! three measurements alternate turn by turn, and each figure is the median over all turns of many
//! conversations.
//!
//! **Not included** are the gate and the sandbox: the toolbox parses the arguments and returns a
//! prepared result. `cargo xtask bench call` measures those.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]

mod ours;
mod script;
mod server;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sallyport_benchmark_floor::measure::Figure;
use sallyport_model::{ModelEndpoint, ProviderProtocol, raw::RawConnection};
use serde_json::Value;

use self::{ours::Conversation, script::Script, server::Server};

/// Conversations per row.
const CONVERSATIONS: usize = 25;

/// Turns of a conversation; the request bodies grow with each of them.
const TURNS: usize = 16;

/// The promised maximum of the ratio.
const RATIO_MAX: f64 = 3.0;

/// The times of one kind of turn, per measurement.
#[derive(Default)]
struct Times {
    host: Vec<Duration>,
    wire: Vec<Duration>,
    bare: Vec<Duration>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(bench());
}

async fn bench() {
    for script in [Script::Listed, Script::Used, Script::Searched] {
        measure(script).await.print(script.name());
    }
}

async fn measure(script: Script) -> Times {
    let server = Server::start(script);
    let endpoint = ModelEndpoint::new(ProviderProtocol::OpenAiChat, server.base_url(), "bench");
    let raw = RawConnection::new(&endpoint);
    let mut times = Times::default();
    for _ in 0..CONVERSATIONS {
        let mut conversation = Conversation::start(script, endpoint.clone());
        // The first turn opens the connection and serializes the tools.
        for turn in 0..=TURNS {
            let host = timed(conversation.turn()).await;
            let bodies = server.take_bodies();
            let wire = timed(exchange(&raw, bodies.clone())).await;
            let _ = server.take_bodies();
            let bare = bare(&bodies, script);
            if turn > 0 {
                times.add(host, wire, bare);
            }
        }
    }
    times
}

async fn exchange(raw: &RawConnection, bodies: Vec<Vec<u8>>) {
    for body in bodies {
        assert!(raw.exchange(body).await > 0, "the server answers");
    }
}

/// Serializes the bodies of a turn and parses its answers.
fn bare(bodies: &[Vec<u8>], script: Script) -> Duration {
    let parse = |body: &Vec<u8>| serde_json::from_slice(body).expect("JSON");
    let requests: Vec<Value> = bodies.iter().map(parse).collect();
    let answers: Vec<String> = (0..bodies.len()).flat_map(|index| script.answer(index)).collect();
    let began = processor_time();
    for (request, body) in requests.iter().zip(bodies) {
        let written = serde_json::to_vec(request).expect("JSON");
        assert_eq!(written.len(), body.len(), "the same body");
    }
    for event in &answers {
        let event: Value = serde_json::from_str(event).expect("JSON");
        assert!(event.is_object(), "an event of an answer");
    }
    processor_time() - began
}

async fn timed(work: impl Future<Output = ()>) -> Duration {
    let began = processor_time();
    work.await;
    processor_time() - began
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time from 0 up")
}

impl Times {
    fn add(&mut self, host: Duration, wire: Duration, bare: Duration) {
        self.host.push(host);
        self.wire.push(wire);
        self.bare.push(bare);
    }

    fn print(&mut self, name: &str) {
        let [all, wire, bare] =
            [&mut self.host, &mut self.wire, &mut self.bare].map(|times| median(times));
        let ours = all.saturating_sub(wire).as_secs_f64();
        Figure { name, ours, floor: Some(bare.as_secs_f64()), goal: RATIO_MAX }.print();
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
