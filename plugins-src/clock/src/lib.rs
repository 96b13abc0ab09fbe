//! A tool that returns the time anywhere in the world.

mod cities;
mod regions;
mod zones;

use jiff::{Timestamp, Zoned};
use sallyport_sdk::{log, prelude::*};

use zones::Zone;

/// Where to tell the time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetTime {
    /// An IANA time zone such as "Europe/Paris", a big city such as "Tokyo", a country with one
    /// time, or an offset such as "UTC+2". The user's own zone, else UTC, when absent.
    timezone: Option<String>,
}

/// A moment as the clocks of one zone show it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct TimeReport {
    /// Date and time (RFC 3339).
    time: String,
    /// The time zone.
    timezone: String,
    /// The day of the week.
    weekday: String,
    /// The distance from UTC, such as "+09:00".
    utc_offset: String,
}

/// Tells the current time and date in any time zone, city or country of the world.
#[tool(read_only, idempotent = false, open_world = false)]
fn get_time(args: GetTime) -> Result<Output<TimeReport>, ToolError> {
    let now = Timestamp::now();
    let zone = match args.timezone.as_deref().map(str::trim) {
        None | Some("") => own_zone(std::env::var("TZ").ok().as_deref()),
        Some(place) => zones::find(place, now)?,
    };
    Ok(report(now, zone))
}

/// Returns the zone in `TZ`, which is set if the policy grants it. An invalid value is logged for
/// the operator; the model receives UTC.
fn own_zone(tz: Option<&str>) -> Zone {
    let Some(name) = tz else { return Zone::utc() };
    zones::exact(name.trim_start_matches(':')).map(Zone::own).unwrap_or_else(|| {
        log::warn("TZ holds no known time zone; telling UTC");
        Zone::utc()
    })
}

fn report(now: Timestamp, zone: Zone) -> Output<TimeReport> {
    let time: Zoned = now.to_zoned(zone.rules);
    let text = |format: &str| time.strftime(format).to_string();
    let speech = format!("It is {}{}.", text("%H:%M on %A, %-d %B %Y"), zone.spoken);
    Output::new(TimeReport {
        time: text("%Y-%m-%dT%H:%M:%S%:z"),
        timezone: zone.name,
        weekday: text("%A"),
        utc_offset: text("%:z"),
    })
    .speech(speech)
}

sallyport_sdk::export_plugin!(tools = [get_time]);

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-22T01:15:30Z".parse().unwrap()
    }

    #[track_caller]
    fn check(place: &str, time: &str, speech: &str) {
        let output = report(now(), zones::find(place, now()).unwrap());
        assert_eq!((output.data.time.as_str(), output.speech.as_deref()), (time, Some(speech)));
    }

    #[test]
    fn the_time_is_told_where_it_was_asked_for() {
        check(
            "Asia/Tokyo",
            "2026-11-22T10:15:30+09:00",
            "It is 10:15 on Sunday, 22 November 2026 in Tokyo.",
        );
        check(
            "new york",
            "2026-11-21T20:15:30-05:00",
            "It is 20:15 on Saturday, 21 November 2026 in New York.",
        );
        check(
            "mumbai",
            "2026-11-22T06:45:30+05:30",
            "It is 06:45 on Sunday, 22 November 2026 in Mumbai.",
        );
        check("utc", "2026-11-22T01:15:30+00:00", "It is 01:15 on Sunday, 22 November 2026 UTC.");
        check(
            "UTC-3:30",
            "2026-11-21T21:45:30-03:30",
            "It is 21:45 on Saturday, 21 November 2026 at UTC-03:30.",
        );
    }

    #[test]
    fn the_own_zone_is_tz_or_utc() {
        for (tz, name, spoken) in [
            (None, "UTC", " UTC"),
            (Some("Europe/Berlin"), "Europe/Berlin", ""),
            (Some(":europe/berlin"), "Europe/Berlin", ""),
            (Some("../../etc/passwd"), "UTC", " UTC"),
            (Some(""), "UTC", " UTC"),
        ] {
            let zone = own_zone(tz);
            assert_eq!((zone.name.as_str(), zone.spoken.as_str()), (name, spoken), "{tz:?}");
        }
        assert_eq!(testing::logged().len(), 2);
    }

    #[test]
    fn arguments_are_read_with_care() {
        assert!(testing::call::<get_time>(json!({ "timezone": "Paris" })).is_ok());
        assert!(testing::call::<get_time>(json!({ "timezone": null })).is_ok());
        for arguments in [json!({ "timezone": 5 }), json!({ "zone": "Paris" })] {
            let error = testing::call::<get_time>(arguments).unwrap_err();
            assert_eq!(error.kind(), "invalid-arguments");
        }
    }

    #[test]
    fn the_tool_describes_itself() {
        let spec = get_time::spec();
        assert_eq!(spec.name, "get_time");
        assert_eq!(spec.parameters["properties"]["timezone"]["type"], json!(["string", "null"]));
        assert_eq!(spec.parameters.get("required"), None);
        assert_eq!(spec.output.unwrap()["required"].as_array().unwrap().len(), 4);
    }
}
