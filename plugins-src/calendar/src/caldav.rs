//! Requests to the CalDAV server.
//!
//! A file is named by the last part of its path. What the server or a model calls it never leads out
//! of the calendar.

use sallyport_sdk::{
    SignIn, ToolError,
    http::{self, Method, Request, Response},
    settings,
};

use crate::{multistatus, when::TimeSpan};

/// The form of times in a query.
const QUERY_TIME: &str = "%Y%m%dT%H%M%SZ";

/// A file of the calendar.
pub(crate) struct FoundFile {
    /// The last part of its path.
    pub(crate) id: String,
    /// Its text.
    pub(crate) data: String,
    /// Its version, if the server told it.
    etag: Option<String>,
}

/// The files with events in a span.
pub(crate) fn find_files(span: &TimeSpan) -> Result<Vec<FoundFile>, ToolError> {
    let time = |moment: chrono::DateTime<chrono::Utc>| moment.format(QUERY_TIME).to_string();
    let query = format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav">
<D:prop><D:getetag/><C:calendar-data/></D:prop>
<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">
<C:time-range start="{}" end="{}"/>
</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"#,
        time(span.from),
        time(span.to)
    );
    let request = http::request(Method::Report, format!("{}/", calendar_url()?))
        .header("Depth", "1")
        .header("Content-Type", "application/xml; charset=utf-8")
        .body(query);
    let answer = send(request)?.text()?;
    let files = multistatus::read_files(&answer).ok_or_else(|| {
        ToolError::Failed("the server's answer is no list of files; check calendar_url".to_owned())
    })?;
    let found = files.into_iter().filter_map(|file| {
        let id = file.href.rsplit('/').next().map(percent_decode)?;
        Some(FoundFile { id, data: file.data, etag: None })
    });
    Ok(found.collect())
}

/// Reads a file.
pub(crate) fn read_file(id: &str) -> Result<FoundFile, ToolError> {
    let response = send(http::get(file_url(id)?))?;
    let etag = response.header_value("etag").map(str::to_owned);
    Ok(FoundFile { id: id.to_owned(), data: response.text()?, etag })
}

/// Writes a new file.
pub(crate) fn create_file(id: &str, data: &str) -> Result<(), ToolError> {
    let request = put(id, data)?.header("If-None-Match", "*");
    send(request).map(drop)
}

/// Writes a file, unless it has changed since it was read.
pub(crate) fn replace_file(found: &FoundFile, data: &str) -> Result<(), ToolError> {
    send(unless_changed(put(&found.id, data)?, found)).map(drop)
}

/// Removes a file, unless it has changed since it was read.
pub(crate) fn remove_file(found: &FoundFile) -> Result<(), ToolError> {
    let request = http::request(Method::Delete, file_url(&found.id)?);
    send(unless_changed(request, found)).map(drop)
}

fn put(id: &str, data: &str) -> Result<Request, ToolError> {
    let request = http::request(Method::Put, file_url(id)?);
    Ok(request.header("Content-Type", "text/calendar; charset=utf-8").body(data))
}

fn unless_changed(request: Request, found: &FoundFile) -> Request {
    match &found.etag {
        Some(etag) => request.header("If-Match", etag),
        None => request,
    }
}

fn calendar_url() -> Result<String, ToolError> {
    let url: String = settings::get("calendar_url")?;
    Ok(url.trim_end_matches('/').to_owned())
}

fn file_url(id: &str) -> Result<String, ToolError> {
    if id.is_empty() || id == "." || id == ".." || id.contains(['/', '\\']) {
        let message = format!("{id:?} is no id of an event; a list shows the ids");
        return Err(ToolError::InvalidArguments(message));
    }
    Ok(format!("{}/{}", calendar_url()?, percent_encode(id)))
}

fn send(request: Request) -> Result<Response, ToolError> {
    let response = request.send()?;
    let failed = |message: &str| ToolError::Failed(message.to_owned());
    Err(match response.status {
        200..=299 => return Ok(response),
        300..=399 => {
            let to = response.header_value("location").unwrap_or("another address");
            ToolError::Failed(format!("the calendar is at {to}; set calendar_url to it"))
        }
        401 => ToolError::AuthRequired(SignIn::new(
            "the calendar server refuses name and password; check the secret calendar",
        )),
        403 => failed("the calendar server does not allow this; the calendar may be read-only"),
        404 | 410 => ToolError::NotFound("there is no such event or calendar".to_owned()),
        412 => failed("the event has been changed meanwhile; list the events again"),
        429 | 500.. => ToolError::Unavailable(format!(
            "the calendar server answered with status {}",
            response.status
        )),
        status => failed(&format!("the calendar server answered with status {status}")),
    })
}

/// A part of a path, encoded.
fn percent_encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte);
    let sign = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(sign).collect()
}

/// A part of a path, decoded. What is not encoded correctly stays as it is.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match value.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}
