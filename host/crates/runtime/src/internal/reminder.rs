//! Reminders: a text that the user wants to receive at a given time, in the conversation that set
//! it.
//!
//! A reminder is a timer in the store, so it outlives the host. Its message goes to the
//! conversation that set it, immediately or when that conversation is resumed. Other conversations
//! can list and cancel it.

use jiff::{Timestamp, Zoned};
use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, DataOwner, Effect, FailureKind, Outcome, PluginName,
    ToolDescriptor, ToolHints, ToolId, ToolName, ToolOutput, async_trait,
    services::{
        NoticeAudience, PluginNotice, StoredTimer, TimerError, TimerFiring, TimerRequest,
        TimerSchedule, TimerStore,
    },
    text,
};
use sallyport_policy::{Capability, Manifest};
use sallyport_schedule::{TimeExpressionError, describe_moment, is_repeating, parse_moment};
use serde_json::{Value, json};

use super::{InternalCallContext, InternalTool};

/// The name of the tool group.
const NAME: &str = "reminder";

/// Maximum length of a reminder, in characters. The user can read that much at a glance.
const TEXT_CHARS_MAX: usize = 500;

/// Maximum length of a time expression, in characters. `schedule` parses it.
const WHEN_CHARS_MAX: usize = 200;

/// Maximum number of reminders per user. More call for a calendar.
const REMINDERS_MAX: u32 = 256;

/// Minimum time between two repetitions, in milliseconds.
const INTERVAL_MS_MIN: u64 = 60 * 1000;

/// Maximum length of a reminder in a list of several, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Maximum number of reminders that a sentence names. The data of the list contains all of them.
const LISTED_MAX: usize = 10;

/// The names of the three tools.
const CREATE: &str = "create";
const LIST: &str = "list";
const CANCEL: &str = "cancel";

/// The reminder tools.
pub(super) struct ReminderTool;

#[async_trait]
impl InternalTool for ReminderTool {
    fn manifest(&self) -> Manifest {
        Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            description: "Reminds the user of something at a time that they say.".to_owned(),
            ..Manifest::for_bare_component(plugin_name())
        }
    }

    fn tools(&self) -> Vec<ToolDescriptor> {
        vec![create_tool_spec(), list_tool_spec(), cancel_tool_spec()]
    }

    async fn call_tool(&self, call: &AdmittedCall, context: &InternalCallContext) -> CallReport {
        let Some(timers) = &context.services.timers else {
            let why = "reminders cannot be kept: this host has no timers";
            return failure_outcome(FailureKind::Unavailable, why).into();
        };
        let reminder_call =
            ReminderCall { timers: &**timers, call, context, owner: timer_owner(context) };
        let answered = match call.tool().tool.as_str() {
            CREATE => reminder_call.create_reminder().await,
            LIST => reminder_call.list_reminders().await.map(CallReport::from),
            CANCEL => reminder_call.cancel_reminder().await,
            other => {
                Err(failure_outcome(FailureKind::NotFound, format!("there is no tool {other}")))
            }
        };
        answered.unwrap_or_else(CallReport::from)
    }

    fn firing_notice(&self, firing: &TimerFiring) -> PluginNotice {
        let spoken_text = reminder_text(&firing.timer);
        PluginNotice {
            plugin: plugin_name(),
            session_id: firing.timer.session_id.clone(),
            text: format!("Reminder: {spoken_text}{}", firing_remark(firing)),
            speech: Some(spoken_text),
            audience: NoticeAudience::Conversation,
            late: firing.late,
        }
    }
}

/// Joins at most [`NAMED_MAX`] names, and appends the number of the others.
fn join_names(mut names: impl Iterator<Item = String>) -> String {
    let listed = names.by_ref().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// Returns a remark about missed or repeated firings.
fn firing_remark(firing: &TimerFiring) -> String {
    match (firing.missed, firing.will_repeat) {
        (0, false) => String::new(),
        (0, true) => " (it may have been said already)".to_owned(),
        (1, _) => " (it was missed once more)".to_owned(),
        (missed, _) => format!(" (it was missed {missed} more times)"),
    }
}

fn plugin_name() -> PluginName {
    NAME.parse().expect("it is a plugin's name")
}

fn timer_owner(context: &InternalCallContext) -> DataOwner {
    DataOwner { plugin: plugin_name(), user: context.user.clone() }
}

fn tool_spec(
    tool: &str,
    description: &str,
    properties: Value,
    required: &[&str],
) -> ToolDescriptor {
    let tool: ToolName = tool.parse().expect("it is a tool's name");
    ToolDescriptor {
        id: ToolId::new(plugin_name(), tool),
        title: None,
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": properties,
            "required": required,
        }),
        output: None,
        hints: ToolHints { open_world: Some(false), ..ToolHints::default() },
    }
}

fn create_tool_spec() -> ToolDescriptor {
    let description = "Sets a reminder: reminds the user of something, once or again and again, in \
                       this conversation.";
    let properties = json!({
        "text": {
            "type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX, "pattern": "\\S",
            "description": "What to remind the user of, such as \"call mum\".",
        },
        "when": {
            "type": "string", "minLength": 1, "maxLength": WHEN_CHARS_MAX,
            "description": "When, in the user's words: \"in 20 minutes\", \"tomorrow at 9\", \
                            \"on Friday at noon\", \"2026-12-24 18:00\", \"every weekday at 8:30\".",
        },
    });
    tool_spec(CREATE, description, properties, &["text", "when"])
}

fn list_tool_spec() -> ToolDescriptor {
    let description = "Lists the user's reminders with their ids, the next one first.";
    let mut spec = tool_spec(LIST, description, json!({}), &[]);
    spec.hints.read_only = Some(true);
    spec
}

fn cancel_tool_spec() -> ToolDescriptor {
    let description = "Cancels a reminder, by its id or by words of its text.";
    let properties = json!({
        "reminder": {
            "type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX, "pattern": "\\S",
            "description": "The id of the reminder, or words of its text.",
        },
    });
    let mut spec = tool_spec(CANCEL, description, properties, &["reminder"]);
    spec.hints.destructive = Some(true);
    spec
}

/// One call, with everything that it needs.
struct ReminderCall<'a> {
    timers: &'a dyn TimerStore,
    call: &'a AdmittedCall,
    context: &'a InternalCallContext,
    owner: DataOwner,
}

impl ReminderCall<'_> {
    async fn create_reminder(&self) -> Result<CallReport, Outcome> {
        let (text, when) = (self.text_argument("text"), self.text_argument("when"));
        let moment = parse_moment(when, &self.context.now).map_err(invalid_time_outcome)?;
        let timer = self
            .timers
            .add_timer(&self.owner, self.timer_plan(text, moment))
            .await
            .map_err(timer_error_outcome)?;
        let when = self.describe_time(&timer);
        let output = ToolOutput {
            data: self.to_json(&timer),
            speech: Some(format!("I will remind you {when}.")),
            ..ToolOutput::default()
        };
        Ok(completed_report(format!("set reminder {}, {when}", timer.id), output))
    }

    fn timer_plan(&self, text: &str, moment: TimerSchedule) -> TimerRequest {
        TimerRequest {
            schedule: moment,
            label: Some(text::escape_excerpt(text, SHOWN_CHARS_MAX)),
            payload: json!({ "text": text }).to_string(),
            session_id: self.call.context().session_id.clone(),
            interval_ms_min: INTERVAL_MS_MIN,
            timers_max: REMINDERS_MAX,
        }
    }

    async fn list_reminders(&self) -> Result<Outcome, Outcome> {
        let timers = self.timers.list_timers(&self.owner).await.map_err(timer_error_outcome)?;
        let reminders: Value = timers.iter().map(|timer| self.to_json(timer)).collect();
        let data = json!({ "reminders": reminders });
        let speech = Some(self.list_summary(&timers));
        Ok(Outcome::Completed(ToolOutput { data, speech, ..ToolOutput::default() }))
    }

    fn list_summary(&self, timers: &[StoredTimer]) -> String {
        match timers {
            [] => "No reminders.".to_owned(),
            [one] => format!("There is one reminder, {}.", self.describe_one(one)),
            several => {
                let briefs = several.iter().map(|timer| self.describe_one(timer));
                format!("There are {} reminders: {}.", several.len(), join_names(briefs))
            }
        }
    }

    async fn cancel_reminder(&self) -> Result<CallReport, Outcome> {
        let timers = self.timers.list_timers(&self.owner).await.map_err(timer_error_outcome)?;
        let timer = self.find_reminder(&timers, self.text_argument("reminder").trim())?;
        if !self.timers.cancel_timer(&self.owner, &timer.id).await.map_err(timer_error_outcome)? {
            // The timer fired between `list` and `cancel`.
            let message = format!("the reminder \"{}\" has just come", reminder_text(timer));
            return Err(failure_outcome(FailureKind::NotFound, message));
        }
        let output = ToolOutput {
            data: json!({ "cancelled": self.to_json(timer) }),
            speech: Some("The reminder is cancelled.".to_owned()),
            ..ToolOutput::default()
        };
        Ok(completed_report(format!("cancelled reminder {}", timer.id), output))
    }

    /// Finds the reminder that the user means: by its id, else by part of its text. Reminders of
    /// this conversation take precedence.
    fn find_reminder<'t>(
        &self,
        timers: &'t [StoredTimer],
        query: &str,
    ) -> Result<&'t StoredTimer, Outcome> {
        if let Some(timer) = timers.iter().find(|timer| timer.id == query) {
            return Ok(timer);
        }
        let wanted = query.to_lowercase();
        let fitting =
            timers.iter().filter(|timer| reminder_text(timer).to_lowercase().contains(&wanted));
        let (in_conversation, in_others): (Vec<_>, Vec<_>) =
            fitting.partition(|timer| self.is_in_this_conversation(timer));
        match (in_conversation.as_slice(), in_others.as_slice()) {
            ([one], _) | ([], [one]) => Ok(one),
            ([], []) => {
                let quoted = text::escape_excerpt(query, SHOWN_CHARS_MAX);
                let message =
                    format!("there is no reminder \"{quoted}\"; {}", self.describe_all(timers));
                Err(failure_outcome(FailureKind::NotFound, message))
            }
            ([], several) | (several, _) => {
                let several = several.iter().copied();
                let message = format!("several reminders fit: {}", self.describe_several(several));
                Err(failure_outcome(FailureKind::Failed, message + "; name one by its id"))
            }
        }
    }

    fn describe_all(&self, timers: &[StoredTimer]) -> String {
        match timers {
            [] => "there is none at all".to_owned(),
            some => format!("there is {}", self.describe_several(some.iter())),
        }
    }

    fn describe_several<'t>(&self, timers: impl Iterator<Item = &'t StoredTimer>) -> String {
        join_names(timers.map(|timer| format!("{} ({})", timer.id, self.describe_one(timer))))
    }

    fn describe_one(&self, timer: &StoredTimer) -> String {
        format!(
            "\"{}\" {}",
            text::escape_excerpt(&reminder_text(timer), SHOWN_CHARS_MAX),
            self.describe_time(timer)
        )
    }

    fn describe_time(&self, timer: &StoredTimer) -> String {
        describe_moment(&timer.schedule, timer.next_ms, &self.context.now)
    }

    fn to_json(&self, timer: &StoredTimer) -> Value {
        json!({
            "id": timer.id,
            "text": reminder_text(timer),
            "when": self.describe_time(timer),
            "next": format_timestamp(timer.next_ms, &self.context.now),
            "repeats": is_repeating(&timer.schedule),
            "in_this_conversation": self.is_in_this_conversation(timer),
        })
    }

    fn is_in_this_conversation(&self, timer: &StoredTimer) -> bool {
        timer.session_id == self.call.context().session_id
    }

    /// Returns an argument that the schema requires.
    fn text_argument(&self, name: &str) -> &str {
        self.call.arguments()[name].as_str().unwrap_or_default()
    }
}

/// Returns the text of a reminder.
fn reminder_text(timer: &StoredTimer) -> String {
    let payload: Option<Value> = serde_json::from_str(&timer.payload).ok();
    let text = payload.as_ref().and_then(|payload| payload["text"].as_str());
    text.or(timer.label.as_deref()).unwrap_or("something").to_owned()
}

/// Formats a time as RFC 3339 in the user's time zone.
fn format_timestamp(at_ms: u64, now: &Zoned) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(at.to_zoned(now.time_zone().clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

fn completed_report(what: String, output: ToolOutput) -> CallReport {
    let capability = Capability::Schedule.as_str().to_owned();
    let effects = vec![Effect::Used { capability, what }];
    CallReport { effects, ..CallReport::from(Outcome::Completed(output)) }
}

fn invalid_time_outcome(error: TimeExpressionError) -> Outcome {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    let failure = CallFailure::new(FailureKind::InvalidArguments, format!("{error}{hint}"));
    Outcome::InvalidArguments(failure)
}

fn timer_error_outcome(error: TimerError) -> Outcome {
    match error {
        TimerError::Invalid(_) => {
            let failure = CallFailure::new(FailureKind::InvalidArguments, error.to_string());
            Outcome::InvalidArguments(failure)
        }
        TimerError::TooMany { max } => {
            let message = format!("there are {max} reminders already; cancel one first");
            failure_outcome(FailureKind::LimitReached, message)
        }
        TimerError::Unavailable(why) => {
            let message = "reminders cannot be kept for now";
            Outcome::Failed(CallFailure::new(FailureKind::Unavailable, message).with_detail(why))
        }
    }
}

fn failure_outcome(kind: FailureKind, message: impl Into<String>) -> Outcome {
    Outcome::Failed(CallFailure::new(kind, message))
}

#[cfg(test)]
mod tests;
