//! `notify`: messages to the user.

use std::time::Instant;

use sallyport_contract::{
    services::{DeliveryTime, NoticeAudience, NoticeError, PluginNotice},
    text,
};
use sallyport_policy::{Capability, Grant};

use super::{HostCall, HostCallError, HostCallLimit, error_outcome};
use crate::{
    bindings::v0_1::sallyport::plugin::notify::{Audience as To, Error, Host, Message},
    rate_limiter::EventTiming,
};

/// Longest text of a message in bytes, shown or spoken.
const TEXT_BYTES_MAX: usize = 4096;

/// Longest excerpt of an unknown audience in the error to the guest, in characters.
const AUDIENCE_CHARS_MAX: usize = 64;

/// Messages to the user in one run. The policy's own limit is usually lower.
const NOTICES: HostCallLimit = HostCallLimit { calls_max: 100, unit: "messages" };

/// What the guest attempts, for the refusal.
const WHAT: &str = "send a message";

impl Host for HostCall<'_> {
    async fn send(&mut self, message: Message) -> Result<(), Error> {
        let granted = |grant: &Grant| Some(grant.notify()?.per_minute);
        let per_minute = self.require_grant(Capability::Notify, WHAT, granted).await?;
        let notice = self.build_notice(message)?;
        let what = describe_notice(&notice);
        let notices = self.require_service(
            |services| services.notices,
            "there is nobody to tell anything here",
        )?;
        self.count_call(&NOTICES)?;
        let delivery = match self.shared_state.notices.schedule_event(per_minute, Instant::now()) {
            EventTiming::Now => DeliveryTime::Immediate,
            EventTiming::Gathered(after) => DeliveryTime::Batched(after),
        };
        let user = self.run_context.data_owner().user;
        let work = notices.notify(&user, notice, delivery);
        let sent = self.record_use(Capability::Notify, what, work, error_outcome).await;
        sent.map_err(|error| {
            self.run_context.effect_log.record_undelivered();
            Error::from(match error {
                NoticeError::Full => {
                    let limit = format!("{per_minute} messages a minute (notify.per-minute)");
                    self.reach_limit(limit)
                }
                NoticeError::Unavailable(_) => {
                    HostCallError::Unavailable("the conversation cannot be reached just now")
                }
            })
        })
    }
}

impl HostCall<'_> {
    fn build_notice(&self, message: Message) -> Result<PluginNotice, Error> {
        let call = self.run_context.require_call(WHAT).map_err(HostCallError::Refused)?;
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

super::impl_not_granted_error!(Error, limit: TooMany, unavailable: Unavailable);
