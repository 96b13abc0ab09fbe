//! Parses a repetition: `every 2 hours`, `every weekday at 8:30`, `every first of the month`.

use std::collections::BTreeSet;

use jiff::civil::Weekday;

use super::{
    clock::{self, ClockTime, DayPart, TimeOfDay},
    day::{self, DAY_HOUR},
    duration::{CalendarDuration, DAY_MS},
    names::{self, GrammaticalNumber},
    reader::WordCursor,
};

/// A parsed repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RepeatExpression {
    /// A fixed interval, in milliseconds.
    Every(u64),
    /// A cron expression.
    Cron(String),
}

/// The days of a repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RepeatDays {
    All,
    Week(BTreeSet<i8>),
    /// Other days, as the fields for day, month and weekday of a cron expression.
    Fields(String),
}

impl RepeatExpression {
    pub(super) fn parse(reader: &mut WordCursor<'_>) -> Option<Self> {
        if let Some(every) = reader.try_parse(parse_interval) {
            return Some(every);
        }
        reader.skip_fillers();
        let before = ClockTime::parse(reader);
        reader.skip_fillers();
        let (days, part) = parse_days(reader)?;
        reader.skip_fillers();
        let clock = before.or_else(|| ClockTime::parse(reader));
        let part = part.or_else(|| reader.try_parse(day::parse_day_part));
        let time = *clock::candidate_times(clock, part, false, Some(DAY_HOUR)).first()?;
        days.into_cron(time).map(Self::Cron)
    }
}

/// Parses `every 20 minutes`, `hourly`, `every other day`; not `every day`, which needs a time of
/// day.
fn parse_interval(reader: &mut WordCursor<'_>) -> Option<RepeatExpression> {
    let every_ms = if reader.consume_words("hourly") {
        DAY_MS / 24
    } else if !reader.consume_any(&["every", "each"]) {
        return None;
    } else {
        let other = reader.parse_phrase(&[("other day", 2 * DAY_MS), ("other week", 14 * DAY_MS)]);
        other.or_else(|| parse_interval_ms(reader))?
    };
    reader.is_at_end().then_some(RepeatExpression::Every(every_ms))
}

/// Parses the start of `every 2 weeks on tuesday` or `every other friday`, which a calendar cannot
/// express.
pub(super) fn parse_multi_week_start(reader: &mut WordCursor<'_>) -> Option<()> {
    reader.consume_any(&["every", "each"]).then_some(())?;
    let other = reader.parse_phrase(&[("other", 2), ("second", 2)]);
    let every = other.or_else(|| reader.parse_word(names::parse_number))?;
    let is_of_week =
        reader.consume_any(&["weeks", "week"]) || reader.parse_word(names::parse_weekday).is_some();
    (every > 1 && is_of_week).then_some(())
}

fn parse_interval_ms(reader: &mut WordCursor<'_>) -> Option<u64> {
    let length = reader.try_parse(CalendarDuration::parse).or_else(|| {
        let units = [("second", 1000), ("minute", 60_000), ("hour", DAY_MS / 24)];
        let one_ms = reader.parse_phrase(&units)?;
        let half_ms = if reader.consume_words("and a half") { one_ms / 2 } else { 0 };
        Some(CalendarDuration { ms: one_ms + half_ms, ..CalendarDuration::default() })
    })?;
    // Months differ in length, so they cannot be an interval.
    (length.months == 0).then(|| u64::from(length.days) * DAY_MS + length.ms)
}

fn parse_days(reader: &mut WordCursor<'_>) -> Option<(RepeatDays, Option<DayPart>)> {
    if let Some(days) = reader.try_parse(parse_adverb) {
        return Some((days, None));
    }
    // `mondays and fridays`, `weekdays`, `weekends`.
    let plural = reader.try_parse(|reader| parse_week_days(reader, GrammaticalNumber::Many));
    if let Some(days) = plural {
        return Some((days, DayPart::parse(reader)));
    }
    if !reader.consume_any(&["every", "each"]) {
        return None;
    }
    if let Some(part) = DayPart::parse(reader) {
        return Some((RepeatDays::All, Some(part)));
    }
    reader.consume_words("the");
    let days = reader
        .try_parse(parse_month_days)
        .or_else(|| reader.try_parse(parse_year_day))
        .or_else(|| reader.consume_words("day").then_some(RepeatDays::All))
        .or_else(|| reader.try_parse(|reader| parse_week_days(reader, GrammaticalNumber::One)))?;
    Some((days, DayPart::parse(reader)))
}

/// `daily`, `weekly on friday`, `monthly on the 1st`.
fn parse_adverb(reader: &mut WordCursor<'_>) -> Option<RepeatDays> {
    if reader.consume_words("daily") {
        return Some(RepeatDays::All);
    }
    if reader.consume_words("weekly on") {
        return parse_week_days(reader, GrammaticalNumber::One);
    }
    if reader.consume_words("monthly on") {
        reader.consume_words("the");
        return parse_month_day(reader);
    }
    None
}

fn parse_week_days(reader: &mut WordCursor<'_>, count: GrammaticalNumber) -> Option<RepeatDays> {
    let mut days = BTreeSet::new();
    loop {
        days.extend(parse_week_part(reader, count)?);
        let more = reader.try_parse(|reader| {
            let joined = reader.consume_any(&["and on", "and", ", and", ",", "or"]);
            let mut ahead = *reader;
            (joined && parse_week_part(&mut ahead, count).is_some()).then_some(())
        });
        if more.is_none() {
            return Some(RepeatDays::Week(days));
        }
    }
}

/// Parses a weekday, a range of weekdays, or a name for several. Sunday is 0.
fn parse_week_part(reader: &mut WordCursor<'_>, count: GrammaticalNumber) -> Option<Vec<i8>> {
    let (workdays, rest) = match count {
        GrammaticalNumber::One => (["weekday", "workday", "working day"], "weekend"),
        GrammaticalNumber::Many => (["weekdays", "workdays", "working days"], "weekends"),
    };
    if reader.consume_any(&workdays) {
        return Some((1..=5).collect());
    }
    if reader.consume_words(rest) {
        return Some(vec![0, 6]);
    }
    if let Some((first, last)) = reader.parse_word(parse_weekday_range) {
        return Some(weekday_range(first, last));
    }
    let first = parse_weekday(reader, count)?;
    let last =
        reader.parse_after(&["to", "through", "until"], |reader| parse_weekday(reader, count));
    Some(weekday_range(first, last.unwrap_or(first)))
}

fn parse_weekday(reader: &mut WordCursor<'_>, count: GrammaticalNumber) -> Option<Weekday> {
    reader.parse_word(|word| {
        names::parse_weekday(word)
            .filter(|(_, number_form)| *number_form == count)
            .map(|(day, _)| day)
    })
}

/// Parses `mon-fri`.
fn parse_weekday_range(word: &str) -> Option<(Weekday, Weekday)> {
    let (first, last) = word.split_once('-')?;
    Some((names::parse_weekday(first)?.0, names::parse_weekday(last)?.0))
}

/// Returns the days of a range, which may cross the end of a week.
fn weekday_range(first: Weekday, last: Weekday) -> Vec<i8> {
    let days = first.cycle_forward().take(1 + usize::from(first.until(last).unsigned_abs()));
    days.map(Weekday::to_sunday_zero_offset).collect()
}

/// `first of the month`, `month on the 15th`, `last day of the month`, `second tuesday of the
/// month`.
fn parse_month_days(reader: &mut WordCursor<'_>) -> Option<RepeatDays> {
    if reader.consume_words("month") {
        reader.consume_words("on");
        reader.consume_words("the");
        return parse_month_day(reader);
    }
    let last = reader.consume_words("last");
    let place = if last { None } else { Some(names::parse_ordinal(reader)?) };
    if let Some((weekday, GrammaticalNumber::One)) = reader.parse_word(names::parse_weekday) {
        let place = place.map_or_else(|| "L".to_owned(), |place| format!("#{place}"));
        let fits = matches!(place.as_str(), "L" | "#1" | "#2" | "#3" | "#4" | "#5");
        let whole = reader.consume_any(&["of the month", "of every month", "of each month"]);
        let weekday = weekday.to_sunday_zero_offset();
        return (fits && whole).then(|| RepeatDays::Fields(format!("* * {weekday}{place}")));
    }
    let day = reader.consume_words("day");
    let whole =
        reader.consume_any(&["of the month", "of every month", "of each month", "of month"]);
    // `the first day` alone is incomplete, and `every 24th december` is a day of the year.
    if !whole && (last || day || reader.parse_word(names::parse_month).is_some()) {
        return None;
    }
    match place {
        None => Some(last_of_month()),
        Some(place) => names::day_of_month(place).map(on_month_day),
    }
}

/// `15th`, `15`, `last day`.
fn parse_month_day(reader: &mut WordCursor<'_>) -> Option<RepeatDays> {
    if reader.consume_any(&["last day", "last"]) {
        return Some(last_of_month());
    }
    let day = names::parse_month_day(reader)?;
    reader.consume_words("day");
    Some(on_month_day(day))
}

fn last_of_month() -> RepeatDays {
    RepeatDays::Fields("L * *".to_owned())
}

fn on_month_day(day: i8) -> RepeatDays {
    RepeatDays::Fields(format!("{day} * *"))
}

/// `year on december 24`, `24 december`, `december 24th`.
fn parse_year_day(reader: &mut WordCursor<'_>) -> Option<RepeatDays> {
    if reader.consume_words("year") {
        reader.skip_fillers();
    }
    let (month, day) = day::parse_day_and_month(reader)?;
    Some(RepeatDays::Fields(format!("{day} {month} *")))
}

impl RepeatDays {
    /// Returns the cron expression of a time on these days; `None` if a cron expression cannot
    /// express it. The end of a day of the month is the start of another day.
    fn into_cron(self, time: TimeOfDay) -> Option<String> {
        let TimeOfDay { days: shift, hour, minute } = time;
        let fields = match self {
            Self::All => "* * *".to_owned(),
            Self::Week(days) => {
                let days: BTreeSet<i8> = days.into_iter().map(|day| (day + shift) % 7).collect();
                format!("* * {}", weekday_field(&days))
            }
            Self::Fields(_) if shift > 0 => return None,
            Self::Fields(fields) => fields,
        };
        Some(format!("{minute} {hour} {fields}"))
    }
}

fn weekday_field(days: &BTreeSet<i8>) -> String {
    if days.iter().eq(&[1, 2, 3, 4, 5]) {
        return "1-5".to_owned();
    }
    if days.len() == 7 {
        return "*".to_owned();
    }
    days.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
