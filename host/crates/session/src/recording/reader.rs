//! Reads and checks a tape.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io::{self, BufRead, Read},
    time::Duration,
};

use sallyport_contract::{ToolDescriptor, services::PluginNotice};
use sallyport_model::UserInputMessage;
use serde::Deserialize;

use crate::SessionOptions;

use super::{
    line::{
        DecisionOutcome, RecallOutcome, RecordedAnswer, RecordedDecision, RecordedReport,
        RecordedRequest, RecordingHeader, RecordingLine, RecordingVersion, VERSION,
    },
    schedule::CancellationSchedule,
};

/// Longest line, in bytes: the longest conversation that models accept, with some pictures.
const LINE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Longest first line, in bytes: options and a list of some thousand tools. A file that is not a
/// tape is read no further than this.
const HEADER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Most lines: more than a session produces in a day.
const LINES_MAX: usize = 1_000_000;

/// A recorded session.
#[derive(Debug, Clone)]
pub struct SessionRecording {
    pub(super) header: RecordingHeader,
    inputs: Vec<UserInputMessage>,
    /// Plugin messages, each with the number of inputs before it.
    notices: Vec<(usize, PluginNotice)>,
    /// Whether the session recalls earlier turns by meaning.
    pub(super) has_recall: bool,
    pub(super) recalls: VecDeque<NumberedValue<RecallOutcome>>,
    /// The duration of each turn.
    pub(super) turns: VecDeque<Duration>,
    pub(super) requests: VecDeque<NumberedValue<RecordedRequest>>,
    pub(super) answers: BTreeMap<usize, NumberedValue<RecordedAnswer>>,
    pub(super) decisions: HashMap<String, VecDeque<NumberedValue<RecordedDecision>>>,
    pub(super) reports: HashMap<String, VecDeque<NumberedValue<RecordedReport>>>,
    pub(super) schedule: CancellationSchedule,
    /// The last complete line, from 1.
    pub(super) last_line: usize,
    /// Whether a line after it was cut off.
    pub(super) is_truncated: bool,
}

/// A value with its line number, from 1.
#[derive(Debug, Clone)]
pub(super) struct NumberedValue<T> {
    pub(super) line: usize,
    pub(super) value: T,
}

/// Why a file is not a tape that can be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file could not be read.
    #[error("cannot read the tape: {0}")]
    Read(#[from] io::Error),
    /// The first line is not the header of a tape.
    #[error("this is not a tape: {problem}")]
    NotARecording {
        /// The problem with the first line.
        problem: String,
    },
    /// The tape has another major version.
    #[error("the tape has format {major}.{minor}, this program reads format {}", VERSION.major)]
    Version {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// A line of a kind that only a newer program knows.
    #[error(
        "line {line} of the tape is of a kind that this program does not know: the tape has format \
         {}.{minor}, known is up to {}.{}", VERSION.major, VERSION.major, VERSION.minor
    )]
    Newer {
        /// The line, from 1.
        line: usize,
        /// Minor version of the tape.
        minor: u32,
    },
    /// A line that is invalid.
    #[error("line {line} of the tape is damaged: {problem}")]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// The problem with it.
        problem: String,
    },
}

impl RecordingError {
    /// Returns how the user can fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read(_) => "check the file and its permissions",
            Self::NotARecording { .. } => "give a file that was made with --record",
            Self::Version { .. } | Self::Newer { .. } => "play it with the version that made it",
            Self::Damaged { .. } => "get the file again, unchanged",
        }
    }
}

impl SessionRecording {
    /// Reads a tape.
    ///
    /// # Errors
    ///
    /// The input is not a tape, or a tape that cannot be replayed. A last line that is cut off is
    /// not an error.
    pub fn read_from(mut source: impl BufRead) -> Result<Self, RecordingError> {
        let first = next_line(&mut source, 1)?;
        let mut recording = Self::from_header(parse_header(first)?);
        while let Some(text) = next_line(&mut source, recording.last_line + 1)? {
            if !text.is_complete {
                recording.is_truncated = true;
                break;
            }
            recording.last_line += 1;
            let line = recording.parse_line(&text.bytes)?;
            recording.add_line(line)?;
        }
        recording.schedule.close_turn();
        Ok(recording)
    }

    /// The options of the recorded session. A replay needs the same options.
    pub fn options(&self) -> SessionOptions {
        self.header.options.clone()
    }

    /// The model that answered.
    pub fn model_name(&self) -> &str {
        &self.header.model
    }

    /// The tools of the recorded session.
    pub fn tools(&self) -> &[ToolDescriptor] {
        &self.header.tools
    }

    /// The inputs, to be submitted in order, each when the turn before has ended.
    pub fn inputs(&self) -> &[UserInputMessage] {
        &self.inputs
    }

    /// The plugin messages between the previous input and this one, counted from 0; to be repeated
    /// at that point. With the number of all inputs, the messages after the last.
    pub fn notices_before(&self, input: usize) -> impl Iterator<Item = &PluginNotice> {
        let notices = self.notices.iter().filter(move |(before, _)| *before == input);
        notices.map(|(_, notice)| notice)
    }

    fn from_header(header: RecordingHeader) -> Self {
        Self {
            header,
            inputs: Vec::new(),
            notices: Vec::new(),
            has_recall: false,
            recalls: VecDeque::new(),
            turns: VecDeque::new(),
            requests: VecDeque::new(),
            answers: BTreeMap::new(),
            decisions: HashMap::new(),
            reports: HashMap::new(),
            schedule: CancellationSchedule::default(),
            last_line: 1,
            is_truncated: false,
        }
    }

    fn parse_line(&self, text: &[u8]) -> Result<RecordingLine, RecordingError> {
        let RecordingVersion { minor, .. } = self.header.version;
        serde_json::from_slice(text).map_err(|error| {
            if minor > VERSION.minor && is_unknown_kind(text) {
                RecordingError::Newer { line: self.last_line, minor }
            } else {
                self.damage_error(error.to_string())
            }
        })
    }

    fn add_line(&mut self, mut line: RecordingLine) -> Result<(), RecordingError> {
        let end = self.last_line;
        if let RecordingLine::Decision(decision) = &mut line
            && self.schedule.has_cancelled()
        {
            // The decision came too late: the session no longer waited for it.
            decision.end = DecisionOutcome::Dropped;
        }
        self.schedule.add_line(end, &line);
        match line {
            RecordingLine::Tape(_) => return Err(self.damage_error("a second beginning")),
            RecordingLine::Input { message } => self.inputs.push(message),
            RecordingLine::Cancel => {}
            RecordingLine::Noticed { notice } => self.notices.push((self.inputs.len(), notice)),
            RecordingLine::Recalls => self.has_recall = true,
            RecordingLine::Recalled { end: outcome } => {
                self.recalls.push_back(NumberedValue { line: end, value: outcome })
            }
            RecordingLine::Turn { elapsed } => self.turns.push_back(elapsed),
            RecordingLine::Request(recorded_request) => return self.add_request(recorded_request),
            RecordingLine::Answer(answer) => {
                let request = answer.request;
                let twice =
                    self.answers.insert(request, NumberedValue { line: end, value: answer });
                if twice.is_some() || request >= self.requests.len() {
                    return Err(self.damage_error("an answer to no request"));
                }
            }
            RecordingLine::Decision(decision) => {
                let decisions = self.decisions.entry(decision.call.clone()).or_default();
                decisions.push_back(NumberedValue { line: end, value: decision });
            }
            RecordingLine::Report(report) => {
                let reports = self.reports.entry(report.call.clone()).or_default();
                reports.push_back(NumberedValue { line: end, value: report });
            }
        }
        Ok(())
    }

    fn add_request(&mut self, recorded_request: RecordedRequest) -> Result<(), RecordingError> {
        let before = self.requests.back().map_or(0, |last| last.value.message_count());
        let is_next =
            recorded_request.number == self.requests.len() && recorded_request.same <= before;
        if !is_next || (recorded_request.number == 0 && recorded_request.tools.is_none()) {
            return Err(self.damage_error("a request that does not follow from the one before"));
        }
        self.requests.push_back(NumberedValue { line: self.last_line, value: recorded_request });
        Ok(())
    }

    fn damage_error(&self, problem: impl Into<String>) -> RecordingError {
        RecordingError::Damaged { line: self.last_line, problem: problem.into() }
    }
}

impl RecordedRequest {
    /// The number of messages in the whole request.
    fn message_count(&self) -> usize {
        self.same + self.messages.len()
    }
}

/// A line without its line end.
struct RawLine {
    bytes: Vec<u8>,
    is_complete: bool,
}

fn next_line(source: &mut impl BufRead, line: usize) -> Result<Option<RawLine>, RecordingError> {
    let damaged = |problem: &str| RecordingError::Damaged { line, problem: problem.to_owned() };
    let mut bytes = Vec::new();
    let bytes_max = match line {
        // Every line is a JSON object.
        1 if !source.fill_buf()?.starts_with(b"{") => 1024,
        1 => HEADER_BYTES_MAX,
        _ => LINE_BYTES_MAX,
    };
    source.by_ref().take(bytes_max as u64).read_until(b'\n', &mut bytes)?;
    let is_complete = bytes.pop_if(|last| *last == b'\n').is_some();
    if bytes.len() == bytes_max && line > 1 {
        return Err(damaged("it is too long"));
    }
    if line > LINES_MAX {
        return Err(damaged("there are too many lines before it"));
    }
    Ok((is_complete || !bytes.is_empty()).then_some(RawLine { bytes, is_complete }))
}

fn parse_header(first: Option<RawLine>) -> Result<RecordingHeader, RecordingError> {
    #[derive(Deserialize)]
    struct HeaderProbe {
        line: String,
        version: RecordingVersion,
    }
    let not_a_recording = |problem: String| RecordingError::NotARecording { problem };
    let first = first.ok_or_else(|| not_a_recording("it is empty".to_owned()))?;
    let probe: HeaderProbe =
        serde_json::from_slice(&first.bytes).map_err(|error| not_a_recording(error.to_string()))?;
    let RecordingVersion { major, minor } = probe.version;
    if probe.line == "tape" && major != VERSION.major {
        return Err(RecordingError::Version { major, minor });
    }
    match serde_json::from_slice(&first.bytes) {
        Ok(RecordingLine::Tape(header)) => Ok(header),
        Ok(_) => Err(not_a_recording(format!("it begins with {:?}", probe.line))),
        Err(error) => Err(not_a_recording(error.to_string())),
    }
}

/// Whether a line is of an unknown kind.
fn is_unknown_kind(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct RecordingLineKind {
        line: String,
    }
    let known_kinds = [
        "tape", "input", "cancel", "request", "answer", "decision", "report", "turn", "noticed",
        "recalls", "recalled",
    ];
    serde_json::from_slice(text)
        .is_ok_and(|RecordingLineKind { line }| !known_kinds.contains(&line.as_str()))
}
