//! Plugins that are added, changed and removed while sessions run, and grants that are revoked.

use std::{
    collections::VecDeque,
    fs,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use sallyport_contract::{BoxFuture, mangle::model_tool_name};
use sallyport_model::{
    AssistantMessage, ChatModel, FinishReason, ModelCallRequest, ModelError, ModelReply,
    ModelRequest, ReplyDelta, UserInputMessage,
};
use sallyport_runtime::registry::{PluginChanges, RegisteredPlugin};
use sallyport_session::{
    FrontEndCommand, MemoryJournal, RestoredSession, SessionEvent, SessionOptions, SessionParts,
    approval, spawn_session,
};
use serde_json::json;

use crate::{
    limits::NET,
    support::{
        Home, Tools, home,
        living::REQUESTS,
        patience::until_so,
        registry::{data, told},
        wat::{Module, Spec},
    },
};

fn write(home: &Home, name: &str, description: &str) {
    let module = Module::listing(&[Spec { description, ..Spec::GOOD }]);
    fs::create_dir_all(home.path(&format!("plugins/{name}"))).unwrap();
    let file = |end: &str| home.path(&format!("plugins/{name}/{end}"));
    fs::write(file("plugin.toml"), home::manifest(name, "")).unwrap();
    fs::write(file(&format!("{name}.wasm")), module.component()).unwrap();
}

fn changes(added: &[&str], changed: &[&str], removed: &[&str]) -> PluginChanges {
    let [added, changed, removed] = [added, changed, removed]
        .map(|names| names.iter().map(|name| name.parse().unwrap()).collect());
    PluginChanges { added, changed, removed }
}

/// A model that notes the tools that it sees, and calls one before it answers if told to.
#[derive(Default)]
struct Noting {
    seen: Mutex<Vec<Vec<String>>>,
    results: Mutex<Vec<String>>,
    calls: Mutex<VecDeque<String>>,
}

impl ChatModel for Noting {
    fn name(&self) -> &str {
        "noting"
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        _on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.seen.lock().unwrap().push(names);
        self.results.lock().unwrap().push(format!("{:?}", request.messages.last()));
        let calls: Vec<ModelCallRequest> = self
            .calls
            .lock()
            .unwrap()
            .pop_front()
            .into_iter()
            .map(|name| ModelCallRequest { id: "1".into(), name, arguments: "{}".into() })
            .collect();
        let message = AssistantMessage { text: "Well.".into(), calls, ..Default::default() };
        Box::pin(async { Ok(ModelReply { message, finish: FinishReason::Stop, usage: None }) })
    }
}

#[test]
fn plugins_come_change_and_go_while_a_session_runs() {
    let home = Home::new();
    write(&home, "sly", "Acts.");
    let tools = Tools::of(&home);
    let name = |plugin: &str| model_tool_name(&format!("{plugin}.act").parse().unwrap());
    let model = Arc::new(Noting::default());
    let (_desk, approvals) = approval::approval_channel();
    let parts = SessionParts {
        model: Arc::clone(&model) as Arc<dyn ChatModel>,
        toolbox: Arc::clone(tools.host.toolbox()),
        approvals,
        journal: Box::new(MemoryJournal::default()),
        recall: None,
        past: RestoredSession::default(),
        account: None,
        options: SessionOptions::new("s"),
    };
    let (handle, mut events) = tools.wait(async { spawn_session(parts) }).unwrap();
    let mut turn = || {
        tools.wait(async {
            let input = UserInputMessage::from("Go on.");
            handle.send(FrontEndCommand::SubmitInput { input }).await.unwrap();
            while let Some(event) = events.recv().await {
                if let SessionEvent::TurnEnded { .. } = event {
                    return;
                }
            }
        });
        let seen = model.seen.lock().unwrap().last().unwrap().clone();
        seen.into_iter().filter(|name| name.contains("act")).collect::<Vec<_>>()
    };
    let mut stream = Box::pin(tools.host.changes());
    assert_eq!(turn(), [name("sly")]);
    assert_eq!(tools.reload(), PluginChanges::default());

    write(&home, "other", "Acts.");
    assert_eq!(turn(), [name("sly")], "only a reload looks at the folders");
    let added = changes(&["other"], &[], &[]);
    assert_eq!(tools.reload(), added);
    assert_eq!(tools.wait(stream.next()), Some(added));
    assert_eq!(turn(), [name("other"), name("sly")]);

    write(&home, "sly", "Acts in another way.");
    let changed = changes(&[], &["sly"], &[]);
    assert_eq!(tools.reload(), changed);
    assert_eq!(turn(), [name("other")], "a changed plugin waits to be accepted");
    let refused = told(&tools.call("sly.act", &json!({})));
    assert!(refused.contains("cannot be used for now"), "{refused}");
    home.run(&["plugin", "accept", "sly", "--yes"]).ended(0);
    assert_eq!(tools.reload(), changed);
    assert_eq!(turn(), [name("other"), name("sly")]);

    fs::remove_dir_all(home.path("plugins/other")).unwrap();
    assert_eq!(tools.reload(), changes(&[], &[], &["other"]));
    let refused = told(&tools.call("other.act", &json!({})));
    assert!(refused.contains("there is no plugin \"other\""), "{refused}");
    model.calls.lock().unwrap().push_back(name("other"));
    assert_eq!(turn(), [name("sly")]);
    let result = model.results.lock().unwrap().last().unwrap().clone();
    assert!(result.contains("there is no tool"), "{result}");
}

#[test]
fn an_unchanged_plugin_keeps_its_instances_and_a_running_call_ends_on_the_old_one() {
    let home = Home::new().user_file("sync/here", "");
    let path = home.user_path("sync").display().to_string();
    let fs_line = format!(
        "fs = [{{ path = {path:?}, mount = \"/sync\", access = \"read-write\", quota = \"1MiB\" }}]"
    );
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    let folders = "[[request.fs]]\naccess = \"read-write\"\nwhy = \"tests\"\n";
    let home = home
        .guest("living", &format!("instance = \"session\"\n{REQUESTS}"))
        .guest("hostile", &format!("{NET}{folders}"))
        .policy(format!("[plugin.hostile]\n{fs_line}\n\n{rule}"));
    let tools = Tools::of(&home);
    let count = || data(&tools.call("living.acts", &json!({ "steps": ["count"] })))[0].clone();
    assert_eq!([count(), count()], ["1", "2"]);
    let steps = ["put /sync/ready x", "wait /sync/go", "put /sync/end x"];
    let call = tools.spawn("hostile.follows_script", &json!({ "steps": steps }));
    until_so("the first half", || home.user_path("sync/ready").exists() || call.is_finished());

    fs::remove_dir_all(home.path("plugins/hostile")).unwrap();
    assert_eq!(tools.reload(), changes(&[], &[], &["hostile"]));
    assert_eq!(count(), "3", "an unchanged plugin is kept with its instance");
    fs::write(home.user_path("sync/go"), "").unwrap();
    let report = tools.wait(call).unwrap();
    assert_eq!(data(&report)[2], "ok", "{report:?}");

    let manifest = home.path("plugins/living/plugin.toml");
    let text = fs::read_to_string(&manifest).unwrap().replace("1.0.0", "1.0.1");
    fs::write(&manifest, text).unwrap();
    home.run(&["plugin", "accept", "living"]).ended(0);
    assert_eq!(tools.reload(), changes(&[], &["living"], &[]));
    assert_eq!(count(), "1");
}

/// It stayed in memory until the next reload.
#[test]
fn a_plugin_that_was_removed_while_it_was_used_is_gone_after_its_last_use() {
    let home = Home::new();
    write(&home, "other", "Acts.");
    let tools = Tools::of(&home);
    write(&home, "sly", "Acts.");
    tools.reload();
    let used = Arc::clone(tools.host.registry().find_plugin("sly").unwrap());
    fs::remove_dir_all(home.path("plugins/sly")).unwrap();
    assert_eq!(tools.reload(), changes(&[], &[], &["sly"]));
    let rest = Arc::downgrade(&used);
    drop(used);
    until_so("the teardown", || rest.strong_count() == 0);
}

#[test]
fn h67_a_grant_that_is_revoked_in_the_file_is_gone_for_a_running_call_and_for_later_ones() {
    let home = Home::new().user_file("sync/here", "").user_file("data/plain.txt", "plain");
    let path = |name: &str| home.user_path(name).display().to_string();
    let entry = |name: &str| {
        let path = path(name);
        format!(
            "{{ path = {path:?}, mount = \"/{name}\", access = \"read-write\", quota = \"1MiB\" }}"
        )
    };
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    let policy =
        |entries: &[String]| format!("[plugin.hostile]\nfs = [{}]\n\n{rule}", entries.join(", "));
    let (both, sync) = (policy(&[entry("sync"), entry("data")]), policy(&[entry("sync")]));
    let folders = "[[request.fs]]\naccess = \"read-write\"\nwhy = \"tests\"\n";
    let home = home.guest("hostile", &format!("{NET}{folders}")).policy(both);
    let tools = Tools::of(&home);
    let steps =
        ["cat /data/plain.txt", "put /sync/ready x", "wait /sync/go", "cat /data/plain.txt"];
    let call = tools.spawn("hostile.follows_script", &json!({ "steps": steps }));
    until_so("the first half", || home.user_path("sync/ready").exists() || call.is_finished());
    fs::write(home.path("policy.toml"), &sync).unwrap();
    // Half a second is the promise, which a loaded machine need not keep. `policy_store` tests it.
    let is_revoked = |plugin: &RegisteredPlugin| plugin.grant().fs().len() == 1;
    until_so("the revocation", || {
        tools.host.registry().find_plugin("hostile").is_ok_and(|plugin| is_revoked(plugin))
    });
    fs::write(home.user_path("sync/go"), "").unwrap();
    let report = tools.wait(call).unwrap();
    let told = data(&report);
    assert_eq!((&told[0], &told[3]), (&json!("plain"), &json!("! not-permitted")), "{report:?}");

    fs::write(home.path("policy.toml"), sync.replace("allow", "deny")).unwrap();
    let report = tools.call("hostile.follows_script", &json!({ "steps": [] }));
    assert_eq!(report.outcome.as_str(), "denied", "a later call is decided at once: {report:?}");
}
