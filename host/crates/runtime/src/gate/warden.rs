//! Watches over one plugin while its calls run: its present grant, the agreement to each request,
//! its secrets.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::{BoxFuture, Decision, Denial, Redactor, Secret, Services, ToolCall};
use sallyport_policy::{Grant, Manifest, Proxy, Question, Verdict};
use sallyport_sandbox::{Access, AccessKind, Warden};
use serde_json::{Map, Value};
use url::{Position, Url};

use super::{
    Gate,
    approver::{Grounds, Matter},
};
use crate::services::USER;

/// Most of an address's query that a question shows: more than browsers and servers commonly take.
const QUERY_CHARS_MAX: usize = 8192;

/// What is known of a plugin when it is loaded, and does not change while it is.
#[derive(Debug)]
pub(crate) struct Charge {
    pub(crate) manifest: Manifest,
    /// Its settings as the configuration gives them: its requests may refer to them.
    pub(crate) settings: Map<String, Value>,
    /// Digest of its component.
    pub(crate) digest: String,
}

/// Watches over one plugin.
pub(crate) struct PluginWarden {
    gate: Arc<Gate>,
    charge: Charge,
    /// The grant of one edition of the policy; computing it anew at every host call would be slow.
    grant: Mutex<(u64, Arc<Grant>)>,
}

impl PluginWarden {
    pub(crate) fn new(gate: Arc<Gate>, charge: Charge) -> Self {
        let edition = gate.standing.present();
        let grant = Arc::new(edition.policy.grant(&charge.manifest, &charge.settings));
        Self { gate, charge, grant: Mutex::new((edition.number, grant)) }
    }

    pub(crate) fn charge(&self) -> &Charge {
        &self.charge
    }

    fn verdict(&self, access: &Access<'_>, grant: &Grant) -> Verdict {
        let question = Question {
            tool: access.call.tool(),
            digest: &self.charge.digest,
            arguments: access.call.arguments(),
            context: access.call.context(),
        };
        let policy = self.gate.standing.present().policy;
        match access.kind {
            AccessKind::Request { method, url, permit } => {
                policy.decide_access(&question, grant, method, url, permit)
            }
            AccessKind::OpenUrl { url } => policy.decide_open_url(&question, grant, url),
        }
    }

    /// The policy may have changed while the person thought: a yes does not undo a new no.
    fn still_agrees(&self, access: &Access<'_>) -> Result<(), Denial> {
        let grant = self.grant();
        let verdict = match access.kind {
            AccessKind::Request { method, url, .. } => {
                let permit = grant.net().check(method, url)?;
                let kind = AccessKind::Request { method, url, permit: &permit };
                self.verdict(&Access { call: access.call, what: access.what, kind }, &grant)
            }
            AccessKind::OpenUrl { .. } => self.verdict(access, &grant),
        };
        match verdict.decision {
            Decision::Allow | Decision::Ask => Ok(()),
            Decision::Deny => Err(verdict.denial(access.call.tool())),
        }
    }
}

impl Warden for PluginWarden {
    fn grant(&self) -> Arc<Grant> {
        let edition = self.gate.standing.present();
        let mut kept = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != edition.number {
            let grant = edition.policy.grant(&self.charge.manifest, &self.charge.settings);
            *kept = (edition.number, Arc::new(grant));
        }
        Arc::clone(&kept.1)
    }

    fn agree<'a>(&'a self, access: Access<'a>) -> BoxFuture<'a, Result<Option<String>, Denial>> {
        Box::pin(async move {
            let grant = self.grant();
            let verdict = self.verdict(&access, &grant);
            let call = ToolCall {
                context: access.call.context().clone(),
                tool: access.call.tool().clone(),
                arguments: access.call.text().to_owned(),
            };
            let matter = Matter {
                call: &call,
                version: &self.charge.manifest.version,
                digest: &self.charge.digest,
                grant: &grant,
                query: query(access.url(), &self.redactor()),
                time_max: Some(grant.limits().approval_time),
            };
            let words = match self.gate.approver.settle(&matter, &verdict).await? {
                Grounds::Policy(_) => None,
                Grounds::Person(words) => {
                    self.still_agrees(&access)?;
                    Some(words)
                }
            };
            let host = access.url().host_str().unwrap_or_default();
            (self.gate.activity)(access.call.context(), host);
            Ok(words)
        })
    }

    fn secret(&self, name: &str) -> Result<Secret, String> {
        let policy = self.gate.standing.present().policy;
        let known = name.parse().ok();
        let source = known.as_ref().and_then(|name| policy.secret_source(name));
        let source = source.ok_or_else(|| "the policy does not say where it is".to_owned())?;
        self.gate.vault.get(name, source).map_err(|error| error.for_model())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.gate.env.get(name).map(str::to_owned)
    }

    fn proxy(&self) -> Option<Arc<Proxy>> {
        self.gate.standing.present().policy.proxy().cloned().map(Arc::new)
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.gate.vault.redactor()
    }

    fn services(&self) -> Services {
        self.gate.services.clone()
    }

    fn user(&self) -> &str {
        USER
    }
}

/// What an address says behind its path, as a person may read it.
fn query(url: &Url, redactor: &Redactor) -> Option<String> {
    let rest = &url[Position::AfterPath..];
    let shown: String = redactor.text(rest).chars().take(QUERY_CHARS_MAX).collect();
    (!rest.is_empty()).then_some(shown)
}
