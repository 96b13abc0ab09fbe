//! Limits of a plugin's calls: durations, sizes and counts.
//!
//! Limits need no request: every plugin has them, and every policy file may state each one, for one
//! plugin or for all. The lowest stated value applies, or the default in this module if none is
//! stated. A value in a project's file applies only if it is lower than the value without that
//! file.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, time::Duration};

use crate::{
    document::TomlItem,
    source::{SourceError, SourceLocation},
    unit::{ByteSize, TimeSpan},
};

/// Wall time of a call: long enough for a slow service, short enough for a waiting user.
pub const TIME_DEFAULT: Duration = Duration::from_secs(30);

/// Longest time that a policy may state: a call is not a service, and deadlines must not overflow.
pub const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Memory of a guest: enough for a Python component with its data, and little enough that a runaway
/// guest does not exhaust the machine.
pub const MEMORY_DEFAULT_BYTES: u64 = 256 << 20;

/// Most memory that a policy may state: the address space of a guest with 32-bit addresses.
pub const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// Least memory that a policy may state: one WebAssembly page.
pub const MEMORY_BYTES_MIN: u64 = 64 << 10;

/// Result of a tool: already more than a model can read.
pub const OUTPUT_DEFAULT_BYTES: u64 = 1 << 20;

/// Log output of a call: a few thousand lines.
pub const LOG_DEFAULT_BYTES: u64 = 256 << 10;

/// Data that a guest passes in one host call: a file write of this size is a large one. If a policy
/// allows a longer output or log, the default rises to that: a guest passes either in one call.
pub const HOST_CALL_DEFAULT_BYTES: u64 = 2 << 20;

/// Lowest limit for one host call: enough for the names and short texts of any call.
pub const HOST_CALL_BYTES_MIN: u64 = 4 << 10;

/// Open handles (descriptors, streams, requests) of a call. Programs need dozens; a leak stops well
/// below the limit of the process.
pub const HANDLES_DEFAULT: u32 = 512;

/// Lowest limit for handles: enough for the standard streams, folders and one request with its
/// parts.
pub const HANDLES_MIN: u32 = 16;

/// Highest limit for handles: what operating systems allow one process.
pub const HANDLES_MAX: u32 = 65_536;

/// Open files of a call: enough for a tool that compares trees, and few enough that many calls fit
/// into one process at the same time.
pub const FILES_DEFAULT: u32 = 64;

/// Highest limit for open files: a few such calls exhaust the process.
pub const FILES_MAX: u32 = 4096;

/// Concurrent calls of one plugin: a model's parallel calls run at the same time, and a flood
/// queues.
pub const CONCURRENT_CALLS_DEFAULT: u32 = 8;

/// Highest limit for concurrent calls: each call uses a guest's memory.
pub const CONCURRENT_CALLS_MAX: u32 = 1024;

/// Time in the queue for a concurrent call: as long as a call may take, so that the running calls
/// can finish.
pub const QUEUE_TIME_DEFAULT: Duration = Duration::from_secs(30);

/// Requests of one call: enough for a paged listing, too few for a network scan.
pub const HTTP_REQUESTS_DEFAULT: u32 = 50;

/// Body of one request or response: a large document, but not a disk image.
pub const HTTP_BODY_DEFAULT_BYTES: u64 = 16 << 20;

/// Total size of all bodies of a call, sent and received: a few of the largest.
pub const HTTP_TOTAL_DEFAULT_BYTES: u64 = 64 << 20;

/// Highest limit for all bodies of a call: one call must not be able to copy a whole disk.
pub const HTTP_TOTAL_BYTES_MAX: u64 = 1 << 40;

/// Redirects that the host follows by itself: none, so that a plugin sees the actual response.
pub const HTTP_REDIRECTS_DEFAULT: u32 = 0;

/// Highest limit for redirects: like browsers; a longer chain is a loop.
pub const HTTP_REDIRECTS_MAX: u32 = 20;

/// Time of one exchange, from the request to the end of the response. It is twice the default time
/// of a call, so it matters only for calls with more time.
pub const HTTP_TIME_DEFAULT: Duration = Duration::from_secs(60);

/// Time that a call waits for the user's answer: enough to read and consider the question. After
/// that, no user is present.
pub const APPROVAL_TIME_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// Time that a session's instance waits for its next call: a paused conversation can continue, and
/// an abandoned one releases its memory.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(10 * 60);

/// Most instances that one plugin may have made ahead. Each holds its memory while it waits.
const PREPARED_INSTANCES_MAX: u32 = 16;

/// Highest limit for any one buffer, as for a guest's memory.
const BUFFER_BYTES_MAX: u64 = MEMORY_BYTES_MAX;

/// [`TIME_MAX`] in milliseconds.
const TIME_MAX_MS: u64 = TIME_MAX.as_secs() * 1000;

/// The limits on one plugin's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginLimits {
    /// Wall time of a call, without the time that it waits for the user's answer.
    pub time: Duration,
    /// CPU time of a call's guest, if limited separately from the wall time.
    pub cpu: Option<Duration>,
    /// Memory of a guest: the sum over all its memories and tables.
    pub memory_bytes: u64,
    /// Length of a call's result.
    pub output_bytes: u64,
    /// Total length of the log output of a call.
    pub log_bytes: u64,
    /// Data that a guest may pass in one host call.
    pub host_call_bytes: u64,
    /// Descriptors, streams, requests and similar handles that a call may hold at the same time.
    pub handles: u32,
    /// Files that a call may hold open at the same time.
    pub files: u32,
    /// Calls that run at the same time; further calls wait.
    pub concurrent_calls: u32,
    /// How long further calls wait before they are refused.
    pub queue_time: Duration,
    /// Calls that may start within a minute, if limited.
    pub calls_per_minute: Option<u32>,
    /// Requests that one call may send, including the redirects that the host follows.
    pub http_requests: u32,
    /// Length of the body of one request or response.
    pub http_body_bytes: u64,
    /// Total length of all bodies of one call, sent and received.
    pub http_total_bytes: u64,
    /// Redirects that the host follows for one request. With 0, the plugin gets the redirect
    /// itself.
    pub http_redirects: u32,
    /// How long one exchange may take, from the request to the end of the response.
    pub http_time: Duration,
    /// How long a call waits for the user's answer.
    pub approval_time: Duration,
    /// How long an instance that a session keeps, or that was made ahead of its call, may wait for
    /// its next call.
    pub idle: Duration,
    /// Instances that are made ahead of the calls that will use them.
    pub prepared_instances: u32,
}

/// The limits on the calls of all plugins together, in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalLimits {
    /// Calls that may start within a minute, if limited.
    pub calls_per_minute: Option<u32>,
    /// Calls that run at the same time, if limited; further calls wait.
    pub concurrent_calls: Option<u32>,
}

/// A limit that a policy can state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LimitKind {
    Time,
    Cpu,
    Memory,
    Output,
    Log,
    HostCall,
    Handles,
    Files,
    ConcurrentCalls,
    QueueTime,
    CallsPerMinute,
    HttpRequests,
    HttpBody,
    HttpTotal,
    HttpRedirects,
    HttpTime,
    ApprovalTime,
    Idle,
    PreparedInstances,
}

/// The unit of a limit and its range: milliseconds, bytes or a count.
#[derive(Debug, Clone)]
pub(crate) enum LimitRange {
    Time(RangeInclusive<u64>),
    Bytes(RangeInclusive<u64>),
    Count(RangeInclusive<u32>),
    /// A boolean, stored as 1 or 0.
    Flag,
}

/// A limit, its key, its range, and a function that returns its effective value.
pub(crate) type Key = (LimitKind, &'static str, LimitRange, fn(&PluginLimits) -> u64);

/// Every limit, in output order.
pub(crate) const KEYS: [Key; 19] = [
    (LimitKind::Time, "time", LimitRange::Time(1..=TIME_MAX_MS), |l| duration_ms(l.time)),
    (LimitKind::Cpu, "cpu", LimitRange::Time(1..=TIME_MAX_MS), |l| {
        l.cpu.map_or(UNLIMITED, duration_ms)
    }),
    (LimitKind::Memory, "memory", LimitRange::Bytes(MEMORY_BYTES_MIN..=MEMORY_BYTES_MAX), |l| {
        l.memory_bytes
    }),
    (LimitKind::Output, "output", LimitRange::Bytes(1..=BUFFER_BYTES_MAX), |l| l.output_bytes),
    (LimitKind::Log, "log", LimitRange::Bytes(0..=BUFFER_BYTES_MAX), |l| l.log_bytes),
    (
        LimitKind::HostCall,
        "host-call",
        LimitRange::Bytes(HOST_CALL_BYTES_MIN..=BUFFER_BYTES_MAX),
        |l| l.host_call_bytes,
    ),
    (LimitKind::Handles, "handles", LimitRange::Count(HANDLES_MIN..=HANDLES_MAX), |l| {
        l.handles.into()
    }),
    (LimitKind::Files, "files", LimitRange::Count(0..=FILES_MAX), |l| l.files.into()),
    (
        LimitKind::ConcurrentCalls,
        "concurrent-calls",
        LimitRange::Count(1..=CONCURRENT_CALLS_MAX),
        |l| l.concurrent_calls.into(),
    ),
    (LimitKind::QueueTime, "queue-time", LimitRange::Time(0..=TIME_MAX_MS), |l| {
        duration_ms(l.queue_time)
    }),
    (LimitKind::CallsPerMinute, "calls-per-minute", LimitRange::Count(1..=u32::MAX), |l| {
        l.calls_per_minute.map_or(UNLIMITED, u64::from)
    }),
    (LimitKind::HttpRequests, "http-requests", LimitRange::Count(0..=u32::MAX), |l| {
        l.http_requests.into()
    }),
    (LimitKind::HttpBody, "http-body", LimitRange::Bytes(0..=BUFFER_BYTES_MAX), |l| {
        l.http_body_bytes
    }),
    (LimitKind::HttpTotal, "http-total", LimitRange::Bytes(0..=HTTP_TOTAL_BYTES_MAX), |l| {
        l.http_total_bytes
    }),
    (LimitKind::HttpRedirects, "http-redirects", LimitRange::Count(0..=HTTP_REDIRECTS_MAX), |l| {
        l.http_redirects.into()
    }),
    (LimitKind::HttpTime, "http-time", LimitRange::Time(1..=TIME_MAX_MS), |l| {
        duration_ms(l.http_time)
    }),
    (LimitKind::ApprovalTime, "approval-time", LimitRange::Time(1..=TIME_MAX_MS), |l| {
        duration_ms(l.approval_time)
    }),
    (LimitKind::Idle, "idle", LimitRange::Time(1..=TIME_MAX_MS), |l| duration_ms(l.idle)),
    (
        LimitKind::PreparedInstances,
        "prepared-instances",
        LimitRange::Count(0..=PREPARED_INSTANCES_MAX),
        |l| l.prepared_instances.into(),
    ),
];

/// The limits that count calls. Stated for all plugins, they count the calls of all plugins
/// together.
const GLOBAL_LIMITS: [LimitKind; 2] = [LimitKind::CallsPerMinute, LimitKind::ConcurrentCalls];

/// The effective value of an unlimited limit.
const UNLIMITED: u64 = u64::MAX;

fn duration_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The limits that policy files state for one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedLimits {
    stated: BTreeMap<LimitKind, StatedValue>,
}

/// One stated limit, in milliseconds, bytes or as a count, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedValue {
    pub(crate) value: u64,
    pub(crate) place: SourceLocation,
}

impl PluginLimits {
    /// The limits of a plugin whose policy states none.
    pub fn with_defaults() -> Self {
        Self::from_stated(&StatedLimits::empty())
    }

    /// The effective limits for the stated ones.
    pub(crate) fn from_stated(stated: &StatedLimits) -> Self {
        let value = |limit| stated.get(limit).map(|stated| stated.value);
        let time = |limit| value(limit).map(Duration::from_millis);
        let count = |limit| value(limit).map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        let output_bytes = value(LimitKind::Output).unwrap_or(OUTPUT_DEFAULT_BYTES);
        let log_bytes = value(LimitKind::Log).unwrap_or(LOG_DEFAULT_BYTES);
        let handed_over = HOST_CALL_DEFAULT_BYTES.max(output_bytes).max(log_bytes);
        Self {
            time: time(LimitKind::Time).unwrap_or(TIME_DEFAULT),
            cpu: time(LimitKind::Cpu),
            memory_bytes: value(LimitKind::Memory).unwrap_or(MEMORY_DEFAULT_BYTES),
            output_bytes,
            log_bytes,
            host_call_bytes: value(LimitKind::HostCall).unwrap_or(handed_over),
            handles: count(LimitKind::Handles).unwrap_or(HANDLES_DEFAULT),
            files: count(LimitKind::Files).unwrap_or(FILES_DEFAULT),
            concurrent_calls: count(LimitKind::ConcurrentCalls).unwrap_or(CONCURRENT_CALLS_DEFAULT),
            queue_time: time(LimitKind::QueueTime).unwrap_or(QUEUE_TIME_DEFAULT),
            calls_per_minute: count(LimitKind::CallsPerMinute),
            http_requests: count(LimitKind::HttpRequests).unwrap_or(HTTP_REQUESTS_DEFAULT),
            http_body_bytes: value(LimitKind::HttpBody).unwrap_or(HTTP_BODY_DEFAULT_BYTES),
            http_total_bytes: value(LimitKind::HttpTotal).unwrap_or(HTTP_TOTAL_DEFAULT_BYTES),
            http_redirects: count(LimitKind::HttpRedirects).unwrap_or(HTTP_REDIRECTS_DEFAULT),
            http_time: time(LimitKind::HttpTime).unwrap_or(HTTP_TIME_DEFAULT),
            approval_time: time(LimitKind::ApprovalTime).unwrap_or(APPROVAL_TIME_DEFAULT),
            idle: time(LimitKind::Idle).unwrap_or(IDLE_DEFAULT),
            prepared_instances: count(LimitKind::PreparedInstances).unwrap_or(0),
        }
    }
}

impl StatedLimits {
    /// No stated limits.
    pub(crate) fn empty() -> Self {
        Self { stated: BTreeMap::new() }
    }

    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        item.read_section(|section| {
            let mut stated = BTreeMap::new();
            for (limit, key, span, _) in &KEYS {
                if let Some(found) = section.read_optional(key, |item| span.read_value(item))? {
                    stated.insert(*limit, found);
                }
            }
            Ok(Self { stated })
        })
    }

    /// The part of the limits for all plugins that applies to each plugin separately.
    pub(crate) fn per_plugin_limits(&self) -> Self {
        let mut own = self.clone();
        own.stated.retain(|limit, _| !GLOBAL_LIMITS.contains(limit));
        own
    }

    /// The part of the limits for all plugins that applies to all of them together. It has no
    /// defaults, so the lowest stated value applies regardless of the file.
    pub(crate) fn merge_global_limits<'s>(
        files: impl Iterator<Item = &'s Self> + Clone,
    ) -> GlobalLimits {
        let least = |limit| {
            let stated = files.clone().filter_map(|file| file.get(limit));
            let least = stated.map(|stated| stated.value).min();
            least.map(|value| u32::try_from(value).unwrap_or(u32::MAX))
        };
        GlobalLimits {
            calls_per_minute: least(LimitKind::CallsPerMinute),
            concurrent_calls: least(LimitKind::ConcurrentCalls),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stated.is_empty()
    }

    pub(crate) fn get(&self, limit: LimitKind) -> Option<&StatedValue> {
        self.stated.get(&limit)
    }

    /// Adds the limits of a file that may grant; the lower value applies.
    pub(crate) fn merge_from(&mut self, other: Self) {
        for (limit, theirs) in other.stated {
            let own = self.stated.entry(limit).or_insert_with(|| theirs.clone());
            if theirs.value < own.value {
                *own = theirs;
            }
        }
    }

    /// Adds the limits of a project's file that are lower than the effective values without it.
    pub(crate) fn tighten_with(&mut self, mut other: Self) {
        let holding = PluginLimits::from_stated(self);
        for (limit, _, _, of) in &KEYS {
            let theirs = other.stated.remove(limit);
            if let Some(theirs) = theirs.filter(|theirs| theirs.value < of(&holding)) {
                self.stated.insert(*limit, theirs);
            }
        }
    }
}

impl GlobalLimits {
    /// Whether any limit on all plugins together is stated.
    pub fn is_stated(self) -> bool {
        self.calls_per_minute.is_some() || self.concurrent_calls.is_some()
    }
}

impl LimitRange {
    /// A small and a larger value within the range.
    #[cfg(test)]
    pub(crate) fn examples(&self) -> (u64, u64) {
        match self {
            Self::Time(range) | Self::Bytes(range) => (range.start() + 1, *range.end()),
            Self::Count(range) => ((range.start() + 1).into(), (*range.end()).into()),
            Self::Flag => (0, 1),
        }
    }

    pub(crate) fn read_value(&self, item: TomlItem<'_>) -> Result<StatedValue, SourceError> {
        let place = item.place();
        let value = match self {
            Self::Time(range) => {
                read_in_range(item, read_time_ms, range, |ms| TimeSpan(Duration::from_millis(ms)))?
            }
            Self::Bytes(range) => read_in_range(item, read_byte_count, range, ByteSize)?,
            Self::Count(range) => u64::from(item.read_count(range.clone())?),
            Self::Flag => u64::from(item.read_bool()?),
        };
        Ok(StatedValue { value, place })
    }

    pub(crate) fn format_value(&self, value: u64) -> String {
        match self {
            Self::Time(_) => format!("\"{}\"", TimeSpan(Duration::from_millis(value))),
            Self::Bytes(_) => format!("\"{}\"", ByteSize(value)),
            Self::Count(_) => value.to_string(),
            Self::Flag => (value != 0).to_string(),
        }
    }
}

fn read_time_ms(item: TomlItem<'_>) -> Result<u64, SourceError> {
    item.read_time_span().map(|TimeSpan(time)| duration_ms(time))
}

fn read_byte_count(item: TomlItem<'_>) -> Result<u64, SourceError> {
    item.read_byte_size().map(|ByteSize(bytes)| bytes)
}

/// Reads a number and checks its range. `shown` formats the number for messages.
pub(crate) fn read_in_range<'d, T: fmt::Display>(
    item: TomlItem<'d>,
    read: impl FnOnce(TomlItem<'d>) -> Result<u64, SourceError>,
    range: &RangeInclusive<u64>,
    shown: impl Fn(u64) -> T,
) -> Result<u64, SourceError> {
    let place = item.place();
    let value = read(item)?;
    if range.contains(&value) {
        return Ok(value);
    }
    let [value, least, most] = [value, *range.start(), *range.end()].map(shown);
    Err(place.into_error(format!("{value} is not from {least} to {most}")))
}

impl fmt::Display for StatedLimits {
    /// The limits as a TOML inline table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |(limit, key, span, _): &Key| {
            let stated = self.get(*limit)?;
            Some(format!("{key} = {}", span.format_value(stated.value)))
        };
        let set: Vec<String> = KEYS.iter().filter_map(text).collect();
        write!(f, "{{ {} }}", set.join(", "))
    }
}
