//! Why a body broke off, in the words of `wasi:http`.
//!
//! A guest that reads a body gets an opaque error and asks `http-error-code` what it means.
//! wasmtime's own answer does not know the errors of a body; this one, linked in its place, does.

use wasmtime::{
    StoreContextMut,
    component::{Linker, Resource},
};
use wasmtime_wasi_http::{
    Error,
    p2::bindings::http::types::{ErrorCode, IoError},
};

use crate::guest::Guest;

/// The interface, in the version that wasmtime links.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Links the function. Shadowing has to be allowed.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut types = linker.instance(TYPES)?;
    types.func_wrap("http-error-code", |store, (error,): (Resource<IoError>,)| {
        Ok((http_error_code(&store, &error)?,))
    })
}

fn http_error_code(
    store: &StoreContextMut<'_, Guest>,
    error: &Resource<IoError>,
) -> wasmtime::Result<Option<ErrorCode>> {
    let error = store.data().table.get(error)?;
    let known = error.downcast_ref::<ErrorCode>().cloned();
    Ok(known.or_else(|| error.downcast_ref::<Error>().map(code)))
}

/// What can happen to a body, and in so many words whatever else there is.
fn code(error: &Error) -> ErrorCode {
    match error {
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::HttpRequestDenied => ErrorCode::HttpRequestDenied,
        Error::HttpRequestBodySize(bytes) => ErrorCode::HttpRequestBodySize(*bytes),
        Error::HttpResponseBodySize(bytes) => ErrorCode::HttpResponseBodySize(*bytes),
        Error::HttpResponseContentCoding(name) => {
            ErrorCode::HttpResponseContentCoding(name.clone())
        }
        Error::HttpResponseHeaderSectionSize(bytes) => {
            ErrorCode::HttpResponseTrailerSectionSize(*bytes)
        }
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        other => ErrorCode::InternalError(Some(other.to_string())),
    }
}
