//! A calendar on a CalDAV server that wants a name, a password and bodies of a known length.

use serde_json::json;

use crate::support::{Home, Response, Server};

const LISTED: &str = r#"<multistatus xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><response>
<href>/ann/home/tea.ics</href><propstat><prop><C:calendar-data>BEGIN:VCALENDAR
BEGIN:VEVENT
UID:tea
DTSTART:20261123T090000Z
DURATION:PT30M
RRULE:FREQ=DAILY;COUNT=10
SUMMARY:Tea
END:VEVENT
END:VCALENDAR</C:calendar-data></prop></propstat></response></multistatus>"#;

/// A server that is as strict as small ones are.
fn server() -> Server {
    Server::start(|request| {
        let length = request.header("content-length").map(str::parse);
        match (request.method.as_str(), request.header("authorization")) {
            (_, None | Some("Basic d3Jvbmc=")) => Response::with(401, &[], ""),
            ("REPORT" | "PUT", _) if length != Some(Ok(request.body.len())) => {
                Response::with(411, &[], "")
            }
            ("REPORT", _) => Response::with(207, &[("content-type", "application/xml")], LISTED),
            ("PUT", _) => Response::with(201, &[], ""),
            _ => Response::with(404, &[], ""),
        }
    })
}

fn home(server: &Server, login: &str) -> Home {
    let url = server.url();
    let entry = |what: &str| format!("{{ allow = \"{what}\", to-private = true }}");
    let net = [
        entry(&format!("REPORT {url}/ann/home/")),
        entry(&format!("GET,PUT,DELETE {url}/ann/home/*")),
    ];
    Home::new()
        .plugins(&["calendar"])
        .config(format!(
            "[settings.calendar]\ncalendar_url = \"{url}/ann/home/\"\ntime_zone = \"Europe/Berlin\"\n"
        ))
        .policy(format!(
            "[secret.calendar]\nenv = \"LOGIN\"\n[plugin.calendar]\nnet = [{}]\n\
             secrets = [{{ name = \"calendar\", to = \"{url}\", header = \"Authorization\", \
             format = \"Basic {{}}\" }}]\n[[rule]]\ntool = \"calendar.*\"\ndecision = \"allow\"\n",
            net.join(", ")
        ))
        .env("LOGIN", login)
}

/// The server refused each body, because the length of none was announced.
#[test]
fn events_are_listed_and_added_with_bodies_of_a_known_length() {
    let server = server();
    let home = home(&server, "YW5uOnNlY3JldA==");
    let (report, code) =
        home.call("calendar.list_events", &json!({ "from": "2026-11-26", "to": "2026-11-27" }));
    assert_eq!(code, 0, "{report}");
    let starts: Vec<&str> = report["result"]["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["start"].as_str().unwrap())
        .collect();
    assert_eq!(starts, ["2026-11-26T10:00:00+01:00", "2026-11-27T10:00:00+01:00"]);
    let new = json!({ "title": "Lunch", "start": "2026-11-26T12:00" });
    let (report, code) = home.call("calendar.add_event", &new);
    assert_eq!(code, 0, "{report}");
    let put = server.seen().pop().unwrap();
    assert!(put.body.contains("DTSTART:20261126T110000Z\r\n"), "{}", put.body);
    assert!(!report.to_string().contains("YW5u"), "{report}");
}

#[test]
fn a_refused_password_and_a_missing_address_say_what_to_do() {
    let server = server();
    let (report, code) = home(&server, "d3Jvbmc=").call("calendar.list_today", &json!({}));
    assert_eq!(code, 7, "{report}");
    assert!(report.to_string().contains("check the secret calendar"), "{report}");
    let unset = Home::new().plugins(&["calendar"]);
    unset.run(&["plugin", "list"]).ended(0).answers(&["disabled", "calendar_url"]);
}
