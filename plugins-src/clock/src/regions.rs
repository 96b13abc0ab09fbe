//! Regions that may follow a comma, as in "Portland, Oregon".
//!
//! They only decide which place is meant, so a state with several zones is listed with the zone of
//! its cities in this plugin. More would be a guess: another city of that name may have another time.

/// Names of regions with their zones, in addition to the names in `CITIES`. A zone that ends with
/// `/` stands for each zone below it.
pub(crate) const REGIONS: &[(&[&str], &[&str])] = &[
    // Countries of which the time zone database has a zone, but under another name.
    (&["Egypt"], &["Africa/Cairo"]),
    (&["Libya"], &["Africa/Tripoli"]),
    (&["Cuba"], &["America/Havana"]),
    (&["Iran"], &["Asia/Tehran"]),
    (&["Israel"], &["Asia/Jerusalem"]),
    (&["Japan"], &["Asia/Tokyo"]),
    (&["Iceland"], &["Atlantic/Reykjavik"]),
    (&["Poland"], &["Europe/Warsaw"]),
    (&["Portugal"], &["Europe/Lisbon", "Atlantic/Azores", "Atlantic/Madeira"]),
    (&["Turkey"], &["Europe/Istanbul"]),
    // Countries of which `CITIES` has only the main zones, and older names of zones.
    (&["China"], &["Asia/Hong_Kong", "Asia/Macau", "Asia/Urumqi", "Asia/Chongqing", "Asia/Harbin"]),
    (&["India"], &["Asia/Calcutta"]),
    (&["Indonesia"], &["Asia/Pontianak"]),
    (&["Kazakhstan"], &["Asia/Aqtau", "Asia/Aqtobe", "Asia/Atyrau", "Asia/Oral", "Asia/Qyzylorda"]),
    (&["Mongolia"], &["Asia/Ulan_Bator"]),
    (&["Myanmar"], &["Asia/Rangoon"]),
    (&["Nepal"], &["Asia/Katmandu"]),
    (&["Vietnam"], &["Asia/Saigon"]),
    (&["Spain"], &["Africa/Ceuta"]),
    (&["Ukraine"], &["Europe/Kiev"]),
    (&["UK", "U.K.", "United Kingdom", "Northern Ireland"], &["Europe/London", "Europe/Belfast"]),
    (
        &["Russia"],
        &[
            "Europe/Kaliningrad",
            "Europe/Samara",
            "Europe/Saratov",
            "Europe/Volgograd",
            "Asia/Yekaterinburg",
            "Asia/Omsk",
            "Asia/Krasnoyarsk",
            "Asia/Irkutsk",
            "Asia/Yakutsk",
            "Asia/Magadan",
            "Asia/Kamchatka",
        ],
    ),
    (&["Brazil"], &["America/Fortaleza", "America/Recife", "America/Belem", "America/Cuiaba"]),
    (
        &["Mexico"],
        &["America/Monterrey", "America/Merida", "America/Chihuahua", "America/Hermosillo"],
    ),
    (&["Canada"], &["America/Montreal", "America/Halifax", "America/St_Johns", "America/Regina"]),
    (
        &["USA", "U.S.A.", "US", "U.S.", "United States", "United States of America", "America"],
        &[
            "America/New_York",
            "America/Chicago",
            "America/Denver",
            "America/Los_Angeles",
            "America/Phoenix",
            "America/Detroit",
            "America/Boise",
            "America/Anchorage",
            "America/Juneau",
            "America/Nome",
            "America/Indiana/",
            "America/Kentucky/",
            "America/North_Dakota/",
            "Pacific/Honolulu",
        ],
    ),
    // States of the USA.
    (
        &["New York State", "NY", "Massachusetts", "MA", "D.C.", "District of Columbia", "Maine"],
        &["America/New_York"],
    ),
    (&["ME", "Pennsylvania", "PA", "Georgia", "GA", "Florida", "FL"], &["America/New_York"]),
    (&["Maryland", "MD"], &["America/New_York"]),
    (
        &["Texas", "TX", "Louisiana", "LA", "Minnesota", "MN", "Missouri", "MO"],
        &["America/Chicago"],
    ),
    (&["Tennessee", "TN", "Illinois", "IL", "Alabama", "AL"], &["America/Chicago"]),
    (&["Utah", "UT", "New Mexico", "NM", "Colorado", "CO"], &["America/Denver"]),
    (
        &["California", "CA", "Washington", "WA", "Oregon", "OR", "Nevada", "NV"],
        &["America/Los_Angeles"],
    ),
    (&["Washington State"], &["America/Los_Angeles"]),
    (&["Arizona", "AZ"], &["America/Phoenix"]),
    (&["Michigan", "MI"], &["America/Detroit"]),
    (&["Idaho", "ID"], &["America/Boise"]),
    (&["Alaska", "AK"], &["America/Anchorage", "America/Juneau", "America/Nome"]),
    (&["Hawaii", "HI"], &["Pacific/Honolulu"]),
    // Provinces of Canada.
    (&["Ontario", "Quebec"], &["America/Toronto", "America/Montreal"]),
    (&["British Columbia", "BC"], &["America/Vancouver"]),
    (&["Alberta"], &["America/Edmonton"]),
    (&["Manitoba"], &["America/Winnipeg"]),
    (&["Saskatchewan"], &["America/Regina"]),
    (&["Nova Scotia"], &["America/Halifax"]),
    (&["Newfoundland"], &["America/St_Johns"]),
    // States of Australia.
    (&["New South Wales", "NSW"], &["Australia/Sydney"]),
    (&["Victoria"], &["Australia/Melbourne"]),
    (&["Queensland"], &["Australia/Brisbane"]),
    (&["South Australia"], &["Australia/Adelaide"]),
    (&["Western Australia"], &["Australia/Perth"]),
    (&["Tasmania"], &["Australia/Hobart"]),
    (&["Northern Territory"], &["Australia/Darwin"]),
];
