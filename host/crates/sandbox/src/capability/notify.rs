//! `notify`: messages to the user.

use std::time::Instant;

use sallyport_contract::{
    services::{DeliveryTime, NoticeAudience, NoticeError, PluginNotice},
    text,
};
use sallyport_policy::{Capability, NotifyGrant};

use super::{run_blocking, unavailable_message};
use crate::{
    bindings::v0_1::sallyport::plugin::notify::{Audience as To, Error, Host, Message},
    guest::Guest,
    rate_limiter::EventTiming,
};

/// Longest text of a message in bytes, shown or spoken.
const TEXT_BYTES_MAX: usize = 4096;

/// Longest excerpt of an unknown audience in the error to the guest, in characters.
const AUDIENCE_CHARS_MAX: usize = 64;

impl Host for Guest {
    async fn send(&mut self, message: Message) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.send_notification(message).await)
    }
}

impl Guest {
    async fn send_notification(&mut self, message: Message) -> Result<(), Error> {
        let grant = self.require_notify_grant()?;
        let notice = self.build_notice(message)?;
        let what = describe_notice(&notice);
        let Some(notices) = self.run_context.authorizer().services().notices else {
            return Err(Error::Unavailable("there is nobody to tell anything here".to_owned()));
        };
        let delivery = self.choose_delivery(&grant)?;
        let capability_use = self.run_context.effect_log.begin_use(Capability::Notify, what);
        run_blocking(move || notices.notify(notice, delivery)).await.map_err(|error| {
            capability_use.record_outcome(&format!(": {error}"));
            self.run_context.effect_log.record_undelivered();
            match error {
                NoticeError::Full => {
                    let per_minute = grant.per_minute;
                    self.notify_limit_error(format!(
                        "{per_minute} messages a minute (notify.per-minute)"
                    ))
                }
                NoticeError::Unavailable(_) => {
                    Error::Unavailable(unavailable_message("conversation"))
                }
            }
        })
    }

    fn require_notify_grant(&self) -> Result<NotifyGrant, Error> {
        let grant = self.run_context.current_grant();
        grant.notify().cloned().ok_or_else(|| {
            self.run_context
                .effect_log
                .record_refusal(grant.deny_capability(Capability::Notify, "send a message"));
            Error::NotGranted
        })
    }

    fn build_notice(&self, message: Message) -> Result<PluginNotice, Error> {
        let Some(call) = self.run_context.call() else { return Err(Error::NotGranted) };
        check_text_length("the text", &message.text)?;
        message
            .speech
            .as_deref()
            .map_or(Ok(()), |speech| check_text_length("the speech", speech))?;
        let audience = audience_from_guest(message.audience)?;
        let redactor = self.run_context.authorizer().redactor();
        let clean = |text: String| redactor.redact_text(&text).into_owned();
        Ok(PluginNotice {
            plugin: self.run_context.initial_grant().plugin().clone(),
            session_id: call.context().session_id.clone(),
            text: clean(message.text),
            speech: message.speech.map(clean),
            audience,
            late: false,
        })
    }

    /// Counts a message against the limits of the run and of the minute, and decides when it is
    /// shown.
    fn choose_delivery(&mut self, grant: &NotifyGrant) -> Result<DeliveryTime, Error> {
        if !self.counters.notices.try_count() {
            return Err(self.notify_limit_error(self.counters.notices.limit_text("messages")));
        }
        Ok(match self.shared_state.notices.schedule_event(grant.per_minute, Instant::now()) {
            EventTiming::Now => DeliveryTime::Immediate,
            EventTiming::Gathered(after) => DeliveryTime::Batched(after),
        })
    }

    fn notify_limit_error(&self, limit: String) -> Error {
        self.run_context.effect_log.record_limit(limit.clone());
        Error::TooMany(format!("the limit of {limit} is reached"))
    }
}

fn audience_from_guest(to: To) -> Result<NoticeAudience, Error> {
    match to {
        To::Conversation => Ok(NoticeAudience::Conversation),
        To::User => Ok(NoticeAudience::User),
        To::Other(word) => {
            let word = text::escape_excerpt(&word, AUDIENCE_CHARS_MAX);
            Err(Error::Invalid(format!("the audience {word:?} is not known")))
        }
    }
}

fn check_text_length(what: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Invalid(format!("{what} is empty")));
    }
    match text.len() {
        bytes if bytes <= TEXT_BYTES_MAX => Ok(()),
        bytes => Err(Error::Invalid(format!("{what} has {bytes} bytes, {TEXT_BYTES_MAX} may be"))),
    }
}

fn describe_notice(notice: &PluginNotice) -> String {
    let to = match notice.audience {
        NoticeAudience::Conversation => "the conversation",
        NoticeAudience::User => "the user",
    };
    let spoken = notice.speech.as_ref().map_or("", |_| ", spoken");
    format!("a message to {to} ({} bytes{spoken})", notice.text.len())
}
