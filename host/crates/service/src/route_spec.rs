//! What a route is: its method, its path, who may use it, and what it takes and answers.

use std::sync::Arc;

use axum::{
    handler::Handler,
    routing::{MethodRouter, get, post},
};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::{access::RouteAccess, request_body::JSON_TYPE, role::UserRole, service::Service};

/// Makes the schema of a type.
pub(crate) type SchemaMaker = fn(&mut SchemaGenerator) -> Schema;

/// One route.
pub(crate) struct RouteSpec {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: RouteAccess,
    /// The name of the operation, for generated clients.
    pub(crate) name: &'static str,
    /// What it does, in one sentence.
    pub(crate) summary: &'static str,
    pub(crate) query: Option<SchemaMaker>,
    pub(crate) body: Option<SchemaMaker>,
    /// The successful answers.
    pub(crate) answers: Vec<RouteAnswer>,
    /// Whether it takes the header Idempotency-Key.
    pub(crate) takes_key: bool,
    /// Whether it takes the header Last-Event-ID.
    pub(crate) takes_event_id: bool,
    pub(crate) handler: MethodRouter<Arc<Service>>,
}

/// A successful answer.
pub(crate) struct RouteAnswer {
    pub(crate) status: u16,
    /// The media types, each with the schema of what it carries. Without any, there is no body.
    pub(crate) content: Vec<(&'static str, SchemaMaker)>,
}

impl RouteAnswer {
    /// An answer of one media type, which carries a type.
    pub(crate) fn new<T: JsonSchema>(status: u16, media_type: &'static str) -> Self {
        Self { status, content: vec![(media_type, SchemaGenerator::subschema_for::<T>)] }
    }
}

impl RouteSpec {
    pub(crate) fn get<H, T>(access: RouteAccess, path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Service>>,
        T: 'static,
    {
        Self::new(Method::GET, access, path, get(handler))
    }

    pub(crate) fn post<H, T>(path: &'static str, handler: H) -> Self
    where
        H: Handler<T, Arc<Service>>,
        T: 'static,
    {
        Self::new(Method::POST, RouteAccess::Role(UserRole::User), path, post(handler))
    }

    fn new(
        method: Method,
        access: RouteAccess,
        path: &'static str,
        handler: MethodRouter<Arc<Service>>,
    ) -> Self {
        Self {
            method,
            path,
            access,
            name: "",
            summary: "",
            query: None,
            body: None,
            answers: Vec::new(),
            takes_key: false,
            takes_event_id: false,
            handler,
        }
    }

    pub(crate) fn named(self, name: &'static str, summary: &'static str) -> Self {
        Self { name, summary, ..self }
    }

    pub(crate) fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }
    }

    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(SchemaGenerator::subschema_for::<T>), ..self }
    }

    pub(crate) fn answers<T: JsonSchema>(self, status: u16) -> Self {
        self.with_answer(RouteAnswer::new::<T>(status, JSON_TYPE))
    }

    pub(crate) fn with_answer(mut self, answer: RouteAnswer) -> Self {
        self.answers.push(answer);
        self
    }

    pub(crate) fn keyed(self) -> Self {
        Self { takes_key: true, ..self }
    }
}
