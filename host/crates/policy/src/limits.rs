//! Limits of a plugin's calls: how long, how large, how many.
//!
//! They need no request: every plugin has them, and a policy may set each one anew.

use std::{fmt, ops::RangeInclusive, time::Duration};

use crate::{
    document::Item,
    source::SourceError,
    unit::{ByteSize, TimeSpan},
};

/// Wall time of a call: long enough for a slow service, short enough that a person still waits.
pub const TIME_STANDARD: Duration = Duration::from_secs(30);

/// The most time that a policy may give: a call is not a service, and deadlines stay countable.
pub const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Memory of a guest: a Python component with its data fits, a runaway one leaves the machine be.
pub const MEMORY_STANDARD_BYTES: u64 = 256 << 20;

/// The most memory that a policy may give: all that a guest with 32-bit addresses can use.
pub const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// The least memory that a policy may give: one page of a guest.
pub const MEMORY_BYTES_MIN: u64 = 64 << 10;

/// A tool's answer: already more than a model can read.
pub const OUTPUT_STANDARD_BYTES: u64 = 1 << 20;

/// Log lines of a call: some thousand lines.
pub const LOG_STANDARD_BYTES: u64 = 256 << 10;

/// Calls of one plugin at a time: a model's parallel calls run together, a flood of them queues.
pub const CONCURRENT_CALLS_STANDARD: u32 = 8;

/// The most calls at a time that a policy may allow: each holds a guest's memory.
pub const CONCURRENT_CALLS_MAX: u32 = 1024;

/// Requests of one call: a paged listing fits, a scan of a network does not.
pub const HTTP_REQUESTS_STANDARD: u32 = 50;

/// Body of one response: a large document, but not a disk image.
pub const HTTP_BODY_STANDARD_BYTES: u64 = 16 << 20;

/// The most that any one buffer may hold by policy, as for a guest's memory.
const BUFFER_BYTES_MAX: u64 = MEMORY_BYTES_MAX;

/// What one plugin's calls may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Wall time of a call.
    pub time: Duration,
    /// Memory of a guest, as a sum over all its memories and tables.
    pub memory_bytes: u64,
    /// Length of a call's answer.
    pub output_bytes: u64,
    /// Length of all that one call logs.
    pub log_bytes: u64,
    /// Calls that run at a time; more of them wait.
    pub concurrent_calls: u32,
    /// Calls that may start within a minute, if that is limited at all.
    pub calls_per_minute: Option<u32>,
    /// Requests that one call may send.
    pub http_requests: u32,
    /// Length of the body of one response.
    pub http_body_bytes: u64,
}

impl Limits {
    /// The limits of a plugin whose policy sets none.
    pub fn standard() -> Self {
        Self {
            time: TIME_STANDARD,
            memory_bytes: MEMORY_STANDARD_BYTES,
            output_bytes: OUTPUT_STANDARD_BYTES,
            log_bytes: LOG_STANDARD_BYTES,
            concurrent_calls: CONCURRENT_CALLS_STANDARD,
            calls_per_minute: None,
            http_requests: HTTP_REQUESTS_STANDARD,
            http_body_bytes: HTTP_BODY_STANDARD_BYTES,
        }
    }

    pub(crate) fn read(item: Item<'_>) -> Result<Self, SourceError> {
        let usual = Self::standard();
        item.section(|table| {
            let mut bytes = |key, least, usual| {
                let range = ByteSize(least)..=ByteSize(BUFFER_BYTES_MAX);
                let size = table.optional(key, |item| within(item, Item::bytes, range))?;
                Ok::<u64, SourceError>(size.map_or(usual, |size| size.0))
            };
            let memory_bytes = bytes("memory", MEMORY_BYTES_MIN, usual.memory_bytes)?;
            let output_bytes = bytes("output", 1, usual.output_bytes)?;
            let log_bytes = bytes("log", 0, usual.log_bytes)?;
            let http_body_bytes = bytes("http-body", 0, usual.http_body_bytes)?;
            let mut count = |key, range| table.optional(key, |item| item.count(range));
            let calls_per_minute = count("calls-per-minute", 1..=u32::MAX)?;
            let concurrent_calls = count("concurrent-calls", 1..=CONCURRENT_CALLS_MAX)?;
            let http_requests = count("http-requests", 0..=u32::MAX)?;
            Ok(Self {
                time: table.optional("time", read_time)?.unwrap_or(usual.time),
                memory_bytes,
                output_bytes,
                log_bytes,
                concurrent_calls: concurrent_calls.unwrap_or(usual.concurrent_calls),
                calls_per_minute,
                http_requests: http_requests.unwrap_or(usual.http_requests),
                http_body_bytes,
            })
        })
    }
}

fn read_time(item: Item<'_>) -> Result<Duration, SourceError> {
    let range = TimeSpan(Duration::from_millis(1))..=TimeSpan(TIME_MAX);
    within(item, Item::time, range).map(|span| span.0)
}

fn within<'d, T: PartialOrd + fmt::Display>(
    item: Item<'d>,
    read: impl FnOnce(Item<'d>) -> Result<T, SourceError>,
    range: RangeInclusive<T>,
) -> Result<T, SourceError> {
    let place = item.place();
    let value = read(item)?;
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(place.error(format!("{value} is not from {least} to {most}")))
}

impl fmt::Display for Limits {
    /// The limits that differ from the standard, as an inline table of TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::standard();
        let size = |key, bytes, usual| {
            (bytes != usual).then(|| format!("{key} = \"{}\"", ByteSize(bytes)))
        };
        let count = |key, n: u32, usual| (n != usual).then(|| format!("{key} = {n}"));
        let time = || format!("time = \"{}\"", TimeSpan(self.time));
        let parts = [
            (self.time != usual.time).then(time),
            size("memory", self.memory_bytes, usual.memory_bytes),
            size("output", self.output_bytes, usual.output_bytes),
            size("log", self.log_bytes, usual.log_bytes),
            self.calls_per_minute.map(|n| format!("calls-per-minute = {n}")),
            count("concurrent-calls", self.concurrent_calls, usual.concurrent_calls),
            count("http-requests", self.http_requests, usual.http_requests),
            size("http-body", self.http_body_bytes, usual.http_body_bytes),
        ];
        let set: Vec<String> = parts.into_iter().flatten().collect();
        write!(f, "{{ {} }}", set.join(", "))
    }
}
