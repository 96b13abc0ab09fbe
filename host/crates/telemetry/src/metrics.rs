//! Metrics: how long operations took and what they used, summed up from finished spans.
//!
//! The exporter sums up, in the thread that sends, so no call waits for it. A metric has what the
//! table [`names::METRICS`](crate::names::METRICS) names of a span that was redacted already. Sums
//! begin with the program and only grow, so a message that is lost loses nothing.

use std::collections::HashMap;

use crate::{
    names::{METRICS, MetricReading, MetricRule},
    span::{FieldValue, FinishedSpan},
};

/// Most series. Names of tools, hosts and models can come from others, so they are bounded; what
/// does not fit is summed up in one series of its metric.
const SERIES_MAX: usize = 2000;

/// The attribute of the series that sums up what does not fit.
const OVERFLOW: &str = "otel.metric.overflow";

/// The attributes of a series.
pub(crate) type SeriesAttributes = Vec<(&'static str, FieldValue)>;

/// All sums since the start.
#[derive(Debug)]
pub(crate) struct MetricTable {
    /// When counting began, in nanoseconds since 1970.
    pub(crate) started_ns: u64,
    series: HashMap<(usize, SeriesAttributes), Histogram>,
    is_changed: bool,
}

/// How often values fell into which range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) count: u64,
    pub(crate) sum: f64,
    /// One more than there are bounds: the last one has no upper bound.
    pub(crate) buckets: Vec<u64>,
}

impl Histogram {
    fn new(bounds: &[f64]) -> Self {
        Self { count: 0, sum: 0.0, buckets: vec![0; bounds.len() + 1] }
    }

    /// A bound belongs to the range below it.
    fn add(&mut self, value: f64, bounds: &[f64]) {
        self.count += 1;
        self.sum += value;
        let index = bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += 1;
        }
    }
}

impl MetricTable {
    pub(crate) fn new(started_ns: u64) -> Self {
        Self { started_ns, series: HashMap::new(), is_changed: false }
    }

    /// Adds a span to each metric that is about it.
    pub(crate) fn add_span(&mut self, span: &FinishedSpan) {
        for (index, rule) in METRICS.iter().enumerate().filter(|(_, rule)| rule.is_about(span)) {
            for reading in rule.readings {
                if let Some((value, also)) = reading.read(span) {
                    self.add(index, rule, rule.attributes_of(span, also), value);
                }
            }
        }
    }

    fn add(&mut self, index: usize, rule: &MetricRule, attributes: SeriesAttributes, value: f64) {
        let key = (index, attributes);
        let is_full = self.series.len() >= SERIES_MAX && !self.series.contains_key(&key);
        let key = match is_full {
            true => (index, vec![(OVERFLOW, FieldValue::Flag(true))]),
            false => key,
        };
        let histogram = self.series.entry(key).or_insert_with(|| Histogram::new(rule.bounds));
        histogram.add(value, rule.bounds);
        self.is_changed = true;
    }

    /// Whether something was added since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The series of a metric, by its place in the table.
    pub(crate) fn series_of(
        &self,
        index: usize,
    ) -> impl Iterator<Item = (&SeriesAttributes, &Histogram)> {
        let own = self.series.iter().filter(move |((of, _), _)| *of == index);
        own.map(|((_, attributes), histogram)| (attributes, histogram))
    }
}

impl MetricRule {
    fn is_about(&self, span: &FinishedSpan) -> bool {
        self.spans.contains(&span.source)
            && self.only_with.is_none_or(|name| span.attribute(name).is_some())
    }

    fn attributes_of(
        &self,
        span: &FinishedSpan,
        also: Option<(&'static str, &'static str)>,
    ) -> SeriesAttributes {
        let own = self
            .attributes
            .iter()
            .filter_map(|name| span.attribute(name).map(|value| (*name, value.clone())));
        let also = also.map(|(name, word)| (name, FieldValue::Text(word.to_owned())));
        own.chain(also).collect()
    }
}

impl MetricReading {
    /// The value of a span, with the attribute that tells it from other readings.
    fn read(&self, span: &FinishedSpan) -> Option<(f64, Option<(&'static str, &'static str)>)> {
        match self {
            Self::Seconds => {
                let elapsed_ns = span.end_ns.saturating_sub(span.start_ns);
                Some((elapsed_ns as f64 / 1e9, None))
            }
            Self::Number { attribute, also } => match span.attribute(attribute)? {
                FieldValue::Number(number) => Some((*number as f64, Some(*also))),
                FieldValue::Text(_) | FieldValue::Flag(_) => None,
            },
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::names::SpanKind;

    pub(crate) fn span(
        source: &'static str,
        elapsed_ms: u64,
        attributes: Vec<(&'static str, FieldValue)>,
    ) -> FinishedSpan {
        let place = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        FinishedSpan {
            source,
            place,
            parent: None,
            name: source.to_owned(),
            kind: SpanKind::Internal,
            start_ns: 0,
            end_ns: elapsed_ms * 1_000_000,
            attributes,
            has_failed: false,
        }
    }

    fn text(value: &str) -> FieldValue {
        FieldValue::Text(value.to_owned())
    }

    fn lines(table: &MetricTable) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, rule) in METRICS.iter().enumerate() {
            for (attributes, histogram) in table.series_of(index) {
                let values = attributes.iter().map(|(name, value)| match value {
                    FieldValue::Text(text) => format!("{name}={text}"),
                    FieldValue::Number(number) => format!("{name}={number}"),
                    FieldValue::Flag(flag) => format!("{name}={flag}"),
                });
                let values = values.collect::<Vec<_>>().join(",");
                let Histogram { count, sum, .. } = histogram;
                lines.push(format!("{} {values} {count} {sum}", rule.name));
            }
        }
        lines.sort();
        lines
    }

    #[test]
    fn a_span_is_summed_up_under_what_its_metrics_name() {
        let mut table = MetricTable::new(1);
        let chat = |input| {
            vec![
                ("gen_ai.operation.name", text("chat")),
                ("gen_ai.request.model", text("m")),
                ("gen_ai.usage.input_tokens", FieldValue::Number(input)),
                ("gen_ai.usage.output_tokens", FieldValue::Number(2)),
            ]
        };
        table.add_span(&span("model_request", 500, chat(10)));
        table.add_span(&span("model_summary", 1500, chat(30)));
        table.add_span(&span(
            "call",
            250,
            vec![
                ("gen_ai.tool.name", text("a.b")),
                ("gen_ai.tool.call.id", text("c1")),
                ("sallyport.outcome", text("completed")),
            ],
        ));
        // A decision that a call follows is not one more call.
        table.add_span(&span("decide", 1, vec![("gen_ai.tool.name", text("a.b"))]));
        let want = [
            "gen_ai.client.operation.duration gen_ai.operation.name=chat,gen_ai.request.model=m 2 2",
            "gen_ai.client.token.usage gen_ai.operation.name=chat,gen_ai.request.model=m,\
             gen_ai.token.type=input 2 40",
            "gen_ai.client.token.usage gen_ai.operation.name=chat,gen_ai.request.model=m,\
             gen_ai.token.type=output 2 4",
            "sallyport.tool.duration gen_ai.tool.name=a.b,sallyport.outcome=completed 1 0.25",
        ];
        assert_eq!(lines(&table), want);
        assert!(table.take_changed() && !table.take_changed());
    }

    #[test]
    fn a_value_falls_into_the_range_that_ends_with_it() {
        let bounds = [1.0, 2.0, 4.0];
        let rows = [(0.0, 0), (1.0, 0), (1.5, 1), (4.0, 2), (4.1, 3), (f64::INFINITY, 3)];
        for (value, index) in rows {
            let mut histogram = Histogram::new(&bounds);
            histogram.add(value, &bounds);
            assert_eq!(
                histogram.buckets.iter().position(|count| *count == 1),
                Some(index),
                "{value}"
            );
        }
    }

    #[test]
    fn names_of_others_take_no_more_memory_than_their_share() {
        let mut table = MetricTable::new(1);
        let calls = SERIES_MAX + 500;
        for number in 0..calls {
            let name = text(&format!("a.t{number}"));
            let attributes =
                vec![("gen_ai.tool.name", name), ("sallyport.outcome", text("failed"))];
            table.add_span(&span("call", 1, attributes));
        }
        assert_eq!(table.series.len(), SERIES_MAX + 1);
        let total: u64 = table.series.values().map(|histogram| histogram.count).sum();
        assert_eq!(total, calls as u64, "none is lost");
        assert!(lines(&table).iter().any(|line| line.contains("otel.metric.overflow=true 500")));
    }
}
