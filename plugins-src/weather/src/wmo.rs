//! Names of the World Meteorological Organization's weather codes that the forecast service uses.

/// Returns the conditions for a code, as text that follows "with".
pub(crate) fn conditions(code: u8) -> &'static str {
    match code {
        0 => "clear skies",
        1 => "mostly clear skies",
        2 => "partly cloudy skies",
        3 => "overcast skies",
        45 => "fog",
        48 => "freezing fog",
        51 => "light drizzle",
        53 => "drizzle",
        55 => "heavy drizzle",
        56 => "light freezing drizzle",
        57 => "freezing drizzle",
        61 => "light rain",
        63 => "rain",
        65 => "heavy rain",
        66 => "light freezing rain",
        67 => "freezing rain",
        71 => "light snow",
        73 => "snow",
        75 => "heavy snow",
        77 => "snow grains",
        80 => "light showers",
        81 => "showers",
        82 => "violent showers",
        85 => "light snow showers",
        86 => "heavy snow showers",
        95 => "thunderstorms",
        96 => "thunderstorms and light hail",
        99 => "thunderstorms and heavy hail",
        _ => "unknown conditions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_service_has_its_own_name() {
        let codes = [
            0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82,
            85, 86, 95, 96, 99,
        ];
        let names: std::collections::BTreeSet<_> = codes.map(conditions).into();
        assert_eq!(names.len(), codes.len());
        assert!(!names.contains(conditions(100)));
    }
}
