//! A tool that returns the weather anywhere in the world, from the Open-Meteo services.

mod places;
mod report;
mod wmo;

use sallyport_sdk::{http, prelude::*, settings};
use serde::de::DeserializeOwned;

use places::Place;
use report::Weather;

/// Where and when.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetWeather {
    /// A city, town or postal code, such as "Paris" or "Portland, Maine".
    location: String,
    /// True for the next seven days, false or absent for the weather now.
    forecast: Option<bool>,
}

/// Tells the present weather of a place, or its forecast for the next seven days. Temperatures are
/// in degrees Celsius.
#[tool(read_only, idempotent = false, open_world)]
fn get_weather(args: GetWeather) -> Result<Output<Weather>, ToolError> {
    let place = places::find(&args.location)?;
    if args.forecast.unwrap_or(false) {
        let daily = "weather_code,temperature_2m_max,temperature_2m_min";
        let when = [("daily", daily), ("forecast_days", "7"), ("timezone", "auto")];
        let days = ask(&place, &when)?;
        Ok(report::days(place, days))
    } else {
        let now = ask(&place, &[("current", "temperature_2m,weather_code")])?;
        Ok(report::now(place, now))
    }
}

fn ask<T: DeserializeOwned>(place: &Place, when: &[(&str, &str)]) -> Result<T, ToolError> {
    let url: String = settings::get("forecast_url")?;
    let request = http::get(format!("{}/v1/forecast", url.trim_end_matches('/')))
        .query("latitude", place.latitude.to_string())
        .query("longitude", place.longitude.to_string());
    let request = when.iter().fold(request, |request, (name, value)| request.query(name, value));
    Ok(request.send()?.success()?.json()?)
}

sallyport_sdk::export_plugin!(tools = [get_weather]);

#[cfg(test)]
mod tests {
    use sallyport_sdk::{
        http::{HttpError, Request, Response},
        testing,
    };

    use super::*;

    const PARIS: &str = r#"{"results": [{"name": "Paris", "latitude": 48.85341, "longitude": 2.3488,
        "country": "France", "country_code": "FR", "admin1": "Île-de-France"}]}"#;
    const NOTHING: &str = r#"{"generationtime_ms": 0.5}"#;
    const NOW: &str = r#"{"latitude": 48.86, "current": {"time": "2026-11-22T10:15",
        "temperature_2m": 17.6, "weather_code": 61}}"#;
    const DAYS: &str = r#"{"daily": {"time": ["2026-11-22", "2026-11-23", "2026-11-24"],
        "weather_code": [61, 45, null], "temperature_2m_max": [17.6, 9.4, null],
        "temperature_2m_min": [8.5, -0.4, null]}}"#;

    fn settings() -> Value {
        json!({ "geocoding_url": "https://geo.example/", "forecast_url": "https://sky.example" })
    }

    /// Answers requests to either service with a fixed text.
    fn services(geocoding: &'static str, forecast: &'static str) {
        testing::settings(settings());
        testing::http(move |request| {
            let of_places = request.url.starts_with("https://geo.example/v1/search?");
            Ok(Response::new(200, if of_places { geocoding } else { forecast }))
        });
    }

    fn ask_for(location: &str, forecast: bool) -> Result<Output, ToolError> {
        testing::call::<get_weather>(json!({ "location": location, "forecast": forecast }))
    }

    #[test]
    fn the_weather_of_a_place_is_told() {
        services(PARIS, NOW);
        let output = ask_for("paris", false).unwrap();
        assert_eq!(output.speech.as_deref(), Some("In Paris, France it is 18 °C with light rain."));
        assert_eq!(
            output.data,
            json!({
                "location": "Paris",
                "country": "France",
                "latitude": 48.85341,
                "longitude": 2.3488,
                "current": {
                    "temperature_celsius": 17.6, "weather_code": 61, "conditions": "light rain",
                },
            })
        );
    }

    #[test]
    fn the_forecast_of_a_place_is_told_as_far_as_it_is_known() {
        services(PARIS, DAYS);
        let output = ask_for("paris", true).unwrap();
        assert_eq!(
            output.speech.as_deref(),
            Some(
                "In Paris, France: today 9 to 18 °C with light rain, tomorrow 0 to 9 °C with fog."
            )
        );
        let daily = output.data["daily"].as_array().unwrap();
        assert_eq!(daily.len(), 2);
        assert_eq!(
            daily[1],
            json!({
                "date": "2026-11-23",
                "temperature_min_celsius": -0.4,
                "temperature_max_celsius": 9.4,
                "weather_code": 45,
                "conditions": "fog",
            })
        );
    }

    #[test]
    fn requests_are_those_of_the_manifest_and_values_stay_values() {
        let mut urls = vec![
            "https://sky.example/v1/forecast?latitude=48.85341&longitude=2.3488\
             &current=temperature_2m%2Cweather_code",
            "https://geo.example/v1/search?name=S%C3%A3o%20Paulo%26count%3D9%23\
             &count=1&language=en&format=json",
        ];
        testing::settings(settings());
        testing::http(move |request| {
            assert_eq!(request.url, urls.pop().unwrap());
            Ok(Response::new(200, if urls.is_empty() { NOW } else { PARIS }))
        });
        ask_for(" São Paulo&count=9# ", false).unwrap();
    }

    #[test]
    fn a_place_with_its_region_is_that_place() {
        testing::settings(settings());
        testing::http(|request| {
            let portlands = r#"{"results": [
                {"name": "Portland", "latitude": 45.5, "longitude": -122.7, "country": "United States",
                 "country_code": "US", "admin1": "Oregon"},
                {"name": "Portland", "latitude": 43.7, "longitude": -70.3, "country": "United States",
                 "country_code": "US", "admin1": "Maine"}]}"#;
            let body = match &request.url {
                url if url.contains("name=Portland&count=20") => portlands,
                url if url.contains("/v1/search") => NOTHING,
                _ => NOW,
            };
            Ok(Response::new(200, body))
        });
        assert_eq!(ask_for("Portland, maine", false).unwrap().data["latitude"], 43.7);
        assert_eq!(ask_for("Portland, US", false).unwrap().data["latitude"], 45.5);
        assert_eq!(ask_for("Portland, Mars", false).unwrap_err().kind(), "not-found");
    }

    #[test]
    fn what_goes_wrong_is_said_in_its_kind() {
        type Service = fn(&Request) -> Result<Response, HttpError>;
        let denied: Service = |r| Err(HttpError::Denied { origin: r.url[..19].to_owned() });
        let rows: [(Service, &str, &str); 6] = [
            (|_| Ok(Response::new(200, NOTHING)), "not-found", "no place is called \"Atlantis\""),
            (denied, "denied", "https://geo.example may not be reached"),
            (|_| Ok(Response::new(503, "")), "unavailable", "status 503"),
            (|_| Ok(Response::new(400, "")), "failed", "status 400"),
            (|_| Ok(Response::new(200, "<html>")), "failed", "unexpected answer"),
            (|_| Ok(Response::new(200, PARIS)), "failed", "missing field `current`"),
        ];
        testing::settings(settings());
        for (service, kind, message) in rows {
            testing::http(service);
            let error = ask_for("Atlantis", false).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.message().contains(message), "{error}");
        }
        assert_eq!(ask_for(" ", false).unwrap_err().kind(), "invalid-arguments");
    }
}
