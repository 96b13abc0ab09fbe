//! Parses a time of day: `9`, `9:30 pm`, `half past nine`, `noon`, `seven in the evening`, and the
//! part of day in `tomorrow morning`.

use super::{names, reader::WordCursor};

/// The hour at which a night that began the day before ends.
const NIGHT_END_HOUR: i8 = 5;

/// A part of the day. Alone it means its hour; with a number it selects the half of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DayPart {
    Morning = 9,
    Afternoon = 15,
    Evening = 19,
    Night = 21,
}

/// A parsed time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClockTime {
    /// An exact hour and minute.
    At { hour: i8, minute: i8 },
    /// An hour and minute in either half of the day.
    Open { hour: i8, minute: i8 },
    /// The end of the day.
    Midnight,
}

const NAMED_TIMES: [(&str, ClockTime); 3] = [
    ("noon", ClockTime::At { hour: 12, minute: 0 }),
    ("midday", ClockTime::At { hour: 12, minute: 0 }),
    ("midnight", ClockTime::Midnight),
];

/// A time as an offset from the start of a day, possibly beyond its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOfDay {
    pub(super) days: i8,
    pub(super) hour: i8,
    pub(super) minute: i8,
}

impl TimeOfDay {
    const fn new(hour: i8, minute: i8) -> Self {
        Self { days: 0, hour, minute }
    }

    const fn on_next_day(self) -> Self {
        Self { days: self.days + 1, ..self }
    }
}

impl DayPart {
    pub(super) fn parse(reader: &mut WordCursor<'_>) -> Option<Self> {
        reader.parse_word(|word| match word.strip_suffix('s').unwrap_or(word) {
            "morning" => Some(Self::Morning),
            "afternoon" => Some(Self::Afternoon),
            "evening" => Some(Self::Evening),
            "night" => Some(Self::Night),
            _ => None,
        })
    }

    /// Returns the time that an ambiguous hour means in this part of the day.
    fn resolve_hour(self, hour: i8, minute: i8) -> TimeOfDay {
        let (early, late) =
            (TimeOfDay::new(hour % 12, minute), TimeOfDay::new(hour % 12 + 12, minute));
        match self {
            Self::Morning => early,
            Self::Afternoon | Self::Evening => late,
            Self::Night if early.hour < NIGHT_END_HOUR => early.on_next_day(),
            Self::Night => late,
        }
    }
}

impl ClockTime {
    pub(super) fn parse(reader: &mut WordCursor<'_>) -> Option<Self> {
        reader.try_parse(|reader| {
            let clock = Self::parse_without_part(reader)?;
            let part = reader.parse_after(&["in the", "at"], DayPart::parse);
            match (clock, part) {
                (Self::Open { hour, minute }, Some(DayPart::Night)) if hour < NIGHT_END_HOUR => {
                    Some(Self::At { hour, minute })
                }
                (Self::Open { hour, minute }, Some(part)) => {
                    let TimeOfDay { hour, minute, .. } = part.resolve_hour(hour, minute);
                    Some(Self::At { hour, minute })
                }
                (clock, None) => Some(clock),
                (Self::At { .. } | Self::Midnight, Some(_)) => None,
            }
        })
    }

    fn parse_without_part(reader: &mut WordCursor<'_>) -> Option<Self> {
        let named = reader
            .parse_phrase(&NAMED_TIMES)
            .or_else(|| reader.try_parse(parse_relative_clock))
            .or_else(|| reader.parse_word(parse_24_hour_clock));
        named.or_else(|| {
            let (hour, minute) = reader.parse_word(parse_hour_minute)?;
            parse_am_pm(reader, hour, minute)
        })
    }

    /// Returns the possible times of day, the first one first. An hour of either half is taken
    /// literally, except today, when the next of both is meant.
    pub(super) fn candidate_times(self, part: Option<DayPart>, is_today: bool) -> Vec<TimeOfDay> {
        match (self, part) {
            (Self::Midnight, _) => vec![TimeOfDay::new(0, 0).on_next_day()],
            (Self::At { hour, minute }, Some(DayPart::Night)) if hour < NIGHT_END_HOUR => {
                vec![TimeOfDay::new(hour, minute).on_next_day()]
            }
            (Self::At { hour, minute }, _) => vec![TimeOfDay::new(hour, minute)],
            (Self::Open { hour, minute }, Some(part)) => vec![part.resolve_hour(hour, minute)],
            (Self::Open { hour, minute }, None) if is_today && hour < 12 => {
                vec![TimeOfDay::new(hour, minute), TimeOfDay::new(hour + 12, minute)]
            }
            (Self::Open { hour, minute }, None) => vec![TimeOfDay::new(hour, minute)],
        }
    }
}

/// Returns the possible times of day, or the hour `otherwise` if the text contains none.
pub(super) fn candidate_times(
    clock: Option<ClockTime>,
    part: Option<DayPart>,
    is_today: bool,
    otherwise: Option<i8>,
) -> Vec<TimeOfDay> {
    match (clock, part) {
        (Some(clock), part) => clock.candidate_times(part, is_today),
        (None, Some(part)) => vec![TimeOfDay::new(part as i8, 0)],
        (None, None) => otherwise.map(|hour| TimeOfDay::new(hour, 0)).into_iter().collect(),
    }
}

/// `half past nine`, `quarter to 9 pm`, `ten past 9`.
fn parse_relative_clock(reader: &mut WordCursor<'_>) -> Option<ClockTime> {
    let named = reader.parse_phrase(&[("half", 30), ("a quarter", 15), ("quarter", 15)]);
    let minutes = named.or_else(|| {
        let minutes = reader.parse_word(names::parse_number)?;
        reader.consume_any(&["minutes", "minute"]);
        i8::try_from(minutes).ok().filter(|minutes| (1..60).contains(minutes))
    })?;
    let sides = [("to", true), ("before", true), ("past", false), ("after", false)];
    let before = reader.parse_phrase(&sides)?;
    let hour = reader.parse_word(names::parse_number).and_then(|hour| i8::try_from(hour).ok());
    let hour = hour.filter(|hour| (0..24).contains(hour))?;
    let (hour, minute) = if before { ((hour + 23) % 24, 60 - minutes) } else { (hour, minutes) };
    parse_am_pm(reader, hour, minute)
}

/// Parses an optional `am`, `pm` or `o'clock` after a number.
fn parse_am_pm(reader: &mut WordCursor<'_>, hour: i8, minute: i8) -> Option<ClockTime> {
    let is_twelve_hour = (1..=12).contains(&hour);
    if let Some(half) = reader.parse_phrase(&[("am", 0), ("pm", 12)]) {
        return is_twelve_hour.then_some(ClockTime::At { hour: hour % 12 + half, minute });
    }
    reader.consume_any(&["o'clock", "o’clock", "oclock"]);
    match hour {
        24 if minute == 0 => Some(ClockTime::Midnight),
        1..=12 => Some(ClockTime::Open { hour, minute }),
        0..24 => Some(ClockTime::At { hour, minute }),
        _ => None,
    }
}

/// Parses `09:30`. A leading zero means the 24-hour clock.
fn parse_24_hour_clock(word: &str) -> Option<ClockTime> {
    let (hour, minute) =
        parse_hour_minute(word).filter(|_| word.starts_with('0') && word.len() > 2)?;
    Some(ClockTime::At { hour, minute })
}

/// `9`, `nine`, `09:30`, `17.45`.
fn parse_hour_minute(word: &str) -> Option<(i8, i8)> {
    let Some((hour, minute)) = word.split_once([':', '.']) else {
        let hour = names::parse_number(word).filter(|hour| *hour <= 24)?;
        return Some((i8::try_from(hour).ok()?, 0));
    };
    let is_clock = (1..=2).contains(&hour.len()) && minute.len() == 2;
    if !is_clock || !names::is_digits(hour) || !names::is_digits(minute) {
        return None;
    }
    let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
    ((0..=24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}
