//! Requests to the service, and what its refusals mean.

use sallyport_sdk::{
    SignIn, ToolError,
    http::{Request, Response},
    settings,
};
use service_answers::FailedAnswer;

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
    let failed = FailedAnswer::read(response);
    let said = format!("Spotify refused: {}", failed.said);
    match failed.status {
        _ if failed.is_about("no_active_device") => {
            let advice = "No device is active. Open Spotify on a device, play anything for a \
                          moment, and try again.";
            ToolError::Unavailable(advice.to_owned())
        }
        _ if failed.is_about("premium_required") => {
            ToolError::Failed("Playing from here needs Spotify Premium.".to_owned())
        }
        401 => {
            let sign_in = SignIn::new(format!("Spotify refuses the account: {}", failed.said));
            ToolError::AuthRequired(sign_in.connection("spotify"))
        }
        429 => ToolError::Unavailable(said + &failed.retry_text),
        500.. => ToolError::Unavailable(said),
        _ => ToolError::Failed(said),
    }
}
