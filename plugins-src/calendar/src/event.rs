//! One file of the calendar: an event, with all its times if it recurs.

mod moving;

use calcard::{
    common::{PartialDateTime, timezone::Tz},
    icalendar::{
        ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarParameter,
        ICalendarProperty, ICalendarValue, ICalendarValueType, dates::TimeOrDelta,
    },
};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use sallyport_sdk::prelude::*;
use serde::Serialize;

pub(crate) use moving::OccurrenceMove;

use crate::when::{Moment, TimeSpan, UserZone, now};

/// Most times of an event that are worked out: 50 years of a daily one.
const TIMES_MAX: usize = 20_000;

/// The program, as events name it.
const PRODUCT: &str = "-//Sallyport//calendar//EN";

/// One time of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ListedEvent {
    /// The id, for moving and removing it.
    id: String,
    title: String,
    /// When it begins: a day, or a time with the user's offset.
    start: String,
    /// When it ends; the day after the last one for whole days.
    end: String,
    all_day: bool,
    /// Whether it has other times too.
    recurs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip)]
    #[schemars(skip)]
    begins: DateTime<Utc>,
}

/// A new event.
pub(crate) struct NewEvent<'a> {
    pub(crate) uid: &'a str,
    pub(crate) title: &'a str,
    pub(crate) location: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
}

/// A file of the calendar.
pub(crate) struct CalendarFile(ICalendar);

/// One time of an event, by its component.
struct EventTime {
    component: u32,
    start: Moment,
    end: Moment,
    /// When it begins, in the event's own time zone.
    local: NaiveDateTime,
    /// That time zone.
    zone: Tz,
}

impl ListedEvent {
    pub(crate) fn sort_key(&self) -> (DateTime<Utc>, &str, &str) {
        (self.begins, &self.title, &self.id)
    }
}

impl CalendarFile {
    /// Reads a file. `None` if it is no calendar.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let calendar = ICalendar::parse(text).ok()?;
        let file = Self(calendar);
        let has_events = file.events().next().is_some();
        has_events.then_some(file)
    }

    /// A file with one event.
    pub(crate) fn with_event(new: &NewEvent<'_>, start: Moment, end: Moment) -> Self {
        let mut calendar = ICalendarComponent::new(ICalendarComponentType::VCalendar);
        let text = |text: &str| ICalendarValue::Text(text.to_owned());
        calendar.add_property(ICalendarProperty::Version, text("2.0"));
        calendar.add_property(ICalendarProperty::Prodid, text(PRODUCT));
        calendar.component_ids.push(1);
        let mut event = ICalendarComponent::new(ICalendarComponentType::VEvent);
        event.add_uid(new.uid);
        event.add_property(ICalendarProperty::Summary, text(new.title));
        if let Some(location) = new.location {
            event.add_property(ICalendarProperty::Location, text(location));
        }
        if let Some(description) = new.description {
            event.add_property(ICalendarProperty::Description, text(description));
        }
        let mut file = Self(ICalendar { components: vec![calendar, event] });
        file.set_time(start, end);
        file
    }

    /// The file as a text.
    pub(crate) fn to_text(&self) -> String {
        self.0.to_string()
    }

    fn events(&self) -> impl Iterator<Item = &ICalendarComponent> {
        let is_event =
            |one: &&ICalendarComponent| one.component_type == ICalendarComponentType::VEvent;
        self.0.components.iter().filter(is_event)
    }

    /// Whether the event has several times.
    pub(crate) fn recurs(&self) -> bool {
        let recurring =
            [ICalendarProperty::Rrule, ICalendarProperty::Rdate, ICalendarProperty::RecurrenceId];
        self.events().any(|event| recurring.iter().any(|name| event.has_property(name)))
    }

    fn recurs_in_utc(&self) -> bool {
        let starts = self.events().filter_map(|event| event.property(&ICalendarProperty::Dtstart));
        let mut values = starts.flat_map(|entry| &entry.values);
        let is_utc = |value: &ICalendarValue| match value {
            ICalendarValue::PartialDateTime(time) => time.has_zone(),
            _ => false,
        };
        self.recurs() && values.any(is_utc)
    }

    /// All times of the event.
    fn times(&self, zone: &UserZone) -> Vec<EventTime> {
        // The library takes the start of a series in UTC for a local time of the zone it is given.
        let default = if self.recurs_in_utc() { chrono_tz::UTC } else { zone.0 };
        let expanded = self.0.expand_dates(Tz::Tz(default), TIMES_MAX);
        let time = |event: calcard::icalendar::dates::CalendarEvent<_, _>| {
            let component = self.0.component_by_id(event.comp_id)?;
            if component.component_type != ICalendarComponentType::VEvent {
                return None;
            }
            let start: DateTime<Tz> = event.start;
            let has_end = component.has_property(&ICalendarProperty::Dtend)
                || component.has_property(&ICalendarProperty::Duration);
            let end = match event.end {
                // An event without an end takes no time. The library lets it last until midnight.
                _ if !has_end && !is_day(component) => start,
                TimeOrDelta::Time(end) => end,
                TimeOrDelta::Delta(length) => start.checked_add_signed(length)?,
            };
            let moment = |time: DateTime<Tz>| match is_day(component) {
                true => Moment::Day(time.date_naive()),
                false => Moment::Time(time.with_timezone(&Utc)),
            };
            Some(EventTime {
                component: event.comp_id,
                start: moment(start),
                end: moment(end),
                local: start.naive_local(),
                zone: start.timezone(),
            })
        };
        expanded.events.into_iter().filter_map(time).collect()
    }

    /// Lists the times of the event in a span.
    pub(crate) fn list_events(
        &self,
        id: &str,
        zone: &UserZone,
        span: &TimeSpan,
        list: &mut Vec<ListedEvent>,
    ) {
        let recurs = self.recurs();
        for time in self.times(zone) {
            let (begins, ends) = (time.start.begin(zone), time.end.begin(zone));
            let is_inside = begins < span.to && (ends > span.from || begins >= span.from);
            let Some(component) = self.0.component_by_id(time.component).filter(|_| is_inside)
            else {
                continue;
            };
            let text = |name| text_of(component, &name);
            list.push(ListedEvent {
                id: id.to_owned(),
                title: text(ICalendarProperty::Summary).unwrap_or_default(),
                start: time.start.text(zone),
                end: time.end.text(zone),
                all_day: matches!(time.start, Moment::Day(_)),
                recurs,
                location: text(ICalendarProperty::Location),
                begins,
            });
        }
    }

    /// How long the event is.
    pub(crate) fn length(&self, zone: &UserZone) -> Option<TimeDelta> {
        let time = self.times(zone).into_iter().next()?;
        Some(time.start.until(time.end, zone))
    }

    /// Gives the event another time.
    pub(crate) fn set_time(&mut self, start: Moment, end: Moment) {
        let is_event =
            |one: &&mut ICalendarComponent| one.component_type == ICalendarComponentType::VEvent;
        let Some(event) = self.0.components.iter_mut().find(is_event) else { return };
        let replaced = [
            ICalendarProperty::Dtstart,
            ICalendarProperty::Dtend,
            ICalendarProperty::Duration,
            ICalendarProperty::Dtstamp,
        ];
        event.entries.retain(|entry| !replaced.contains(&entry.name));
        event.add_dtstamp(PartialDateTime::from_utc_timestamp(now().timestamp()));
        event.entries.push(moment_entry(ICalendarProperty::Dtstart, start));
        event.entries.push(moment_entry(ICalendarProperty::Dtend, end));
    }

    /// Takes one time out of an event that recurs. Returns false if it has no such time.
    pub(crate) fn exclude(&mut self, zone: &UserZone, moment: Moment) -> bool {
        let begins = moment.begin(zone);
        let found = self.times(zone).into_iter().find(|time| time.start.begin(zone) == begins);
        let Some(time) = found.filter(|_| self.recurs()) else { return false };
        let component = self.0.component_by_id(time.component);
        let moved = component.and_then(|one| one.property(&ICalendarProperty::RecurrenceId));
        // A time that was moved is taken out at its original place.
        let excluded = match moved.cloned() {
            Some(entry) => {
                self.0.remove_component_ids(&[time.component]);
                ICalendarEntry { name: ICalendarProperty::Exdate, ..entry }
            }
            None => {
                let start = component.and_then(|one| one.property(&ICalendarProperty::Dtstart));
                entry_like(ICalendarProperty::Exdate, start, time.zone, time.start)
            }
        };
        // A time zone in the file has rules as well.
        let is_series = |one: &&mut ICalendarComponent| {
            one.component_type == ICalendarComponentType::VEvent
                && (one.has_property(&ICalendarProperty::Rrule)
                    || one.has_property(&ICalendarProperty::Rdate))
        };
        let series = self.0.components.iter_mut().find(is_series);
        series.map(|series| series.entries.push(excluded)).is_some()
    }
}

/// An id for a new event. It is the same for the same call.
pub(crate) fn new_id(call: &str, session: &str, at: DateTime<Utc>) -> String {
    let word = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    format!("{}-{}-{}", at.format("%Y%m%dT%H%M%S"), word(session), word(call))
}

fn is_day(component: &ICalendarComponent) -> bool {
    let start = component.property(&ICalendarProperty::Dtstart);
    let value = start.and_then(|entry| entry.values.first());
    matches!(value, Some(ICalendarValue::PartialDateTime(date)) if !date.has_time())
}

/// A time in the form of the event's start, since not every program compares others.
fn entry_like(
    name: ICalendarProperty,
    start: Option<&ICalendarEntry>,
    zone: Tz,
    moment: Moment,
) -> ICalendarEntry {
    let is_utc = |value: &ICalendarValue| match value {
        ICalendarValue::PartialDateTime(time) => time.has_zone(),
        _ => true,
    };
    match (start, moment) {
        (Some(start), Moment::Time(_)) if !start.values.iter().any(is_utc) => {
            let local = moment.local(zone).and_utc().timestamp();
            let values = vec![PartialDateTime::from_naive_timestamp(local).into()];
            ICalendarEntry { name, params: start.params.clone(), values }
        }
        (_, moment) => moment_entry(name, moment),
    }
}

fn text_of(component: &ICalendarComponent, name: &ICalendarProperty) -> Option<String> {
    let value = component.property(name)?.values.first()?;
    value.as_text().map(str::to_owned).filter(|text| !text.is_empty())
}

fn moment_entry(name: ICalendarProperty, moment: Moment) -> ICalendarEntry {
    match moment {
        Moment::Time(time) => ICalendarEntry::new(name)
            .with_value(PartialDateTime::from_utc_timestamp(time.timestamp())),
        Moment::Day(day) => {
            let midnight = day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
            ICalendarEntry::new(name)
                .with_param(ICalendarParameter::value(ICalendarValueType::Date))
                .with_value(PartialDateTime::from_date_timestamp(midnight))
        }
    }
}
