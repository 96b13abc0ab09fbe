//! Removes secrets from a whole report of a finished call.

use std::borrow::Cow;

use super::Redactor;
use crate::{
    Denial, FixGrant,
    outcome::{CallFailure, CallReport, ContentPart, Effect, Outcome, ToolOutput},
    resource::{ResourceContents, ResourceData},
};

impl Redactor {
    /// Removes secrets from every field of a report.
    pub fn redact_report(&self, report: &mut CallReport) {
        if self.is_empty() {
            return;
        }
        match &mut report.outcome {
            Outcome::Completed(output) => self.redact_output(output),
            Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
                self.redact_failure(failure)
            }
            Outcome::Denied(denial) => self.redact_denial(denial),
            Outcome::TimedOut { .. } | Outcome::Cancelled => {}
        }
        report.effects.iter_mut().for_each(|effect| self.redact_effect(effect));
    }

    fn redact_output(&self, output: &mut ToolOutput) {
        self.redact_value(&mut output.data);
        output.content.iter_mut().for_each(|part| self.redact_content(part));
        self.redact_optional(&mut output.speech);
    }

    fn redact_content(&self, part: &mut ContentPart) {
        match part {
            ContentPart::Text { text } => self.redact_string(text),
            ContentPart::Image { media_type, data } | ContentPart::Audio { media_type, data } => {
                self.redact_string(media_type);
                if let Cow::Owned(clean) = self.redact_bytes(data) {
                    *data = clean;
                }
            }
            ContentPart::Resource { uri, media_type, title } => {
                self.redact_string(uri);
                self.redact_optional(media_type);
                self.redact_optional(title);
            }
            ContentPart::Embedded(ResourceContents { uri, media_type, data }) => {
                self.redact_string(uri);
                self.redact_optional(media_type);
                self.redact_resource_data(data);
            }
        }
    }

    fn redact_resource_data(&self, data: &mut ResourceData) {
        match data {
            ResourceData::Text(text) => self.redact_string(text),
            ResourceData::Binary(bytes) => {
                if let Cow::Owned(clean) = self.redact_bytes(bytes) {
                    *bytes = clean;
                }
            }
        }
    }

    fn redact_failure(&self, failure: &mut CallFailure) {
        self.redact_string(&mut failure.message);
        self.redact_optional(&mut failure.detail);
        failure.errors.iter_mut().for_each(|error| self.redact_string(error));
        self.redact_optional(&mut failure.panic);
    }

    fn redact_denial(&self, denial: &mut Denial) {
        denial.texts_mut().into_iter().for_each(|text| self.redact_string(text));
    }

    fn redact_effect(&self, effect: &mut Effect) {
        match effect {
            Effect::Logged { text, .. } => self.redact_string(text),
            Effect::Requested { what, .. } => self.redact_string(what),
            Effect::Changed { path } => self.redact_string(path),
            Effect::SecretUsed { name, to } => {
                self.redact_string(name);
                self.redact_optional(to);
            }
            Effect::Asked { what, answer } => {
                self.redact_string(what);
                self.redact_string(answer);
            }
            Effect::GrantAnswered { what, answer: _, grants } => {
                self.redact_string(what);
                let texts = grants.iter_mut().flat_map(FixGrant::texts_mut);
                texts.for_each(|text| self.redact_string(text));
            }
            Effect::Used { capability, what } => {
                self.redact_string(capability);
                self.redact_string(what);
            }
            Effect::Refused(denial) => self.redact_denial(denial),
        }
    }

    fn redact_optional(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.redact_string(text);
        }
    }
}
