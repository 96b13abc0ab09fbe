//! Estimates how many tokens messages take.
//!
//! Only the provider knows, and it reports the count afterwards. Until then, four bytes count as a
//! token; the provider's reports correct that. A report also counts everything around the messages,
//! such as the list of tools. Two reports are therefore compared: their common part cancels out,
//! and the rest is the count of the messages between them.

use std::io;

use sallyport_model::{
    AssistantMessage, ChatMessage, FileAttachment, UserInputMessage, chat::AttachmentKind,
};
use serde_json::Value;

/// Bytes of text or JSON that count as a token until a provider reports otherwise.
const TOKEN_BYTES: u64 = 4;

/// Tokens around each message: its role, its start and its end.
const FRAME_TOKENS: u64 = 4;

/// Tokens of a picture by file size. Providers scale pictures down and charge for their area, and
/// the file size indicates that well enough.
const IMAGE_TOKENS: [(usize, u64); 3] = [(32 * 1024, 300), (256 * 1024, 800), (usize::MAX, 1600)];

/// Tokens of a sound by file size: about thirty tokens a second of compressed speech.
const AUDIO_TOKENS: [(usize, u64); 4] =
    [(64 * 1024, 150), (512 * 1024, 1200), (4 * 1024 * 1024, 10_000), (usize::MAX, 40_000)];

/// Tokens of any other file: a document of a few pages.
const FILE_TOKENS: u64 = 4_000;

/// The unit of the correction: fine enough for a budget, coarse enough to stay the same from one
/// request to the next.
const EIGHTHS: u64 = 8;

/// The smallest and the largest correction, in eighths: half and four times. Beyond that, a report
/// is wrong or counts something else.
const EIGHTHS_RANGE: (u64, u64) = (4, 32);

/// Tokens by which two requests must differ before their reports are compared: below that, the
/// rounding outweighs the text.
const LEARNING_TOKENS_MIN: u64 = 512;

/// Estimates tokens, and learns from a provider's reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMeter {
    /// The correction, in eighths.
    correction_eighths: u64,
    /// The report that the next one is compared with.
    last_sample: Option<MeterSample>,
}

/// The estimate and the report of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MeterSample {
    uncorrected: u64,
    reported: u64,
}

impl Default for TokenMeter {
    fn default() -> Self {
        Self::new()
    }
}

impl TokenMeter {
    /// Creates a meter without any reports. Another model needs another meter.
    pub fn new() -> Self {
        Self { correction_eighths: EIGHTHS, last_sample: None }
    }

    /// Estimates the tokens of the messages: the sum over each of them.
    pub fn estimate_tokens(&self, messages: &[ChatMessage]) -> u64 {
        messages.iter().map(|message| self.apply_correction(raw_message_tokens(message))).sum()
    }

    /// Takes the report of a provider for a request whose messages this meter, in its current
    /// state, estimated at `estimated`.
    pub fn learn_from_report(&mut self, estimated: u64, reported: u64) {
        let uncorrected = estimated.saturating_mul(EIGHTHS) / self.correction_eighths;
        let sample = MeterSample { uncorrected, reported };
        let last = *self.last_sample.get_or_insert(sample);
        if sample.uncorrected.abs_diff(last.uncorrected) >= LEARNING_TOKENS_MIN {
            self.last_sample = Some(sample);
            if let Some(measured) = sample.eighths_since(last) {
                self.update_correction(measured);
            }
        }
    }

    /// Returns the bytes of text that take about this many tokens.
    pub(super) fn bytes_for_tokens(&self, tokens: u64) -> usize {
        let bytes = tokens.saturating_mul(EIGHTHS) / self.correction_eighths * TOKEN_BYTES;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn apply_correction(&self, tokens: u64) -> u64 {
        tokens.saturating_mul(self.correction_eighths).div_ceil(EIGHTHS)
    }

    /// Follows an increase immediately, and a decrease only by more than one step: a value that
    /// wavers between two steps stays at the upper one, and so the sent messages stay the same.
    fn update_correction(&mut self, measured: u64) {
        if measured > self.correction_eighths || measured + 1 < self.correction_eighths {
            self.correction_eighths = measured;
        }
    }
}

impl MeterSample {
    fn eighths_since(self, last: Self) -> Option<u64> {
        let has_grown = self.uncorrected > last.uncorrected;
        if has_grown != (self.reported > last.reported) {
            return None;
        }
        let reported = self.reported.abs_diff(last.reported).saturating_mul(EIGHTHS);
        let measured = reported.div_ceil(self.uncorrected.abs_diff(last.uncorrected));
        Some(measured.clamp(EIGHTHS_RANGE.0, EIGHTHS_RANGE.1))
    }
}

fn raw_message_tokens(message: &ChatMessage) -> u64 {
    let tokens = match message {
        ChatMessage::System { text } => tokens_of_bytes(text.len()),
        ChatMessage::User(input) => tokens_of_input(input),
        ChatMessage::Assistant(answer) => tokens_of_answer(answer),
        ChatMessage::Tool(result) => tokens_of_bytes(result.content.len() + result.name.len()),
    };
    tokens.saturating_add(FRAME_TOKENS)
}

fn tokens_of_bytes(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(TOKEN_BYTES)
}

fn tokens_of_input(input: &UserInputMessage) -> u64 {
    let files: u64 = input.attachments.iter().map(tokens_of_file).sum();
    tokens_of_bytes(input.text_for_model().len()) + files
}

fn tokens_of_file(file: &FileAttachment) -> u64 {
    let bytes = file.data.len();
    let by_class = |classes: &[(usize, u64)]| {
        let class = classes.iter().find(|(bytes_max, _)| bytes <= *bytes_max);
        class.map_or(0, |(_, tokens)| *tokens)
    };
    match file.kind() {
        AttachmentKind::Text(text) => tokens_of_bytes(text.len() + file.name.len()),
        AttachmentKind::Image => by_class(&IMAGE_TOKENS),
        AttachmentKind::Audio => by_class(&AUDIO_TOKENS),
        AttachmentKind::Other => FILE_TOKENS,
    }
}

/// Counts the larger form. The provider's own form often contains more, such as the model's
/// reasoning.
fn tokens_of_answer(answer: &AssistantMessage) -> u64 {
    let calls =
        answer.calls.iter().map(|call| tokens_of_bytes(call.name.len() + call.arguments.len()));
    let text_tokens = tokens_of_bytes(answer.text.len()) + calls.sum::<u64>();
    let opaque =
        answer.opaque.as_ref().map_or(0, |opaque| tokens_of_bytes(json_bytes(&opaque.body)));
    text_tokens.max(opaque)
}

/// The length of a value as JSON text.
pub(crate) fn json_bytes(value: &Value) -> usize {
    let mut counter = ByteCounter(0);
    // Counting cannot fail, and a value is always JSON.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// A writer that only counts.
struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
