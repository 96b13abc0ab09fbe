//! Content codings: the host decodes responses, so that a guest receives exactly the bytes that
//! were checked.
//!
//! A guest that decoded by itself would bypass the redaction of responses and the limit on bodies.
//! The decoder uses buffers of a fixed size at any compression ratio.

use std::{io, pin::Pin};

use async_compression::tokio::bufread::{GzipDecoder, ZlibDecoder};
use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt};
use http::{HeaderMap, HeaderValue, header};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::StreamReader;
use wasmtime_wasi_http::Error;

/// Bytes that are decoded at a time.
const DECODED_CHUNK_BYTES: usize = 16 * 1024;

/// The text of an error about more than one coding. No error names what a server sent, because it
/// could be a secret of the request, and no redactor sees the errors of the guest.
const SEVERAL_CODINGS: &str = "several";

/// The content coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    /// No coding.
    Identity,
    /// `gzip`.
    Gzip,
    /// `deflate`, which means the zlib format.
    Deflate,
}

impl ContentCoding {
    /// Reads the coding from a response's headers.
    ///
    /// # Errors
    ///
    /// The coding is not supported, or there are several.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, Error> {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(value) = values.next() else { return Ok(Self::Identity) };
        if values.next().is_some() {
            return Err(Error::HttpResponseContentCoding(Some(SEVERAL_CODINGS.to_owned())));
        }
        match value.as_bytes().trim_ascii().to_ascii_lowercase().as_slice() {
            b"" | b"identity" => Ok(Self::Identity),
            b"gzip" | b"x-gzip" => Ok(Self::Gzip),
            b"deflate" => Ok(Self::Deflate),
            _ => Err(Error::HttpResponseContentCoding(None)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

/// Checks that a response has no transfer coding except `chunked`, which frames it. The host
/// requests no other (`TE`), and a body that stays coded would bypass the redaction of responses.
///
/// # Errors
///
/// Another coding, or several.
pub(super) fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Error> {
    let mut values = headers.get_all(header::TRANSFER_ENCODING).iter().map(HeaderValue::as_bytes);
    match (values.next(), values.next()) {
        (None, _) => Ok(()),
        (Some(value), None) if value.trim_ascii().eq_ignore_ascii_case(b"chunked") => Ok(()),
        (Some(_), None) => Err(Error::HttpResponseTransferCoding(None)),
        (Some(_), Some(_)) => {
            Err(Error::HttpResponseTransferCoding(Some(SEVERAL_CODINGS.to_owned())))
        }
    }
}

/// The output of a decoder.
pub(super) struct BodyDecoder {
    reader: Pin<Box<dyn AsyncRead + Send>>,
    coding: ContentCoding,
}

impl BodyDecoder {
    /// Decodes a stream of bytes.
    pub(super) fn new(
        bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
        coding: ContentCoding,
    ) -> Self {
        let source = StreamReader::new(Box::pin(bytes.map_err(io::Error::other)));
        let reader: Pin<Box<dyn AsyncRead + Send>> = match coding {
            ContentCoding::Identity => Box::pin(source),
            ContentCoding::Gzip => {
                let mut decoder = GzipDecoder::new(source);
                decoder.multiple_members(true);
                Box::pin(decoder)
            }
            ContentCoding::Deflate => Box::pin(ZlibDecoder::new(source)),
        };
        Self { reader, coding }
    }

    /// Returns the next piece, or `None` at the end.
    pub(super) async fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let mut piece = BytesMut::with_capacity(DECODED_CHUNK_BYTES);
        match self.reader.read_buf(&mut piece).await {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(piece.freeze())),
            Err(error) => Err(self.convert_error(error)),
        }
    }

    /// Returns an error of the source unchanged. Any other error means that the coding is broken.
    fn convert_error(&self, error: io::Error) -> Error {
        let broken = |_| Error::HttpResponseContentCoding(Some(self.coding.name().to_owned()));
        error.downcast::<Error>().unwrap_or_else(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(values: &[&str]) -> Result<ContentCoding, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
        }
        ContentCoding::from_headers(&headers).map_err(|error| error.to_string())
    }

    #[test]
    fn one_coding_at_a_time_is_understood() {
        for (values, want) in [
            (&[][..], ContentCoding::Identity),
            (&["identity"], ContentCoding::Identity),
            (&["gzip"], ContentCoding::Gzip),
            (&["X-GZip "], ContentCoding::Gzip),
            (&["deflate"], ContentCoding::Deflate),
        ] {
            assert_eq!(coding(values), Ok(want), "{values:?}");
        }
        for values in [&["br"][..], &["zstd"], &["gzip, gzip"], &["gzip", "gzip"], &["gzip;q=1"]] {
            assert!(coding(values).is_err(), "{values:?}");
        }
    }

    #[test]
    fn a_secret_that_a_server_sends_as_a_coding_is_not_in_the_error() {
        for values in [&["the-secret"][..], &["the-secret", "gzip"]] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
                headers.append(header::TRANSFER_ENCODING, value.parse().unwrap());
            }
            let errors = [
                ContentCoding::from_headers(&headers).err(),
                check_transfer_coding(&headers).err(),
            ];
            for error in errors {
                let error = error.unwrap();
                assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
            }
        }
    }

    #[test]
    fn a_coding_of_the_transfer_that_nobody_asked_for_is_refused() {
        let checked = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::TRANSFER_ENCODING, value.parse().unwrap());
            }
            check_transfer_coding(&headers).is_ok()
        };
        for values in [&[][..], &["chunked"], &["Chunked "]] {
            assert!(checked(values), "{values:?}");
        }
        for values in [
            &["gzip"][..],
            &["gzip, chunked"],
            &["gzip", "chunked"],
            &["chunked, chunked"],
            &["chunked", "chunked"],
            &["identity"],
            &["chunked;x=1"],
            &[""],
        ] {
            assert!(!checked(values), "{values:?}");
        }
    }
}
