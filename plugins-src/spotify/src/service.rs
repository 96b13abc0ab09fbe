//! Requests to the service, and what its refusals mean.

use sallyport_sdk::{
    SignIn, ToolError,
    http::{Request, Response},
    prelude::*,
    settings,
};

/// An answer that reports an error.
#[derive(Deserialize)]
struct ErrorAnswer {
    error: ServiceError,
}

#[derive(Deserialize)]
struct ServiceError {
    #[serde(default)]
    message: String,
    #[serde(default)]
    reason: String,
}

/// The address of a part of the service.
pub(crate) fn address(path: &str) -> Result<String, ToolError> {
    let base: String = settings::get("spotify_url")?;
    Ok(format!("{}{path}", base.trim_end_matches('/')))
}

/// Sends a request, and returns the answer if it is a success.
pub(crate) fn send(request: Request) -> Result<Response, ToolError> {
    let response = request.send()?;
    match response.status {
        200..=299 => Ok(response),
        _ => Err(read_error(&response)),
    }
}

fn read_error(response: &Response) -> ToolError {
    let error = response.json::<ErrorAnswer>().ok().map(|answer| answer.error);
    let (message, reason) =
        error.map_or_else(Default::default, |error| (error.message, error.reason));
    let said = match message.is_empty() {
        true => format!("Spotify answered with status {}", response.status),
        false => format!("Spotify answered: {message}"),
    };
    match (response.status, reason.as_str()) {
        (_, "NO_ACTIVE_DEVICE") => {
            let advice = "No device is active. Open Spotify on a device, play anything for a \
                          moment, and try again.";
            ToolError::Unavailable(advice.to_owned())
        }
        (_, "PREMIUM_REQUIRED") => {
            ToolError::Failed("Playing from here needs Spotify Premium.".to_owned())
        }
        (401, _) => {
            let sign_in = SignIn::new(format!("Spotify refuses the account: {said}"));
            ToolError::AuthRequired(sign_in.connection("spotify"))
        }
        (429, _) => ToolError::Unavailable(format!("{said}{}", retry_text(response))),
        (500.., _) => ToolError::Unavailable(said),
        _ => ToolError::Failed(said),
    }
}

/// When to try again, if the service says so.
fn retry_text(response: &Response) -> String {
    match response.header_value("retry-after").map(str::parse::<u32>) {
        Some(Ok(seconds)) => format!("; try again in {seconds} seconds"),
        Some(Err(_)) | None => String::new(),
    }
}
