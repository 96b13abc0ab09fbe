//! The errors of a body as error codes of `wasi:http`.
//!
//! A guest that reads a body gets an opaque error and calls `http-error-code` to learn its meaning.
//! wasmtime's own implementation does not know the errors of a body, so this one is linked instead.

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
const TYPES_INTERFACE: &str = "wasi:http/types@0.2.12";

/// Links the function. The linker has to allow shadowing.
pub(crate) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut types = linker.instance(TYPES_INTERFACE)?;
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
    Ok(known.or_else(|| error.downcast_ref::<Error>().map(to_error_code)))
}

/// Converts the errors that a body can have. Any other becomes an internal error with its message.
fn to_error_code(error: &Error) -> ErrorCode {
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
