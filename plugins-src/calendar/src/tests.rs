//! A server that keeps files, and the events in them.

use std::sync::{Arc, Mutex};

use sallyport_sdk::{
    http::{Method, Request, Response},
    testing,
};

use super::*;

const BASE: &str = "https://cal.example/ann/home";

/// Each Monday at ten in Berlin, from October, over the change of the clocks; one time is moved, and
/// one left out.
const WEEKLY: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\nBEGIN:VTIMEZONE\r\n\
    TZID:Europe/Berlin\r\nBEGIN:STANDARD\r\nDTSTART:20001029T030000\r\n\
    RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n\
    END:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:20000326T020000\r\n\
    RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n\
    END:DAYLIGHT\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\nUID:w\r\n\
    DTSTAMP:20261001T000000Z\r\nDTSTART;TZID=Europe/Berlin:20261019T100000\r\n\
    DTEND;TZID=Europe/Berlin:20261019T110000\r\nRRULE:FREQ=WEEKLY;COUNT=5\r\n\
    EXDATE;TZID=Europe/Berlin:20261102T100000\r\nSUMMARY:Stand-up\\, weekly\r\nEND:VEVENT\r\n\
    BEGIN:VEVENT\r\nUID:w\r\nDTSTAMP:20261001T000000Z\r\n\
    RECURRENCE-ID;TZID=Europe/Berlin:20261109T100000\r\n\
    DTSTART;TZID=Europe/Berlin:20261110T140000\r\nDTEND;TZID=Europe/Berlin:20261110T150000\r\n\
    SUMMARY:Stand-up\\, moved\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

type Files = Arc<Mutex<Vec<(String, String)>>>;

/// A server with these files. It gives each file its length as its version.
fn server(files: &[(&str, &str)]) -> Files {
    testing::settings(json!({ "calendar_url": BASE, "time_zone": "Europe/Berlin" }));
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let files: Files = Arc::new(Mutex::new(files.iter().map(owned).collect()));
    let kept = Arc::clone(&files);
    testing::http(move |request| Ok(answer(&mut kept.lock().unwrap(), request)));
    files
}

fn answer(files: &mut Vec<(String, String)>, request: &Request) -> Response {
    let name = request.url.strip_prefix(BASE).unwrap().trim_start_matches('/').to_owned();
    let header = |wanted: &str| {
        let found = request.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone())
    };
    let place = files.iter().position(|(own, _)| *own == name);
    let etag = |text: &str| format!("\"{}\"", text.len());
    if let (Some(place), Some(wanted)) = (place, header("If-Match"))
        && wanted != etag(&files[place].1)
    {
        return Response::new(412, "");
    }
    match (request.method, place) {
        (Method::Report, _) => {
            assert_eq!(header("Depth").as_deref(), Some("1"));
            let body = str::from_utf8(&request.body).unwrap();
            assert!(body.contains("<C:time-range start=\"20"), "{body}");
            let file = |(name, text): &(String, String)| {
                let text = text.replace('&', "&amp;").replace('<', "&lt;");
                format!(
                    "<d:response><d:href>/ann/home/{name}</d:href><d:propstat><d:prop>\
                     <c:calendar-data>{text}</c:calendar-data></d:prop></d:propstat></d:response>"
                )
            };
            let files: String = files.iter().map(file).collect();
            let names = "xmlns:d=\"DAV:\" xmlns:c=\"urn:ietf:params:xml:ns:caldav\"";
            Response::new(207, format!("<d:multistatus {names}>{files}</d:multistatus>"))
        }
        (Method::Get, Some(place)) => {
            let text = files[place].1.clone();
            Response::new(200, text.clone()).header("ETag", etag(&text))
        }
        (Method::Put, place) => {
            let text = String::from_utf8(request.body.clone()).unwrap();
            match place {
                Some(_) if header("If-None-Match").is_some() => return Response::new(412, ""),
                Some(place) => files[place].1 = text,
                None => files.push((name, text)),
            }
            Response::new(201, "")
        }
        (Method::Delete, Some(place)) => {
            files.remove(place);
            Response::new(204, "")
        }
        _ => Response::new(404, ""),
    }
}

fn list(from: &str, to: &str) -> Value {
    testing::call::<list_events>(json!({ "from": from, "to": to })).unwrap().data
}

/// The starts of the listed events.
fn starts(from: &str, to: &str) -> Vec<String> {
    let listed = list(from, to);
    let events = listed["events"].as_array().unwrap().clone();
    events.iter().map(|event| event["start"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_event_that_recurs_is_listed_at_each_of_its_times() {
    server(&[("w.ics", WEEKLY), ("broken.ics", "nothing")]);
    assert_eq!(
        starts("2026-10-01", "2026-12-01"),
        [
            "2026-10-19T10:00:00+02:00",
            "2026-10-26T10:00:00+01:00",
            "2026-11-10T14:00:00+01:00",
            "2026-11-16T10:00:00+01:00",
        ]
    );
    let listed = list("2026-11-10", "2026-11-10");
    assert_eq!(listed["unreadable"], 1);
    let event = &listed["events"][0];
    let want = json!({
        "id": "w.ics", "title": "Stand-up, moved", "start": "2026-11-10T14:00:00+01:00",
        "end": "2026-11-10T15:00:00+01:00", "all_day": false, "recurs": true,
    });
    assert_eq!(*event, want);
    assert_eq!(starts("2026-11-10T15:00", "2026-11-10T16:00"), [""; 0]);
}

/// A series that began in UTC was an hour off, and one without a zone is in the user's.
#[test]
fn each_form_of_a_start_is_the_moment_that_it_means() {
    for (start, want) in [
        ("DTSTART:20261123T090000Z", "2026-11-26T10:00:00+01:00"),
        ("DTSTART:20261123T090000", "2026-11-26T09:00:00+01:00"),
        ("DTSTART;TZID=America/New_York:20261123T090000", "2026-11-26T15:00:00+01:00"),
        ("DTSTART;VALUE=DATE:20261123", "2026-11-26"),
    ] {
        let text = format!(
            "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:d\r\n{start}\r\nRRULE:FREQ=DAILY;COUNT=9\r\n\
             SUMMARY:Tea\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        );
        server(&[("d.ics", &text)]);
        assert_eq!(starts("2026-11-26", "2026-11-26"), [want], "{start}");
        let single = text.replace("RRULE:FREQ=DAILY;COUNT=9\r\n", "").replace("1123", "1126");
        server(&[("d.ics", &single)]);
        assert_eq!(starts("2026-11-26", "2026-11-26"), [want], "{start}, once");
    }
}

#[test]
fn one_time_is_taken_out_of_an_event_that_recurs() {
    let files = server(&[("w.ics", WEEKLY)]);
    let remove = |occurrence: Option<&str>| {
        testing::call::<remove_event>(json!({ "id": "w.ics", "occurrence": occurrence }))
    };
    remove(Some("2026-10-26T10:00")).unwrap();
    remove(Some("2026-11-10T14:00:00+01:00")).unwrap();
    assert_eq!(remove(Some("2026-10-26T10:00")).unwrap_err().kind(), "not-found");
    // Other programs compare the text, and a time zone of the file has rules of its own.
    let text = files.lock().unwrap()[0].1.clone();
    let (zone, event) = text.split_once("BEGIN:VEVENT").unwrap();
    assert!(
        event.contains("EXDATE;TZID=Europe/Berlin:20261026T100000") && !zone.contains("EXDATE")
    );
    let left = ["2026-10-19T10:00:00+02:00", "2026-11-16T10:00:00+01:00"];
    assert_eq!(starts("2026-10-01", "2026-12-01"), left);
    remove(None).unwrap();
    assert_eq!(starts("2026-10-01", "2026-12-01"), [""; 0]);
    assert_eq!(remove(None).unwrap_err().kind(), "not-found");
}

fn moves(id: &str, occurrence: &str, start: &str, rest: Value) -> Result<Value, ToolError> {
    let mut args = json!({ "id": id, "occurrence": occurrence, "start": start });
    args.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    testing::call::<move_event>(args).map(|output| output.data)
}

#[test]
fn one_time_of_a_series_is_moved_again_and_again() {
    let files = server(&[("w.ics", WEEKLY)]);
    let moved = moves("w.ics", "2026-10-26T10:00", "2026-10-27T11:30", json!({})).unwrap();
    assert_eq!(moved["end"], "2026-10-27T12:30:00+01:00", "it stays as long as it was");
    let text = files.lock().unwrap()[0].1.clone();
    let place = "RECURRENCE-ID;TZID=Europe/Berlin:20261026T100000";
    let start = "DTSTART;TZID=Europe/Berlin:20261027T113000";
    for line in [place, start] {
        assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
    }
    // The time that was moved already is moved once more, and has another length.
    let end = json!({ "end": "2026-11-11T09:15" });
    moves("w.ics", "2026-11-10T14:00", "2026-11-11T09:00", end).unwrap();
    let all = [
        "2026-10-19T10:00:00+02:00",
        "2026-10-27T11:30:00+01:00",
        "2026-11-11T09:00:00+01:00",
        "2026-11-16T10:00:00+01:00",
    ];
    assert_eq!(starts("2026-10-01", "2026-12-01"), all);
    let listed = list("2026-11-11", "2026-11-11");
    assert_eq!(listed["events"][0]["end"], "2026-11-11T09:15:00+01:00");
    assert_eq!(files.lock().unwrap()[0].1.matches("BEGIN:VEVENT").count(), 3);
    // A time that was moved can be taken out, at the place where it is now.
    let gone = json!({ "id": "w.ics", "occurrence": "2026-10-27T11:30" });
    testing::call::<remove_event>(gone).unwrap();
    assert_eq!(starts("2026-10-01", "2026-12-01"), [all[0], all[2], all[3]]);
}

#[test]
fn all_times_of_a_series_move_on_the_clock() {
    let all = json!({ "all_times": true });
    server(&[("w.ics", WEEKLY)]);
    moves("w.ics", "2026-10-26T10:00", "2026-10-26T11:00", all.clone()).unwrap();
    let later = [
        "2026-10-19T11:00:00+02:00",
        "2026-10-26T11:00:00+01:00",
        // This one was moved by itself, and stays.
        "2026-11-10T14:00:00+01:00",
        "2026-11-16T11:00:00+01:00",
    ];
    assert_eq!(starts("2026-10-01", "2026-12-01"), later);
    // To another day of the week, and shorter.
    let shorter = json!({ "all_times": true, "end": "2026-10-28T09:45" });
    moves("w.ics", "2026-10-26T11:00", "2026-10-28T09:00", shorter).unwrap();
    let wednesdays = [
        "2026-10-21T09:00:00+02:00",
        "2026-10-28T09:00:00+01:00",
        "2026-11-10T14:00:00+01:00",
        "2026-11-18T09:00:00+01:00",
    ];
    assert_eq!(starts("2026-10-01", "2026-12-01"), wednesdays);
    let listed = list("2026-11-18", "2026-11-18");
    assert_eq!(listed["events"][0]["end"], "2026-11-18T09:45:00+01:00");
    let moved = moves("w.ics", "2026-11-10T14:00", "2026-11-10T15:00", all).unwrap_err();
    assert!(moved.message().contains("moved by itself"), "{moved}");
}

/// A series with this start and rule.
fn series(start: &str, rule: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\nBEGIN:VEVENT\r\nUID:s\r\n\
         DTSTAMP:20261001T000000Z\r\n{start}\r\n{rule}\r\nSUMMARY:S\r\n\
         BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT10M\r\nEND:VALARM\r\n\
         END:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

#[test]
fn each_form_of_a_series_is_moved_as_it_is_meant() {
    // The start, the rule, the time by which it is moved and its new start, and all starts then.
    for (start, rule, from, to, want) in [
        (
            "DTSTART:20261123T090000Z",
            "RRULE:FREQ=DAILY;UNTIL=20261125T090000Z",
            "2026-11-24T10:00",
            "2026-11-24T12:00",
            "2026-11-23T12:00:00+01:00 2026-11-24T12:00:00+01:00 2026-11-25T12:00:00+01:00",
        ),
        (
            "DTSTART:20261123T090000",
            "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2",
            "2026-11-30T09:00",
            "2026-12-01T09:30",
            "2026-11-24T09:30:00+01:00 2026-12-01T09:30:00+01:00",
        ),
        (
            "DTSTART;VALUE=DATE:20261123",
            "RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20261130",
            "2026-11-23",
            "2026-11-22",
            "2026-11-22 2026-11-29",
        ),
        (
            "DTSTART;TZID=America/New_York:20261123T200000",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE;COUNT=2",
            "2026-11-24T02:00",
            "2026-11-24T03:00",
            "2026-11-24T03:00:00+01:00 2026-11-26T03:00:00+01:00",
        ),
    ] {
        let files = server(&[("s.ics", &series(start, rule))]);
        moves("s.ics", from, to, json!({ "all_times": true })).unwrap();
        assert_eq!(starts("2026-11-01", "2026-12-31").join(" "), want, "{start} {rule}");
        let text = files.lock().unwrap()[0].1.clone();
        assert_eq!(text.matches("BEGIN:VALARM").count(), 1, "{text}");
        // A single time too, which keeps its alarm.
        let first = want.split(' ').next().unwrap();
        let to = if first.len() > 10 { "2026-12-20T10:00" } else { "2026-12-20" };
        moves("s.ics", first, to, json!({})).unwrap();
        let listed = starts("2026-11-01", "2026-12-31");
        assert!(
            listed.len() == want.split(' ').count() && !listed.contains(&first.to_owned()),
            "{listed:?}"
        );
        assert!(listed.last().unwrap().starts_with(to), "{listed:?}");
        let text = files.lock().unwrap()[0].1.clone();
        assert_eq!(text.matches("BEGIN:VALARM").count(), 2, "{text}");
    }
}

#[test]
fn a_move_that_a_series_cannot_make_is_refused_and_changes_nothing() {
    let start = "DTSTART;TZID=Europe/Berlin:20261123T100000";
    for (rule, occurrence, to, all_times, want) in [
        ("RRULE:FREQ=DAILY", None, "2026-11-24T11:00", true, "name the time to move as occurrence"),
        (
            "RRULE:FREQ=DAILY",
            Some("2026-11-24T10:01"),
            "2026-11-24T11:00",
            false,
            "does not recur at 2026-11-24T10:01",
        ),
        (
            "RRULE:FREQ=DAILY",
            Some("2026-11-24T10:00"),
            "2026-11-24",
            false,
            "with times or for whole days",
        ),
        (
            "RRULE:FREQ=WEEKLY;BYDAY=MO,WE",
            Some("2026-11-25T10:00"),
            "2026-11-26T10:00",
            true,
            "fixes its days",
        ),
        (
            "RRULE:FREQ=MONTHLY;BYMONTHDAY=23",
            Some("2026-11-23T10:00"),
            "2026-11-24T10:00",
            true,
            "fixes its days",
        ),
        (
            "RRULE:FREQ=DAILY;BYHOUR=10",
            Some("2026-11-24T10:00"),
            "2026-11-24T11:00",
            true,
            "fixes its days or times",
        ),
        ("LOCATION:x", Some("2026-11-23T10:00"), "2026-11-24T11:00", false, "does not recur"),
    ] {
        let text = series(start, rule);
        let files = server(&[("s.ics", &text)]);
        let args =
            json!({ "id": "s.ics", "occurrence": occurrence, "start": to, "all_times": all_times });
        let error = testing::call::<move_event>(args).unwrap_err();
        assert!(error.message().contains(want), "{rule}: {error}");
        assert_eq!(files.lock().unwrap()[0].1, text);
    }
}

#[test]
fn an_event_is_added_moved_and_removed() {
    let files = server(&[]);
    let add = |start: &str, end: Option<&str>| {
        let added = testing::call::<add_event>(json!({
            "title": "Tea; with Ann, \"soon\"", "start": start, "end": end,
            "location": "Köln\nHbf",
        }));
        added.map(|output| output.data["id"].as_str().unwrap().to_owned())
    };
    let id = add("2026-11-26T14:00", None).unwrap();
    let event = list("2026-11-26", "2026-11-26")["events"][0].clone();
    assert_eq!(
        (&event["title"], &event["location"], &event["end"]),
        (
            &json!("Tea; with Ann, \"soon\""),
            &json!("Köln\nHbf"),
            &json!("2026-11-26T15:00:00+01:00")
        )
    );
    testing::call::<move_event>(json!({ "id": id, "start": "2026-07-01T09:30" })).unwrap();
    let event = list("2026-07-01", "2026-07-01")["events"][0].clone();
    assert_eq!(
        (&event["start"], &event["end"]),
        (&json!("2026-07-01T09:30:00+02:00"), &json!("2026-07-01T10:30:00+02:00"),)
    );
    // Somebody else changes the event between reading and writing.
    let text = files.lock().unwrap()[0].1.clone();
    assert!(text.lines().all(|line| line.len() <= 75), "{text}");
    testing::call::<remove_event>(json!({ "id": id })).unwrap();
    assert!(files.lock().unwrap().is_empty());
    let day = add("2026-12-24", Some("2026-12-26")).unwrap();
    let event = list("2026-12-26", "2026-12-26")["events"][0].clone();
    assert_eq!(
        (&event["id"], &event["all_day"], &event["end"]),
        (&json!(day), &json!(true), &json!("2026-12-27"),)
    );
    assert_eq!(starts("2026-12-27", "2026-12-31"), [""; 0]);
}

#[test]
fn what_cannot_be_meant_is_refused_and_no_id_leads_out_of_the_calendar() {
    server(&[("w.ics", WEEKLY)]);
    for (from, to, want) in [
        ("2026-11-26", "2026-11-25", "the end is not after the start"),
        ("2026-01-01", "2028-01-01", "at most 366 days"),
        ("tomorrow", "2026-11-25", "is no day and no time"),
        ("2026-03-29T02:30", "2026-03-30", "the clocks of Europe/Berlin skip"),
    ] {
        let listed = testing::call::<list_events>(json!({ "from": from, "to": to }));
        assert!(listed.unwrap_err().message().contains(want), "{from} {to}");
    }
    for id in ["", "..", "../other/x.ics", "a/b.ics"] {
        let removed = testing::call::<remove_event>(json!({ "id": id }));
        assert_eq!(removed.unwrap_err().kind(), "invalid-arguments", "{id}");
    }
    let mixed = json!({ "title": "x", "start": "2026-11-26", "end": "2026-11-26T10:00" });
    let mixed = testing::call::<add_event>(mixed).unwrap_err();
    assert!(mixed.message().contains("both days or both times"), "{mixed}");
    testing::settings(json!({ "calendar_url": BASE, "time_zone": "Berlin" }));
    let error = testing::call::<list_today>(json!({})).unwrap_err();
    assert!(error.message().contains("which is no time zone"), "{error}");
}

#[test]
fn each_answer_of_the_server_says_what_to_do() {
    for (response, kind, want) in [
        (Response::new(401, ""), "auth-required", "check the secret calendar"),
        (Response::new(403, ""), "failed", "may be read-only"),
        (Response::new(404, ""), "not-found", "no such event or calendar"),
        (Response::new(412, ""), "failed", "changed meanwhile"),
        (Response::new(301, "").header("Location", "/new/"), "failed", "at /new/"),
        (Response::new(503, "<html>"), "unavailable", "status 503"),
        (Response::new(207, "<html><p>Sign in"), "failed", "no list of files"),
    ] {
        testing::settings(json!({ "calendar_url": BASE, "time_zone": "UTC" }));
        testing::http(move |_| Ok(response.clone()));
        let error = testing::call::<list_today>(json!({})).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(want), "{error}");
    }
}
