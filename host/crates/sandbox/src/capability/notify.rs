//! `notify`: messages to the user.

use std::time::Instant;

use sallyport_contract::{
    services::{DeliveryTime, NoticeAudience, NoticeError, PluginNotice},
    text,
};
use sallyport_policy::{Capability, NotifyGrant};

use super::{apart, cannot_be_used};
use crate::{
    bindings::v0_1::sallyport::plugin::notify::{Audience as To, Error, Host, Message},
    guest::Guest,
    rate::Turn,
};

/// Longest text of a message in bytes, shown or spoken.
const TEXT_BYTES_MAX: usize = 4096;

/// Longest excerpt of an unknown audience in the error to the guest, in characters.
const AUDIENCE_CHARS_MAX: usize = 64;

impl Host for Guest {
    async fn send(&mut self, message: Message) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.notify(message).await)
    }
}

impl Guest {
    async fn notify(&mut self, message: Message) -> Result<(), Error> {
        let grant = self.may_notify()?;
        let notice = self.notice(message)?;
        let what = told(&notice);
        let Some(notices) = self.case.warden().services().notices else {
            return Err(Error::Unavailable("there is nobody to tell anything here".to_owned()));
        };
        let delivery = self.delivery(&grant)?;
        let going_on = self.case.ledger.using(Capability::Notify, what);
        apart(move || notices.notify(notice, delivery)).await.map_err(|error| {
            going_on.ended(&format!(": {error}"));
            self.case.ledger.unsaid();
            match error {
                NoticeError::Full => {
                    let per_minute = grant.per_minute;
                    self.limit(format!("{per_minute} messages a minute (notify.per-minute)"))
                }
                NoticeError::Unavailable(_) => Error::Unavailable(cannot_be_used("conversation")),
            }
        })
    }

    fn may_notify(&self) -> Result<NotifyGrant, Error> {
        let grant = self.case.grant();
        grant.notify().cloned().ok_or_else(|| {
            self.case.ledger.refused(grant.deny_capability(Capability::Notify, "send a message"));
            Error::NotGranted
        })
    }

    fn notice(&self, message: Message) -> Result<PluginNotice, Error> {
        let Some(call) = self.case.call() else { return Err(Error::NotGranted) };
        check_length("the text", &message.text)?;
        message.speech.as_deref().map_or(Ok(()), |speech| check_length("the speech", speech))?;
        let audience = audience(message.audience)?;
        let redactor = self.case.warden().redactor();
        let clean = |text: String| redactor.redact_text(&text).into_owned();
        Ok(PluginNotice {
            plugin: self.case.granted().plugin().clone(),
            session_id: call.context().session_id.clone(),
            text: clean(message.text),
            speech: message.speech.map(clean),
            audience,
            late: false,
        })
    }

    /// Counts a message against the limits of the run and of the minute, and decides when it is
    /// shown.
    fn delivery(&mut self, grant: &NotifyGrant) -> Result<DeliveryTime, Error> {
        if !self.uses.notices.take() {
            return Err(self.limit(self.uses.notices.limit("messages")));
        }
        Ok(match self.common.notices.turn(grant.per_minute, Instant::now()) {
            Turn::Now => DeliveryTime::AtOnce,
            Turn::Gathered(after) => DeliveryTime::Gathered(after),
        })
    }

    fn limit(&self, limit: String) -> Error {
        self.case.ledger.limit_reached(limit.clone());
        Error::TooMany(format!("the limit of {limit} is reached"))
    }
}

fn audience(to: To) -> Result<NoticeAudience, Error> {
    match to {
        To::Conversation => Ok(NoticeAudience::Conversation),
        To::User => Ok(NoticeAudience::User),
        To::Other(word) => {
            let word = text::escape_excerpt(&word, AUDIENCE_CHARS_MAX);
            Err(Error::Invalid(format!("the audience {word:?} is not known")))
        }
    }
}

fn check_length(what: &str, text: &str) -> Result<(), Error> {
    if text.trim().is_empty() {
        return Err(Error::Invalid(format!("{what} is empty")));
    }
    match text.len() {
        bytes if bytes <= TEXT_BYTES_MAX => Ok(()),
        bytes => Err(Error::Invalid(format!("{what} has {bytes} bytes, {TEXT_BYTES_MAX} may be"))),
    }
}

fn told(notice: &PluginNotice) -> String {
    let to = match notice.audience {
        NoticeAudience::Conversation => "the conversation",
        NoticeAudience::User => "the user",
    };
    let spoken = notice.speech.as_ref().map_or("", |_| ", spoken");
    format!("a message to {to} ({} bytes{spoken})", notice.text.len())
}
