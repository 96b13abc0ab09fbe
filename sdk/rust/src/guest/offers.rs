//! The exports of resources and prompts.

use super::{
    bindings::{
        prompts::exports::sallyport::plugin::prompts as wit_prompts,
        resources::exports::sallyport::plugin::resources as wit_resources,
        tools::sallyport::plugin::types::{CallContext, ResourceContents, ResourceData, ToolError},
    },
    value,
};
use crate::{
    plugin::{Offers, Suggests},
    prompts::{Argument, Arguments, Filled, Prompt, PromptMessage, Prompts, Role},
    resources::{Contents, Data, Resource, Resources, Template},
};

impl<P: Offers> wit_resources::Guest for P {
    fn list_resources(
        context: CallContext,
        _after: Option<String>,
    ) -> Result<wit_resources::ResourcePage, ToolError> {
        let resources = P::Resources::list(&context.into())?.into_iter().map(Into::into).collect();
        Ok(wit_resources::ResourcePage { resources, next: None, extra: None })
    }

    fn list_templates(
        context: CallContext,
        _after: Option<String>,
    ) -> Result<wit_resources::TemplatePage, ToolError> {
        let templates =
            P::Resources::templates(&context.into())?.into_iter().map(Into::into).collect();
        Ok(wit_resources::TemplatePage { templates, next: None, extra: None })
    }

    fn read_resource(
        context: CallContext,
        uri: String,
    ) -> Result<Vec<ResourceContents>, ToolError> {
        let contents = P::Resources::read(&uri, &context.into())?;
        Ok(contents.into_iter().map(Into::into).collect())
    }
}

impl<P: Suggests> wit_prompts::Guest for P {
    fn list_prompts(
        context: CallContext,
        _after: Option<String>,
    ) -> Result<wit_prompts::PromptPage, ToolError> {
        let prompts = P::Prompts::list(&context.into())?.into_iter().map(Into::into).collect();
        Ok(wit_prompts::PromptPage { prompts, next: None, extra: None })
    }

    fn get_prompt(
        context: CallContext,
        name: String,
        arguments: String,
    ) -> Result<wit_prompts::Prompt, ToolError> {
        let arguments: Arguments = serde_json::from_value(value(arguments)).unwrap_or_default();
        Ok(P::Prompts::get(&name, &arguments, &context.into())?.into())
    }
}

impl From<Resource> for wit_resources::ResourceSpec {
    fn from(resource: Resource) -> Self {
        let Resource { uri, name, title, description, media_type, size_bytes } = resource;
        Self { uri, name, title, description, media_type, size_bytes, extra: None }
    }
}

impl From<Template> for wit_resources::ResourceTemplate {
    fn from(template: Template) -> Self {
        let Template { uri_template, name, title, description, media_type } = template;
        Self { uri_template, name, title, description, media_type, extra: None }
    }
}

impl From<Contents> for ResourceContents {
    fn from(contents: Contents) -> Self {
        let Contents { uri, media_type, data } = contents;
        let data = match data {
            Data::Text(text) => ResourceData::Text(text),
            Data::Binary(bytes) => ResourceData::Binary(bytes),
        };
        Self { uri, media_type, data, extra: None }
    }
}

impl From<Prompt> for wit_prompts::PromptSpec {
    fn from(prompt: Prompt) -> Self {
        let Prompt { name, title, description, arguments } = prompt;
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { name, title, description, arguments, extra: None }
    }
}

impl From<Argument> for wit_prompts::PromptArgument {
    fn from(argument: Argument) -> Self {
        let Argument { name, description, required } = argument;
        Self { name, title: None, description, required, extra: None }
    }
}

impl From<Filled> for wit_prompts::Prompt {
    fn from(filled: Filled) -> Self {
        let messages = filled.messages.into_iter().map(Into::into).collect();
        Self { description: filled.description, messages, extra: None }
    }
}

impl From<PromptMessage> for wit_prompts::PromptMessage {
    fn from(message: PromptMessage) -> Self {
        let role = match message.role {
            Role::User => wit_prompts::PromptRole::User,
            Role::Assistant => wit_prompts::PromptRole::Assistant,
        };
        Self { role, content: message.content.into(), extra: None }
    }
}
