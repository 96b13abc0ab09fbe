//! How many tokens messages come to, by estimate.
//!
//! Only a provider knows, and it says so after the fact. Before, four bytes count as a token; what
//! providers report corrects that. A report also counts what stands around the messages, such as
//! the list of tools, so two reports are compared with each other: what they have in common falls
//! out, and what is left is what the messages between them came to.

use std::io;

use sallyport_model::{AssistantMessage, Attachment, Message, UserMessage, chat::Kind};
use serde_json::Value;

/// Bytes of text or JSON that count as a token until a provider says otherwise.
const TOKEN_BYTES: u64 = 4;

/// What stands around each message on its way: its role and where it begins and ends.
const FRAME_TOKENS: u64 = 4;

/// What a picture comes to, by the bytes of its file: providers scale pictures down and charge for
/// their area, which the size of a file tells well enough.
const IMAGE_TOKENS: [(usize, u64); 3] = [(32 * 1024, 300), (256 * 1024, 800), (usize::MAX, 1600)];

/// What a sound comes to, by the bytes of its file: about thirty tokens a second of compressed
/// speech.
const AUDIO_TOKENS: [(usize, u64); 4] =
    [(64 * 1024, 150), (512 * 1024, 1200), (4 * 1024 * 1024, 10_000), (usize::MAX, 40_000)];

/// What any other file comes to: a document of a few pages.
const FILE_TOKENS: u64 = 4_000;

/// The unit of the correction. Fine enough for a budget, coarse enough to stay the same from one
/// request to the next.
const EIGHTHS: u64 = 8;

/// The least and the most that a correction can be, in eighths: half and four times. Beyond that,
/// a report is wrong or counts something else.
const EIGHTHS_RANGE: (u64, u64) = (4, 32);

/// Tokens by which two requests must differ before their reports are compared: with less, the
/// rounding weighs more than the text.
const LEARNT_TOKENS_MIN: u64 = 512;

/// Estimates tokens, and learns from what a provider reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    /// The correction, in eighths.
    eighths: u64,
    /// The report that the next one is compared with.
    last: Option<Sample>,
}

/// A request, measured from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    uncorrected: u64,
    reported: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

impl Meter {
    /// Knows nothing of a provider yet. Another model needs another meter.
    pub fn new() -> Self {
        Self { eighths: EIGHTHS, last: None }
    }

    /// Estimates what the messages come to: the sum of what each of them does.
    pub fn tokens(&self, messages: &[Message]) -> u64 {
        messages.iter().map(|message| self.corrected(uncorrected(message))).sum()
    }

    /// Takes in what a provider reported for a request whose messages were estimated at
    /// `estimated` by this meter, as it is now.
    pub fn learn(&mut self, estimated: u64, reported: u64) {
        let uncorrected = estimated.saturating_mul(EIGHTHS) / self.eighths;
        let now = Sample { uncorrected, reported };
        let last = *self.last.get_or_insert(now);
        if now.uncorrected.abs_diff(last.uncorrected) >= LEARNT_TOKENS_MIN {
            self.last = Some(now);
            if let Some(measured) = now.eighths_since(last) {
                self.correct(measured);
            }
        }
    }

    /// Returns the bytes of text that come to about so many tokens.
    pub(super) fn bytes(&self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(EIGHTHS) / self.eighths * TOKEN_BYTES;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn corrected(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.eighths).div_ceil(EIGHTHS)
    }

    /// Up at once, down only by more than one step: what wavers between two steps stays at the
    /// upper one, and with it what is sent.
    fn correct(&mut self, measured: u64) {
        if measured > self.eighths || measured + 1 < self.eighths {
            self.eighths = measured;
        }
    }
}

impl Sample {
    fn eighths_since(self, last: Self) -> Option<u64> {
        let grew = self.uncorrected > last.uncorrected;
        if grew != (self.reported > last.reported) {
            return None;
        }
        let reported = self.reported.abs_diff(last.reported).saturating_mul(EIGHTHS);
        let measured = reported.div_ceil(self.uncorrected.abs_diff(last.uncorrected));
        Some(measured.clamp(EIGHTHS_RANGE.0, EIGHTHS_RANGE.1))
    }
}

fn uncorrected(message: &Message) -> u64 {
    let tokens = match message {
        Message::System { text } => of_bytes(text.len()),
        Message::User(said) => of_input(said),
        Message::Assistant(answer) => of_answer(answer),
        Message::Tool(result) => of_bytes(result.content.len() + result.name.len()),
    };
    tokens.saturating_add(FRAME_TOKENS)
}

fn of_bytes(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

fn of_input(said: &UserMessage) -> u64 {
    let files: u64 = said.attachments.iter().map(of_file).sum();
    of_bytes(said.told().len()) + files
}

fn of_file(file: &Attachment) -> u64 {
    let bytes = file.data.len();
    let by_class = |classes: &[(usize, u64)]| {
        let class = classes.iter().find(|(bytes_max, _)| bytes <= *bytes_max);
        class.map_or(0, |(_, tokens)| *tokens)
    };
    match file.kind() {
        Kind::Text(text) => of_bytes(text.len() + file.name.len()),
        Kind::Image => by_class(&IMAGE_TOKENS),
        Kind::Audio => by_class(&AUDIO_TOKENS),
        Kind::Other => FILE_TOKENS,
    }
}

/// The provider's own form says the same and often more, such as what the model thought.
fn of_answer(answer: &AssistantMessage) -> u64 {
    let calls = answer.calls.iter().map(|call| of_bytes(call.name.len() + call.arguments.len()));
    let plain = of_bytes(answer.text.len()) + calls.sum::<u64>();
    let opaque = answer.opaque.as_ref().map_or(0, |opaque| of_bytes(json_bytes(&opaque.body)));
    plain.max(opaque)
}

/// The length of a value as JSON text.
pub(crate) fn json_bytes(value: &Value) -> usize {
    let mut counter = Counter(0);
    // Counting cannot fail, and a value is always JSON.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// A writer that keeps nothing.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
