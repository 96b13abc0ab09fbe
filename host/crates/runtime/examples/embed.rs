//! Embeds a host in another program: one direct call, then a session with a scripted model.
//!
//! Run `cargo run -p sallyport-runtime --example embed -- FOLDER`. FOLDER must contain the plugin
//! `clock`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, process::ExitCode, sync::Arc, sync::atomic};

use sallyport_contract::{BoxFuture, Principal};
use sallyport_model::{
    AssistantMessage, ChatModel, FinishReason, ModelCallRequest, ModelError, ModelReply,
    ModelRequest, ReplyDelta, UserInputMessage,
};
use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    notice::no_notices,
    registry::PluginSelection,
    session::{self, ModelHandle, SessionConfig, SessionOverrides, SessionSelector, SessionSpec},
};
use sallyport_session::{FrontEndCommand, SessionEvent};

/// A model that calls a tool first and answers second.
#[derive(Default)]
struct ScriptedChatModel(atomic::AtomicBool);

impl ChatModel for ScriptedChatModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn generate<'a>(
        &'a self,
        _request: ModelRequest<'a>,
        _on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let has_called = self.0.swap(true, atomic::Ordering::Relaxed);
        let call = ModelCallRequest {
            id: "1".to_owned(),
            name: "clock__get_time".to_owned(),
            arguments: r#"{"timezone":"Asia/Tokyo"}"#.to_owned(),
        };
        let message = match has_called {
            false => AssistantMessage { calls: vec![call], ..AssistantMessage::default() },
            true => AssistantMessage { text: "Now you know.".to_owned(), ..Default::default() },
        };
        Box::pin(async { Ok(ModelReply { message, finish: FinishReason::Stop, usage: None }) })
    }
}

fn main() -> ExitCode {
    // The host starts this program again to compile plugins. Such a process does nothing else.
    let hidden = sallyport_sandbox::run_as_worker();
    hidden.or_else(sallyport_sandbox::run_as_queue).unwrap_or_else(|| match run_example() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    })
}

#[tokio::main]
async fn run_example() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("name the folder of the plugins")?;
    let flags = ConfigFlags { plugin_dirs: vec![folder.into()], ..ConfigFlags::default() };
    let settings = HostSettings::resolve(&flags, Env::from_process())?;
    let options = HostOptions::unattended(PluginSelection::All, no_notices());
    let host = Host::open(&settings, options).await?;
    println!("{} tools", host.tools().len());

    let (principal, tool) = (Principal::local(), "clock.get_time".parse()?);
    let arguments = r#"{"timezone":"Asia/Tokyo"}"#.to_owned();
    println!("{:?}", host.call(&principal, tool, arguments).await.outcome);

    let (store, limits, chosen) = (host.store(), settings.sessions, SessionSelector::Ephemeral);
    let opened = session::open_session(store, limits, &principal, &chosen).await?;
    let overrides = SessionOverrides::default();
    let config = SessionConfig::from_settings(&overrides, &settings, &host, &principal).await?;
    let model = ModelHandle::Ready(Arc::new(ScriptedChatModel::default()));
    let (config, model) = (&config, &model);
    let spec =
        SessionSpec { opened, config, model, answers_questions: false, receives_notices: true };
    let (session, mut events) = host.session(spec)?;
    let input = UserInputMessage::from("What time is it in Tokyo?");
    session.handle.send(FrontEndCommand::SubmitInput { input }).await?;
    while let Some(event) = events.recv().await {
        if let SessionEvent::CallFinished { tool, report, .. } = &event {
            println!("{tool} {}", report.outcome.as_str());
        }
        if let SessionEvent::TurnEnded { reason, .. } = event {
            println!("{reason:?}");
            break;
        }
    }
    session.close(events).await;
    host.close().await.write_error.map_or(Ok(()), |error| Err(error.into()))
}
