//! What is found and played.

use sallyport_sdk::{http, prelude::*};
use serde::Serialize;

use crate::service;

/// The first results may be null, if the account may not see them.
const RESULTS: &str = "5";

/// What kind of music is searched for.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MusicKind {
    #[default]
    Track,
    Artist,
    Album,
    Playlist,
}

/// What is playing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlayedMusic {
    /// Its name.
    name: String,
    /// Who made it; empty if that is not known.
    by: String,
    /// Its address in the service.
    pub(crate) uri: String,
}

#[derive(Deserialize)]
struct FoundMusic {
    name: String,
    uri: String,
    #[serde(default)]
    artists: Vec<Person>,
    owner: Option<Person>,
}

#[derive(Deserialize)]
struct Person {
    name: Option<String>,
    display_name: Option<String>,
}

impl MusicKind {
    fn word(self) -> &'static str {
        match self {
            Self::Track => "track",
            Self::Artist => "artist",
            Self::Album => "album",
            Self::Playlist => "playlist",
        }
    }

    /// What the player is told. A track is played by itself; the others hold several.
    pub(crate) fn play_body(self, uri: &str) -> Value {
        match self {
            Self::Track => json!({ "uris": [uri] }),
            Self::Artist | Self::Album | Self::Playlist => json!({ "context_uri": uri }),
        }
    }
}

impl PlayedMusic {
    /// The sentence that is spoken.
    pub(crate) fn sentence(&self) -> String {
        match self.by.as_str() {
            "" => format!("Now playing {}.", self.name),
            by => format!("Now playing {} by {by}.", self.name),
        }
    }
}

impl From<FoundMusic> for PlayedMusic {
    fn from(found: FoundMusic) -> Self {
        let people = found.artists.into_iter().chain(found.owner);
        let names: Vec<String> =
            people.filter_map(|person| person.name.or(person.display_name)).collect();
        Self { name: found.name, by: names.join(", "), uri: found.uri }
    }
}

/// Returns the first result of a search.
pub(crate) fn find_music(query: &str, kind: MusicKind) -> Result<PlayedMusic, ToolError> {
    let request = http::get(service::address("/v1/search")?)
        .query("q", query)
        .query("type", kind.word())
        .query("limit", RESULTS);
    let answer: Value = service::send(request)?.json()?;
    let items = &answer[format!("{}s", kind.word())]["items"];
    let found = items.as_array().into_iter().flatten();
    let mut readable = found.filter_map(|item| FoundMusic::deserialize(item).ok());
    readable.next().map(PlayedMusic::from).ok_or_else(|| {
        ToolError::NotFound(format!("nothing is called {query:?}; try fewer words or another type"))
    })
}
