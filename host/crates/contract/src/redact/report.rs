//! Removes secrets from a whole report of a finished call.

use std::borrow::Cow;

use super::Redactor;
use crate::outcome::{CallReport, Content, Denial, Effect, Failure, Outcome, ToolOutput};

impl Redactor {
    /// Removes secrets from every field of a report.
    pub fn report(&self, report: &mut CallReport) {
        if self.is_empty() {
            return;
        }
        match &mut report.outcome {
            Outcome::Completed(output) => self.output(output),
            Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => self.failure(failure),
            Outcome::Denied(denial) => self.denial(denial),
            Outcome::TimedOut { .. } | Outcome::Cancelled => {}
        }
        report.effects.iter_mut().for_each(|effect| self.effect(effect));
    }

    fn output(&self, output: &mut ToolOutput) {
        self.value(&mut output.data);
        output.content.iter_mut().for_each(|part| self.content(part));
        self.maybe(&mut output.speech);
    }

    fn content(&self, part: &mut Content) {
        match part {
            Content::Text { text } => self.clean(text),
            Content::Image { media_type, data } | Content::Audio { media_type, data } => {
                self.clean(media_type);
                if let Cow::Owned(clean) = self.bytes(data) {
                    *data = clean;
                }
            }
            Content::Resource { uri, media_type, title } => {
                self.clean(uri);
                self.maybe(media_type);
                self.maybe(title);
            }
        }
    }

    fn failure(&self, failure: &mut Failure) {
        self.clean(&mut failure.message);
        self.maybe(&mut failure.detail);
        self.maybe(&mut failure.panic);
    }

    fn denial(&self, denial: &mut Denial) {
        self.clean(&mut denial.what);
        self.clean(&mut denial.why);
        self.maybe(&mut denial.fix);
    }

    fn effect(&self, effect: &mut Effect) {
        match effect {
            Effect::Logged { text, .. } => self.clean(text),
            Effect::Requested { what, .. } => self.clean(what),
            Effect::Changed { path } => self.clean(path),
            Effect::SecretUsed { name, to } => {
                self.clean(name);
                self.maybe(to);
            }
            Effect::Asked { what, answer } => {
                self.clean(what);
                self.clean(answer);
            }
            Effect::Used { capability, what } => {
                self.clean(capability);
                self.clean(what);
            }
            Effect::Refused(denial) => self.denial(denial),
        }
    }

    fn maybe(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.clean(text);
        }
    }
}
