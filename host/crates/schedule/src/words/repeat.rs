//! Parses a repetition: `every 2 hours`, `every weekday at 8:30`, `every first of the month`.

use std::collections::BTreeSet;

use jiff::civil::Weekday;

use super::{
    clock::{self, Clock, Part, TimeOfDay},
    day::{self, DAY_HOUR},
    length::{DAY_MS, Length},
    names::{self, Count},
    reader::Reader,
};

/// A parsed repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repeat {
    /// A fixed interval, in milliseconds.
    Every(u64),
    /// A cron expression.
    Cron(String),
}

/// The days of a repetition, for the fields of a cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Days {
    All,
    Week(BTreeSet<i8>),
    Month(String),
    NthOfMonth { weekday: Weekday, place: String },
    Year { month: i8, day: i8 },
}

impl Repeat {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        if let Some(every) = reader.attempt(read_every) {
            return Some(every);
        }
        reader.skip_fillers();
        let before = Clock::read(reader);
        reader.skip_fillers();
        let (days, part) = read_days(reader)?;
        reader.skip_fillers();
        let clock = before.or_else(|| Clock::read(reader));
        let part = part.or_else(|| {
            reader.attempt(|reader| {
                reader.eat("in");
                reader.skip_fillers();
                Part::read(reader)
            })
        });
        let time = *clock::times(clock, part, false, Some(DAY_HOUR)).first()?;
        days.cron(time).map(Self::Cron)
    }
}

/// Parses `every 20 minutes`, `hourly`, `every other day`; not `every day`, which needs a time of
/// day.
fn read_every(reader: &mut Reader<'_>) -> Option<Repeat> {
    let every_ms = if reader.eat("hourly") {
        DAY_MS / 24
    } else if !reader.eat_any(&["every", "each"]) {
        return None;
    } else if reader.eat("other day") {
        2 * DAY_MS
    } else if reader.eat("other week") {
        14 * DAY_MS
    } else {
        read_length(reader)?
    };
    reader.is_at_end().then_some(Repeat::Every(every_ms))
}

/// Parses the start of `every 2 weeks on tuesday` or `every other friday`, which a calendar cannot
/// express.
pub(super) fn read_weeks_apart(reader: &mut Reader<'_>) -> Option<()> {
    reader.eat_any(&["every", "each"]).then_some(())?;
    let every = if reader.eat_any(&["other", "second"]) { 2 } else { reader.one(names::number)? };
    let is_of_week = reader.eat_any(&["weeks", "week"]) || reader.one(names::weekday).is_some();
    (every > 1 && is_of_week).then_some(())
}

fn read_length(reader: &mut Reader<'_>) -> Option<u64> {
    let length = reader.attempt(Length::read).or_else(|| {
        let one = ["second", "minute", "hour"].iter().position(|unit| reader.eat(unit))?;
        let half = if reader.eat("and a half") { 3 } else { 2 };
        let ms = 1000 * 60_u64.pow(u32::try_from(one).ok()?) * half / 2;
        Some(Length { ms, ..Length::default() })
    })?;
    // Months differ in length, so they cannot be an interval.
    (length.months == 0).then(|| u64::from(length.days) * DAY_MS + length.ms)
}

fn read_days(reader: &mut Reader<'_>) -> Option<(Days, Option<Part>)> {
    if let Some(days) = reader.attempt(read_adverb) {
        return Some((days, None));
    }
    if let Some(days) = reader.attempt(read_many) {
        return Some((days, Part::read(reader)));
    }
    if !reader.eat_any(&["every", "each"]) {
        return None;
    }
    if let Some(part) = Part::read(reader) {
        return Some((Days::All, Some(part)));
    }
    reader.eat("the");
    let days = reader
        .attempt(read_of_month)
        .or_else(|| reader.attempt(read_of_year))
        .or_else(|| reader.attempt(|reader| reader.eat("day").then_some(Days::All)))
        .or_else(|| reader.attempt(|reader| read_of_week(reader, Count::One)))?;
    Some((days, Part::read(reader)))
}

/// `daily`, `weekly on friday`, `monthly on the 1st`.
fn read_adverb(reader: &mut Reader<'_>) -> Option<Days> {
    if reader.eat("daily") {
        return Some(Days::All);
    }
    if reader.eat("weekly on") {
        return read_of_week(reader, Count::One);
    }
    if reader.eat("monthly on") {
        reader.eat("the");
        return read_place(reader).map(Days::Month);
    }
    None
}

/// `mondays and fridays`, `weekdays`, `weekends`.
fn read_many(reader: &mut Reader<'_>) -> Option<Days> {
    read_of_week(reader, Count::Many)
}

fn read_of_week(reader: &mut Reader<'_>, count: Count) -> Option<Days> {
    let mut days = BTreeSet::new();
    loop {
        days.extend(read_week_part(reader, count)?);
        let more = reader.attempt(|reader| {
            let joined = reader.eat_any(&["and on", "and", ", and", ",", "or"]);
            let mut ahead = *reader;
            (joined && read_week_part(&mut ahead, count).is_some()).then_some(())
        });
        if more.is_none() {
            return Some(Days::Week(days));
        }
    }
}

/// Parses a weekday, a range of weekdays, or a name for several. Sunday is 0.
fn read_week_part(reader: &mut Reader<'_>, count: Count) -> Option<Vec<i8>> {
    let (workdays, rest) = match count {
        Count::One => (["weekday", "workday", "working day"], "weekend"),
        Count::Many => (["weekdays", "workdays", "working days"], "weekends"),
    };
    if reader.eat_any(&workdays) {
        return Some((1..=5).collect());
    }
    if reader.eat(rest) {
        return Some(vec![0, 6]);
    }
    if let Some((first, last)) = reader.one(joined) {
        return Some(range(first, last));
    }
    let first = read_weekday(reader, count)?;
    let last = reader.attempt(|reader| {
        reader.eat_any(&["to", "through", "until"]).then(|| read_weekday(reader, count)).flatten()
    });
    Some(range(first, last.unwrap_or(first)))
}

fn read_weekday(reader: &mut Reader<'_>, count: Count) -> Option<Weekday> {
    reader.one(|word| names::weekday(word).filter(|(_, said)| *said == count).map(|(day, _)| day))
}

/// Parses `mon-fri`.
fn joined(word: &str) -> Option<(Weekday, Weekday)> {
    let (first, last) = word.split_once('-')?;
    Some((names::weekday(first)?.0, names::weekday(last)?.0))
}

/// Returns the days of a range, which may cross the end of a week.
fn range(first: Weekday, last: Weekday) -> Vec<i8> {
    let days = first.cycle_forward().take(1 + usize::from(first.until(last).unsigned_abs()));
    days.map(Weekday::to_sunday_zero_offset).collect()
}

/// `first of the month`, `month on the 15th`, `last day of the month`, `second tuesday of the
/// month`.
fn read_of_month(reader: &mut Reader<'_>) -> Option<Days> {
    if reader.eat("month") {
        reader.eat("on");
        reader.eat("the");
        return read_place(reader).map(Days::Month);
    }
    let last = reader.eat("last");
    let place = if last { None } else { Some(names::ordinal(reader)?) };
    if let Some((weekday, Count::One)) = reader.one(names::weekday) {
        let place = place.map_or_else(|| "L".to_owned(), |place| format!("#{place}"));
        let fits = matches!(place.as_str(), "L" | "#1" | "#2" | "#3" | "#4" | "#5");
        let whole = reader.eat_any(&["of the month", "of every month", "of each month"]);
        return (fits && whole).then_some(Days::NthOfMonth { weekday, place });
    }
    let day = reader.eat("day");
    let whole = reader.eat_any(&["of the month", "of every month", "of each month", "of month"]);
    // `the first day` alone is incomplete, and `every 24th december` is a day of the year.
    if !whole && (last || day || reader.one(names::month).is_some()) {
        return None;
    }
    place_of_month(place).map(Days::Month)
}

/// `15th`, `15`, `last day`.
fn read_place(reader: &mut Reader<'_>) -> Option<String> {
    if reader.eat("last day") || reader.eat("last") {
        return place_of_month(None);
    }
    let place = names::ordinal(reader).or_else(|| reader.one(names::number))?;
    reader.eat("day");
    place_of_month(Some(place))
}

/// Returns the cron field of a day of the month; `None` means the last day.
fn place_of_month(place: Option<u32>) -> Option<String> {
    match place {
        None => Some("L".to_owned()),
        Some(place) => day::day_number(place).map(|day| day.to_string()),
    }
}

/// `year on december 24`, `24 december`, `december 24th`.
fn read_of_year(reader: &mut Reader<'_>) -> Option<Days> {
    if reader.eat("year") {
        reader.skip_fillers();
    }
    let (month, day) = day::read_day_and_month(reader)?;
    Some(Days::Year { month, day })
}

impl Days {
    /// Returns the cron expression of a time on these days; `None` if a cron expression cannot
    /// express it. The end of a day of the month is the start of another day.
    fn cron(self, time: TimeOfDay) -> Option<String> {
        let TimeOfDay { days: shift, hour, minute } = time;
        match self {
            Self::All => Some(format!("{minute} {hour} * * *")),
            Self::Week(days) => {
                let days: BTreeSet<i8> = days.into_iter().map(|day| (day + shift) % 7).collect();
                Some(format!("{minute} {hour} * * {}", week_field(&days)))
            }
            _ if shift > 0 => None,
            Self::Month(day) => Some(format!("{minute} {hour} {day} * *")),
            Self::NthOfMonth { weekday, place } => {
                let weekday = weekday.to_sunday_zero_offset();
                Some(format!("{minute} {hour} * * {weekday}{place}"))
            }
            Self::Year { month, day } => Some(format!("{minute} {hour} {day} {month} *")),
        }
    }
}

fn week_field(days: &BTreeSet<i8>) -> String {
    if days.iter().eq(&[1, 2, 3, 4, 5]) {
        return "1-5".to_owned();
    }
    if days.len() == 7 {
        return "*".to_owned();
    }
    days.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
