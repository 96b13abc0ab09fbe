//! Asks the user for a grant that a running call lacks, and gives it.
//!
//! A yes grants the entries of the choice that was shown, and nothing else: to the call, to the
//! plugin in this session, or in the user's policy. "Always" is on record before it is written. If
//! no user can answer, the refusal stays as it was.

use std::sync::Arc;

use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, ApprovalSubject, Denial, DenialReason, Effect, GrantAnswer,
    GrantChoice, GrantQuestion, GrantScope, RequestedCall, UserAnswer, fix::FOLDER_PLACEHOLDER,
};
use sallyport_policy::{
    Grant, LoginGroups, Policy, PolicyQuestion,
    edit::{self, GrantAddition},
};
use sallyport_sandbox::{GrantOutcome, HostCallAuthorizer, RunGrants};

use super::{
    approver::unanswered_denial,
    authorizer::PluginAuthorizer,
    grant_desk::{GrantHolder, QuestionTurn},
    user_grants, user_policy,
};
use crate::{
    atomic_file::WriteLock,
    policy_change::{PolicyChangeError, record_change_in},
};

/// A refused action of a call.
pub(crate) struct RefusedAction<'a> {
    pub(crate) call: &'a RequestedCall,
    /// What the user has granted to this call only.
    pub(crate) run_grants: &'a RunGrants,
    pub(crate) denial: Denial,
    /// The groups of the identity server that the call's user belongs to.
    pub(crate) login_groups: LoginGroups,
}

/// A choice that the user is offered, with the additions that it stands for.
struct WritableChoice {
    additions: Vec<GrantAddition>,
    shown: GrantChoice,
}

impl PluginAuthorizer {
    /// Asks for the grant that a refusal names. Calls that miss the same grant ask once.
    pub(crate) async fn ask_for_grant(&self, refused: RefusedAction<'_>) -> GrantOutcome {
        // The question would show the secret, and such a request is refused in any case.
        if self.redactor().find_secret(refused.denial.subject.to_string().as_bytes()).is_some() {
            return GrantOutcome::refused(refused.denial);
        }
        let holder = GrantHolder::of_call(refused.call, &self.plugin_info().digest);
        let turn = self.gate().grant_desk.question_turn(&holder);
        let refusals_before = turn.refusal_count();
        let _asking = turn.asking.lock().await;
        self.gate().policy_store.check_files().await;
        if self.is_lifted(&refused) {
            return GrantOutcome::lifted();
        }
        let choices = self.offer_choices(&refused);
        let Some(narrowest) = choices.first() else { return GrantOutcome::refused(refused.denial) };
        if let Some(reason) = turn.refused_since(refusals_before, &narrowest.shown.grants) {
            return refusal_by_user(refused.denial, reason);
        }
        self.ask_and_apply(refused, choices, holder, &turn).await
    }

    /// Whether the action would pass by now.
    fn is_lifted(&self, refused: &RefusedAction<'_>) -> bool {
        let (policy, grant) = self.policy_and_grant(&refused.call.context, refused.run_grants);
        self.has_lifted(refused, &policy, &grant)
    }

    fn has_lifted(&self, refused: &RefusedAction<'_>, policy: &Policy, grant: &Grant) -> bool {
        let arguments = serde_json::from_str(&refused.call.arguments).unwrap_or_default();
        let question = PolicyQuestion {
            tool: &refused.call.tool,
            digest: &self.plugin_info().digest,
            arguments: &arguments,
            context: &refused.call.context,
            login_groups: &refused.login_groups,
        };
        policy.has_lifted(&refused.denial, &question, grant)
    }

    /// The choices that would lift the refusal, the narrowest first. What other files deny, a
    /// guarded folder, or a private address would still be refused, so it is not offered.
    fn offer_choices(&self, refused: &RefusedAction<'_>) -> Vec<WritableChoice> {
        let grant = self.policy_and_grant(&refused.call.context, refused.run_grants).1;
        let choices = grant.additions_for_denial(&refused.denial).into_iter();
        let mut offered: Vec<WritableChoice> = Vec::new();
        for additions in choices.filter(|additions| self.would_lift(refused, additions)) {
            offered.push(WritableChoice { shown: self.shown_choice(&additions), additions });
        }
        offered
    }

    /// Whether additions would lift the refusal. One that leaves a folder to the user counts.
    fn would_lift(&self, refused: &RefusedAction<'_>, additions: &[GrantAddition]) -> bool {
        if additions.iter().any(leaves_folder_open) {
            return true;
        }
        let held = self.held_additions(&refused.call.context, refused.run_grants);
        let all = [held.as_slice(), additions].concat();
        let extended = self.extended_grant(&all);
        extended.is_ok_and(|extended| self.has_lifted(refused, &extended.policy, &extended.grant))
    }

    fn shown_choice(&self, additions: &[GrantAddition]) -> GrantChoice {
        let (gate, manifest) = (self.gate(), &self.plugin_info().manifest);
        let policy = gate.policy_store.current().policy;
        // A folder that the user will name has another path in its place.
        let stand_in = format!("/{FOLDER_PLACEHOLDER}");
        let written = with_folder(additions.to_vec(), Some(&stand_in));
        let proposed = user_grants::propose_text(gate, &policy, manifest, &written);
        let change = proposed.ok().map(|text| {
            let change = diff_text(&text.before, &text.after);
            match additions.iter().any(leaves_folder_open) {
                true => change.replace(&quoted(&stand_in), &quoted(FOLDER_PLACEHOLDER)),
                false => change,
            }
        });
        let missing = user_grants::granted_secrets(additions)
            .filter(|name| gate.secret_value(name.as_str()).is_err());
        let note =
            |name| format!("{name} has no value yet; store it with: sallyport secret set {name}");
        GrantChoice {
            grants: additions.iter().map(GrantAddition::to_fix_grant).collect(),
            change,
            notes: missing.map(note).collect(),
        }
    }

    async fn ask_and_apply(
        &self,
        refused: RefusedAction<'_>,
        choices: Vec<WritableChoice>,
        holder: GrantHolder,
        turn: &QuestionTurn,
    ) -> GrantOutcome {
        let grant = self.policy_and_grant(&refused.call.context, refused.run_grants).1;
        let request = self.build_request(&refused, &choices, &grant);
        let time_max = grant.limits().approval_time;
        let answer = match self.gate().approver.ask_within(request, time_max).await {
            Some(answer) => answer,
            None => {
                return GrantOutcome::refused(unanswered_denial(refused.denial, time_max));
            }
        };
        let narrowest =
            choices.first().map(|choice| choice.shown.grants.clone()).unwrap_or_default();
        let chosen = answer
            .grant()
            .and_then(|answer| Some((choices.into_iter().nth(answer.choice)?, answer)));
        match (chosen, answer) {
            (Some((choice, answer)), _) => self.give_grant(refused, choice, &answer, holder).await,
            (None, ApprovalAnswer::Nobody) => GrantOutcome::refused(refused.denial),
            (None, ApprovalAnswer::No { reason }) => {
                turn.record_refusal(narrowest, reason.clone());
                refusal_by_user(refused.denial, reason)
            }
            (None, _) => refusal_by_user(refused.denial, None),
        }
    }

    fn build_request(
        &self,
        refused: &RefusedAction<'_>,
        choices: &[WritableChoice],
        grant: &Grant,
    ) -> ApprovalRequest {
        let mut why: Vec<String> = Vec::new();
        for addition in choices.first().iter().flat_map(|choice| &choice.additions) {
            let new = grant.request_reasons(addition).into_iter().map(str::to_owned);
            why.extend(new.filter(|reason| !why.contains(reason)).collect::<Vec<_>>());
        }
        let shown: Vec<GrantChoice> = choices.iter().map(|choice| choice.shown.clone()).collect();
        let info = self.plugin_info();
        ApprovalRequest {
            call: refused.call.clone(),
            request: None,
            plugin_version: info.manifest.version.clone(),
            plugin_digest: info.digest.clone(),
            reason: refused.denial.reason.to_string(),
            rule: shown.first().and_then(|choice| choice.change.clone()),
            capabilities: grant.permission_lines(),
            subject: ApprovalSubject::Grant(GrantQuestion {
                what: refused.denial.subject.to_string(),
                why,
                choices: shown,
            }),
        }
    }

    /// Gives what the user chose, and makes sure that it lifts the refusal.
    async fn give_grant(
        &self,
        refused: RefusedAction<'_>,
        choice: WritableChoice,
        answer: &GrantAnswer,
        holder: GrantHolder,
    ) -> GrantOutcome {
        let additions = with_folder(choice.additions, answer.folder.as_deref());
        if !self.would_lift(&refused, &additions) || additions.iter().any(leaves_folder_open) {
            let reason = "what you chose cannot be granted, or would not allow it";
            return GrantOutcome::refused(Denial { reason: reason.into(), ..refused.denial });
        }
        match answer.scope {
            GrantScope::Once => refused.run_grants.add(&additions),
            GrantScope::Session => {
                self.gate().grant_desk.add_session_grants(holder, &additions);
            }
            GrantScope::Always => {
                if let Err(reason) = self.write_grants(&additions).await {
                    let reason = format!("your policy was not changed: {reason}").into();
                    return GrantOutcome::refused(Denial { reason, ..refused.denial });
                }
                self.gate().policy_store.check_files().await;
            }
        }
        if !self.is_lifted(&refused) {
            return GrantOutcome::refused(refused.denial);
        }
        if let Err(reason) = self.wait_until_recorded().await {
            return GrantOutcome::refused(Denial { reason: reason.into(), ..refused.denial });
        }
        let grants = additions.iter().map(GrantAddition::to_fix_grant).collect();
        let what = refused.denial.subject.to_string();
        let answer = answer.scope.user_answer();
        GrantOutcome::granted(Effect::GrantAnswered { what, answer, grants })
    }

    /// Writes grants into the user's policy, on a blocking thread because the disk may be slow.
    async fn write_grants(&self, additions: &[GrantAddition]) -> Result<(), String> {
        let gate = Arc::clone(self.gate());
        let (manifest, additions) = (self.plugin_info().manifest.clone(), additions.to_vec());
        let work = move || {
            let policy = gate.policy_store.current().policy;
            let file = gate.policy_store.files().user_file();
            let _lock = WriteLock::take(file)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            let proposed = user_grants::propose_text(&gate, &policy, &manifest, &additions);
            let text = proposed.map_err(|error| error.to_string())?.after;
            // Another program may have changed the file since the user saw the change.
            gate.policy_store.parse_proposed_text(&text).map_err(|error| error.to_string())?;
            let write = || {
                user_policy::write_policy(file, &text)
                    .map_err(|error| format!("cannot write {}: {error}", file.display()))
            };
            let entries: Vec<String> = additions
                .iter()
                .map(GrantAddition::to_fix_grant)
                .map(|grant| format!("{} = {}", grant.key, grant.entry))
                .collect();
            let what = format!("grants {}", entries.join(", "));
            match &gate.audit {
                None => write(),
                Some(audit) => {
                    record_change_in(&audit.log, &audit.user, manifest.name.as_str(), &what, write)
                        .map_err(|error| match error {
                            PolicyChangeError::Audit(error) => {
                                format!("the audit cannot be written: {error}")
                            }
                            PolicyChangeError::Failed(error) => error,
                        })
                }
            }
        };
        let written = tokio::task::spawn_blocking(work).await;
        written.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Waits until the decision about the call is on disk: the call may act from now on.
    async fn wait_until_recorded(&self) -> Result<(), String> {
        let Some(audit) = &self.gate().audit else { return Ok(()) };
        let written = audit.log.wait_until_durable().await;
        written.map_err(|error| format!("the audit cannot be written: {error}"))
    }
}

fn refusal_by_user(denial: Denial, reason: Option<String>) -> GrantOutcome {
    let what = denial.subject.to_string();
    let denial = Denial {
        reason: DenialReason::RefusedByUser { answer: reason },
        fix: None,
        nobody_to_ask: false,
        ..denial
    };
    let (answer, grants) = (UserAnswer::Refused, Vec::new());
    let effect = Some(Effect::GrantAnswered { what, answer, grants });
    GrantOutcome { effect, result: Err(denial) }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Whether an addition grants a folder that only the user can name.
fn leaves_folder_open(addition: &GrantAddition) -> bool {
    matches!(addition, GrantAddition::Fs(folder) if folder.path == FOLDER_PLACEHOLDER)
}

/// The additions with the folder that the user has named.
fn with_folder(mut additions: Vec<GrantAddition>, folder: Option<&str>) -> Vec<GrantAddition> {
    for addition in &mut additions {
        if let (GrantAddition::Fs(entry), Some(folder)) = (addition, folder)
            && entry.path == FOLDER_PLACEHOLDER
        {
            entry.path = folder.to_owned();
        }
    }
    additions
}

/// The lines that differ between two texts, and those around them.
fn diff_text(before: &str, after: &str) -> String {
    let line = |line: &edit::DiffLine| format!("{} {}", line.change.mark(), line.text);
    edit::diff_lines(before, after).iter().map(line).collect::<Vec<_>>().join("\n")
}
