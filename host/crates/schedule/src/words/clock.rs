//! Parses a time of day: `9`, `9:30 pm`, `half past nine`, `noon`, `seven in the evening`, and the
//! part of day in `tomorrow morning`.

use super::{names, reader::Reader};

/// The hour at which a night that began the day before ends.
const NIGHT_END_HOUR: i8 = 5;

/// A part of the day. Alone it means a default hour; with a number it selects the half of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Morning,
    Afternoon,
    Evening,
    Night,
}

/// A parsed time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// An exact hour and minute.
    At { hour: i8, minute: i8 },
    /// An hour and minute in either half of the day.
    Open { hour: i8, minute: i8 },
    /// The end of the day.
    Midnight,
}

/// A time as an offset from the start of a day, possibly beyond its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeOfDay {
    pub(super) days: i8,
    pub(super) hour: i8,
    pub(super) minute: i8,
}

impl TimeOfDay {
    const fn at(hour: i8, minute: i8) -> Self {
        Self { days: 0, hour, minute }
    }

    const fn on_the_next_day(self) -> Self {
        Self { days: self.days + 1, ..self }
    }
}

impl Part {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.one(|word| match word {
            "morning" | "mornings" => Some(Self::Morning),
            "afternoon" | "afternoons" => Some(Self::Afternoon),
            "evening" | "evenings" => Some(Self::Evening),
            "night" | "nights" => Some(Self::Night),
            _ => None,
        })
    }

    /// Returns the default time of this part of the day.
    fn time(self) -> TimeOfDay {
        TimeOfDay::at(
            match self {
                Self::Morning => 9,
                Self::Afternoon => 15,
                Self::Evening => 19,
                Self::Night => 21,
            },
            0,
        )
    }

    /// Returns the time that an ambiguous hour means in this part of the day.
    fn place(self, hour: i8, minute: i8) -> TimeOfDay {
        let (early, late) =
            (TimeOfDay::at(hour % 12, minute), TimeOfDay::at(hour % 12 + 12, minute));
        match self {
            Self::Morning => early,
            Self::Afternoon | Self::Evening => late,
            Self::Night if early.hour < NIGHT_END_HOUR => early.on_the_next_day(),
            Self::Night => late,
        }
    }
}

impl Clock {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.attempt(|reader| {
            let clock = Self::read_bare(reader)?;
            let part = reader.attempt(|reader| {
                reader.eat_any(&["in the", "at"]).then(|| Part::read(reader)).flatten()
            });
            match (clock, part) {
                (Self::Open { hour, minute }, Some(Part::Night)) if hour < NIGHT_END_HOUR => {
                    Some(Self::At { hour, minute })
                }
                (Self::Open { hour, minute }, Some(part)) => {
                    let TimeOfDay { hour, minute, .. } = part.place(hour, minute);
                    Some(Self::At { hour, minute })
                }
                (clock, None) => Some(clock),
                (Self::At { .. } | Self::Midnight, Some(_)) => None,
            }
        })
    }

    fn read_bare(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.eat_any(&["noon", "midday"]) {
            return Some(Self::At { hour: 12, minute: 0 });
        }
        if reader.eat("midnight") {
            return Some(Self::Midnight);
        }
        if let Some(clock) = reader.attempt(read_past) {
            return Some(clock);
        }
        if let Some(clock) = reader.one(railway) {
            return Some(clock);
        }
        let (hour, minute) = reader.one(figures)?;
        read_half_of_day(reader, hour, minute)
    }

    /// Returns the possible times of day, the first one first. An hour of either half is taken
    /// literally, except today, when the next of both is meant.
    pub(super) fn times(self, part: Option<Part>, is_today: bool) -> Vec<TimeOfDay> {
        match (self, part) {
            (Self::Midnight, _) => vec![TimeOfDay::at(0, 0).on_the_next_day()],
            (Self::At { hour, minute }, Some(Part::Night)) if hour < NIGHT_END_HOUR => {
                vec![TimeOfDay::at(hour, minute).on_the_next_day()]
            }
            (Self::At { hour, minute }, _) => vec![TimeOfDay::at(hour, minute)],
            (Self::Open { hour, minute }, Some(part)) => vec![part.place(hour, minute)],
            (Self::Open { hour, minute }, None) if is_today && hour < 12 => {
                vec![TimeOfDay::at(hour, minute), TimeOfDay::at(hour + 12, minute)]
            }
            (Self::Open { hour, minute }, None) => vec![TimeOfDay::at(hour, minute)],
        }
    }
}

/// Returns the possible times of day, or the hour `otherwise` if the text contains none.
pub(super) fn times(
    clock: Option<Clock>,
    part: Option<Part>,
    is_today: bool,
    otherwise: Option<i8>,
) -> Vec<TimeOfDay> {
    match (clock, part) {
        (Some(clock), part) => clock.times(part, is_today),
        (None, Some(part)) => vec![part.time()],
        (None, None) => otherwise.map(|hour| TimeOfDay::at(hour, 0)).into_iter().collect(),
    }
}

/// `half past nine`, `quarter to 9 pm`, `ten past 9`.
fn read_past(reader: &mut Reader<'_>) -> Option<Clock> {
    let minutes = if reader.eat("half") {
        30
    } else if reader.eat_any(&["a quarter", "quarter"]) {
        15
    } else {
        let minutes = reader.one(names::number).filter(|minutes| (1..60).contains(minutes))?;
        reader.eat_any(&["minutes", "minute"]);
        i8::try_from(minutes).ok()?
    };
    let before = reader.eat_any(&["to", "before"]);
    if !before && !reader.eat_any(&["past", "after"]) {
        return None;
    }
    let hour = reader.one(names::number).and_then(|hour| i8::try_from(hour).ok())?;
    if !(0..24).contains(&hour) {
        return None;
    }
    let (hour, minute) = if before { ((hour + 23) % 24, 60 - minutes) } else { (hour, minutes) };
    read_half_of_day(reader, hour, minute)
}

/// Parses an optional `am`, `pm` or `o'clock` after a number.
fn read_half_of_day(reader: &mut Reader<'_>, hour: i8, minute: i8) -> Option<Clock> {
    let said = (1..=12).contains(&hour);
    if reader.eat("am") {
        return said.then_some(Clock::At { hour: hour % 12, minute });
    }
    if reader.eat("pm") {
        return said.then_some(Clock::At { hour: hour % 12 + 12, minute });
    }
    reader.eat_any(&["o'clock", "o’clock", "oclock"]);
    match hour {
        24 if minute == 0 => Some(Clock::Midnight),
        1..=12 => Some(Clock::Open { hour, minute }),
        0..24 => Some(Clock::At { hour, minute }),
        _ => None,
    }
}

/// Parses `09:30`. A leading zero means the 24-hour clock.
fn railway(word: &str) -> Option<Clock> {
    let (hour, minute) = figures(word).filter(|_| word.starts_with('0') && word.len() > 2)?;
    Some(Clock::At { hour, minute })
}

/// `9`, `nine`, `09:30`, `17.45`.
fn figures(word: &str) -> Option<(i8, i8)> {
    let Some((hour, minute)) = word.split_once([':', '.']) else {
        let hour = names::number(word).filter(|hour| *hour <= 24)?;
        return Some((i8::try_from(hour).ok()?, 0));
    };
    let figures = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=2).contains(&hour.len()) || minute.len() != 2 || !figures(hour) || !figures(minute) {
        return None;
    }
    let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
    ((0..=24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}
