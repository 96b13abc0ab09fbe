//! Fakes of the host, so that `cargo test` can run a plugin on the author's machine.
//!
//! Each fake belongs to the thread that sets it, which is the thread of the test. Everything else
//! behaves as with an empty policy: no settings, no secrets, no folders, no [`Power`], and every
//! HTTP request is denied.
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

pub(crate) mod schedule;
pub(crate) mod state;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Map, Value};

use crate::{
    CallContext, Output, Tool, ToolError,
    http::{HttpError, Request, Response},
    log::Level,
    schedule::Firing,
    secrets::SecretError,
};

pub use crate::{
    inbox::host::submitted,
    notify::host::noticed,
    open_url::host::opened,
    packages::host::package,
    progress::host::progressed,
    provider::host::deltas,
    ui::host::{commands, printed, question, shown_status as status},
};

type Responder = Box<dyn FnMut(&Request) -> Result<Response, HttpError>>;

/// Bytes of a body that arrive together: so few that a plugin cannot rely on complete lines or
/// characters.
const PIECE_BYTES: usize = 7;

/// A capability that a policy grants to a plugin by name alone.
///
/// ```
/// use sallyport_sdk::{notify::{self, Message}, testing::{self, Power}};
///
/// assert!(notify::send(&Message::new("Hello")).is_err());
/// testing::grant([Power::Notify]);
/// assert!(notify::send(&Message::new("Hello")).is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// [`state`](mod@crate::state).
    State,
    /// [`schedule`](mod@crate::schedule).
    Schedule,
    /// [`notify`](mod@crate::notify).
    Notify,
    /// [`progress`](mod@crate::progress).
    Progress,
    /// [`open_url`](mod@crate::open_url).
    OpenUrl,
    /// [`packages`](mod@crate::packages).
    Packages,
    /// [`inbox`](mod@crate::inbox).
    Inbox,
    /// [`ui`](mod@crate::ui): submitting input, answering questions and cancelling.
    Ui,
}

thread_local! {
    static SETTINGS: RefCell<Map<String, Value>> = RefCell::default();
    static SECRETS: RefCell<BTreeMap<String, String>> = RefCell::default();
    static FOLDERS: RefCell<Vec<String>> = RefCell::default();
    static RESPONDER: RefCell<Option<Responder>> = const { RefCell::new(None) };
    static LOGGED: RefCell<Vec<(Level, String)>> = RefCell::default();
    static POWERS: RefCell<BTreeSet<Power>> = RefCell::default();
}

/// Grants these powers, and revokes all others.
///
/// ```
/// use sallyport_sdk::{state, testing::{self, Power}};
///
/// testing::grant([Power::State, Power::Notify]);
/// assert!(state::set("a", &1).is_ok());
/// testing::grant([]);
/// assert!(state::set("a", &1).is_err());
/// ```
pub fn grant(powers: impl IntoIterator<Item = Power>) {
    POWERS.set(powers.into_iter().collect());
}

/// Lets time pass. Expired values are deleted, and the timers that become due are returned as
/// firings, in order of time.
///
/// A firing that is more than two seconds overdue is late. A calendar is treated as "every 24
/// hours".
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::{schedule::{self, Moment}, testing};
///
/// testing::grant([testing::Power::Schedule]);
/// schedule::add(Moment::In(Duration::from_secs(60)), Some("egg"), &())?;
/// assert_eq!(testing::pass(Duration::from_secs(59)), []);
/// assert_eq!(testing::pass(Duration::from_secs(1))[0].timer.label.as_deref(), Some("egg"));
/// # Ok::<(), schedule::ScheduleError>(())
/// ```
pub fn pass(time: Duration) -> Vec<Firing> {
    schedule::pass(time)
}

/// Sets the plugin's settings, and replaces earlier ones.
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
/// `settings` is not a JSON object.
pub fn settings(settings: Value) {
    let Value::Object(settings) = settings else { panic!("settings are a JSON object") };
    SETTINGS.set(settings);
}

/// Sets the function that answers HTTP requests.
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

/// Reveals a secret to the plugin.
///
/// ```
/// sallyport_sdk::testing::secret("pin", "4711-0815");
/// assert_eq!(sallyport_sdk::secrets::get("pin").unwrap(), "4711-0815");
/// ```
pub fn secret(name: impl Into<String>, value: impl Into<String>) {
    SECRETS.with_borrow_mut(|secrets| secrets.insert(name.into(), value.into()));
}

/// Sets the paths that [`folders::granted`](crate::folders::granted) returns. Does not create
/// folders.
///
/// ```
/// sallyport_sdk::testing::folders(["/notes"]);
/// assert_eq!(sallyport_sdk::folders::granted(), ["/notes"]);
/// ```
pub fn folders<P: Into<String>>(paths: impl IntoIterator<Item = P>) {
    FOLDERS.set(paths.into_iter().map(P::into).collect());
}

/// Returns the lines that were logged since the last call.
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
/// A test can also call the tool's function directly. This function also tests how the arguments
/// are parsed.
///
/// ```
/// use sallyport_sdk::{prelude::*, testing};
///
/// /// Tells in which conversation it is called.
/// #[tool]
/// fn where_am_i(context: &CallContext) -> Option<String> {
///     context.conversation_id.clone()
/// }
///
/// assert_eq!(testing::call::<where_am_i>(json!({})), Ok(Output::new(json!(null))));
/// ```
///
/// # Errors
///
/// The arguments are invalid, or the tool returned an error.
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

pub(crate) fn is_granted(power: Power) -> bool {
    POWERS.with_borrow(|powers| powers.contains(&power))
}

/// Why a text is refused that has no words.
pub(crate) fn nothing_in(text: &str) -> Option<String> {
    text.trim().is_empty().then(|| "it is empty".to_owned())
}

pub(crate) mod http_body {
    //! Responses to requests, which arrive in small pieces.

    use super::{HttpError, PIECE_BYTES, RESPONDER, Request};
    use crate::http::Stream;

    /// The rest of a response body.
    #[derive(Debug)]
    pub(crate) struct Body(std::vec::IntoIter<u8>);

    impl Body {
        pub(crate) fn piece(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
            let piece: Vec<u8> = self.0.by_ref().take(PIECE_BYTES).collect();
            Ok(Some(piece).filter(|piece| !piece.is_empty()))
        }
    }

    /// Takes the responder out while it runs, because it may itself send a request, which is
    /// denied, or set another responder, which then stays.
    pub(crate) fn open(request: &Request) -> Result<Stream, HttpError> {
        let Some(mut responder) = RESPONDER.take() else {
            return Err(HttpError::Denied { origin: request.origin() });
        };
        let response = responder(request);
        RESPONDER.with_borrow_mut(|slot| {
            slot.get_or_insert(responder);
        });
        let response = response?;
        Ok(Stream::new(
            response.status,
            response.headers,
            Body(response.body.into_iter()),
            request.room(),
        ))
    }
}
