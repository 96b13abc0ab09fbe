//! A plugin that offers resources and prompts.

use std::sync::Arc;

use sallyport_contract::{AdmittedCall, CallReport, PromptQuery, ResourceQuery};

use crate::{Plugin, abi::ToolReturnValue, role_links::RoleLinks, run_body::RunBody};

impl Plugin {
    /// Asks for its resources, or for the contents of one. [`ResourceQuery`] says what the output of
    /// the report is. Dropping the future stops the instance.
    pub async fn answer_resource_query(
        &self,
        call: AdmittedCall,
        query: ResourceQuery,
    ) -> CallReport {
        let call = Arc::new(call);
        let body = self.abi().answer_resource_query(Arc::clone(&call), query);
        self.run_query(call, body).await
    }

    /// Asks for its prompts, or for one that is filled in. [`PromptQuery`] says what the output of
    /// the report is. Dropping the future stops the instance.
    pub async fn answer_prompt_query(&self, call: AdmittedCall, query: PromptQuery) -> CallReport {
        let call = Arc::new(call);
        let body = self.abi().answer_prompt_query(Arc::clone(&call), query);
        self.run_query(call, body).await
    }

    async fn run_query(
        &self,
        call: Arc<AdmittedCall>,
        body: RunBody<ToolReturnValue>,
    ) -> CallReport {
        let completed = self.run_call(call, RoleLinks::default(), body).await;
        self.build_return_report(completed)
    }
}
