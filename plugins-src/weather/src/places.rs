//! Finds the coordinates of a place.

use sallyport_sdk::{http, prelude::*, settings};

/// Maximum length of an unknown name in an error, in characters.
const ECHO_CHARS_MAX: usize = 80;

/// Maximum number of places with the same name that are searched for a region.
const NAMESAKES_MAX: usize = 20;

/// A place, as the geocoding service describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    pub(crate) country: Option<String>,
    country_code: Option<String>,
    admin1: Option<String>,
}

#[derive(Deserialize)]
struct Found {
    /// Absent if nothing was found.
    #[serde(default)]
    results: Vec<Place>,
}

impl Place {
    /// Returns `Paris, France`.
    pub(crate) fn full_name(&self) -> String {
        match &self.country {
            Some(country) => format!("{}, {country}", self.name),
            None => self.name.clone(),
        }
    }

    fn lies_in(&self, region: &str) -> bool {
        let regions = [&self.country, &self.country_code, &self.admin1];
        regions.into_iter().flatten().any(|name| name.to_lowercase() == region.to_lowercase())
    }
}

/// Finds a place. The service knows only names, so "Portland, Maine" is first looked up as one
/// name, and then as the Portland in Maine.
///
/// # Errors
///
/// The place does not exist, or the service does not answer.
pub(crate) fn find(location: &str) -> Result<Place, ToolError> {
    let location = location.trim();
    if location.is_empty() {
        return Err(ToolError::InvalidArguments("argument `location`: it is empty".to_owned()));
    }
    if let Some(place) = search(location, 1)?.into_iter().next() {
        return Ok(place);
    }
    let unknown = || {
        let echo: String = location.chars().take(ECHO_CHARS_MAX).collect();
        ToolError::NotFound(format!("no place is called {echo:?}; try the nearest city"))
    };
    let (name, region) = location.split_once(',').ok_or_else(unknown)?;
    let namesakes = search(name.trim(), NAMESAKES_MAX)?;
    namesakes.into_iter().find(|place| place.lies_in(region.trim())).ok_or_else(unknown)
}

fn search(name: &str, count: usize) -> Result<Vec<Place>, ToolError> {
    let url: String = settings::get("geocoding_url")?;
    let found: Found = http::get(format!("{}/v1/search", url.trim_end_matches('/')))
        .query("name", name)
        .query("count", count.to_string())
        .query("language", "en")
        .query("format", "json")
        .send()?
        .success()?
        .json()?;
    Ok(found.results)
}
