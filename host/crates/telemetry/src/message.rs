//! Spans, metrics and log records as messages of OTLP: `ExportTraceServiceRequest`,
//! `ExportMetricsServiceRequest` and `ExportLogsServiceRequest` in the encoding of Protocol Buffers.
//!
//! The numbers are those of the published `trace.proto`, `metrics.proto`, `logs.proto`, `common.proto`
//! and `resource.proto`, which never change. There are four ways to write a field, so the encoding is written here.

use sallyport_contract::TraceParent;

use crate::{
    logs::LogRecord,
    metrics::{Histogram, MetricTable, SeriesAttributes},
    names::{METRICS, MetricRule, SCOPE, SERVICE_NAME, SERVICE_VERSION},
    span::{FieldValue, FinishedSpan},
};

/// How a field's value is written. The number is the lowest three bits of its tag.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;
const FIXED32: u32 = 5;

/// The code of a span that failed.
const STATUS_ERROR: u64 = 2;

/// The flag of a span whose trace is recorded. No other span is sent.
const FLAG_SAMPLED: u32 = 1;

/// Sums begin with the program and only grow.
const CUMULATIVE: u64 = 2;

/// Writes a message.
#[derive(Debug, Default)]
struct MessageWriter(Vec<u8>);

impl MessageWriter {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn number(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, value: u32) {
        self.tag(field, FIXED32);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    /// A list of numbers of eight bytes each.
    fn packed64(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let bytes: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &bytes);
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn attribute(&mut self, field: u32, name: &str, value: &FieldValue) {
        self.message(field, |pair| {
            pair.bytes(1, name.as_bytes());
            pair.message(2, |any| match value {
                FieldValue::Text(text) => any.bytes(1, text.as_bytes()),
                FieldValue::Flag(flag) => any.number(2, u64::from(*flag)),
                FieldValue::Number(number) => any.number(3, number.cast_unsigned()),
            });
        });
    }
}

/// Encodes spans of a program with this name and version.
pub(crate) fn encode_request(service: &str, version: &str, spans: &[FinishedSpan]) -> Vec<u8> {
    encode_in_scope(service, version, |scope_spans| {
        spans.iter().for_each(|span| scope_spans.message(2, |message| write_span(message, span)));
    })
}

/// Encodes the sums of a program with this name and version, at a time in nanoseconds since 1970.
pub(crate) fn encode_metrics(
    service: &str,
    version: &str,
    table: &MetricTable,
    now_ns: u64,
) -> Vec<u8> {
    encode_in_scope(service, version, |scope_metrics| {
        for (index, rule) in METRICS.iter().enumerate() {
            if table.series_of(index).next().is_some() {
                let times = (table.started_ns, now_ns);
                let series = table.series_of(index);
                scope_metrics.message(2, |message| write_metric(message, rule, series, times));
            }
        }
    })
}

/// Encodes log records of a program with this name and version.
pub(crate) fn encode_logs(service: &str, version: &str, logs: &[LogRecord]) -> Vec<u8> {
    encode_in_scope(service, version, |scope_logs| {
        logs.iter().for_each(|record| scope_logs.message(2, |message| write_log(message, record)));
    })
}

/// Encodes a request whose one resource is this program, and whose one scope has what `write` writes.
fn encode_in_scope(
    service: &str,
    version: &str,
    write: impl FnOnce(&mut MessageWriter),
) -> Vec<u8> {
    let mut request = MessageWriter::default();
    request.message(1, |of_resource| {
        of_resource.message(1, |resource| {
            for (name, value) in [(SERVICE_NAME, service), (SERVICE_VERSION, version)] {
                resource.attribute(1, name, &FieldValue::Text(value.to_owned()));
            }
        });
        of_resource.message(2, |of_scope| {
            of_scope.message(1, |scope| {
                scope.bytes(1, SCOPE.as_bytes());
                scope.bytes(2, version.as_bytes());
            });
            write(of_scope);
        });
    });
    request.0
}

fn write_metric<'t>(
    message: &mut MessageWriter,
    rule: &MetricRule,
    series: impl Iterator<Item = (&'t SeriesAttributes, &'t Histogram)>,
    (started_ns, now_ns): (u64, u64),
) {
    message.bytes(1, rule.name.as_bytes());
    message.bytes(2, rule.description.as_bytes());
    message.bytes(3, rule.unit.as_bytes());
    message.message(9, |histogram| {
        for (attributes, values) in series {
            histogram.message(1, |point| {
                point.fixed64(2, started_ns);
                point.fixed64(3, now_ns);
                point.fixed64(4, values.count);
                point.fixed64(5, values.sum.to_bits());
                point.packed64(6, values.buckets.iter().copied());
                point.packed64(7, rule.bounds.iter().map(|bound| bound.to_bits()));
                attributes.iter().for_each(|(name, value)| point.attribute(9, name, value));
            });
        }
        histogram.number(2, CUMULATIVE);
    });
}

fn write_log(message: &mut MessageWriter, record: &LogRecord) {
    message.fixed64(1, record.time_ns);
    message.number(2, record.severity as u64);
    message.bytes(3, record.severity.as_str().as_bytes());
    if let Some(body) = &record.body {
        message.message(5, |any| any.bytes(1, body.as_bytes()));
    }
    record.attributes.iter().for_each(|(name, value)| message.attribute(6, name, value));
    if let Some(TraceParent { trace_id, span_id, is_sampled }) = &record.place {
        message.fixed32(8, if *is_sampled { FLAG_SAMPLED } else { 0 });
        message.bytes(9, trace_id);
        message.bytes(10, span_id);
    }
    message.fixed64(11, record.time_ns);
    message.bytes(12, record.event.as_bytes());
}

fn write_span(message: &mut MessageWriter, span: &FinishedSpan) {
    let TraceParent { trace_id, span_id, .. } = &span.place;
    message.bytes(1, trace_id);
    message.bytes(2, span_id);
    if let Some(parent) = &span.parent {
        message.bytes(4, &parent.span_id);
    }
    message.bytes(5, span.name.as_bytes());
    message.number(6, span.kind as u64);
    message.fixed64(7, span.start_ns);
    message.fixed64(8, span.end_ns);
    for (name, value) in &span.attributes {
        message.attribute(9, name, value);
    }
    if span.has_failed {
        message.message(15, |status| status.number(3, STATUS_ERROR));
    }
    message.fixed32(16, FLAG_SAMPLED);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SpanKind;

    /// What the published types for Python write for the span below, in version 0.1.0.
    const REFERENCE: &str = "\
        0af2010a350a170a0c736572766963652e6e616d6512070a056e696768740a1a0a0f736572766963652e7665 \
        7273696f6e12070a05302e312e3012b8010a120a0973616c6c79706f72741205302e312e3012a1010a101111 \
        111111111111111111111111111112082222222222222222220833333333333333332a10657865637574655f \
        746f6f6c20612e62300139e80300000000000041d0070000000000004a1d0a1173616c6c79706f72742e6f75 \
        74636f6d6512080a0664656e6965644a160a1073616c6c79706f72742e64656e696564120210014a120a0b73 \
        65727665722e706f7274120318bb037a021802850101000000";

    #[test]
    fn a_request_is_what_the_published_types_write() {
        let place = |span_id| TraceParent { trace_id: [0x11; 16], span_id, is_sampled: true };
        let span = FinishedSpan {
            source: "call",
            place: place([0x22; 8]),
            parent: Some(place([0x33; 8])),
            name: "execute_tool a.b".to_owned(),
            kind: SpanKind::Internal,
            start_ns: 1000,
            end_ns: 2000,
            attributes: vec![
                ("sallyport.outcome", FieldValue::Text("denied".to_owned())),
                ("sallyport.denied", FieldValue::Flag(true)),
                ("server.port", FieldValue::Number(443)),
            ],
            has_failed: true,
        };
        let encoded = encode_request("night", "0.1.0", &[span]);
        let encoded: String = encoded.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(encoded, REFERENCE.replace(' ', ""));
    }

    #[test]
    fn numbers_are_written_with_seven_bits_in_each_byte() {
        let rows: [(u64, &[u8]); 4] =
            [(0, &[0]), (127, &[0x7f]), (300, &[0xac, 0x02]), (u64::MAX, &[0xff; 10])];
        for (value, want) in rows {
            let mut writer = MessageWriter::default();
            writer.varint(value);
            let mut want = want.to_vec();
            if value == u64::MAX {
                want[9] = 0x01;
            }
            assert_eq!(writer.0, want, "{value}");
        }
    }
}
