//! Stand-ins for the host, so that `cargo test` runs a plugin on the author's machine.
//!
//! They belong to the thread that sets them, which is the test that runs there. What no stand-in is
//! set for is as with an empty policy: no settings, no secrets, no folders, every HTTP request denied.
//!
//! ```
//! use sallyport_sdk::{http, prelude::*, testing};
//!
//! /// Tells how many people are in space.
//! #[tool(read_only)]
//! fn people_in_space() -> Result<u64, ToolError> {
//!     let reply: Value = http::get("https://api.example/astros").send()?.success()?.json()?;
//!     reply["number"].as_u64().ok_or_else(|| ToolError::Failed("no number in it".to_owned()))
//! }
//!
//! assert!(matches!(people_in_space(), Err(ToolError::Denied(_))));
//!
//! testing::http(|_| Ok(http::Response::new(200, r#"{"number": 12}"#)));
//! assert_eq!(people_in_space(), Ok(12));
//! ```

use std::{cell::RefCell, collections::BTreeMap};

use serde_json::{Map, Value};

use crate::{
    CallContext, Output, Tool, ToolError,
    http::{HttpError, Request, Response},
    log::Level,
    secrets::SecretError,
};

type Responder = Box<dyn FnMut(&Request) -> Result<Response, HttpError>>;

thread_local! {
    static SETTINGS: RefCell<Map<String, Value>> = RefCell::default();
    static SECRETS: RefCell<BTreeMap<String, String>> = RefCell::default();
    static FOLDERS: RefCell<Vec<String>> = RefCell::default();
    static RESPONDER: RefCell<Option<Responder>> = const { RefCell::new(None) };
    static LOGGED: RefCell<Vec<(Level, String)>> = RefCell::default();
}

/// Sets the plugin's settings.
///
/// ```
/// use sallyport_sdk::{settings, testing};
///
/// testing::settings(serde_json::json!({ "units": "metric" }));
/// assert_eq!(settings::get::<String>("units"), Ok("metric".to_owned()));
/// ```
///
/// # Panics
///
/// Settings that are not a JSON object.
pub fn settings(settings: Value) {
    let Value::Object(settings) = settings else { panic!("settings are a JSON object") };
    SETTINGS.set(settings);
}

/// Answers HTTP requests.
///
/// ```
/// use sallyport_sdk::{http, testing};
///
/// testing::http(|request| Ok(http::Response::new(200, request.url.as_str())));
/// assert_eq!(http::get("https://a.example/").send()?.text()?, "https://a.example/");
/// # Ok::<(), http::HttpError>(())
/// ```
pub fn http(responder: impl FnMut(&Request) -> Result<Response, HttpError> + 'static) {
    RESPONDER.set(Some(Box::new(responder)));
}

/// Gives a secret to the plugin.
///
/// ```
/// sallyport_sdk::testing::secret("pin", "4711-0815");
/// assert_eq!(sallyport_sdk::secrets::get("pin").unwrap(), "4711-0815");
/// ```
pub fn secret(name: impl Into<String>, value: impl Into<String>) {
    SECRETS.with_borrow_mut(|secrets| secrets.insert(name.into(), value.into()));
}

/// Grants folders, as far as [`folders::granted`](crate::folders::granted) tells.
///
/// ```
/// sallyport_sdk::testing::folders(["/notes"]);
/// assert_eq!(sallyport_sdk::folders::granted(), ["/notes"]);
/// ```
pub fn folders<P: Into<String>>(paths: impl IntoIterator<Item = P>) {
    FOLDERS.set(paths.into_iter().map(P::into).collect());
}

/// Returns the lines that were logged since it was asked last.
///
/// ```
/// use sallyport_sdk::{log, testing};
///
/// log::warn("slow");
/// assert_eq!(testing::logged(), [(log::Level::Warn, "slow".to_owned())]);
/// assert_eq!(testing::logged(), []);
/// ```
pub fn logged() -> Vec<(Level, String)> {
    LOGGED.take()
}

/// Calls a tool as the host does, with arguments as JSON.
///
/// A tool's function can be called directly too; this way also tests how its arguments are read.
///
/// ```
/// use sallyport_sdk::{prelude::*, testing};
///
/// /// Tells who is asking.
/// #[tool]
/// fn whoami(context: &CallContext) -> Option<String> {
///     context.user_id.clone()
/// }
///
/// assert_eq!(testing::call::<whoami>(json!({})), Ok(Output::new(json!(null))));
/// ```
///
/// # Errors
///
/// Arguments that do not fit, or what the tool returned.
pub fn call<T: Tool>(arguments: Value) -> Result<Output, ToolError> {
    T::call(&CallContext::default(), &arguments.to_string())
}

pub(crate) fn setting(key: &str) -> Option<String> {
    SETTINGS.with_borrow(|settings| settings.get(key).map(Value::to_string))
}

pub(crate) fn all_settings() -> String {
    SETTINGS.with_borrow(|settings| Value::Object(settings.clone()).to_string())
}

pub(crate) fn revealed(name: &str) -> Result<String, SecretError> {
    let value = SECRETS.with_borrow(|secrets| secrets.get(name).cloned());
    value.ok_or_else(|| SecretError::NotGranted { name: name.to_owned() })
}

pub(crate) fn granted_folders() -> Vec<String> {
    FOLDERS.with_borrow(Vec::clone)
}

pub(crate) fn log(level: Level, message: String) {
    LOGGED.with_borrow_mut(|lines| lines.push((level, message)));
}

/// Takes the stand-in out while it runs, so that it may itself send requests.
pub(crate) fn respond(request: &Request) -> Result<Response, HttpError> {
    let Some(mut responder) = RESPONDER.take() else {
        return Err(HttpError::Denied { origin: request.origin() });
    };
    let response = responder(request);
    RESPONDER.with_borrow_mut(|slot| {
        slot.get_or_insert(responder);
    });
    response
}
