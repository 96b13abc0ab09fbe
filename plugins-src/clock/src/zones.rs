//! Finds the time zone of a place.

use jiff::{
    Timestamp,
    tz::{self, Offset, TimeZone},
};
use sallyport_sdk::ToolError;

use crate::{cities::CITIES, regions::REGIONS};

/// Minimum similarity of a suggested name.
const LIKENESS_MIN: f64 = 0.7;

/// Maximum number of suggestions in an error.
const SUGGESTIONS_MAX: usize = 3;

/// Maximum length of an unknown name that is compared and repeated in an error, in characters.
/// Names of places are shorter.
const ECHO_CHARS_MAX: usize = 60;

/// The largest offset in use, that of Kiribati, in hours.
const OFFSET_HOURS_MAX: i32 = 14;

/// A time zone with its names.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Zone {
    /// The rules of its clocks.
    pub(crate) rules: TimeZone,
    /// Its IANA name, or `UTC+02:00`.
    pub(crate) name: String,
    /// The text that follows the time in a sentence: ` in Tokyo`, ` UTC`, or nothing for the user's
    /// own zone.
    pub(crate) spoken: String,
}

impl Zone {
    /// Returns UTC.
    pub(crate) fn utc() -> Self {
        Self { rules: TimeZone::UTC, name: "UTC".to_owned(), spoken: " UTC".to_owned() }
    }

    /// Returns a zone that is not named in a sentence.
    pub(crate) fn own(rules: TimeZone) -> Self {
        let name = rules.iana_name().unwrap_or("UTC").to_owned();
        Self { rules, name, spoken: String::new() }
    }

    fn at(offset: Offset) -> Self {
        let (sign, minutes) =
            (if offset.seconds() < 0 { '-' } else { '+' }, offset.seconds().abs() / 60);
        let name = format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        Self { rules: TimeZone::fixed(offset), spoken: format!(" at {name}"), name }
    }
}

/// Returns the zone with that IANA name, ignoring case.
pub(crate) fn exact(name: &str) -> Option<TimeZone> {
    tz::db().get(name).ok()
}

/// Finds the time zone of a place.
///
/// # Errors
///
/// The place is unknown, or has several times at `now`.
pub(crate) fn find(place: &str, now: Timestamp) -> Result<Zone, ToolError> {
    let place = place.trim();
    if ["utc", "gmt", "z"].iter().any(|utc| place.eq_ignore_ascii_case(utc)) {
        return Ok(Zone::utc());
    }
    if let Some(offset) = offset(place) {
        return Ok(Zone::at(offset));
    }
    if let Some(rules) = exact(&place.replace(' ', "_")) {
        let spoken = rules.iana_name().map(spoken).unwrap_or_default();
        return Ok(Zone { spoken, ..Zone::own(rules) });
    }
    let mut parts = place.split(',').map(str::trim);
    let city = parts.next().unwrap_or_default();
    let mut candidates = candidates(&fold(city));
    if candidates.is_empty() {
        return Err(unknown(city));
    }
    for region in parts.filter(|region| !region.is_empty()) {
        candidates = keep_in_region(city, candidates, region)?;
    }
    choose(place, candidates, now)
}

/// A zone's name, and the place that it was found by.
#[derive(Debug)]
struct Candidate {
    place: String,
    name: String,
}

impl Candidate {
    fn zone(self) -> Option<Zone> {
        Some(Zone { spoken: format!(" in {}", self.place), ..Zone::own(exact(&self.name)?) })
    }
}

fn candidates(wanted: &str) -> Vec<Candidate> {
    let listed = CITIES.iter().find(|(names, _)| names.iter().any(|name| fold(name) == wanted));
    if let Some((names, zones)) = listed {
        let place = names.iter().find(|name| fold(name) == wanted).copied().unwrap_or_default();
        let candidate =
            |zone: &&str| Candidate { place: place.to_owned(), name: (*zone).to_owned() };
        return zones.iter().map(candidate).collect();
    }
    zone_names()
        .filter(|name| fold(&city_of(name)) == wanted)
        .map(|name| Candidate { place: city_of(&name), name })
        .collect()
}

/// Keeps the candidates that are in the region after the comma. Without this check the time of
/// Melbourne in Australia would be the answer for "Melbourne, Florida".
fn keep_in_region(
    city: &str,
    candidates: Vec<Candidate>,
    region: &str,
) -> Result<Vec<Candidate>, ToolError> {
    let wanted = fold(region);
    let region_zones = zones_of_region(&wanted);
    let (inside, outside): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| is_in_region(&candidate.name, &wanted, &region_zones));
    if inside.is_empty() { Err(elsewhere(city, outside, region, region_zones)) } else { Ok(inside) }
}

fn zones_of_region(wanted: &str) -> Vec<String> {
    let listed = REGIONS.iter().filter(|(names, _)| names.iter().any(|name| fold(name) == wanted));
    let listed = listed.flat_map(|(_, zones)| zones.iter().map(|zone| (*zone).to_owned()));
    let mut zones: Vec<_> =
        candidates(wanted).into_iter().map(|candidate| candidate.name).collect();
    zones.extend(listed);
    zones
}

/// A zone is also in the areas of its own name, such as `America` and `Argentina`.
fn is_in_region(zone: &str, wanted: &str, region_zones: &[String]) -> bool {
    let areas = zone.rsplit_once('/').map_or("", |(areas, _)| areas);
    areas.split('/').any(|area| !area.is_empty() && fold(area) == wanted)
        || region_zones
            .iter()
            .any(|of| zone == of || (of.ends_with('/') && zone.starts_with(of.as_str())))
}

fn elsewhere(
    city: &str,
    known: Vec<Candidate>,
    region: &str,
    mut region_zones: Vec<String>,
) -> ToolError {
    let known: Vec<_> = known.into_iter().map(|candidate| candidate.name).collect();
    let (known, region) = (known.join(" or "), echo(region));
    region_zones.retain(|zone| !zone.ends_with('/'));
    region_zones.truncate(SUGGESTIONS_MAX);
    let other = match region_zones.join(" or ") {
        none if none.is_empty() => "the IANA time zone of another place".to_owned(),
        zones => format!("{zones} for {region:?}"),
    };
    ToolError::NotFound(format!(
        "{:?} is known as {known}, but not as a place in {region:?}; use {known}, or {other}",
        echo(city)
    ))
}

/// Chooses a zone. If all candidates have the same time, the one with the longest path is used:
/// `America/Buenos_Aires` is the old name of `America/Argentina/Buenos_Aires`.
fn choose(place: &str, candidates: Vec<Candidate>, now: Timestamp) -> Result<Zone, ToolError> {
    let mut zones: Vec<_> = candidates.into_iter().filter_map(Candidate::zone).collect();
    zones.sort_by_key(|zone| (zone.name.matches('/').count(), zone.name.clone()));
    let Some(last) = zones.pop() else { return Err(unknown(place)) };
    let time = |zone: &Zone| zone.rules.to_offset(now);
    if zones.iter().all(|zone| time(zone) == time(&last)) {
        return Ok(last);
    }
    zones.push(last);
    let names: Vec<_> = zones.into_iter().map(|zone| zone.name).collect();
    Err(ToolError::InvalidArguments(format!(
        "{:?} has several times; ask for one of {}",
        echo(place),
        names.join(", ")
    )))
}

fn unknown(place: &str) -> ToolError {
    let wanted = fold(&echo(place));
    let listed = CITIES.iter().flat_map(|(names, _)| names.iter().map(|name| (*name).to_owned()));
    let known = listed.chain(zone_names().map(|name| city_of(&name)));
    let mut alike: Vec<(f64, String)> = known
        .map(|name| (strsim::normalized_damerau_levenshtein(&wanted, &fold(&name)), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    alike.dedup_by(|a, b| a.1 == b.1);
    let names: Vec<_> = alike.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name).collect();
    let hint = if names.is_empty() {
        "use an IANA time zone such as Europe/Paris".to_owned()
    } else {
        format!("did you mean {}?", names.join(" or "))
    };
    ToolError::NotFound(format!("no time zone and no big city is called {:?}; {hint}", echo(place)))
}

/// Excludes zones such as `Etc/GMT+5`, which is five hours *behind* UTC. Users who write "GMT+5"
/// mean the opposite.
fn zone_names() -> impl Iterator<Item = String> {
    tz::db().available().map(|name| name.to_string()).filter(|name| !name.starts_with("Etc/"))
}

/// Returns how a zone is named in a sentence. `Asia/Tokyo` and `Japan` are places, `EST` and
/// `US/Pacific` are not.
fn spoken(zone: &str) -> String {
    match zone.split_once('/') {
        Some(("Brazil" | "Canada" | "Chile" | "Etc" | "Mexico" | "US", _)) => format!(" ({zone})"),
        None if !zone.contains(|c: char| c.is_ascii_lowercase()) => format!(" {zone}"),
        _ => format!(" in {}", city_of(zone)),
    }
}

fn city_of(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).replace('_', " ")
}

/// Normalizes a name: ignores case, accents, `_` for a space, and words around the place, such as
/// in "Berlin time".
fn fold(text: &str) -> String {
    let plain: String = text.to_lowercase().chars().map(without_accent).collect();
    let words: Vec<_> =
        plain.split([' ', '_', '.', '\t']).filter(|word| !word.is_empty()).collect();
    let words = match words.as_slice() {
        ["time", "in", rest @ ..] | ["the", rest @ ..] => rest,
        [rest @ .., "standard" | "local", "time"] if !rest.is_empty() => rest,
        [rest @ .., "time"] if !rest.is_empty() => rest,
        all => all,
    };
    words.join(" ")
}

fn without_accent(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ğ' => 'g',
        'ì'..='ï' | 'ī' | 'ı' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ř' => 'r',
        'ś' | 'š' | 'ş' | 'ș' => 's',
        'ť' | 'ț' | 'ţ' => 't',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        '-' | '’' | '\'' => ' ',
        other => other,
    }
}

/// Parses `UTC+2`, `gmt -3:30`, `+0530`. Offsets count eastwards: `UTC+2` is ahead of UTC.
fn offset(place: &str) -> Option<Offset> {
    let text = place.to_ascii_lowercase().replace('−', "-");
    let text = text.strip_prefix("utc").or(text.strip_prefix("gmt")).unwrap_or(&text).trim_start();
    let (sign, digits) = match text.strip_prefix('+') {
        Some(digits) => (1, digits),
        None => (-1, text.strip_prefix('-')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| text.parse::<u8>().ok().map(i32::from);
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let fits = hours <= OFFSET_HOURS_MAX && minutes < 60;
    fits.then(|| Offset::from_seconds(sign * (hours * 60 + minutes) * 60).ok())?
}

fn echo(place: &str) -> String {
    place.chars().take(ECHO_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-07-01T12:00:00Z".parse().unwrap()
    }

    #[track_caller]
    fn check(place: &str, name: &str, spoken: &str) {
        let zone = find(place, now()).unwrap();
        assert_eq!((zone.name.as_str(), zone.spoken.as_str()), (name, spoken), "{place:?}");
    }

    #[track_caller]
    fn check_error(place: &str, kind: &str, wants: &[&str]) {
        let error = find(place, now()).unwrap_err();
        assert_eq!(error.kind(), kind, "{place:?}");
        for want in wants {
            assert!(error.message().contains(want), "{place:?}: {error} lacks {want:?}");
        }
    }

    #[test]
    fn iana_names_are_found_as_they_are_written_or_nearly() {
        check("Europe/Paris", "Europe/Paris", " in Paris");
        check("europe/paris", "Europe/Paris", " in Paris");
        check("America/New York", "America/New_York", " in New York");
        check("America/Argentina/Ushuaia", "America/Argentina/Ushuaia", " in Ushuaia");
        check("America/Port-au-Prince", "America/Port-au-Prince", " in Port-au-Prince");
        check("Japan", "Japan", " in Japan");
        check("EST", "EST", " EST");
        check("US/Pacific", "US/Pacific", " (US/Pacific)");
        check("Etc/GMT+5", "Etc/GMT+5", " (Etc/GMT+5)");
    }

    #[test]
    fn cities_and_countries_are_found() {
        check("Tokyo", "Asia/Tokyo", " in Tokyo");
        check("  new_york ", "America/New_York", " in New York");
        check("NEW YORK CITY", "America/New_York", " in New York City");
        check("São Paulo", "America/Sao_Paulo", " in Sao Paulo");
        check("sao paulo", "America/Sao_Paulo", " in Sao Paulo");
        check("Port au Prince", "America/Port-au-Prince", " in Port-au-Prince");
        check("Kolkata", "Asia/Kolkata", " in Kolkata");
        check("Mumbai", "Asia/Kolkata", " in Mumbai");
        check("Zürich", "Europe/Zurich", " in Zurich");
        check("Köln", "Europe/Berlin", " in Köln");
        check("Berlin time", "Europe/Berlin", " in Berlin");
        check("time in Berlin", "Europe/Berlin", " in Berlin");
        check("france", "Europe/Paris", " in France");
        check("UK", "Europe/London", " in the UK");
        check("San Francisco", "America/Los_Angeles", " in San Francisco");
    }

    #[test]
    fn what_follows_a_comma_fits_the_place() {
        check("Paris, France", "Europe/Paris", " in Paris");
        check("Paris, Europe", "Europe/Paris", " in Paris");
        check("Paris,", "Europe/Paris", " in Paris");
        check("time in Paris, France", "Europe/Paris", " in Paris");
        check("Tokyo, Japan", "Asia/Tokyo", " in Tokyo");
        check("Tokyo, Japan time", "Asia/Tokyo", " in Tokyo");
        check("Kyiv, Ukraine", "Europe/Kyiv", " in Kyiv");
        check("Kiev, Ukraine", "Europe/Kiev", " in Kiev");
        check("Kampala, Uganda", "Africa/Kampala", " in Kampala");
        check("Singapore, Singapore", "Asia/Singapore", " in Singapore");
        check("Mexico City, Mexico", "America/Mexico_City", " in Mexico City");
        check("Buenos Aires, Argentina", "America/Argentina/Buenos_Aires", " in Buenos Aires");
        check("Melbourne, Australia", "Australia/Melbourne", " in Melbourne");
        check("Melbourne, Victoria", "Australia/Melbourne", " in Melbourne");
        check("Washington, D.C.", "America/New_York", " in Washington");
        check("Seattle, Washington", "America/Los_Angeles", " in Seattle");
        check("Boston, MA, USA", "America/New_York", " in Boston");
        check("Atlanta, Georgia", "America/New_York", " in Atlanta");
        check("Indianapolis, U.S.", "America/Indiana/Indianapolis", " in Indianapolis");
        check("Portland, Oregon", "America/Los_Angeles", " in Portland");
        check("Portland, Maine", "America/New_York", " in Portland");
        check("Birmingham, England", "Europe/London", " in Birmingham");
        check("Birmingham, USA", "America/Chicago", " in Birmingham");
        check_error("Portland, USA", "invalid-arguments", &["several times"]);
    }

    #[test]
    fn a_place_of_the_same_name_in_another_region_is_not_taken_for_it() {
        for (place, known) in [
            ("Melbourne, Florida", "Australia/Melbourne"),
            ("Melbourne, FL", "Australia/Melbourne"),
            ("Melbourne, Florida, Australia", "Australia/Melbourne"),
            ("San Jose, Costa Rica", "America/Los_Angeles"),
            ("Tokyo, Nonsense", "Asia/Tokyo"),
            ("Tokyo, Osaka, Nonsense", "Asia/Tokyo"),
            ("Paris, Texas", "Europe/Paris"),
            ("London, Ontario", "Europe/London"),
            ("Moscow, Idaho", "Europe/Moscow"),
            ("Dublin, Ohio", "Europe/Dublin"),
            ("Rome, Georgia", "Europe/Rome"),
            ("Paris, America", "Europe/Paris"),
            ("St Petersburg, Florida", "Europe/Moscow"),
            ("Cordoba, Spain", "America/Argentina/Buenos_Aires"),
            ("Portland, Victoria", "America/Los_Angeles or America/New_York"),
        ] {
            let known = format!("known as {known}, but not as a place in");
            check_error(place, "not-found", &[&known]);
        }
        check_error(
            "San Jose, Costa Rica",
            "not-found",
            &["use America/Los_Angeles, or America/Costa_Rica for \"Costa Rica\""],
        );
        check_error("Tokyo, Nonsense", "not-found", &["or the IANA time zone of another place"]);
        check_error("Tokio, Japan", "not-found", &["did you mean Tokyo"]);
        assert!(
            find(&format!("Paris, {}", "é".repeat(10_000)), now()).unwrap_err().message().len()
                < 400
        );
    }

    #[test]
    fn two_names_of_one_time_are_no_question() {
        check("Buenos Aires", "America/Argentina/Buenos_Aires", " in Buenos Aires");
        check("Istanbul", "Europe/Istanbul", " in Istanbul");
        check("indianapolis", "America/Indiana/Indianapolis", " in Indianapolis");
    }

    #[test]
    fn offsets_are_counted_eastwards() {
        for (place, name) in [
            ("UTC+2", "UTC+02:00"),
            ("gmt+1", "UTC+01:00"),
            ("GMT -3:30", "UTC-03:30"),
            ("+0530", "UTC+05:30"),
            ("+05:45", "UTC+05:45"),
            ("−8", "UTC-08:00"),
            ("UTC+0", "UTC+00:00"),
        ] {
            check(place, name, &format!(" at {name}"));
        }
        for place in ["UTC+15", "UTC+2:60", "UTC+", "+-2", "UTC+99999999999", "+é1", "+1é"] {
            check_error(place, "not-found", &[]);
        }
    }

    #[test]
    fn what_is_unknown_is_not_found_with_suggestions() {
        check_error("Tokio", "not-found", &["\"Tokio\"", "did you mean Tokyo"]);
        check_error("Amsterdm", "not-found", &["Amsterdam"]);
        check_error("Londn", "not-found", &["London"]);
        check_error("Atlantis on the Moon", "not-found", &["such as Europe/Paris"]);
        check_error("\u{1b}[31m", "not-found", &["\\u{1b}"]);
        check_error("../../etc/passwd", "not-found", &[]);
        check_error(",", "not-found", &[]);
        check_error(&"x".repeat(10_000), "not-found", &[&"x".repeat(ECHO_CHARS_MAX)]);
        assert!(find(&"é".repeat(10_000), now()).unwrap_err().message().len() < 300);
    }

    #[test]
    fn what_has_several_times_is_asked_back() {
        let invalid = "invalid-arguments";
        check_error("Birmingham", invalid, &["Europe/London", "America/Chicago"]);
        check_error("USA", invalid, &["America/New_York", "America/Los_Angeles"]);
        check_error("CST", invalid, &["Asia/Shanghai", "America/Chicago"]);
    }

    #[test]
    fn every_zone_of_the_table_exists_and_every_name_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        for (names, zones) in CITIES {
            assert!(zones.iter().all(|zone| exact(zone).is_some()), "{zones:?}");
            assert!(names.iter().all(|name| seen.insert(fold(name))), "{names:?}");
        }
        for (names, zones) in REGIONS {
            let below = |zone: &str| zone_names().any(|name| name.starts_with(zone));
            let exists =
                |zone: &&str| exact(zone).is_some() || (zone.ends_with('/') && below(zone));
            assert!(zones.iter().all(exists), "{names:?}");
        }
    }
}
