//! Reads and changes a calendar on a CalDAV server.
//!
//! The host adds name and password to each request, so the component never holds them.

mod caldav;
mod event;
mod multistatus;
mod when;

use sallyport_sdk::prelude::*;
use serde::Serialize;

use event::{CalendarFile, ListedEvent, NewEvent, OccurrenceMove};
use when::{Moment, TimeSpan, UserZone};

/// The events of a time.
#[derive(Debug, Serialize, JsonSchema)]
struct EventList {
    /// The events, the earliest first. One that recurs is listed once for each time.
    events: Vec<ListedEvent>,
    /// Entries of the calendar that could not be read.
    unreadable: usize,
}

/// Which events.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListEvents {
    /// The first day or moment: "2026-11-26" or "2026-11-26T14:00", in the user's time zone.
    from: String,
    /// The last day, or the moment of the end.
    to: String,
}

/// A new event.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddEvent {
    title: String,
    /// When it begins: "2026-11-26T14:00" in the user's time zone, or "2026-11-26" for a whole day.
    start: String,
    /// When it ends. An hour later, or the same day, if it is left out.
    end: Option<String>,
    location: Option<String>,
    description: Option<String>,
}

/// A new time for an event.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MoveEvent {
    /// The id of the event, from a list.
    id: String,
    /// When it begins now.
    start: String,
    /// When it ends now. It stays as long as it was if this is left out.
    end: Option<String>,
    /// For an event that recurs: the start of the time to move, as the list shows it.
    occurrence: Option<String>,
    /// For an event that recurs: whether all its times move as far as that one.
    #[serde(default)]
    all_times: bool,
}

/// Which event.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveEvent {
    /// The id of the event, from a list.
    id: String,
    /// For an event that recurs: the start of the one time to remove, as the list shows it. All
    /// times are removed if it is left out.
    occurrence: Option<String>,
}

/// Lists the events of today.
#[tool(read_only, idempotent = false, open_world)]
fn list_today() -> Result<EventList, ToolError> {
    let zone = UserZone::from_settings()?;
    list_span(&zone, zone.today())
}

/// Lists the events between two days or moments.
#[tool(read_only, idempotent = false, open_world)]
fn list_events(args: ListEvents) -> Result<EventList, ToolError> {
    let zone = UserZone::from_settings()?;
    let span = TimeSpan::between(&zone, &args.from, &args.to)?;
    list_span(&zone, span)
}

fn list_span(zone: &UserZone, span: TimeSpan) -> Result<EventList, ToolError> {
    let mut list = EventList { events: Vec::new(), unreadable: 0 };
    for found in caldav::find_files(&span)? {
        match CalendarFile::parse(&found.data) {
            Some(file) => file.list_events(&found.id, zone, &span, &mut list.events),
            None => list.unreadable += 1,
        }
    }
    list.events.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    Ok(list)
}

/// Adds an event.
#[tool(idempotent = false, open_world)]
fn add_event(args: AddEvent, call: &CallContext) -> Result<Value, ToolError> {
    let zone = UserZone::from_settings()?;
    if args.title.trim().is_empty() {
        return Err(ToolError::InvalidArguments("the title is empty".to_owned()));
    }
    let (start, end) = Moment::read_pair(&zone, &args.start, args.end.as_deref())?;
    // The call is unique, and so is its event; a repeated request finds that it exists.
    let id = event::new_id(&call.call_id, &call.session_id, when::now());
    let new = NewEvent {
        uid: &id,
        title: args.title.trim(),
        location: args.location.as_deref(),
        description: args.description.as_deref(),
    };
    let file = CalendarFile::with_event(&new, start, end);
    let id = format!("{id}.ics");
    caldav::create_file(&id, &file.to_text())?;
    Ok(json!({ "id": id, "start": start.text(&zone), "end": end.text(&zone) }))
}

/// Moves an event to another time. Of an event that recurs, it moves one time or all of them.
#[tool(open_world)]
fn move_event(args: MoveEvent) -> Result<Value, ToolError> {
    let zone = UserZone::from_settings()?;
    let found = caldav::read_file(&args.id)?;
    let mut file = CalendarFile::parse(&found.data).ok_or_else(unreadable)?;
    let start = Moment::read(&zone, &args.start)?;
    let end = match &args.end {
        Some(end) => Some(Moment::read_pair(&zone, &args.start, Some(end))?.1),
        None => None,
    };
    let (start, end) = match file.recurs() || args.occurrence.is_some() {
        true => move_recurring(&mut file, &zone, &args, start, end)?,
        false => {
            let length = file.length(&zone).ok_or_else(unreadable)?;
            let end = end.unwrap_or_else(|| start.later(length));
            file.set_time(start, end);
            (start, end)
        }
    };
    caldav::replace_file(&found, &file.to_text())?;
    Ok(json!({ "id": args.id, "start": start.text(&zone), "end": end.text(&zone) }))
}

fn move_recurring(
    file: &mut CalendarFile,
    zone: &UserZone,
    args: &MoveEvent,
    start: Moment,
    end: Option<Moment>,
) -> Result<(Moment, Moment), ToolError> {
    let from_text = args.occurrence.as_deref().ok_or_else(|| {
        let message = "this event recurs: name the time to move as occurrence, and set all_times \
                       to move all its times as far";
        ToolError::InvalidArguments(message.to_owned())
    })?;
    let from = Moment::read(zone, from_text)?;
    let to = OccurrenceMove { from, from_text, start, end };
    match args.all_times {
        true => file.move_series(zone, &to),
        false => file.move_occurrence(zone, &to),
    }
}

/// Removes an event, or one time of an event that recurs.
#[tool(destructive, open_world)]
fn remove_event(args: RemoveEvent) -> Result<Value, ToolError> {
    let found = caldav::read_file(&args.id)?;
    let Some(occurrence) = &args.occurrence else {
        caldav::remove_file(&found)?;
        return Ok(json!({ "removed": args.id }));
    };
    let zone = UserZone::from_settings()?;
    let moment = Moment::read(&zone, occurrence)?;
    let mut file = CalendarFile::parse(&found.data).ok_or_else(unreadable)?;
    if !file.exclude(&zone, moment) {
        let message = format!("the event does not recur at {occurrence}");
        return Err(ToolError::NotFound(message));
    }
    caldav::replace_file(&found, &file.to_text())?;
    Ok(json!({ "removed": args.id, "occurrence": moment.text(&zone) }))
}

/// The error about an entry that is no event, or a broken one.
fn unreadable() -> ToolError {
    ToolError::Failed("this entry of the calendar cannot be read".to_owned())
}

sallyport_sdk::export_plugin!(
    tools = [list_today, list_events, add_event, move_event, remove_event]
);

#[cfg(test)]
mod tests;
