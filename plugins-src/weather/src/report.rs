//! Converts responses of the forecast service into reports.

use sallyport_sdk::prelude::*;

use crate::{places::Place, wmo};

/// The service's response with the current weather.
#[derive(Deserialize)]
pub(crate) struct Now {
    current: NowValues,
}

#[derive(Deserialize)]
struct NowValues {
    temperature_2m: f64,
    weather_code: u8,
}

/// The service's response with the forecast: one list for each value.
#[derive(Deserialize)]
pub(crate) struct Days {
    daily: DayValues,
}

/// Values are absent for days beyond the range of the models.
#[derive(Deserialize)]
struct DayValues {
    time: Vec<String>,
    weather_code: Vec<Option<u8>>,
    temperature_2m_max: Vec<Option<f64>>,
    temperature_2m_min: Vec<Option<f64>>,
}

/// The weather of a place, now or on the next days.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Weather {
    /// The place that was found.
    location: String,
    /// The country that it lies in.
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<String>,
    latitude: f64,
    longitude: f64,
    /// The weather now.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Current>,
    /// The forecast, day by day, from today on.
    #[serde(skip_serializing_if = "Option::is_none")]
    daily: Option<Vec<Day>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Current {
    temperature_celsius: f64,
    /// Code of the World Meteorological Organization.
    weather_code: u8,
    /// The code in words.
    conditions: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Day {
    /// The date there.
    date: String,
    temperature_min_celsius: f64,
    temperature_max_celsius: f64,
    /// Code of the World Meteorological Organization.
    weather_code: u8,
    /// The code in words.
    conditions: String,
}

/// Reports the current weather.
pub(crate) fn now(place: Place, now: Now) -> Output<Weather> {
    let NowValues { temperature_2m, weather_code } = now.current;
    let conditions = wmo::conditions(weather_code);
    let speech =
        format!("In {} it is {} °C with {conditions}.", place.full_name(), whole(temperature_2m));
    let current = Current {
        temperature_celsius: temperature_2m,
        weather_code,
        conditions: conditions.to_owned(),
    };
    Output::new(Weather { current: Some(current), ..weather(place) }).speech(speech)
}

/// Reports the forecast.
pub(crate) fn days(place: Place, days: Days) -> Output<Weather> {
    let days = by_day(days.daily);
    let parts: Vec<_> = ["today", "tomorrow"]
        .iter()
        .zip(&days)
        .map(|(when, day)| format!("{when} {}", day.phrase()))
        .collect();
    let speech = match parts.as_slice() {
        [] => format!("There is no forecast for {}.", place.full_name()),
        parts => format!("In {}: {}.", place.full_name(), parts.join(", ")),
    };
    Output::new(Weather { daily: Some(days), ..weather(place) }).speech(speech)
}

fn weather(place: Place) -> Weather {
    Weather {
        location: place.name,
        country: place.country,
        latitude: place.latitude,
        longitude: place.longitude,
        current: None,
        daily: None,
    }
}

fn by_day(values: DayValues) -> Vec<Day> {
    let temperatures = values.temperature_2m_min.into_iter().zip(values.temperature_2m_max);
    let days = values.time.into_iter().zip(values.weather_code).zip(temperatures);
    days.filter_map(|((date, code), (min, max))| {
        let weather_code = code?;
        Some(Day {
            date,
            temperature_min_celsius: min?,
            temperature_max_celsius: max?,
            weather_code,
            conditions: wmo::conditions(weather_code).to_owned(),
        })
    })
    .collect()
}

impl Day {
    fn phrase(&self) -> String {
        let (min, max) = (whole(self.temperature_min_celsius), whole(self.temperature_max_celsius));
        format!("{min} to {max} °C with {}", self.conditions)
    }
}

/// Adding zero turns "-0 °C" into "0 °C".
fn whole(celsius: f64) -> f64 {
    celsius.round() + 0.0
}
