//! Plays music with the Spotify account that the user has connected.
//!
//! `spotify.json` describes the actions; this component runs them. The host signs the requests in, so
//! the component never holds a token.

mod search;
mod service;

use sallyport_sdk::{
    http::{self, Method},
    prelude::*,
};

use search::{MusicKind, PlayedMusic};

/// How the service reports that there is nothing to pause.
const NOTHING_PLAYS: &str = "Restriction violated";

/// What to play.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpotifyPlay {
    /// What to search for.
    query: String,
    /// What kind of music it is.
    #[serde(default)]
    r#type: MusicKind,
}

/// Searches for music and plays the first result on the active device.
#[tool(idempotent = false, open_world)]
fn spotify_play(args: SpotifyPlay) -> Result<Output<PlayedMusic>, ToolError> {
    let music = search::find_music(args.query.trim(), args.r#type)?;
    let request = http::request(Method::Put, service::address("/v1/me/player/play")?);
    service::send(request.json(args.r#type.play_body(&music.uri)))?;
    let speech = music.sentence();
    Ok(Output::new(music).speech(speech))
}

/// Pauses the music on the active device.
#[tool(open_world)]
fn spotify_pause() -> Result<Output, ToolError> {
    // The service wants a body, and an empty one is none.
    let request = http::request(Method::Put, service::address("/v1/me/player/pause")?);
    match service::send(request.json(json!({}))) {
        Ok(_) => Ok(Output::new(json!({ "paused": true })).speech("Paused.")),
        Err(error) if error.message().contains(NOTHING_PLAYS) => {
            Ok(Output::new(json!({ "paused": false })).speech("Nothing is playing."))
        }
        Err(error) => Err(error),
    }
}

sallyport_sdk::export_plugin!(tools = [spotify_play, spotify_pause]);

#[cfg(test)]
mod tests {
    use sallyport_sdk::{
        http::{Request, Response},
        testing,
    };

    use super::*;

    /// A service with these results that answers the player's requests so.
    fn service(results: Value, player: Response) {
        testing::settings(json!({ "spotify_url": "https://music.example/" }));
        testing::http(move |request: &Request| {
            let search = "https://music.example/v1/search?q=Clair%20de%20Lune&type=";
            Ok(match request.url.strip_prefix(search) {
                Some(kind) => {
                    let kind = kind.split('&').next().unwrap_or_default();
                    let found = json!({ format!("{kind}s"): { "items": results } });
                    Response::new(200, found.to_string())
                }
                None => {
                    assert_eq!(request.method, Method::Put);
                    assert!(request.url.starts_with("https://music.example/v1/me/player/"));
                    player.clone()
                }
            })
        });
    }

    fn play(kind: &str) -> Result<Output, ToolError> {
        testing::call::<spotify_play>(json!({ "query": " Clair de Lune ", "type": kind }))
    }

    fn refusal(status: u16, reason: &str) -> Response {
        let message = format!("Player command failed: {reason}");
        let error = json!({ "status": status, "message": message, "reason": reason });
        Response::new(status, json!({ "error": error }).to_string())
    }

    #[test]
    fn the_first_result_is_played_and_named() {
        let artists = json!([{ "name": "Debussy" }, { "name": "Lang Lang" }]);
        for (kind, result, want) in [
            (
                "track",
                json!({ "artists": artists }),
                "Now playing Clair de Lune by Debussy, Lang Lang.",
            ),
            ("album", json!({ "artists": [] }), "Now playing Clair de Lune."),
            ("artist", json!({}), "Now playing Clair de Lune."),
            (
                "playlist",
                json!({ "owner": { "display_name": "ann" } }),
                "Now playing Clair de Lune by ann.",
            ),
        ] {
            let mut first = result;
            first["name"] = "Clair de Lune".into();
            first["uri"] = format!("spotify:{kind}:1").into();
            // A playlist that the service may not show is null.
            service(json!([null, first]), Response::new(204, ""));
            let output = play(kind).unwrap();
            assert_eq!(output.speech.as_deref(), Some(want));
            assert_eq!(output.data["uri"], format!("spotify:{kind}:1"));
        }
    }

    #[test]
    fn what_cannot_be_played_says_what_to_do() {
        let one = || json!([{ "name": "n", "uri": "spotify:track:1" }]);
        for (results, player, kind, want) in [
            (json!([]), refusal(500, ""), "not-found", "nothing is called \"Clair de Lune\""),
            (one(), refusal(404, "NO_ACTIVE_DEVICE"), "unavailable", "Open Spotify on a device"),
            (one(), refusal(403, "PREMIUM_REQUIRED"), "failed", "Spotify Premium"),
            (one(), refusal(401, "x"), "auth-required", "refuses the account"),
            (
                one(),
                refusal(429, "x").header("Retry-After", "7"),
                "unavailable",
                "try again in 7 seconds",
            ),
            (one(), Response::new(502, "<html>"), "unavailable", "status 502"),
            (one(), refusal(400, "bad"), "failed", "Player command failed: bad"),
        ] {
            service(results, player);
            let error = play("track").unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(want), "{error}");
        }
    }

    /// The component trapped.
    #[test]
    fn an_answer_that_is_a_list_finds_nothing() {
        for body in ["[]", "7", "null", r#"{"tracks": []}"#] {
            testing::settings(json!({ "spotify_url": "https://music.example" }));
            testing::http(move |_| Ok(Response::new(200, body)));
            assert_eq!(play("track").unwrap_err().kind(), "not-found", "{body}");
        }
    }

    #[test]
    fn pausing_what_does_not_play_is_no_failure() {
        service(json!([]), Response::new(204, ""));
        let paused = || testing::call::<spotify_pause>(json!({}));
        assert_eq!(paused().unwrap().speech.as_deref(), Some("Paused."));
        service(json!([]), refusal(403, "Restriction violated"));
        assert_eq!(paused().unwrap().speech.as_deref(), Some("Nothing is playing."));
        service(json!([]), refusal(404, "NO_ACTIVE_DEVICE"));
        assert!(paused().unwrap_err().message().contains("Open Spotify on a device"));
    }
}
