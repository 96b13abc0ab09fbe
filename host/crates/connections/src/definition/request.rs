//! The request of an action: a template over its arguments.
//!
//! The origin of the address is fixed when the file is loaded. An argument is always encoded, so it
//! can be a part of the path or a value of the query, and can never change where the request goes.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sallyport_policy::{NetPattern, SourceError};
use serde_json::Value;
use url::Url;

use super::{
    answer::AnswerTemplate,
    auth::is_safe_for_tokens,
    file::RequestSection,
    names::{ParameterNames, with_defaults},
    place::DefinitionSource,
    template::{TemplatePart, TextTemplate, argument, value_text},
    variables::VariableReader,
};

/// Everything that has a meaning in an address; RFC 3986 calls the others unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The methods that a request can have.
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Headers that the host sets: they decide where a message goes, where it ends and who sent it.
const HOST_HEADERS: [&str; 14] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// The request of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTemplate {
    method: String,
    url: TextTemplate,
    origin: url::Origin,
    query: BTreeMap<String, TextTemplate>,
    headers: BTreeMap<String, TextTemplate>,
    body: BodyTemplate,
    parameters: Value,
    /// What its answer means.
    pub answer: AnswerTemplate,
}

#[derive(Debug, Clone, PartialEq)]
enum BodyTemplate {
    None,
    Json(JsonTemplate),
    Form(BTreeMap<String, TextTemplate>),
}

/// A JSON value whose texts are templates.
#[derive(Debug, Clone, PartialEq)]
enum JsonTemplate {
    Text(TextTemplate),
    List(Vec<JsonTemplate>),
    Object(BTreeMap<String, JsonTemplate>),
    Other(Value),
}

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRequest {
    /// The method.
    pub method: String,
    /// The address.
    pub url: Url,
    /// Names and values of headers, without that of the sign-in.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why arguments make no request. The model reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// An argument of the path is empty, or would change the path.
    #[error("an argument cannot be part of the address: it is empty, or leads out of its path")]
    Path,
    /// An argument cannot be in a header.
    #[error("an argument has a line break or a sign that a header cannot contain")]
    Header,
}

impl RequestTemplate {
    pub(super) fn read(
        section: RequestSection,
        keys: &[&str],
        parameters: &Value,
        source: &DefinitionSource<'_>,
        variables: &mut VariableReader<'_>,
    ) -> Result<Self, SourceError> {
        let reader = TemplateReader { names: ParameterNames::new(parameters), keys, source };
        let method = section.method.to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            let error = reader.error(&["method"], "this method is not known");
            return Err(error.with_hint(format!("write {}", METHODS.join(", "))));
        }
        let written = variables.replace(&[keys, &["url"]].concat(), &section.url)?;
        let (url, origin) = reader.url(&section.url, &written)?;
        let answer = AnswerTemplate::read(&section, &reader)?;
        let has_two_bodies = section.json.is_some() && section.form.is_some();
        if has_two_bodies {
            return Err(reader.error(&["form"], "a request has one body: \"json\" or \"form\""));
        }
        let body = match (section.json, section.form) {
            (Some(json), _) => BodyTemplate::Json(reader.json(&json)?),
            (None, Some(form)) => BodyTemplate::Form(reader.texts("form", form)?),
            (None, None) => BodyTemplate::None,
        };
        let headers = reader.texts("headers", section.headers)?;
        reader.check_headers(&headers)?;
        let query = reader.texts("query", section.query)?;
        let template = Self {
            method,
            url,
            origin,
            query,
            headers,
            body,
            parameters: parameters.clone(),
            answer,
        };
        // An address with a missing variable is never used.
        match written.contains("${") || template.address_pattern().parse::<NetPattern>().is_ok() {
            true => Ok(template),
            false => Err(reader.error(&["url"], "no policy could grant this address")),
        }
    }

    /// The addresses that it can have, as a pattern of a policy.
    pub fn address_pattern(&self) -> String {
        let piece = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Argument(_) => "*".to_owned(),
        };
        let address: String = self.url.parts().iter().map(piece).collect();
        let path_end = address.find(['?', '#']).unwrap_or(address.len());
        format!("{} {}", self.method, &address[..path_end])
    }

    /// Whether a repeated request does no more than the first one.
    pub fn can_be_repeated(&self) -> bool {
        self.method != "POST" && self.method != "PATCH"
    }

    /// The request for these arguments.
    ///
    /// # Errors
    ///
    /// An argument does not fit where it has to go.
    pub fn build(&self, arguments: &Value) -> Result<ServiceRequest, RequestError> {
        let arguments = with_defaults(&self.parameters, arguments);
        let mut url = self.build_url(&arguments)?;
        for (name, template) in &self.query {
            for value in query_values(template, &arguments) {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        let mut headers = Vec::new();
        for (name, template) in &self.headers {
            if let Some(value) = template.fill_text(&arguments, &|text| text.to_owned()) {
                let fits = value.chars().all(|sign| sign == ' ' || sign.is_ascii_graphic());
                headers.push((name.clone(), fits.then_some(value).ok_or(RequestError::Header)?));
            }
        }
        let (content_type, body) = self.body.build(&arguments);
        let has_type = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if let (Some(content_type), false) = (content_type, has_type) {
            headers.push(("Content-Type".to_owned(), content_type.to_owned()));
        }
        Ok(ServiceRequest { method: self.method.clone(), url, headers, body })
    }

    fn build_url(&self, arguments: &Value) -> Result<Url, RequestError> {
        let is_filled = |name: &str| {
            argument(arguments, name).is_some_and(|value| !value_text(value).is_empty())
        };
        if !self.url.names().all(is_filled) {
            return Err(RequestError::Path);
        }
        let encode = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
        let text = self.url.fill_text(arguments, &encode).ok_or(RequestError::Path)?;
        let url = Url::parse(&text).map_err(|_| RequestError::Path)?;
        // A segment of dots would be resolved, and lead elsewhere.
        let has_dots = path_of(&text).split('/').any(|segment| matches!(segment, "." | ".."));
        match url.origin() == self.origin && !has_dots {
            true => Ok(url),
            false => Err(RequestError::Path),
        }
    }
}

/// The host and the path of an address as it is written.
fn path_of(address: &str) -> &str {
    let after_scheme = address.split_once("://").map_or(address, |(_, after)| after);
    let end = after_scheme.find(['?', '#']).unwrap_or(after_scheme.len());
    &after_scheme[..end]
}

/// The values of one name in a query: each entry of a list by itself.
fn query_values(template: &TextTemplate, arguments: &Value) -> Vec<String> {
    match template.fill_value(arguments) {
        Some(Value::Array(items)) => items.iter().map(value_text).collect(),
        Some(value) => vec![value_text(&value)],
        None => Vec::new(),
    }
}

impl BodyTemplate {
    fn build(&self, arguments: &Value) -> (Option<&'static str>, Vec<u8>) {
        match self {
            Self::None => (None, Vec::new()),
            Self::Json(template) => {
                let value = template.fill(arguments).unwrap_or(Value::Null);
                (Some("application/json"), value.to_string().into_bytes())
            }
            Self::Form(fields) => {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                for (name, template) in fields {
                    for value in query_values(template, arguments) {
                        form.append_pair(name, &value);
                    }
                }
                (Some("application/x-www-form-urlencoded"), form.finish().into_bytes())
            }
        }
    }
}

impl JsonTemplate {
    /// The value; `None` if it is one argument that the call does not have.
    fn fill(&self, arguments: &Value) -> Option<Value> {
        match self {
            Self::Text(template) => template.fill_value(arguments),
            Self::Other(value) => Some(value.clone()),
            Self::List(items) => {
                Some(items.iter().filter_map(|item| item.fill(arguments)).collect())
            }
            Self::Object(fields) => {
                let filled = fields
                    .iter()
                    .filter_map(|(name, field)| Some((name.clone(), field.fill(arguments)?)));
                Some(Value::Object(filled.collect()))
            }
        }
    }
}

/// Reads the templates of one request.
pub(super) struct TemplateReader<'a> {
    names: ParameterNames<'a>,
    keys: &'a [&'a str],
    source: &'a DefinitionSource<'a>,
}

impl TemplateReader<'_> {
    pub(super) fn error(&self, keys: &[&str], message: &str) -> SourceError {
        self.source.error(&[self.keys, keys].concat(), message)
    }

    fn text(&self, keys: &[&str], text: &str) -> Result<TextTemplate, SourceError> {
        if text.contains("${") {
            let error = self.error(keys, "a variable may not be here");
            let hint = "${VAR} is for \"auth_config\" and for the start of a request's \"url\"";
            return Err(error.with_hint(hint));
        }
        self.template(keys, text)
    }

    fn template(&self, keys: &[&str], text: &str) -> Result<TextTemplate, SourceError> {
        let template = TextTemplate::parse(text).map_err(|_| {
            self.error(keys, "a brace stands alone").with_hint("write {{ or }} for a brace")
        })?;
        let unknown = template.names().find(|name| !self.names.has(name)).map(str::to_owned);
        match unknown {
            None => Ok(template),
            Some(name) => {
                let error = self.error(keys, &format!("there is no parameter \"{name}\""));
                Err(error.with_hint(format!("the parameters are {}", self.names.all().join(", "))))
            }
        }
    }

    fn texts(
        &self,
        key: &str,
        texts: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, TextTemplate>, SourceError> {
        let template = |(name, text): (String, String)| {
            let template = self.text(&[key, &name], &text)?;
            Ok((name, template))
        };
        texts.into_iter().map(template).collect()
    }

    fn json(&self, value: &Value) -> Result<JsonTemplate, SourceError> {
        Ok(match value {
            Value::String(text) => JsonTemplate::Text(self.text(&["json"], text)?),
            Value::Array(items) => JsonTemplate::List(
                items.iter().map(|item| self.json(item)).collect::<Result<_, _>>()?,
            ),
            Value::Object(fields) => {
                let field =
                    |(name, value): (&String, &Value)| Ok((name.clone(), self.json(value)?));
                JsonTemplate::Object(fields.iter().map(field).collect::<Result<_, _>>()?)
            }
            other => JsonTemplate::Other(other.clone()),
        })
    }

    /// Reads the address, whose origin no argument may choose. `written` has the values of the
    /// variables.
    fn url(&self, text: &str, written: &str) -> Result<(TextTemplate, url::Origin), SourceError> {
        let starts_fixed = |text: &str| {
            let rest = text.split_once("://").map_or("{", |(_, rest)| rest);
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            !rest[..end].replace("${", "").contains('{')
        };
        if text.rfind("${").is_some_and(|at| at > 0 && !text[..at].ends_with("://")) {
            let error = self.error(&["url"], "a variable can only be at the start of an address");
            return Err(error.with_hint("write \"${SERVICE_URL}/path\""));
        }
        // Without the variable's value, the rest is still checked.
        let is_unset = written.contains("${");
        let stand_in = || match written.split_once('}') {
            Some((_, rest)) => format!("https://unset.invalid{rest}"),
            None => written.to_owned(),
        };
        let address = if is_unset { stand_in() } else { written.to_owned() };
        if !starts_fixed(&address) {
            let error =
                self.error(&["url"], "an argument could send the request to another server");
            return Err(error.with_hint("write the scheme, the host and the port out"));
        }
        let template = self.template(&["url"], &address)?;
        if let Some(name) = template.names().find(|name| !self.names.is_always_given(name)) {
            let message = format!("the address needs \"{name}\", which a call may leave out");
            let error = self.error(&["url"], &message);
            return Err(error.with_hint("put it into \"required\", or give it a \"default\""));
        }
        let url = template.fill_text(&Value::Null, &|_| String::new());
        let plain: String = template
            .parts()
            .iter()
            .map(|part| match part {
                TemplatePart::Text(text) => text.as_str(),
                TemplatePart::Argument(_) => "x",
            })
            .collect();
        let url = Url::parse(url.as_deref().unwrap_or(&plain));
        let url = url.map_err(|_| self.error(&["url"], "this is not an address"))?;
        // A service in the user's own network may have no certificate, so plain http is left to the
        // policy, which has to name the address.
        let is_http = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
        match is_http || is_safe_for_tokens(&url) {
            true => Ok((template, url.origin())),
            false => Err(self.error(&["url"], "this is not an address of http or https")),
        }
    }

    fn check_headers(&self, headers: &BTreeMap<String, TextTemplate>) -> Result<(), SourceError> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        for name in headers.keys() {
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(self.error(&["headers", name], "this is not the name of a header"));
            }
            if HOST_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                let error = self.error(&["headers", name], "the host sets this header");
                return Err(error.with_hint("the sign-in is sent by itself; leave it out"));
            }
        }
        Ok(())
    }
}
