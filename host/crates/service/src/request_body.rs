//! The bodies and the queries of requests, bounded, in time and of one form; and answers of JSON.

use std::{error::Error, time::Duration};

use axum::{
    body::{self, Body, HttpBody},
    extract::{FromRequest, FromRequestParts, Request},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header, request::Parts};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::problem::{Problem, ProblemKind};

/// Longest body of a request in bytes: an input with its pictures.
pub(crate) const BODY_BYTES_MAX: usize = 8 << 20;

/// Longest time for the whole body of a request.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The media type of JSON.
pub(crate) const JSON_TYPE: &str = "application/json";

/// A body of JSON.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The query of a request.
pub(crate) struct QueryParameters<T>(pub(crate) T);

/// An answer of JSON.
pub(crate) struct JsonReply<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for JsonReply<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([(header::CONTENT_TYPE, JSON_TYPE)], body).into_response(),
            Err(_) => Problem::new(ProblemKind::Internal, "the answer is not JSON").into_response(),
        }
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        check_type(request.headers())?;
        let bytes = read_body(request.into_body()).await?;
        // A list would fill the fields of an object in their order.
        let object = serde_json::from_slice::<Map<String, Value>>(&bytes);
        let value = object.and_then(|fields| serde_json::from_value(fields.into()));
        value.map(Self).map_err(|error| {
            Problem::bad_request("the body is not what is expected").with_detail(error.to_string())
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned + JsonSchema> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let schema = T::json_schema(&mut SchemaGenerator::default());
        let fields = query_fields(parts.uri.query().unwrap_or_default(), &schema)?;
        serde_json::from_value(fields.into()).map(Self).map_err(|error| {
            Problem::bad_request("the query is not what is expected").with_detail(error.to_string())
        })
    }
}

/// The fields of a query. The schema declares which are numbers.
fn query_fields(query: &str, schema: &Schema) -> Result<Map<String, Value>, Problem> {
    let mut fields = Map::new();
    for (name, text) in form_urlencoded::parse(query.as_bytes()) {
        let kind = schema.get("properties").map(|fields| fields[&*name]["type"].to_string());
        let kind = kind.unwrap_or_default();
        let value = match () {
            () if kind.contains("integer") => text.parse::<u64>().ok().map(Value::from),
            () if kind.contains("boolean") => text.parse::<bool>().ok().map(Value::from),
            () => Some(text.into()),
        };
        let value = value.ok_or_else(|| {
            let problem = Problem::bad_request("the query is not what is expected");
            problem.with_detail(format!("the value of {name} does not fit"))
        })?;
        if fields.insert(name.clone().into_owned(), value).is_some() {
            let problem = Problem::bad_request("the query is not what is expected");
            return Err(problem.with_detail(format!("{name} is there twice")));
        }
    }
    Ok(fields)
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = given.and_then(|given| given.split(';').next()).map(str::trim);
    match essence {
        Some(essence) if essence.eq_ignore_ascii_case(JSON_TYPE) => Ok(()),
        _ => Err(Problem::new(ProblemKind::MediaType, "the body must be application/json")),
    }
}

async fn read_body(body: Body) -> Result<body::Bytes, Problem> {
    let too_large = || {
        let title = format!("the body has more than {BODY_BYTES_MAX} bytes");
        Problem::new(ProblemKind::BodyTooLarge, title)
    };
    // What announces that it is too large is not read.
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let reading = tokio::time::timeout(BODY_TIME_MAX, body::to_bytes(body, BODY_BYTES_MAX));
    match reading.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_length_error(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::bad_request("the body broke off")),
        Err(_) => {
            Err(Problem::new(ProblemKind::RequestTimeout, "the body did not arrive in 30 seconds"))
        }
    }
}

fn is_length_error(error: &axum::Error) -> bool {
    error.source().is_some_and(|source| source.is::<http_body_util::LengthLimitError>())
}
