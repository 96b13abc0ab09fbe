//! Lets the user connect an account while a call waits for it.
//!
//! A front end that can show a page says so once ([`ConnectionDesk::offer_sign_ins`]). A call that
//! lacks its account then asks the user like any other call that needs something. After a yes the
//! page of the sign-in is opened, and the call goes on once the account is connected.

use std::sync::Arc;

use sallyport_connections::AccountService;
use sallyport_contract::{
    AdmittedCall, ApprovalAnswer, ApprovalRequest, ApprovalSubject, CallFailure, FailureKind,
};

use sallyport_sandbox::HostCallAuthorizer;

use super::{
    approver::QUESTION_TIME_MAX,
    authorizer::{PluginAuthorizer, requested_call},
    grant_desk::GrantHolder,
};
use crate::connections::{
    AccountError, ConnectionDesk, SignInPresenter, connect_advice,
    login::{LOGIN_TIME_MAX, PendingBrowserLogin},
};

/// What connects an account.
struct SignInOffer<'a> {
    service: &'a Arc<AccountService>,
    desk: &'a Arc<ConnectionDesk>,
    presenter: Arc<dyn SignInPresenter>,
}

impl PluginAuthorizer {
    /// Makes sure that a call has the account that it needs, and lets the user connect one. Returns
    /// whether the user did.
    ///
    /// # Errors
    ///
    /// The failure, with the sentence that mends it.
    pub(crate) async fn ensure_account(&self, call: &AdmittedCall) -> Result<bool, CallFailure> {
        let error = match self.account_token(call).await {
            Ok(_) => return Ok(false),
            Err(error) => error,
        };
        let offer = self.sign_in_offer().filter(|_| error.needs_sign_in());
        match offer {
            Some(offer) => self.connect_account(call, offer, error).await.map(|()| true),
            None => Err(error.into_call_failure(call.context().user())),
        }
    }

    /// Whether a call that lacks its account asks the user to connect one.
    pub(crate) fn offers_sign_in(&self) -> bool {
        self.sign_in_offer().is_some()
    }

    fn sign_in_offer(&self) -> Option<SignInOffer<'_>> {
        let service = self.account_service()?;
        let desk = self.connection_desk().ok()?;
        Some(SignInOffer { service, desk, presenter: desk.sign_in_presenter()? })
    }

    /// Asks the user, and waits for the sign-in. Calls that lack the same account ask once.
    async fn connect_account(
        &self,
        call: &AdmittedCall,
        offer: SignInOffer<'_>,
        error: AccountError,
    ) -> Result<(), CallFailure> {
        let SignInOffer { service, desk, presenter } = offer;
        let holder = GrantHolder::of_call(&requested_call(call), &self.plugin_info().digest);
        let turn = self.gate().grant_desk.question_turn(&holder);
        let refusals_before = turn.refusal_count();
        let _asking = turn.asking.lock().await;
        if self.account_token(call).await.is_ok() {
            return Ok(());
        }
        if let Some(reason) = turn.refused_since(refusals_before, &[]) {
            return Err(refused(service, call, reason));
        }
        let login = PendingBrowserLogin::begin(service)
            .await
            .map_err(|problem| not_connected(service, call, &problem.to_string()))?;
        let request = self.sign_in_question(call, service, &error);
        match self.gate().approver.ask_within(request, QUESTION_TIME_MAX).await {
            Some(ApprovalAnswer::Once | ApprovalAnswer::Session | ApprovalAnswer::Always) => {}
            Some(ApprovalAnswer::No { reason }) => {
                turn.record_refusal(Vec::new(), reason.clone());
                return Err(refused(service, call, reason));
            }
            Some(ApprovalAnswer::Nobody | ApprovalAnswer::Grant(_) | ApprovalAnswer::Form(_))
            | None => {
                return Err(error.into_call_failure(call.context().user()));
            }
        }
        presenter.show_page(service, login.address());
        let connected = login.finish(desk, service, call.context().user(), LOGIN_TIME_MAX).await;
        let connected =
            connected.map_err(|problem| not_connected(service, call, &problem.to_string()))?;
        presenter.show_connected(service, &connected);
        Ok(())
    }

    fn sign_in_question(
        &self,
        call: &AdmittedCall,
        service: &AccountService,
        error: &AccountError,
    ) -> ApprovalRequest {
        let page = service.auth.auth_url.as_ref();
        let page = page.map_or_else(String::new, |url| format!(" ({url})"));
        let info = self.plugin_info();
        ApprovalRequest {
            call: requested_call(call),
            subject: ApprovalSubject::Access {
                what: format!("open the sign-in page of {}{page}", service.shown_name),
            },
            request: None,
            plugin_version: info.manifest.version.clone(),
            plugin_digest: info.digest.clone(),
            reason: format!("{error}; the call goes on after you have signed in"),
            rule: None,
            capabilities: self.current_grant().permission_lines(),
        }
    }
}

fn refused(service: &AccountService, call: &AdmittedCall, reason: Option<String>) -> CallFailure {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    not_connected(service, call, &format!("the user does not want to connect it now{reason}"))
}

fn not_connected(service: &AccountService, call: &AdmittedCall, reason: &str) -> CallFailure {
    let name = &service.plugin;
    let command = connect_advice(name, call.context().user());
    let message = format!("{name} is not connected, because {reason}. To fix: {command}");
    CallFailure::new(FailureKind::AuthRequired, message)
}
