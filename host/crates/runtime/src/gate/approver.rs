//! From a decision to a yes or a no: asks the person where the policy says so, and remembers.
//!
//! An approval holds for exactly what the person saw: plugin, component, tool, subject, and the
//! rule that asked. Anything else, another digest or a wider reach, is another question. "Always" is
//! not remembered here: it becomes a rule in the user's policy, bound to the same component.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use sallyport_contract::{
    Answer, ApprovalRequest, Consent, Decision, Denial, RequestPreview, Subject, ToolCall,
};
use sallyport_policy::{Grant, RuleText, Verdict};
use sallyport_store::{Approval, Store};

use super::{Tell, now_ms, rulebook};

/// Longest wait for an answer before a call; a person may be away, the session should not be.
const QUESTION_TIME_MAX: Duration = Duration::from_secs(600);

/// Asks, and remembers what was answered.
pub struct Approver {
    consent: Arc<dyn Consent>,
    store: Option<Store>,
    policy_file: PathBuf,
    /// What was agreed to for the session when the store cannot keep it.
    kept: Mutex<Vec<Approval>>,
    tell: Tell,
}

/// What a person is asked about.
pub(crate) struct Matter<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) version: &'a str,
    pub(crate) digest: &'a str,
    pub(crate) grant: &'a Grant,
    /// What the person is to see of a request beyond what records keep of it. It may still be missing
    /// while nobody has to be asked.
    pub(crate) request: Option<Arc<RequestPreview>>,
    /// Longest wait for the answer.
    pub(crate) time_max: Option<Duration>,
}

impl Approver {
    /// Asks through `consent`, keeps approvals in `store`, and writes rules into `policy_file`.
    pub fn new(
        consent: Arc<dyn Consent>,
        store: Option<Store>,
        policy_file: PathBuf,
        tell: Tell,
    ) -> Self {
        Self { consent, store, policy_file, kept: Mutex::new(Vec::new()), tell }
    }

    /// Turns a verdict into the grounds on which something may go ahead.
    ///
    /// # Errors
    ///
    /// Policy or person said no, or nobody is there to ask.
    pub(crate) async fn settle(
        &self,
        matter: &Matter<'_>,
        verdict: &Verdict,
    ) -> Result<Grounds, Denial> {
        match verdict.decision {
            Decision::Allow => Ok(Grounds::Policy(format!("allow: {}", verdict.reason))),
            Decision::Deny => Err(verdict.denial(&matter.call.tool)),
            Decision::Ask => self.ask(matter, verdict).await,
        }
    }

    /// Whether a person has to be asked: what they are shown has to be there before they are.
    pub(crate) fn has_to_ask(&self, matter: &Matter<'_>, verdict: &Verdict) -> bool {
        verdict.decision == Decision::Ask && !self.remembers(&approval(matter, verdict))
    }

    async fn ask(&self, matter: &Matter<'_>, verdict: &Verdict) -> Result<Grounds, Denial> {
        let approval = approval(matter, verdict);
        if self.remembers(&approval) {
            let words = format!("allow: approved for this session ({})", verdict.reason);
            return Ok(Grounds::Policy(words));
        }
        let rule = verdict.remedy(&matter.call.tool, Some(matter.digest));
        let request = ApprovalRequest {
            call: matter.call.clone(),
            subject: verdict.subject.clone(),
            request: matter.request.clone(),
            plugin_version: matter.version.to_owned(),
            plugin_digest: matter.digest.to_owned(),
            reason: verdict.reason.clone(),
            rule: rule.as_ref().map(ToString::to_string),
            powers: matter.grant.powers(),
        };
        let time_max = matter.time_max.unwrap_or(QUESTION_TIME_MAX);
        let answer = tokio::time::timeout(time_max, self.consent.ask(request)).await;
        let Ok(answer) = answer else { return Err(unanswered(matter, verdict, time_max)) };
        self.heed(matter, verdict, answer, approval, rule)
    }

    fn heed(
        &self,
        matter: &Matter<'_>,
        verdict: &Verdict,
        answer: Answer,
        approval: Approval,
        rule: Option<RuleText>,
    ) -> Result<Grounds, Denial> {
        let how = match (answer, rule) {
            (Answer::Once, _) => "once",
            (Answer::Always, Some(rule)) if self.write(&rule) => "always",
            (Answer::Session | Answer::Always, _) => {
                self.remember(approval);
                "for this session"
            }
            (Answer::No { reason }, _) => return Err(refused(matter, verdict, reason)),
            (Answer::Nobody, _) => return Err(nobody(matter, verdict)),
        };
        Ok(Grounds::Person(format!("the user agreed {how} ({})", verdict.reason)))
    }

    /// Writes the rule that the person saw. Where that fails the answer still holds for the session.
    fn write(&self, rule: &RuleText) -> bool {
        match rulebook::add_rule(&self.policy_file, rule) {
            Ok(()) => true,
            Err(error) => {
                let file = self.policy_file.display();
                (self.tell)(&format!("cannot write the rule to {file}: {error}"));
                false
            }
        }
    }

    fn remembers(&self, approval: &Approval) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |kept: &Approval| {
            let at_ms = kept.at_ms;
            *kept == Approval { at_ms, ..approval.clone() }
        };
        kept.iter().any(same)
            // What cannot be looked up is asked again.
            || self.store.as_ref().is_some_and(|s| s.approvals().find(approval).unwrap_or(false))
    }

    fn remember(&self, approval: Approval) {
        let stored = self.store.as_ref().map(|store| store.approvals().remember(&approval));
        if let Some(Err(error)) = stored {
            (self.tell)(&format!("the answer holds only until the program ends: {error}"));
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(approval);
    }
}

/// Why something may go ahead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grounds {
    /// The policy says so, or an answer of earlier in the session.
    Policy(String),
    /// A person was asked just now.
    Person(String),
}

impl Grounds {
    pub(crate) fn into_words(self) -> String {
        match self {
            Self::Policy(words) => words,
            Self::Person(words) => format!("allow: {words}"),
        }
    }
}

fn approval(matter: &Matter<'_>, verdict: &Verdict) -> Approval {
    let tool = &matter.call.tool;
    Approval {
        session_id: matter.call.context.session_id.clone(),
        plugin: tool.plugin.to_string(),
        digest: matter.digest.to_owned(),
        tool: tool.tool.to_string(),
        subject: match &verdict.subject {
            Subject::Call => "call".to_owned(),
            Subject::Access { what } => what.clone(),
        },
        rule: verdict.reason.clone(),
        at_ms: now_ms(),
    }
}

fn refused(matter: &Matter<'_>, verdict: &Verdict, reason: Option<String>) -> Denial {
    let why = match reason {
        Some(reason) => format!("the user said no: {reason}"),
        None => "the user said no".to_owned(),
    };
    Denial { why, fix: None, nobody_to_ask: false, ..verdict.denial(&matter.call.tool) }
}

fn nobody(matter: &Matter<'_>, verdict: &Verdict) -> Denial {
    let denial = verdict.denial(&matter.call.tool);
    let why = format!("it needs approval and nobody is there to ask ({})", denial.why);
    Denial { why, nobody_to_ask: true, ..denial }
}

fn unanswered(matter: &Matter<'_>, verdict: &Verdict, waited: Duration) -> Denial {
    let denial = verdict.denial(&matter.call.tool);
    let why = format!("no answer within {waited:?} ({})", denial.why);
    Denial { why, nobody_to_ask: true, ..denial }
}
