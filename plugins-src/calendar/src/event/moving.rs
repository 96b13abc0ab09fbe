//! Moves events that recur: one of their times, or all of them.
//!
//! One time is moved by a second event in the file that takes its place. All times are moved by the
//! same length on the clock, so that a meeting stays at ten when the clocks change.

use calcard::{
    common::{PartialDateTime, timezone::Tz},
    icalendar::{
        ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarFrequency,
        ICalendarParameterName, ICalendarProperty, ICalendarRecurrenceRule, ICalendarValue,
        ICalendarWeekday,
    },
};
use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Utc};
use sallyport_sdk::ToolError;

use super::{CalendarFile, EventTime, entry_like};
use crate::{
    unreadable,
    when::{Moment, UserZone, now},
};

/// What the event of a series has, and the event of one of its times has not.
const OF_SERIES: [ICalendarProperty; 4] = [
    ICalendarProperty::Rrule,
    ICalendarProperty::Rdate,
    ICalendarProperty::Exdate,
    ICalendarProperty::Exrule,
];

/// What says when an event is.
const OF_TIME: [ICalendarProperty; 4] = [
    ICalendarProperty::Dtstart,
    ICalendarProperty::Dtend,
    ICalendarProperty::Duration,
    ICalendarProperty::Dtstamp,
];

/// The days of a week, in the order in which they follow each other.
const WEEK: [ICalendarWeekday; 7] = [
    ICalendarWeekday::Monday,
    ICalendarWeekday::Tuesday,
    ICalendarWeekday::Wednesday,
    ICalendarWeekday::Thursday,
    ICalendarWeekday::Friday,
    ICalendarWeekday::Saturday,
    ICalendarWeekday::Sunday,
];

/// One time of an event that recurs, and when it is from now on.
pub(crate) struct OccurrenceMove<'a> {
    /// When it begins so far, and how it was written.
    pub(crate) from: Moment,
    pub(crate) from_text: &'a str,
    pub(crate) start: Moment,
    /// When it ends. It stays as long as it was if this is `None`.
    pub(crate) end: Option<Moment>,
}

/// How far the times of a series are moved on the clock of its time zone.
struct ClockShift {
    zone: Tz,
    /// The day of the time by which the move was told.
    from_day: NaiveDate,
    to_day: NaiveDate,
    length: TimeDelta,
}

impl CalendarFile {
    /// Moves one time of an event that recurs. Returns when it is now.
    pub(crate) fn move_occurrence(
        &mut self,
        zone: &UserZone,
        to: &OccurrenceMove<'_>,
    ) -> Result<(Moment, Moment), ToolError> {
        let time = self.find_time(zone, to)?;
        let end = to.new_end(zone, &time);
        let index = match self.is_override(time.component) {
            true => self.index_of_single(time.component)?,
            false => self.add_override(&time)?,
        };
        let like = self.series_start(&time)?;
        let component = self.0.components.get_mut(index).ok_or_else(unreadable)?;
        component.entries.retain(|entry| !OF_TIME.contains(&entry.name));
        component.add_dtstamp(PartialDateTime::from_utc_timestamp(now().timestamp()));
        for (name, moment) in
            [(ICalendarProperty::Dtstart, to.start), (ICalendarProperty::Dtend, end)]
        {
            component.entries.push(entry_like(name, Some(&like), time.zone, moment));
        }
        Ok((to.start, end))
    }

    /// Moves all times of an event as far as one of them. Returns when that one is now.
    pub(crate) fn move_series(
        &mut self,
        zone: &UserZone,
        to: &OccurrenceMove<'_>,
    ) -> Result<(Moment, Moment), ToolError> {
        let time = self.find_time(zone, to)?;
        if self.is_override(time.component) {
            let message = "this time was moved by itself; name another time of the event";
            return Err(ToolError::InvalidArguments(message.to_owned()));
        }
        let end = to.new_end(zone, &time);
        let shift = ClockShift::between(&time, to.start);
        let series = &self.0.components[time.component as usize];
        let rules = series.properties(&ICalendarProperty::Rrule);
        rules.flat_map(|entry| &entry.values).try_for_each(|value| shift.check_rule(value))?;
        let is_other_length = to.end.is_some();
        for (index, component) in self.0.components.iter_mut().enumerate() {
            if component.component_type == ICalendarComponentType::VEvent {
                shift.move_component(component)?;
                if index == time.component as usize && is_other_length {
                    set_length(component, &shift, to.start.until(end, zone))?;
                }
            }
        }
        Ok((to.start, end))
    }

    fn find_time(&self, zone: &UserZone, to: &OccurrenceMove<'_>) -> Result<EventTime, ToolError> {
        let begins = to.from.begin(zone);
        let found = self.times(zone).into_iter().find(|time| time.start.begin(zone) == begins);
        let time = found.filter(|_| self.recurs()).ok_or_else(|| {
            ToolError::NotFound(format!("the event does not recur at {}", to.from_text))
        })?;
        match (time.start, to.start) {
            (Moment::Day(_), Moment::Day(_)) | (Moment::Time(_), Moment::Time(_)) => Ok(time),
            _ => {
                let message = "an event that recurs stays as it is, with times or for whole days";
                Err(ToolError::InvalidArguments(message.to_owned()))
            }
        }
    }

    /// Whether an event takes the place of one time.
    fn is_override(&self, id: u32) -> bool {
        let component = self.0.component_by_id(id);
        component.is_some_and(|one| one.has_property(&ICalendarProperty::RecurrenceId))
    }

    /// The index of an event that takes the place of one time, and of none that follow it.
    fn index_of_single(&self, id: u32) -> Result<usize, ToolError> {
        let component = self.0.component_by_id(id).ok_or_else(unreadable)?;
        let is_range = component.entries.iter().any(has_range);
        (!is_range).then_some(id as usize).ok_or_else(unmovable)
    }

    /// The start of the series that a time belongs to, whose form other times have.
    fn series_start(&self, time: &EventTime) -> Result<ICalendarEntry, ToolError> {
        let has_rule =
            |one: &&ICalendarComponent| OF_SERIES.iter().any(|name| one.has_property(name));
        let series =
            self.events().find(has_rule).or_else(|| self.0.component_by_id(time.component));
        let start = series.and_then(|one| one.property(&ICalendarProperty::Dtstart));
        start.cloned().ok_or_else(unreadable)
    }

    /// Adds an event that takes the place of a time. Returns its index.
    fn add_override(&mut self, time: &EventTime) -> Result<usize, ToolError> {
        let series = self.0.component_by_id(time.component).ok_or_else(unreadable)?.clone();
        let start = series.property(&ICalendarProperty::Dtstart);
        let place = entry_like(ICalendarProperty::RecurrenceId, start, time.zone, time.start);
        let mut copy = series.clone();
        copy.entries.retain(|entry| !OF_SERIES.contains(&entry.name));
        copy.entries.push(place);
        // Its alarms are its own.
        copy.component_ids.clear();
        for id in series.component_ids {
            let alarm = self.0.component_by_id(id).ok_or_else(unreadable)?.clone();
            copy.component_ids.push(self.push_component(alarm));
        }
        let id = self.push_component(copy);
        let is_parent = |one: &&mut ICalendarComponent| one.component_ids.contains(&time.component);
        let parent = self.0.components.iter_mut().find(is_parent).ok_or_else(unreadable)?;
        parent.component_ids.push(id);
        Ok(id as usize)
    }

    fn push_component(&mut self, component: ICalendarComponent) -> u32 {
        self.0.components.push(component);
        u32::try_from(self.0.components.len() - 1).unwrap_or(u32::MAX)
    }
}

impl OccurrenceMove<'_> {
    fn new_end(&self, zone: &UserZone, time: &EventTime) -> Moment {
        self.end.unwrap_or_else(|| self.start.later(time.start.until(time.end, zone)))
    }
}

impl ClockShift {
    fn between(time: &EventTime, start: Moment) -> Self {
        let to = start.local(time.zone);
        Self {
            zone: time.zone,
            from_day: time.local.date(),
            to_day: to.date(),
            length: to - time.local,
        }
    }

    /// Whether the rule means the same times after the move as this move means.
    fn check_rule(&self, value: &ICalendarValue) -> Result<(), ToolError> {
        let ICalendarValue::RecurrenceRule(rule) = value else { return Ok(()) };
        let fixes_time =
            !(rule.byhour.is_empty() && rule.byminute.is_empty() && rule.bysecond.is_empty());
        let is_other_day = self.from_day != self.to_day;
        match fixes_time || (is_other_day && !has_movable_days(rule)) {
            false => Ok(()),
            true => Err(ToolError::InvalidArguments(
                "the rule of this event fixes its days or times, so all its times cannot be moved \
                 there; move single times, or remove the event and add others"
                    .to_owned(),
            )),
        }
    }

    fn move_component(&self, component: &mut ICalendarComponent) -> Result<(), ToolError> {
        let value =
            |name: &ICalendarProperty| component.property(name).map(|entry| entry.values.clone());
        // A time that was moved by itself stays where it is, and still takes the place of its own.
        let place = value(&ICalendarProperty::RecurrenceId);
        let stays = place.is_some() && place != value(&ICalendarProperty::Dtstart);
        for entry in &mut component.entries {
            match entry.name {
                ICalendarProperty::Dtstart | ICalendarProperty::Dtend if stays => {}
                ICalendarProperty::Dtstart
                | ICalendarProperty::Dtend
                | ICalendarProperty::Rdate
                | ICalendarProperty::Exdate
                | ICalendarProperty::RecurrenceId
                | ICalendarProperty::Rrule => self.move_entry(entry)?,
                _ => {}
            }
        }
        component.entries.retain(|entry| entry.name != ICalendarProperty::Dtstamp);
        component.add_dtstamp(PartialDateTime::from_utc_timestamp(now().timestamp()));
        Ok(())
    }

    fn move_entry(&self, entry: &mut ICalendarEntry) -> Result<(), ToolError> {
        if has_range(entry) {
            return Err(unmovable());
        }
        entry.values.iter_mut().try_for_each(|value| match value {
            ICalendarValue::PartialDateTime(time) => {
                **time = self.moved(time).ok_or_else(unreadable)?;
                Ok(())
            }
            ICalendarValue::RecurrenceRule(rule) => self.move_rule(rule),
            _ => Err(unmovable()),
        })
    }

    fn move_rule(&self, rule: &mut ICalendarRecurrenceRule) -> Result<(), ToolError> {
        if let Some(until) = &mut rule.until {
            *until = self.moved(until).ok_or_else(unreadable)?;
        }
        let days = (self.to_day - self.from_day).num_days();
        for day in &mut rule.byday {
            let place = WEEK.iter().position(|one| *one == day.weekday).unwrap_or_default();
            let place = i64::try_from(place).unwrap_or_default() + days;
            day.weekday = WEEK[usize::try_from(place.rem_euclid(7)).unwrap_or_default()];
        }
        Ok(())
    }

    /// A moment of the file, later by the length of the move on the clock of the time zone.
    fn moved(&self, time: &PartialDateTime) -> Option<PartialDateTime> {
        let naive = read_naive(time)?;
        if !time.has_zone() {
            let moved = naive.checked_add_signed(self.length)?.and_utc().timestamp();
            return Some(match time.has_time() {
                true => PartialDateTime::from_naive_timestamp(moved),
                false => PartialDateTime::from_date_timestamp(moved),
            });
        }
        let local = Utc.from_utc_datetime(&naive).with_timezone(&self.zone).naive_local();
        let moved = local.checked_add_signed(self.length)?;
        let moment: DateTime<Tz> = self.zone.from_local_datetime(&moved).earliest()?;
        Some(PartialDateTime::from_utc_timestamp(moment.timestamp()))
    }
}

/// Whether a rule repeats on the day of its start, or on one day of the week that can be another.
fn has_movable_days(rule: &ICalendarRecurrenceRule) -> bool {
    let is_one_weekday = rule.freq == ICalendarFrequency::Weekly
        && rule.byday.len() == 1
        && rule.byday.iter().all(|day| day.ordwk.is_none());
    (rule.byday.is_empty() || is_one_weekday)
        && rule.bymonthday.is_empty()
        && rule.byyearday.is_empty()
        && rule.byweekno.is_empty()
        && rule.bymonth.is_empty()
        && rule.bysetpos.is_empty()
}

/// Gives a series, which has its new start already, another length.
fn set_length(
    series: &mut ICalendarComponent,
    shift: &ClockShift,
    length: TimeDelta,
) -> Result<(), ToolError> {
    let start = series.property(&ICalendarProperty::Dtstart).cloned().ok_or_else(unreadable)?;
    let Some(ICalendarValue::PartialDateTime(value)) = start.values.first() else {
        return Err(unreadable());
    };
    let end = ClockShift { zone: shift.zone, from_day: shift.to_day, to_day: shift.to_day, length }
        .moved(value)
        .ok_or_else(unreadable)?;
    let length_names = [ICalendarProperty::Dtend, ICalendarProperty::Duration];
    series.entries.retain(|entry| !length_names.contains(&entry.name));
    series.entries.push(ICalendarEntry {
        name: ICalendarProperty::Dtend,
        params: start.params,
        values: vec![end.into()],
    });
    Ok(())
}

fn read_naive(time: &PartialDateTime) -> Option<NaiveDateTime> {
    let (month, day) = (u32::from(time.month?), u32::from(time.day?));
    let date = NaiveDate::from_ymd_opt(i32::from(time.year?), month, day)?;
    let part = |part: Option<u8>| u32::from(part.unwrap_or_default());
    // A leap second is the second before it.
    date.and_hms_opt(part(time.hour), part(time.minute), part(time.second).min(59))
}

/// Whether an entry is about a time and all that follow it.
fn has_range(entry: &ICalendarEntry) -> bool {
    entry.params.iter().any(|parameter| parameter.name == ICalendarParameterName::Range)
}

fn unmovable() -> ToolError {
    let message = "this event has times in a form that cannot be moved; move single times";
    ToolError::InvalidArguments(message.to_owned())
}
